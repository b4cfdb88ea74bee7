// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system says, until somebody chooses.
import { createStore } from "./store.js";

const KEY = "brig.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored() {
	try {
		const value = localStorage.getItem(KEY);
		return value === "light" || value === "dark" ? value : "";
	} catch {
		return "";
	}
}

let chosen = stored();
const inForce = () => chosen || (system.matches ? "dark" : "light");
export const theme = createStore({ name: inForce() });

function apply() {
	document.documentElement.dataset.theme = inForce();
	theme.set({ name: inForce() });
}

export function toggleTheme() {
	chosen = inForce() === "dark" ? "light" : "dark";
	try {
		localStorage.setItem(KEY, chosen);
	} catch {
		// Then it lasts until the page is left.
	}
	apply();
}

system.addEventListener("change", apply);
apply();

// A colour of the style sheet, for what is drawn on a canvas.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
