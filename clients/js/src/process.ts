// SPDX-License-Identifier: Apache-2.0
/**
 * One brig as a child process.  Its standard output is read only as fast as somebody wants it, so nothing piles up here for a slow
 * reader.  The other channels (files in, files out, its own words) are served at once, whatever the reader does.
 *
 * brig ends its run when we ask for it (SIGTERM) and also when nobody reads its output any more; so a Node.js that is
 * killed leaves nothing behind.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { BrigError, BinaryNotFound, TransportError, UsageError } from "./errors.js";
import { concat } from "./tar.js";

export const DEFAULT_GRACE_MS = 10_000;
const WORDS_KEPT = 16 * 1024;

/** Descriptors of the child. */
export const FILES_IN = 3;
export const FILES_OUT = 4;
export const CODE_IN = 5;

export interface Launch {
	readonly binary: string;
	readonly args: readonly string[];
	readonly env: Record<string, string>;
	readonly cwd?: string | undefined;
	/** Standard input; nothing without. */
	readonly stdin?: Uint8Array | undefined;
	/** An archive for descriptor FILES_IN. */
	readonly files?: Uint8Array | undefined;
	/** Whether an archive comes out of descriptor FILES_OUT. */
	readonly takesFiles?: boolean | undefined;
	/** An open file for descriptor CODE_IN. */
	readonly codeFd?: number | undefined;
	readonly graceMs?: number | undefined;
}

export interface Exit {
	readonly code: number | null;
	readonly signal: string | null;
}

/** The lines of a stream; a long one is put together only once. */
async function* linesOf(stream: Readable): AsyncGenerator<string> {
	const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
	let pieces: Uint8Array[] = [];
	for await (const chunk of stream as AsyncIterable<Uint8Array>) {
		let from = 0;
		for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
			pieces.push(chunk.subarray(from, end));
			yield decoder.decode(concat(pieces));
			pieces = [];
			from = end + 1;
		}
		pieces.push(chunk.subarray(from));
	}
	const rest = concat(pieces);
	if (rest.length > 0) yield decoder.decode(rest);
}

async function collect(stream: Readable): Promise<Uint8Array> {
	const pieces: Uint8Array[] = [];
	for await (const chunk of stream as AsyncIterable<Uint8Array>) pieces.push(chunk);
	return concat(pieces);
}

function send(stream: Writable, data: Uint8Array): void {
	// A brig that refuses the run does not read what it was sent; its result says why.
	stream.on("error", () => {});
	stream.end(data);
}

function spawnError(error: NodeJS.ErrnoException, launch: Launch): BrigError {
	if (error.code === "E2BIG") {
		return new UsageError("the command line is too long for this system", "put long texts into files or into stdin", { cause: error });
	}
	if (error.code === "ENOENT" || error.code === "EACCES") {
		return new BinaryNotFound(`${launch.binary} cannot be started: ${error.message}`, "see the option `binary`", { cause: error });
	}
	return new BrigError(`${launch.binary} cannot be started: ${error.message}`, null, { cause: error });
}

export class Running {
	readonly exited: Promise<Exit>;
	/** The archive that the program's files came out in. */
	readonly filesOut: Promise<Uint8Array>;
	readonly #child: ChildProcess;
	readonly #graceMs: number;
	#failure: BrigError | undefined;
	#words = "";
	#ended = false;
	#stopped: Promise<void> | undefined;

	constructor(launch: Launch) {
		this.#graceMs = launch.graceMs ?? DEFAULT_GRACE_MS;
		try {
			this.#child = spawn(launch.binary, launch.args, { env: launch.env, cwd: launch.cwd, stdio: this.#channels(launch) });
		} catch (error) {
			throw spawnError(error as NodeJS.ErrnoException, launch);
		}
		this.exited = this.#watch(launch);
		this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
			if (this.#words.length < WORDS_KEPT) this.#words += text;
		});
		if (launch.stdin) send(this.#child.stdin as Writable, launch.stdin);
		if (launch.files) send(this.#child.stdio[FILES_IN] as Writable, launch.files);
		this.filesOut = launch.takesFiles ? collect(this.#child.stdio[FILES_OUT] as Readable) : Promise.resolve(new Uint8Array());
		this.filesOut.catch(() => {}); // whoever waits for it hears of it
	}

	#channels(launch: Launch): ("pipe" | "ignore" | number)[] {
		const stdin = launch.stdin ? "pipe" : "ignore";
		return [stdin, "pipe", "pipe", launch.files ? "pipe" : "ignore", launch.takesFiles ? "pipe" : "ignore", launch.codeFd ?? "ignore"];
	}

	#watch(launch: Launch): Promise<Exit> {
		return new Promise((done) => {
			const end = (exit: Exit) => {
				this.#ended = true;
				done(exit);
			};
			this.#child.once("error", (error) => {
				this.#failure = spawnError(error, launch);
				if (this.#child.pid === undefined) end({ code: null, signal: null });
			});
			this.#child.once("exit", (code, signal) => end({ code, signal }));
		});
	}

	/** What brig said besides its answer. */
	get words(): string {
		return this.#words.trim();
	}

	/** Its answer, line by line. */
	async *lines(): AsyncGenerator<string> {
		yield* linesOf(this.#child.stdout as Readable);
		await this.exited;
		if (this.#failure) throw this.#failure;
	}

	/** Ends it and waits until it is gone. */
	stop(): Promise<void> {
		// Once only: brig takes a second signal for impatience.
		this.#stopped ??= this.#terminate();
		return this.#stopped;
	}

	async #terminate(): Promise<void> {
		if (this.#ended) return;
		this.#child.kill("SIGTERM");
		await this.#gone();
	}

	/** Waits for the end of a brig that has said everything. */
	async finish(): Promise<Exit> {
		await this.#gone();
		return this.exited;
	}

	async #gone(): Promise<void> {
		const timer = setTimeout(() => this.#child.kill("SIGKILL"), this.#graceMs);
		await this.exited;
		clearTimeout(timer);
	}

	noAnswer(exit: Exit): BrigError {
		if (this.#failure) return this.#failure;
		const how = exit.signal ? `was ended by ${exit.signal}` : `exited with ${exit.code}`;
		const why = this.words ? `: ${this.words}` : "";
		return new TransportError(`brig ${how} without a result${why}`, "is this brig as new as this package? see `brig version`");
	}
}

/**
 * Runs something that can be stopped: `stop` is called when the signal fires, and the signal's reason is thrown then, whatever
 * came of the work.
 */
export async function abortable<T>(signal: AbortSignal | undefined, stop: () => Promise<void>, work: () => Promise<T>): Promise<T> {
	const listen = () => void stop();
	signal?.addEventListener("abort", listen, { once: true });
	try {
		if (signal?.aborted) await stop();
		const done = await work();
		signal?.throwIfAborted();
		return done;
	} catch (error) {
		signal?.throwIfAborted();
		throw error;
	} finally {
		signal?.removeEventListener("abort", listen);
	}
}

/** Everything that a short command prints, and how it ended. */
export async function command(launch: Launch, signal?: AbortSignal): Promise<{ exit: Exit; text: string; words: string }> {
	signal?.throwIfAborted();
	const running = new Running(launch);
	return abortable(signal, () => running.stop(), async () => {
		const lines: string[] = [];
		for await (const line of running.lines()) lines.push(line);
		const exit = await running.finish();
		return { exit, text: lines.join("\n"), words: running.words };
	});
}
