// SPDX-License-Identifier: Apache-2.0
/**
 * A sandbox whose cell stays: interpreters keep their state, commands run beside them, files stay where they are.
 * `new Sandbox({ session: true })` makes one.
 */
import { ClosedError, ServiceError, TransportError, UsageError } from "./errors.js";
import { parseLine, type RunEvent } from "./events.js";
import { type FileInfo, FileMissing, Files } from "./files.js";
import { cleanPath } from "./names.js";
import { type Contents, type RunOptions, type SandboxOptions, secondsOf, type Work } from "./options.js";
import { type Document, Result } from "./result.js";
import { Sandbox, useSessions } from "./sandbox.js";
import { type Listen, listenTo, type Snapshot, Terminal, type TerminalOptions, Watch } from "./session-parts.js";
import { findService, type OwnService, Service, startService } from "./service.js";

const STDIN_MAX = 1 << 20;

/** An interpreter of a session. */
export interface Context {
	readonly id: number;
	readonly language: string;
}

export interface SessionRunOptions extends Pick<RunOptions, "language" | "env" | "timeout" | "signal"> {
	/** The interpreter; without it the first one of the language, which is made if need be. */
	context?: Context | number;
}

export interface SessionExecOptions extends Pick<RunOptions, "env" | "timeout" | "signal" | "stdin"> {
	/** The folder where it begins. */
	cwd?: string;
}

/** Something that code shows while it runs: a value in every form that it has, or an error. */
export interface ShownEvent {
	readonly event: "shown";
	readonly forms: Readonly<Record<string, unknown>>;
}

type Ask = (method: string, rest: string, body?: unknown, signal?: AbortSignal) => Promise<Uint8Array>;

function numberOf(context: Context | number): number {
	return typeof context === "number" ? context : context.id;
}

function isTop(path: string): boolean {
	return /^(\.\/?|\/workspace\/?)?$/.test(path);
}

/** The files of a session, which its cell opens: with the rights of its programs, and where its links lead. */
export class SessionFiles extends Files {
	readonly #ask: Ask;
	readonly #listen: Listen;

	/** @internal */
	constructor(ask: Ask, listen: Listen) {
		super();
		this.#ask = ask;
		this.#listen = listen;
	}

	/** What changes below a folder, from now on and as it happens. */
	async watch(folder = ".", options: { recursive?: boolean } = {}): Promise<Watch> {
		const query = new URLSearchParams({ path: isTop(folder) ? "." : cleanPath(folder), ...(options.recursive ? { recursive: "1" } : {}) });
		return new Watch(...(await listenTo(this.#listen, `/watches?${query}`)));
	}

	async #file(method: string, path: string, body?: unknown): Promise<Uint8Array> {
		return this.#named(path, this.#ask(method, `/files/${cleanPath(path).split("/").map(encodeURIComponent).join("/")}`, body));
	}

	async #named(path: string, answer: Promise<Uint8Array>): Promise<Uint8Array> {
		try {
			return await answer;
		} catch (error) {
			if (error instanceof ServiceError && error.status === 404) {
				throw new FileMissing(`no file ${JSON.stringify(path)} is in this session`, "files.list() tells which ones are");
			}
			throw error;
		}
	}

	/** `mode` is left to the session. */
	async write(path: string, contents: Contents): Promise<void> {
		await this.#file("PUT", path, typeof contents === "string" ? new TextEncoder().encode(contents) : contents);
	}

	async read(path: string): Promise<Uint8Array> {
		return this.#file("GET", path);
	}

	async remove(path: string): Promise<void> {
		await this.#file("DELETE", path);
	}

	/** Gives a file or a folder another name. */
	async move(path: string, to: string): Promise<void> {
		await this.#named(path, this.#ask("POST", "/moves", { path: cleanPath(path), to: cleanPath(to) }));
	}

	/** Makes a folder, and those above it. */
	async mkdir(path: string): Promise<void> {
		await this.#ask("POST", "/folders", { path: cleanPath(path) });
	}

	async list(folder = "."): Promise<FileInfo[]> {
		const query = new URLSearchParams({ path: isTop(folder) ? "." : cleanPath(folder), depth: "64" });
		const data = await this.#named(folder, this.#ask("GET", `/files?${query}`));
		const { files } = JSON.parse(new TextDecoder().decode(data)) as { files: { path: string; type: string; bytes: number }[] };
		return files
			.filter((file) => file.type === "file")
			.map((file) => ({ path: file.path.replace(/^\.\//, ""), size: file.bytes }))
			.sort((a, b) => (a.path < b.path ? -1 : 1));
	}
}

/** The interpreters of a session. */
export class Contexts {
	readonly #ask: Ask;

	/** @internal */
	constructor(ask: Ask) {
		this.#ask = ask;
	}

	async list(): Promise<readonly Context[]> {
		const data = await this.#ask("GET", "");
		return (JSON.parse(new TextDecoder().decode(data)) as { contexts: Context[] }).contexts;
	}

	async create(language = "python", options: { cwd?: string } = {}): Promise<Context> {
		return JSON.parse(new TextDecoder().decode(await this.#ask("POST", "/contexts", { language, ...options }))) as Context;
	}

	async remove(context: Context | number): Promise<void> {
		await this.#ask("DELETE", `/contexts/${numberOf(context)}`);
	}
}

/** Settings by their names, of options that sessions have. */
const SETTINGS: Readonly<Record<string, string>> = {
	memory: "mem_limit", cpus: "cpu_count", pids: "pids_limit", disk: "disk_limit", outputLimit: "output_limit", inspect: "inspection",
};
const LACKING = ["workspace", "workspaceMode", "packages", "projectPackages", "apply", "artifacts", "receipt"] as const;

function settingsOf(options: SandboxOptions): Record<string, string> {
	const found: Record<string, string> = {};
	for (const [name, value] of Object.entries(options)) if (name in SETTINGS && value !== undefined) found[SETTINGS[name]!] = String(value);
	if (options.rules) found["rules"] = Object.entries(options.rules).map(([rule, action]) => `${rule}=${action}`).join(",");
	if (options.allowDegraded?.length) found["allow_degraded"] = options.allowDegraded.join(",");
	for (const [name, value] of Object.entries(options.settings ?? {})) found[name] = String(value);
	return found;
}

function inputOf(stdin: Contents): { base64: string } {
	const data = typeof stdin === "string" ? Buffer.from(stdin) : Buffer.from(stdin);
	if (data.length > STDIN_MAX) throw new UsageError("stdin has more than 1 MB", "write it to a file of the session");
	return { base64: data.toString("base64") };
}

/** What is told of a run: an event, the result's document, or null for what only newer services know. */
function eventOf(row: Record<string, unknown>): Exclude<RunEvent, { event: "result" }> | ShownEvent | { document: Document } | null {
	if ("verdict" in row) return { document: row["result"] as Document };
	if (row["event"] === "result") return { event: "shown", forms: row["result"] as Record<string, unknown> };
	return parseLine(JSON.stringify(row), true);
}

/** Only these; one of a single run would be left out in silence. */
function refuse(options: object, known: readonly string[]): void {
	for (const name of Object.keys(options)) if (!known.includes(name)) throw new UsageError(`a run in a session has no option '${name}'`);
}

/** A cell that stays, at a service. It begins with the first thing that is asked of it. */
export class Session extends Sandbox {
	override readonly files: SessionFiles;
	readonly contexts: Contexts;
	readonly #options: SandboxOptions;
	#service: Service | null = null;
	#own: OwnService | null = null;
	#begun: Promise<string> | null = null;
	#ended: Promise<void> | null = null;

	constructor(options: SandboxOptions = {}) {
		const { files: _, ...others } = options;
		super({ ...others, session: true });
		for (const name of LACKING) if (options[name] !== undefined) throw new UsageError(`a session has no option '${name}'`);
		if (options.backend !== undefined && !["auto", "native"].includes(options.backend)) throw new UsageError("sessions need native cells");
		this.#options = { ...options };
		const ask: Ask = (method, rest, body, signal) => this.#ask(method, rest, body, signal);
		this.files = new SessionFiles(ask, (rest, signal) => this.#listen(rest, signal));
		this.contexts = new Contexts(ask);
	}

	/** Its id, as `brig session` and the service know it. */
	id(): Promise<string> {
		if (this.#ended) throw new ClosedError("the session is closed", "make another one");
		this.#begun ??= this.#begin();
		return this.#begun;
	}

	async #listen(rest: string, signal: AbortSignal): ReturnType<Listen> {
		const id = await this.id();
		return this.#service!.events(`/v1/sessions/${id}${rest}`, undefined, signal, "GET");
	}

	async #connect(): Promise<Service> {
		const { host, token, policy, preset, network } = this.#options;
		const address = await findService(host);
		if (address === null) {
			this.#own = await startService(this.#options);
			return new Service(this.#own.address);
		}
		if (policy !== undefined || preset !== undefined || network !== undefined) {
			throw new UsageError(`the service at ${address} has a policy of its own`, "leave policy, preset and network out");
		}
		return new Service(address, token);
	}

	async #begin(): Promise<string> {
		const { trust, environment, env, sessionTimeout, snapshot, files } = this.#options;
		this.#service = await this.#connect();
		const wish = {
			options: settingsOf(this.#options), trust, environment, env,
			timeout: sessionTimeout === undefined ? undefined : secondsOf(sessionTimeout),
			snapshot: typeof snapshot === "object" ? snapshot.id : snapshot,
		};
		const id = (await this.#service.json("POST", "/v1/sessions", wish))["id"] as string;
		for (const [path, contents] of Object.entries(files ?? {})) {
			const data = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
			await this.#service.bytes("PUT", `/v1/sessions/${id}/files/${cleanPath(path).split("/").map(encodeURIComponent).join("/")}`, data);
		}
		return id;
	}

	async #ask(method: string, rest: string, body?: unknown, signal?: AbortSignal): Promise<Uint8Array> {
		const id = await this.id();
		return this.#service!.bytes(method, `/v1/sessions/${id}${rest}`, body, signal);
	}

	/** What the service tells of it: id, state, trust, created, contexts ... */
	async info(): Promise<Document> {
		return JSON.parse(new TextDecoder().decode(await this.#ask("GET", ""))) as Document;
	}

	async #chosen(context?: Context | number): Promise<number> {
		if (context !== undefined) return numberOf(context);
		const there = await this.contexts.list();
		if (there.length !== 1) throw new UsageError(`the session has ${there.length} contexts`, "name one");
		return there[0]!.id;
	}

	/** Interrupts what runs in a context, as Ctrl-C would; without one in the only one there is. */
	async interrupt(context?: Context | number): Promise<void> {
		await this.#ask("POST", `/contexts/${await this.#chosen(context)}/interrupt`);
	}

	/** Begins an interpreter anew, without what it knew. */
	async restart(context?: Context | number): Promise<void> {
		await this.#ask("POST", `/contexts/${await this.#chosen(context)}/restart`);
	}

	/** Stops the processes of the session. */
	async pause(): Promise<void> {
		await this.#ask("POST", "/pause");
	}

	/** Lets them go on. */
	async resume(): Promise<void> {
		await this.#ask("POST", "/resume");
	}

	/** How long the session lasts from now on: seconds, or "10m". */
	async setTimeout(timeout: number | string): Promise<void> {
		await this.#ask("POST", "/timeout", { timeout: secondsOf(timeout) });
	}

	/** A new session with a copy of its files, options and variables, and none of its processes. Where the service is our own it ends with the first. */
	async fork(options: { sessionTimeout?: number | string } = {}): Promise<Session> {
		const body = options.sessionTimeout === undefined ? {} : { timeout: secondsOf(options.sessionTimeout) };
		const made = JSON.parse(new TextDecoder().decode(await this.#ask("POST", "/fork", body))) as { id: string };
		const { policy: _policy, preset: _preset, network: _network, files: _files, snapshot: _snapshot, ...wishes } = this.#options;
		const other = new Session({ ...wishes, host: this.#service!.address });
		other.#service = new Service(this.#service!.address, this.#options.token);
		other.#begun = Promise.resolve(made.id);
		return other;
	}

	/** Keeps its files for sessions to come. */
	async snapshot(name?: string): Promise<Snapshot> {
		return JSON.parse(new TextDecoder().decode(await this.#ask("POST", "/snapshots", { name }))) as Snapshot;
	}

	/** Those that there are, of every session of this token; the newest first. */
	async snapshots(): Promise<readonly Snapshot[]> {
		await this.id();
		return (await this.#service!.json("GET", "/v1/snapshots"))["snapshots"] as Snapshot[];
	}

	async removeSnapshot(snapshot: Snapshot | string): Promise<void> {
		await this.id();
		await this.#service!.json("DELETE", `/v1/snapshots/${encodeURIComponent(typeof snapshot === "string" ? snapshot : snapshot.id)}`);
	}

	/** A shell, or another command, on a terminal. */
	async terminal(command: string | readonly string[] = "exec bash -i", options: TerminalOptions = {}): Promise<Terminal> {
		const args = typeof command === "string" ? ["sh", "-c", command] : command;
		const { timeout, ...others } = options;
		const body = { args, ...others, timeout: timeout === undefined ? undefined : secondsOf(timeout), pty: true, interactive: true, async: true };
		const { process } = JSON.parse(new TextDecoder().decode(await this.#ask("POST", "/processes", body))) as { process: number };
		const told = await listenTo((rest, signal) => this.#listen(rest, signal), `/processes/${process}/events`);
		return new Terminal(process, ...told, (rest, sent) => this.#ask("POST", rest, sent));
	}

	/** Runs code in a context. `text` of the result is the value of the last expression, `results` is all that was shown. */
	override run(code: string, options: SessionRunOptions = {}): Promise<Result> {
		return this.#result({ code }, options);
	}

	/** Runs a command beside the interpreters: a string is a line for sh, a list a program and its arguments. */
	override exec(command: string | readonly string[], options: SessionExecOptions = {}): Promise<Result> {
		return this.#result({ command }, options);
	}

	/** What happens, as it happens; leaving the loop interrupts the code, or kills the command. */
	override stream(work: string | Work, options: SessionRunOptions | SessionExecOptions = {}): AsyncGenerator<RunEvent, void, undefined> {
		return this.#events(typeof work === "string" ? { code: work } : work, options) as AsyncGenerator<RunEvent, void, undefined>;
	}

	override test(): Promise<Result> {
		throw new UsageError("a session runs no tests", "use a Sandbox, or exec()");
	}

	/** Ends the session and all that runs in it. */
	override close(): Promise<void> {
		this.#ended ??= this.#end();
		return this.#ended;
	}

	async #end(): Promise<void> {
		try {
			const id = await this.#begun?.catch(() => undefined);
			if (id !== undefined) await this.#service!.bytes("DELETE", `/v1/sessions/${id}`);
		} catch (error) {
			if (!(error instanceof ServiceError)) throw error; // it has ended by itself, or the service forgot it
		} finally {
			this.#service?.close();
			await this.#own?.close();
		}
	}

	#body(work: Work, options: SessionRunOptions & SessionExecOptions): [string, Record<string, unknown>] {
		const limit = options.timeout ?? this.#options.timeout;
		const both = { env: options.env, timeout: limit === undefined ? undefined : secondsOf(limit) };
		if ("code" in work) {
			refuse(options, ["language", "context", "env", "timeout", "signal"]);
			const language = options.language ?? this.#options.language ?? "python";
			const place = options.context === undefined ? { language } : { context: numberOf(options.context) };
			return ["/runs", { code: work.code, ...place, ...both }];
		}
		if ("test" in work) throw new UsageError("a session runs no tests");
		refuse(options, ["stdin", "cwd", "env", "timeout", "signal"]);
		const args = typeof work.command === "string" ? ["sh", "-c", work.command] : work.command;
		const stdin = options.stdin === undefined ? undefined : inputOf(options.stdin);
		return ["/processes", { args, stdin, cwd: options.cwd, ...both }];
	}

	async *#events(work: Work, options: SessionRunOptions & SessionExecOptions): AsyncGenerator<RunEvent | ShownEvent, void, undefined> {
		const [rest, body] = this.#body(work, options);
		const id = await this.id();
		for await (const row of this.#service!.events(`/v1/sessions/${id}${rest}`, body, options.signal)) {
			const said = eventOf(row);
			if (said && "document" in said) yield { event: "result", result: new Result(said.document, [], null) };
			else if (said) yield said;
		}
	}

	async #result(work: Work, options: SessionRunOptions & SessionExecOptions): Promise<Result> {
		for await (const event of this.#events(work, options)) if (event.event === "result") return event.result;
		throw new TransportError("the service gave no result");
	}
}

useSessions((options) => new Session(options));
