// SPDX-License-Identifier: Apache-2.0
// What can be chosen for a run and for a session alike, as options of a Select.
const TRUST = ["untrusted", "unknown", "trusted"];

// who: what the token may.
export function trustOptions(who) {
	const ceiling = who && TRUST.includes(who.max_trust) ? TRUST.indexOf(who.max_trust) : TRUST.length - 1;
	return [
		{ value: "", label: "default" },
		...TRUST.map((name, at) => ({ value: name, label: name, disabled: at > ceiling })),
	];
}

// loaded: the answer of /v1/environments, or null.
export function environmentOptions(loaded) {
	const rows = (loaded && loaded.environments) || [];
	return [
		{ value: "", label: "none" },
		...rows.map((row) => ({
			value: row.name,
			label: row.state === "ready" ? row.name : `${row.name} (${row.state})`,
			disabled: row.state !== "ready",
		})),
	];
}
