// SPDX-License-Identifier: Apache-2.0
// A unified diff, as results have one, taken apart by file.
import { shownText } from "./format.js";

const ESCAPES = { n: 10, t: 9, r: 13, '"': 34, "\\": 92 };

// A name in quotes, as git writes one that a line could not hold: octal escapes are bytes.
function unquoted(text) {
	const found = [];
	for (const match of text.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gu)) {
		if (match[1]) found.push(Number.parseInt(match[1], 8));
		else if (match[2]) found.push(ESCAPES[match[2]] ?? match[2].charCodeAt(0));
		else found.push(...new TextEncoder().encode(match[3]));
	}
	return new TextDecoder().decode(new Uint8Array(found));
}

// "a/PATH b/PATH", or both in quotes: the same name twice, so half of the line is one of them.
function pathOf(line) {
	const half = line.slice(0, (line.length - 1) / 2);
	return half.startsWith('"') ? unquoted(half.slice(1, -1)).slice(2) : half.slice(2);
}

const KINDS = { "+": "+", "-": "-", "@": "@", "\\": "\\", " ": " " };

function rowOf(line) {
	const kind = KINDS[line[0]] || "\\"; // of modes and binary files: a remark
	return { kind, text: kind === "@" || !KINDS[line[0]] ? line : line.slice(1) };
}

// The lines that only say again which file it is.
const isHead = (line) => /^(---|\+\+\+) /.test(line);

// Rows { kind: " " | "-" | "+" | "@" | "\\", text } of each file: a Map by path.
export function filesOf(diff) {
	const files = new Map();
	if (!diff) return files;
	let rows = null;
	let inHunk = false;
	for (const line of shownText(diff.text, diff.encoding).split("\n").slice(0, -1)) {
		if (line.startsWith("diff --git ")) {
			const path = pathOf(line.slice("diff --git ".length));
			rows = files.get(path) || [];
			files.set(path, rows);
			inHunk = false;
		} else if (rows && (inHunk || !isHead(line))) {
			inHunk = inHunk || line.startsWith("@@");
			rows.push(rowOf(line));
		}
	}
	return files;
}
