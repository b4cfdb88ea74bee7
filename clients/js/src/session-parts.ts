// SPDX-License-Identifier: Apache-2.0
/** What a session has beside runs and files: watches, terminals, snapshots. */
import { TransportError } from "./errors.js";
import { type Document, Result } from "./result.js";

/** Files of a session that are kept: the option `snapshot` of another one begins with them. */
export interface Snapshot {
	readonly id: string;
	readonly name: string | null;
	readonly files: number;
	readonly bytes: number;
}

/** What became of a file; `lost` is in the place of changes that were too many to be told. */
export interface FileChange {
	readonly change: "created" | "written" | "removed" | "renamed" | "chmod" | "lost";
	readonly name: string;
}

export interface TerminalOptions {
	rows?: number;
	columns?: number;
	/** The folder where it begins. */
	cwd?: string;
	env?: Readonly<Record<string, string>>;
	/** Seconds, or "10m". */
	timeout?: number | string;
}

type Rows = AsyncGenerator<Record<string, unknown>, void, undefined>;
/** @internal */
export type Listen = (rest: string, signal: AbortSignal) => Promise<Rows>;
type Post = (rest: string, body: unknown) => Promise<unknown>;

/** @internal Rows behind the first one, which says that it is told from now on. */
export async function listenTo(listen: Listen, rest: string): Promise<[Rows, AbortController]> {
	const stop = new AbortController();
	const rows = await listen(rest, stop.signal);
	await rows.next();
	return [rows, stop];
}

/** Rows until there are no more, or nobody wants them: to give up is no error. */
async function* until(rows: Rows, stop: AbortController): Rows {
	try {
		for (let row = await rows.next(); !row.done; row = await rows.next()) yield row.value;
	} catch (error) {
		if (!stop.signal.aborted) throw error;
	}
}

/** What changes below a folder, as it happens, until close() or the end of the session. */
export class Watch implements AsyncIterable<FileChange> {
	readonly #rows: Rows;
	readonly #stop: AbortController;

	/** @internal */
	constructor(rows: Rows, stop: AbortController) {
		this.#rows = rows;
		this.#stop = stop;
	}

	/** Leaving the loop does not end it. */
	async *[Symbol.asyncIterator](): AsyncGenerator<FileChange, void, undefined> {
		for await (const row of until(this.#rows, this.#stop)) {
			if (row["event"] === "changed") yield { change: row["change"] as FileChange["change"], name: String(row["name"] ?? "") };
		}
	}

	close(): void {
		this.#stop.abort();
	}
}

/** A program on a terminal: the bytes that it writes, until its end. */
export class Terminal implements AsyncIterable<Uint8Array> {
	/** Its number in the session. */
	readonly process: number;
	readonly #rows: Rows;
	readonly #stop: AbortController;
	readonly #post: Post;
	#result: Result | null = null;

	/** @internal */
	constructor(process: number, rows: Rows, stop: AbortController, post: Post) {
		this.process = process;
		this.#rows = rows;
		this.#stop = stop;
		this.#post = post;
	}

	/** When it has ended. */
	get result(): Result | null {
		return this.#result;
	}

	/** Leaving the loop does not end it. */
	async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
		for await (const row of until(this.#rows, this.#stop)) {
			if ("verdict" in row) {
				this.#result = new Result(row["result"] as Document, [], null);
				return;
			}
			if (row["event"] === "stdout") yield Uint8Array.from(Buffer.from(String(row["data"]), row["encoding"] ? "base64" : "utf8"));
		}
	}

	/** Types something. */
	async write(data: string | Uint8Array): Promise<void> {
		await this.#post(`/processes/${this.process}/input`, { data: { base64: Buffer.from(data).toString("base64") } });
	}

	async resize(rows: number, columns: number): Promise<void> {
		await this.#post(`/processes/${this.process}/resize`, { rows, columns });
	}

	async kill(signal = "SIGKILL"): Promise<void> {
		await this.#post(`/processes/${this.process}/signal`, { signal });
	}

	/** Its result; what it still writes is passed over. */
	async wait(): Promise<Result> {
		for await (const _ of this);
		if (this.#result === null) throw new TransportError("the service gave no result");
		return this.#result;
	}

	/** Nothing more is told; the program goes on. */
	close(): void {
		this.#stop.abort();
	}
}
