// SPDX-License-Identifier: Apache-2.0
/** What happens during a run, in order (`brig run --events`). */
import { TransportError } from "./errors.js";
import { bytesOf, camelKeys, type Document, type Finding, type Result, type Sample, streamText } from "./result.js";

export interface FindingEvent extends Finding {
	readonly event: "finding";
}

/** Something for people that cannot wait: packages are being installed, there is no isolation. */
export interface NoticeEvent {
	readonly event: "notice";
	readonly text: string;
}

/** The program is let go; never sent for one that is blocked or refused. */
export interface StartedEvent {
	readonly event: "started";
	readonly id: string;
	readonly backend: string;
	readonly language: string;
	readonly trust: string;
	readonly version: string;
}

/** A piece of output; no character is cut in two. */
export interface OutputEvent {
	readonly event: "stdout" | "stderr";
	/** As text; what is not UTF-8 became U+FFFD. */
	readonly data: string;
	/** As the program wrote it. */
	readonly bytes: Uint8Array;
}

export interface SampleEvent extends Sample {
	readonly event: "sample";
}

/** The last one, always. */
export interface ResultEvent {
	readonly event: "result";
	readonly result: Result;
}

export type RunEvent = FindingEvent | NoticeEvent | StartedEvent | OutputEvent | SampleEvent | ResultEvent;

const PLAIN = new Set(["finding", "notice", "started", "sample"]);

/** One line of brig: an event, the document of the result, or null for something that only newer versions know. */
export function parseLine(line: string, isEvents: boolean): Exclude<RunEvent, ResultEvent> | { document: Document } | null {
	let row: Record<string, unknown>;
	try {
		row = JSON.parse(line) as Record<string, unknown>;
	} catch (error) {
		throw new TransportError(`brig printed a line that is not JSON: ${line.slice(0, 200)}`, null, { cause: error });
	}
	if (!isEvents) return { document: row };
	const name = row["event"] as string;
	if (name === "result") return { document: row["result"] as Document };
	if (name === "stdout" || name === "stderr") {
		const data = String(row["data"]);
		return { event: name, data: streamText(data, row["encoding"]), bytes: bytesOf(data, row["encoding"]) };
	}
	return PLAIN.has(name) ? (camelKeys(row) as Exclude<RunEvent, ResultEvent>) : null;
}
