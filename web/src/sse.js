// SPDX-License-Identifier: Apache-2.0
// Reads server-sent events from a fetch response: EventSource can neither POST nor send a token.
const LONGEST = 128 * 1024 * 1024; // characters of one event; the last one holds the whole result

function parseBlock(block) {
	let event = "message";
	const data = [];
	for (const line of block.split("\n")) {
		if (line.startsWith(":")) continue;
		const colon = line.indexOf(":");
		const name = colon < 0 ? line : line.slice(0, colon);
		const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
		if (name === "event") event = value;
		else if (name === "data") data.push(value);
	}
	return data.length > 0 ? { event, data: data.join("\n") } : null;
}

// Calls onEvent(name, object) for each event, in order, and returns when the stream has ended.  Pieces are joined only
// when an event is complete: the last one comes in hundreds of them.
export async function readEvents(response, onEvent) {
	const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
	let pieces = [];
	let length = 0;
	for (;;) {
		const { value, done } = await reader.read();
		if (done) return;
		const piece = value.replaceAll("\r", ""); // data is JSON, which has no such character but as an escape
		const before = pieces[pieces.length - 1] || "";
		pieces.push(piece);
		length += piece.length;
		if (length > LONGEST) throw new Error("the server sent an event that is too long");
		if (!(before.slice(-1) + piece).includes("\n\n")) continue;
		const blocks = pieces.join("").split("\n\n");
		const rest = blocks.pop();
		pieces = [rest];
		length = rest.length;
		for (const found of blocks.map(parseBlock)) if (found) onEvent(found.event, JSON.parse(found.data));
	}
}
