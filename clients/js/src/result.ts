// SPDX-License-Identifier: Apache-2.0
/** What became of a run: the document that brig prints (docs/RESULT.md), with the names and types of this language. */
import { errorOf, TransportError } from "./errors.js";
import { decodeName } from "./names.js";

export type Verdict =
	| "ok" | "error" | "crash" | "timeout" | "cpu_limit" | "memory_limit" | "output_limit" | "disk_limit" | "pids_limit"
	| "blocked" | "refused" | "violated" | "failed" | "cancelled";
export type Severity = "LOW" | "MEDIUM" | "HIGH" | "CRITICAL";

/** A remark of the static inspection; columns in characters, the end behind the last one. */
export interface Finding {
	readonly rule: string;
	readonly severity: Severity;
	readonly line: number;
	readonly column: number;
	readonly endLine: number;
	readonly endColumn: number;
	readonly name: string;
	readonly message: string;
	readonly remedy: string;
}

/** One promise: what was declared, what the kernel said afterwards. */
export interface Evidence {
	readonly check: string;
	readonly declared: string;
	readonly enforced: string;
	readonly kept: boolean;
	readonly source: string;
}

/** Something that the program was refused. */
export interface Denied {
	readonly kind: "syscall" | "file" | "host";
	readonly what: string;
	readonly count: number;
	readonly why: string;
	/** What to change in the policy; null if nothing could allow it. */
	readonly fix: string | null;
}

export interface Usage {
	readonly wallMs: number;
	readonly cpuMs: number;
	readonly memoryPeakBytes: number;
	readonly pidsPeak: number;
	readonly outputBytes: number;
}

export interface Sample {
	readonly atMs: number;
	readonly cpuMs: number;
	readonly memoryBytes: number;
	readonly pids: number;
	readonly outputBytes: number;
}

export interface Change {
	readonly path: string;
	readonly change: "added" | "modified" | "deleted";
	readonly type: "file" | "directory" | "link" | "special";
	readonly size: number;
	readonly mode: number;
	readonly sha256?: string | null;
}

export interface NetworkUse {
	readonly host: string;
	readonly port: number;
	readonly allowed: boolean;
	readonly reason: string | null;
	readonly count: number;
	readonly sentBytes: number;
	readonly receivedBytes: number;
}

export interface TestReport {
	readonly framework: string;
	readonly complete: boolean;
	readonly report: "sealed" | "own word";
	readonly testFiles: "held" | "compared";
	readonly passed: number;
	readonly failed: number;
	readonly skipped: number;
	readonly failures: readonly {
		readonly name: string; readonly message: string; readonly file: string | null; readonly line: number | null;
	}[];
	readonly dropped: number;
}

export interface WorkspaceState {
	readonly mode: "ro" | "cow" | "rw";
	readonly state: "none" | "kept" | "applied" | "incomplete";
	readonly added: number;
	readonly modified: number;
	readonly deleted: number;
	readonly bytes: number;
	readonly dropped: number;
}

/** A file that the program left. */
export class Artifact {
	readonly path: string;
	readonly size: number;
	readonly sha256: string | null;
	readonly #data: Uint8Array | undefined;

	/** @internal */
	constructor(path: string, size: number, sha256: string | null, data: Uint8Array | undefined) {
		this.path = path;
		this.size = size;
		this.sha256 = sha256;
		this.#data = data;
	}

	/** Its contents: a copy, the caller's own. */
	bytes(): Uint8Array {
		if (!this.#data) throw new TransportError(`${this.path} was listed but its contents did not come with the result`);
		return this.#data.slice();
	}

	/** Its contents as text; what is not UTF-8 becomes U+FFFD. */
	text(): string {
		return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes());
	}
}

export type Document = Readonly<Record<string, unknown>>;

/** brig's word for "no limit", 2^63 - 1, is not a number of JavaScript. */
const UNLIMITED = 2 ** 63;

function camel(key: string): string {
	return key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The same value with wallMs for wall_ms, at any depth, and paths as strings. */
export function camelKeys(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(camelKeys);
	if (typeof value === "number") return value >= UNLIMITED ? Infinity : value;
	if (value === null || typeof value !== "object") return value;
	const row = value as Record<string, unknown>;
	const made: Record<string, unknown> = {};
	for (const [key, member] of Object.entries(row)) {
		if (key === "path") made[key] = pathOf(row);
		else if (key !== "path_encoding") made[camel(key)] = camelKeys(member);
	}
	return made;
}

function pathOf(row: Readonly<Record<string, unknown>>): string {
	const path = String(row["path"]);
	return row["path_encoding"] === "base64" ? decodeName(bytesOf(path, "base64")) : path;
}

export function bytesOf(text: string, encoding: unknown): Uint8Array {
	if (encoding !== "base64") return new TextEncoder().encode(text);
	// A Buffer may share its memory with others; what is given away must not.
	return Uint8Array.from(Buffer.from(text, "base64"));
}

/** The text of a stream: what is not UTF-8 becomes U+FFFD, `...Bytes` has it as it was. */
export function streamText(text: string, encoding: unknown): string {
	if (encoding !== "base64") return text;
	return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(text, encoding));
}

const LIMIT_REMEDIES: Partial<Record<Verdict, string>> = {
	timeout: "do less at once, or raise the option timeout as far as the policy allows",
	cpu_limit: "do less at once, or raise the cpu time in the policy",
	memory_limit: "hold less in memory at once, or raise the option memory as far as the policy allows",
	output_limit: "print less, or raise the option outputLimit as far as the policy allows",
	disk_limit: "write less, or raise the option disk as far as the policy allows",
	pids_limit: "start fewer processes and threads, or raise the option pids as far as the policy allows",
};

export class Result {
	/** The document as brig printed it, with its own names. */
	readonly document: Document;
	/** A signed statement about this run, if the option `receipt` asked for it; `brig receipt verify` checks it. */
	readonly receipt: string | null;
	readonly artifacts: readonly Artifact[];
	readonly findings: readonly Finding[];
	readonly evidence: readonly Evidence[];
	readonly denied: readonly Denied[];
	readonly usage: Usage;
	/** The ceilings of the step that decided; Infinity where there is none. */
	readonly limits: Readonly<Record<string, number>>;
	readonly timing: Readonly<Record<string, number>>;
	readonly samples: readonly Sample[];
	readonly changes: readonly Change[];
	readonly workspace: WorkspaceState | null;
	readonly network: readonly NetworkUse[];
	readonly tests: TestReport | null;
	readonly warnings: readonly string[];
	readonly degraded: readonly { readonly protection: string; readonly lost: string; readonly fix: string }[];

	/** @internal */
	constructor(document: Document, artifacts: readonly Artifact[] = [], receipt: string | null = null) {
		const d = camelKeys(document) as Record<string, unknown>;
		this.document = document;
		this.receipt = receipt;
		this.artifacts = artifacts;
		this.findings = d["findings"] as Finding[];
		this.evidence = d["evidence"] as Evidence[];
		this.denied = d["denied"] as Denied[];
		this.usage = d["usage"] as Usage;
		this.limits = d["limits"] as Record<string, number>;
		this.timing = d["timing"] as Record<string, number>;
		this.samples = d["samples"] as Sample[];
		this.changes = d["changes"] as Change[];
		this.workspace = d["workspace"] as WorkspaceState | null;
		this.network = d["network"] as NetworkUse[];
		this.tests = d["tests"] as TestReport | null;
		this.warnings = d["warnings"] as string[];
		this.degraded = d["degraded"] as Result["degraded"];
	}

	/** Names the run in records; empty if it never became one. */
	get id(): string {
		return this.document["id"] as string;
	}

	/** It ran and ended with exit code 0, and every promise was kept. */
	get ok(): boolean {
		return this.verdict === "ok";
	}

	/** The same as ok. */
	get success(): boolean {
		return this.ok;
	}

	get verdict(): Verdict {
		return this.document["verdict"] as Verdict;
	}

	/** One sentence for people; empty when the verdict says it all. */
	get reason(): string {
		return this.document["reason"] as string;
	}

	get hint(): string | null {
		return this.document["hint"] as string | null;
	}

	get exitCode(): number | null {
		return this.document["exit_code"] as number | null;
	}

	/** The signal that ended the program, by name. */
	get signal(): string | null {
		return this.document["signal"] as string | null;
	}

	get step(): "run" | "compile" | "install" | null {
		return this.document["step"] as Result["step"];
	}

	get language(): string | null {
		return this.document["language"] as string | null;
	}

	get backend(): string | null {
		return this.document["backend"] as string | null;
	}

	get trust(): string {
		return this.document["trust"] as string;
	}

	/** What code in a session showed, each in every form that it has: "text", "html", "png" (base64) ...; [] of other runs. */
	get results(): readonly Readonly<Record<string, unknown>>[] {
		return (this.document["results"] as Record<string, unknown>[] | undefined) ?? [];
	}

	/** In a session: the value of the last expression as text; null if it has none. */
	get text(): string | null {
		return (this.results.filter((shown) => shown["main"]).pop()?.["text"] as string | undefined) ?? null;
	}

	/** In a session: what the code raised. */
	get error(): { readonly name: string; readonly value: string; readonly traceback: string } | null {
		return (this.document["error"] as { name: string; value: string; traceback: string } | null | undefined) ?? null;
	}

	get stdout(): string {
		return streamText(this.document["stdout"] as string, this.document["stdout_encoding"]);
	}

	get stderr(): string {
		return streamText(this.document["stderr"] as string, this.document["stderr_encoding"]);
	}

	get stdoutBytes(): Uint8Array {
		return bytesOf(this.document["stdout"] as string, this.document["stdout_encoding"]);
	}

	get stderrBytes(): Uint8Array {
		return bytesOf(this.document["stderr"] as string, this.document["stderr_encoding"]);
	}

	/** The program wrote more than is kept. */
	get truncated(): boolean {
		return this.document["stdout_truncated"] === true || this.document["stderr_truncated"] === true;
	}

	/** The findings that block (CRITICAL) or warn (HIGH). */
	get securityViolations(): readonly Finding[] {
		return this.findings.filter((row) => row.severity === "CRITICAL" || row.severity === "HIGH");
	}

	/** What to do about a verdict that is not ok, if that is known. */
	get remedy(): string | null {
		if (this.ok) return null;
		const blocking = this.findings.find((row) => row.severity === "CRITICAL");
		if (this.verdict === "blocked" && blocking) return blocking.remedy;
		return this.hint ?? LIMIT_REMEDIES[this.verdict] ?? this.denied.find((row) => row.fix !== null)?.fix ?? null;
	}

	/** Throws the error of the verdict (`Blocked`, `TimeLimit`, `ProgramError` ...) unless it is ok; else gives this result. */
	raiseForVerdict(): this {
		if (!this.ok) throw errorOf(this);
		return this;
	}

	toJSON(): Document {
		return this.document;
	}
}
