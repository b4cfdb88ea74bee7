// SPDX-License-Identifier: Apache-2.0
/** A place to run things in: options that hold for every run, and files that last from one to the next. */
/// <reference lib="esnext.disposable" preserve="true" />
import { setMaxListeners } from "node:events";
import { readFile } from "node:fs/promises";
import { ClosedError, CommandError, TransportError, UsageError } from "./errors.js";
import { parseLine, type RunEvent } from "./events.js";
import { type Files, MemoryFiles, WorkspaceFiles } from "./files.js";
import * as host from "./host.js";
import { type Job, prepare } from "./job.js";
import { refuseUnknown, type RunOptions, runWords, type SandboxOptions, type Work } from "./options.js";
import { Running } from "./process.js";
import { Artifact, camelKeys, type Change, type Document, Result } from "./result.js";
import { unpackTar } from "./tar.js";

function defined<T extends object>(options: T): T {
	return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T;
}

/** Sessions are sandboxes, and this module is below theirs. */
let makeSession: ((options: SandboxOptions) => Sandbox) | null = null;

/** @internal */
export function useSessions(make: (options: SandboxOptions) => Sandbox): void {
	makeSession = make;
}

export class Sandbox {
	/** Its files: in memory, or with a workspace the project's. */
	readonly files: Files;
	readonly #options: SandboxOptions;
	readonly #memory: MemoryFiles | null;
	readonly #running = new Set<Running>();
	#last: Result | null = null;
	#closed: ClosedError | null = null;

	constructor(options: SandboxOptions = {}) {
		refuseUnknown(options);
		this.#options = defined({ ...options });
		if (options.workspace !== undefined && options.files) {
			throw new UsageError("files are for a sandbox without a workspace", "leave one of them out");
		}
		this.#memory = options.workspace === undefined ? new MemoryFiles(options.files) : null;
		this.files = this.#memory ?? new WorkspaceFiles(this, options.apply === true);
		if (options.session && new.target === Sandbox) {
			if (!makeSession) throw new UsageError("sessions are not loaded", 'import { Session } from "brig"');
			return makeSession(options);
		}
	}

	/** Runs code. Whatever becomes of it is a result; see `raiseForVerdict()`. */
	run(code: string, options: RunOptions = {}): Promise<Result> {
		return this.#result({ code }, options);
	}

	/** Runs a command: a string is a line for sh, a list a program and its arguments. */
	exec(command: string | readonly string[], options: RunOptions = {}): Promise<Result> {
		return this.#result({ command }, options);
	}

	/** Runs the tests of the workspace, or of one path in it; the counts are in `result.tests`. */
	test(path: string | null = null, { framework, ...options }: RunOptions & { framework?: string } = {}): Promise<Result> {
		return this.#result({ test: path, ...(framework === undefined ? {} : { framework }) }, options);
	}

	/** What the inspection finds in code, without running it. */
	check(code: string, options: host.CheckOptions = {}): Promise<host.CheckResult> {
		const { binary, policy, trust, inspect, rules, language } = this.#options;
		return host.check(code, defined({ ...defined({ binary, policy, trust, inspect, rules, language }), ...options }));
	}

	/**
	 * What happens, as it happens; the last event is the result. Whoever leaves the loop early cancels the run. For a slow reader the
	 * lines wait in brig, not here.
	 */
	stream(work: string | Work, options: RunOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
		return this.#events(typeof work === "string" ? { code: work } : work, options, true);
	}

	/** What the last run changed, or the run that is named. */
	async changes(run?: Result | string): Promise<readonly Change[]> {
		if (this.#memory) return (typeof run === "object" ? run : this.#last)?.changes ?? [];
		const result = typeof run === "object" ? run : this.#last;
		if (typeof run !== "string" && result?.workspace?.state !== "kept") return result?.changes ?? [];
		const text = await host.say(["workspace", "show", this.#id(run), ...this.#records(), "--json"], this.#options);
		return (camelKeys(JSON.parse(text)) as { changes: Change[] }).changes;
	}

	/** The changes of the last run, or of the one that is named, line by line against the project as it is now. */
	diff(run?: Result | string): Promise<string> {
		return host.say(["workspace", "diff", this.#id(run), ...this.#records(), "--no-color"], this.#options);
	}

	/** Moves these changes over to the project: all, or if it has moved on, none. */
	async apply(run?: Result | string): Promise<void> {
		await host.say(["workspace", "apply", this.#id(run), ...this.#records()], this.#options);
	}

	/** Forgets these changes. */
	async discard(run?: Result | string): Promise<void> {
		await host.say(["workspace", "discard", this.#id(run), ...this.#records()], this.#options);
	}

	metrics(): Promise<Document> {
		return host.metrics(this.#options);
	}

	history(options: host.HistoryOptions = {}): Promise<readonly Document[]> {
		const { binary, policy, state } = this.#options;
		return host.history(defined({ ...defined({ binary, policy, state }), ...options }));
	}

	doctor(): Promise<Document & { readonly ok: boolean }> {
		return host.doctor(this.#options);
	}

	policy(): Promise<Document> {
		return host.policy(this.#options);
	}

	/** Ends what still runs, and waits for that. */
	async close(): Promise<void> {
		this.#closed ??= new ClosedError("the sandbox is closed", "make another one");
		await Promise.all([...this.#running].map((running) => running.stop()));
	}

	async [Symbol.asyncDispose](): Promise<void> {
		await this.close();
	}

	#id(run?: Result | string): string {
		if (this.#memory) throw new UsageError("this sandbox has no workspace", "its files are in memory: see files.list() and files.download()");
		const id = typeof run === "string" ? run : (run ?? this.#last)?.id;
		if (!id) throw new CommandError("nothing was run here yet");
		return host.runName(id);
	}

	#records(): string[] {
		const { state, policy } = this.#options;
		return runWords(defined({ state, policy }));
	}

	async #result(work: Work, options: RunOptions): Promise<Result> {
		for await (const event of this.#events(work, options, false)) if (event.event === "result") return event.result;
		throw new TransportError("brig ended without a result");
	}

	async *#events(work: Work, options: RunOptions, isEvents: boolean): AsyncGenerator<RunEvent, void, undefined> {
		refuseUnknown(options);
		const { signal } = options;
		const check = () => {
			if (this.#closed) throw this.#closed;
			signal?.throwIfAborted();
		};
		check();
		const job = await prepare(work, { ...this.#options, ...defined(options) }, this.#memory, isEvents ? "--events" : "--json");
		try {
			check();
			const running = new Running(job.launch);
			this.#running.add(running);
			const stop = () => void running.stop();
			if (signal) setMaxListeners(0, signal); // one signal may end any number of runs
			signal?.addEventListener("abort", stop);
			try {
				yield* this.#read(running, job, isEvents, check);
			} catch (error) {
				check();
				throw error;
			} finally {
				signal?.removeEventListener("abort", stop);
				await running.stop();
				this.#running.delete(running);
			}
		} finally {
			await job.release();
		}
	}

	/** The events of a brig; `check` throws when the run was cancelled. */
	async *#read(running: Running, job: Job, isEvents: boolean, check: () => void): AsyncGenerator<RunEvent, void, undefined> {
		let document: Document | undefined;
		for await (const line of running.lines()) {
			const said = parseLine(line, isEvents);
			if (said && "document" in said) document = said.document;
			else if (said) yield said;
			check();
		}
		const exit = await running.finish();
		check();
		if (!document) throw running.noAnswer(exit);
		yield { event: "result", result: await this.#finish(document, running, job) };
	}

	async #finish(document: Document, running: Running, job: Job): Promise<Result> {
		const archive = await running.filesOut;
		const entries = archive.length > 0 ? unpackTar(archive) : [];
		const contents = new Map(entries.map((entry) => [entry.path, entry.data]));
		const rows = camelKeys(document["artifacts"]) as { path: string; size: number; sha256: string }[];
		const artifacts = rows.map((row) => new Artifact(row.path, row.size, row.sha256, contents.get(row.path) ?? undefined));
		const receipt = job.receipt ? await readFile(job.receipt, "utf8").catch(() => null) : null;
		const result = new Result(document, artifacts, receipt);
		job.memory?.take(result.changes, contents);
		this.#last = result;
		return result;
	}
}

/** Runs code once, in a sandbox that is gone afterwards. */
export async function run(code: string, options: SandboxOptions & RunOptions = {}): Promise<Result> {
	const { stdin, args, signal, ...others } = options;
	const sandbox = new Sandbox(others);
	return sandbox.run(code, defined({ stdin, args, signal }) as RunOptions);
}
