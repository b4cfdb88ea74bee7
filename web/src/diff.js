// SPDX-License-Identifier: Apache-2.0
// The difference of two texts by lines: what both begin and end with is set aside, the rest is a longest common
// subsequence.  Beyond the ceiling the middle is shown as taken away and added as a whole.
const CELLS_MAX = 4_000_000;
const CONTEXT = 3;

function lines(text) {
	const found = text.split("\n");
	if (found[found.length - 1] === "") found.pop();
	return found;
}

function middle(before, after) {
	const rows = before.length;
	const columns = after.length;
	if (rows * columns > CELLS_MAX) {
		return [...before.map((text) => ({ kind: "-", text })), ...after.map((text) => ({ kind: "+", text }))];
	}
	const width = columns + 1;
	const longest = new Uint32Array((rows + 1) * width);
	for (let i = rows - 1; i >= 0; i--) {
		for (let j = columns - 1; j >= 0; j--) {
			longest[i * width + j] =
				before[i] === after[j]
					? longest[(i + 1) * width + j + 1] + 1
					: Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
		}
	}
	const found = [];
	let i = 0;
	let j = 0;
	while (i < rows || j < columns) {
		if (i < rows && j < columns && before[i] === after[j]) {
			found.push({ kind: " ", text: before[i++] });
			j++;
		} else if (i < rows && (j === columns || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
			found.push({ kind: "-", text: before[i++] });
		} else {
			found.push({ kind: "+", text: after[j++] });
		}
	}
	return found;
}

// Rows { kind: " " | "-" | "+" | "@", text }; "@" stands for lines that are equal and left out.
export function diffLines(oldText, newText) {
	const before = lines(oldText);
	const after = lines(newText);
	let head = 0;
	while (head < before.length && head < after.length && before[head] === after[head]) head++;
	let tail = 0;
	while (
		tail < before.length - head &&
		tail < after.length - head &&
		before[before.length - 1 - tail] === after[after.length - 1 - tail]
	)
		tail++;
	const same = (list) => list.map((text) => ({ kind: " ", text }));
	const rows = [
		...same(before.slice(0, head)),
		...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
		...same(before.slice(before.length - tail)),
	];
	return withoutDistant(rows);
}

function withoutDistant(rows) {
	const near = rows.map(() => false);
	rows.forEach((row, at) => {
		if (row.kind === " ") return;
		for (let i = Math.max(0, at - CONTEXT); i <= Math.min(rows.length - 1, at + CONTEXT); i++) near[i] = true;
	});
	const found = [];
	for (let at = 0; at < rows.length; at++) {
		if (near[at]) found.push(rows[at]);
		else if (at === 0 || near[at - 1]) {
			let end = at;
			while (end < rows.length && !near[end]) end++;
			found.push({ kind: "@", text: end - at === 1 ? "1 line that is equal" : `${end - at} lines that are equal` });
		}
	}
	return found;
}
