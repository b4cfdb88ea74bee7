// SPDX-License-Identifier: Apache-2.0
/**
 * A service (`brig serve`) over HTTP: the one that is named, the one at a usual place, or one of our own, which ends when its standard
 * input does and so with this process, however that ends.  Each call has a connection for as long as it lasts: who closes it gives up,
 * and the service ends the run.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest, type RequestOptions } from "node:http";
import { Agent as TlsAgent, request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findBinary } from "./binary.js";
import { ServiceError, TransportError, UsageError } from "./errors.js";
import { environment, type SandboxOptions } from "./options.js";

const USUAL = "/run/brig/brig.sock";
const PATIENCE_MS = 60_000;

/** A service of our own. */
export interface OwnService {
	readonly address: string;
	close(): Promise<void>;
}

/** Whether somebody listens there, at a socket of root's or our own: nobody has named it. */
async function answers(path: string): Promise<boolean> {
	const found = await stat(path).catch(() => null);
	if (!found?.isSocket() || (found.uid !== 0 && found.uid !== process.geteuid?.())) return false;
	return new Promise((done) => {
		const socket = connect(path);
		socket.once("connect", () => (socket.destroy(), done(true)));
		socket.once("error", () => done(false));
	});
}

/** The address of a service that was named, or is at a usual place; null: there is none. */
export async function findService(host?: string): Promise<string | null> {
	const named = host ?? process.env["BRIG_HOST"] ?? "";
	if (named !== "") return named === "none" ? null : named;
	const runtime = process.env["XDG_RUNTIME_DIR"];
	for (const path of [...(runtime ? [`${runtime}/brig/brig.sock`] : []), USUAL]) if (await answers(path)) return `unix:${path}`;
	return null;
}

/** A name that nobody knows, which fits into the address of a socket: a long $TMPDIR would not. */
function newPath(): string {
	const name = `brig-session-${randomBytes(8).toString("hex")}.sock`;
	const path = join(tmpdir(), name);
	return Buffer.byteLength(path) <= 107 ? path : join("/tmp", name);
}

/** Starts one, and waits until it is ready. */
export async function startService(options: SandboxOptions): Promise<OwnService> {
	const path = newPath();
	const words = ["serve", "--unix", path, "--socket", "none", "--no-auth", "--end-with-stdin", "--drain", "1s"];
	for (const name of ["policy", "preset", "state"] as const) {
		const value = options[name];
		if (value !== undefined) words.push(`--${name}`, value);
	}
	const { BRIG_HOST: _, ...env } = environment(options.network);
	// In a group of its own: Ctrl-C is for us, and we end it.
	const child = spawn(findBinary(options.binary), words, { env, detached: true, stdio: ["pipe", "pipe", "pipe"] });
	let said = "";
	child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-4096)));
	child.stdin.on("error", () => undefined);
	const ended = new Promise<void>((done) => child.once("close", () => done()));
	const line = await new Promise<string>((done) => {
		const timer = setTimeout(() => done(""), PATIENCE_MS);
		const finish = (text: string) => (clearTimeout(timer), done(text));
		child.once("error", (error) => ((said = error.message), finish("")));
		child.once("close", () => finish(""));
		createInterface({ input: child.stdout }).once("line", finish);
	});
	if (!line.startsWith("ready")) {
		child.kill("SIGKILL");
		throw new TransportError(`brig serve did not begin: ${said.trim().split("\n").pop() || "without a word"}`);
	}
	// Whoever forgets to close it can end all the same.
	child.unref();
	for (const stream of [child.stdin, child.stdout, child.stderr]) (stream as unknown as { unref?(): void }).unref?.();
	return {
		address: `unix:${path}`,
		async close() {
			child.ref();
			child.stdin.end();
			await ended;
		},
	};
}

/** What an answer says instead of being one. */
function refusal(status: number, body: string): ServiceError {
	try {
		const { message, code } = (JSON.parse(body) as { error: { message: string; code: string } }).error;
		return new ServiceError(message, status, code);
	} catch {
		return new ServiceError(`the service answers ${status}`, status, "");
	}
}

async function whole(answer: IncomingMessage): Promise<Buffer> {
	const pieces: Buffer[] = [];
	for await (const piece of answer) pieces.push(piece as Buffer);
	return Buffer.concat(pieces);
}

export class Service {
	readonly address: string;
	readonly #target: RequestOptions;
	readonly #send: typeof httpRequest;
	readonly #agent: Agent;
	readonly #token: string | undefined;

	constructor(address: string, token?: string) {
		const found = /^(https?):\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$|^unix:(.+)$/.exec(address);
		if (!found) throw new UsageError(`${JSON.stringify(address)} is no service`, "name http://HOST:PORT, https://HOST:PORT, unix:PATH or none");
		const [, scheme, host, port, path] = found;
		const isTls = scheme === "https";
		this.address = address;
		this.#token = token ?? (process.env["BRIG_TOKEN"] || undefined);
		this.#target = path !== undefined ? { socketPath: path } : { host: host!.replace(/^\[|\]$/g, ""), port: Number(port ?? (isTls ? 443 : 80)) };
		this.#send = isTls ? httpsRequest : httpRequest;
		this.#agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, keepAliveMsecs: 1000, timeout: 0 });
	}

	close(): void {
		this.#agent.destroy();
	}

	#answer(method: string, path: string, body: unknown, accept: string, signal?: AbortSignal): Promise<IncomingMessage> {
		const data = body instanceof Uint8Array ? body : body === undefined ? undefined : Buffer.from(JSON.stringify(body));
		const headers: Record<string, string | number> = { Accept: accept };
		if (this.#token !== undefined) headers["Authorization"] = `Bearer ${this.#token}`;
		if (data) {
			headers["Content-Type"] = body instanceof Uint8Array ? "application/octet-stream" : "application/json";
			headers["Content-Length"] = data.length;
		}
		return new Promise((done, fail) => {
			signal?.throwIfAborted();
			const sent: ClientRequest = this.#send({ ...this.#target, method, path, headers, agent: this.#agent });
			const stop = () => sent.destroy();
			signal?.addEventListener("abort", stop, { once: true });
			sent.once("close", () => signal?.removeEventListener("abort", stop));
			sent.once("response", done);
			sent.once("error", (error) => fail(signal?.aborted ? signal.reason : this.#trouble(error)));
			sent.end(data);
		});
	}

	#trouble(error: Error): TransportError {
		const isOfCommands = (error as { code?: string }).code === "EPROTOTYPE";
		const remedy = isOfCommands ? "that is the socket of commands: name the one of 'brig serve --unix PATH'" : null;
		return new TransportError(`the service at ${this.address} does not answer: ${error.message}`, remedy, { cause: error });
	}

	/** The bytes of the answer; a ServiceError if it is a refusal. */
	async bytes(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Uint8Array> {
		const answer = await this.#answer(method, path, body, "*/*", signal);
		const data = await whole(answer).catch((error: Error) => {
			throw signal?.aborted ? signal.reason : this.#trouble(error);
		});
		if (answer.statusCode! >= 400) throw refusal(answer.statusCode!, data.toString());
		return Uint8Array.from(data);
	}

	async json(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Record<string, unknown>> {
		const data = await this.bytes(method, path, body, signal);
		try {
			return JSON.parse(new TextDecoder().decode(data)) as Record<string, unknown>;
		} catch (error) {
			throw new TransportError(`the service at ${this.address} gave no document`, null, { cause: error });
		}
	}

	/** The events of a run as they come; whoever leaves the loop ends the run. */
	async *events(path: string, body: unknown, signal?: AbortSignal, method = "POST"): AsyncGenerator<Record<string, unknown>, void, undefined> {
		const answer = await this.#answer(method, path, body, "text/event-stream", signal);
		try {
			if (answer.statusCode! >= 400) throw refusal(answer.statusCode!, (await whole(answer)).toString());
			for await (const line of createInterface({ input: answer, crlfDelay: Infinity })) {
				if (line.startsWith("data: ")) yield JSON.parse(line.slice("data: ".length)) as Record<string, unknown>;
			}
			signal?.throwIfAborted();
		} finally {
			if (!answer.complete) answer.destroy();
		}
	}
}
