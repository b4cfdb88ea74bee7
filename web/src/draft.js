// SPDX-License-Identifier: Apache-2.0
// What is in the editor and around it, kept for this tab so that a reload loses nothing, and the job it becomes.
import { createStore } from "./store.js";
import { createExecution } from "./execution.js";
import { jobBytes } from "./format.js";
import { sampleOf } from "./languages.js";

const KEY = "brig.draft";
const ALL_FILES = "**"; // so that pictures are shown without asking for them by name
const STORED_MAX = 512 * 1024;
export const FILES_MAX = 24 * 1024 * 1024; // the server takes bodies of 32 MB, and base64 makes a third more

const FIRST = {
	language: "python",
	environment: "",
	trust: "",
	code: sampleOf("python"),
	timeout: "",
	memory: "",
	stdin: "",
	args: "",
	artifacts: "",
	files: [],
	edition: 0,
};

function stored() {
	try {
		return JSON.parse(sessionStorage.getItem(KEY)) || {};
	} catch {
		return {};
	}
}

export const draft = createStore({ ...FIRST, ...stored(), files: [] });
// Puts another text into the editor.
export const setCode = (changes) => draft.set({ ...changes, edition: draft.get().edition + 1 });
export const current = createExecution();

let timer = 0;
draft.watch(({ files, ...rest }) => {
	clearTimeout(timer);
	timer = setTimeout(() => {
		try {
			const text = JSON.stringify(rest);
			if (text.length <= STORED_MAX) sessionStorage.setItem(KEY, text);
		} catch {
			// A draft that cannot be kept is lost with the tab, and that is all.
		}
	}, 300);
});

// Words as a shell would split them: blanks part them, quotes hold them together.
export function splitWords(line) {
	const found = [];
	for (const match of line.matchAll(/((?:"(?:[^"\\]|\\.)*"?|'[^']*'?|\\.|[^\s"'\\])+)/g)) {
		found.push(
			match[0].replace(/"((?:[^"\\]|\\.)*)"?|'([^']*)'?|\\(.)/g, (_, double, single, escaped) =>
				double !== undefined ? double.replace(/\\(["\\])/g, "$1") : single !== undefined ? single : escaped,
			),
		);
	}
	return found;
}

export function jobOf(d) {
	const options = {};
	if (d.timeout.trim()) options.timeout = d.timeout.trim();
	if (d.memory.trim()) options.memory = d.memory.trim();
	const job = { language: d.language, code: d.code, artifacts: splitWords(d.artifacts || ALL_FILES) };
	if (d.trust) job.trust = d.trust;
	if (d.environment) job.environment = d.environment;
	if (d.stdin) job.stdin = d.stdin;
	if (d.args.trim()) job.args = splitWords(d.args);
	if (d.files.length > 0) job.files = Object.fromEntries(d.files.map((file) => [file.path, jobBytes(file.data)]));
	if (Object.keys(options).length > 0) job.options = options;
	return job;
}

export function runDraft() {
	const { phase } = current.store.get();
	if (phase === "waiting" || phase === "running") return;
	current.run(jobOf(draft.get()));
}
