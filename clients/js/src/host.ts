// SPDX-License-Identifier: Apache-2.0
/** Questions about this host and its records.  The answers are brig's documents with brig's own names. */
import { findBinary } from "./binary.js";
import { CommandError, UsageError } from "./errors.js";
import { checkWords, environment, type HostOptions, type RunOptions } from "./options.js";
import { command } from "./process.js";
import { camelKeys, type Document, type Finding, type Severity } from "./result.js";

export interface AskOptions extends HostOptions {
	signal?: AbortSignal;
}

export interface HistoryOptions extends AskOptions {
	/** Only executions that ended so. */
	verdict?: string;
	/** "2h", "7d", "2026-11-16". */
	since?: string;
	until?: string;
	language?: string;
	/** So many at most; 0: all. */
	limit?: number;
}

/** What the inspection says of code that is not run. */
export interface CheckResult {
	/** Nothing in it would be blocked. */
	readonly ok: boolean;
	readonly blocked: boolean;
	readonly worst: Severity | null;
	readonly language: string | null;
	/** Whether there is an inspection for this language. */
	readonly inspected: boolean;
	readonly findings: readonly Finding[];
}

export interface CheckOptions extends Pick<RunOptions, "language" | "trust" | "inspect" | "rules" | "signal"> {
	/** "code", or "command" for a line of shell. */
	kind?: "code" | "command";
}

/** Runs a command of brig that prints text; throws what it complains of. */
export async function say(words: readonly string[], options: AskOptions, good: readonly number[] = [0], stdin?: string): Promise<string> {
	const launch = {
		binary: findBinary(options.binary),
		args: words,
		env: environment(),
		stdin: stdin === undefined ? undefined : new TextEncoder().encode(stdin),
	};
	const { exit, text, words: complaint } = await command(launch, options.signal);
	if (exit.code === null || !good.includes(exit.code)) {
		throw new CommandError(`brig ${words[0]}: ${complaint.replace(/^brig: /, "") || `exit status ${exit.code ?? exit.signal}`}`);
	}
	return text;
}

async function ask(words: readonly string[], options: AskOptions, good?: readonly number[], stdin?: string): Promise<unknown> {
	const text = await say([...words, "--json"], options, good, stdin);
	try {
		return JSON.parse(text);
	} catch (error) {
		throw new CommandError(`brig ${words[0]} gave no document: ${text.slice(0, 200)}`, null, { cause: error });
	}
}

function words(options: object, rows: Readonly<Record<string, string>>): string[] {
	return Object.entries(rows).flatMap(([name, option]) => {
		const value = (options as Record<string, unknown>)[name];
		return value === undefined ? [] : [option, String(value)];
	});
}

const STATE = { state: "--state" };
const POLICY = { policy: "--policy" };

/** What was counted: outcomes, times, findings, cache (`brig stats`). */
export async function metrics(options: AskOptions = {}): Promise<Document> {
	return (await ask(["stats", ...words(options, STATE)], options)) as Document;
}

/** What was run here, the youngest first (`brig history`). */
export async function history(options: HistoryOptions = {}): Promise<readonly Document[]> {
	const rows = { ...STATE, ...POLICY, verdict: "--verdict", since: "--since", until: "--until", language: "--lang", limit: "--limit" };
	const document = (await ask(["history", ...words(options, rows)], options)) as { executions: Document[] };
	return document.executions;
}

/** The id of a run, its beginning, or "latest"; what could be taken for an option is refused. */
export function runName(id: string): string {
	if (!/^[a-z0-9]+$/.test(id)) throw new UsageError(`${JSON.stringify(id)} is not the id of a run`);
	return id;
}

/** Everything about one execution (`brig show`). */
export async function show(id: string, options: AskOptions = {}): Promise<Document> {
	return (await ask(["show", ...words(options, { ...STATE, ...POLICY }), runName(id)], options)) as Document;
}

/** What this host can enforce, and the fix for what it cannot (`brig doctor`); `ok` says whether the policy can be kept. */
export async function doctor(options: AskOptions = {}): Promise<Document & { readonly ok: boolean }> {
	return (await ask(["doctor", ...words(options, POLICY)], options, [0, 1])) as Document & { ok: boolean };
}

/** Every setting in force and which layer set it (`brig policy show`). */
export async function policy(options: AskOptions & { trust?: string; preset?: string } = {}): Promise<Document> {
	return (await ask(["policy", "show", ...words(options, { ...POLICY, trust: "--trust", preset: "--preset" })], options)) as Document;
}

/** The languages and whether their runtimes are installed (`brig languages`). */
export async function languages(options: AskOptions = {}): Promise<readonly Document[]> {
	return ((await ask(["languages"], options)) as { languages: Document[] }).languages;
}

/** The version of the program that is started. */
export async function version(options: AskOptions = {}): Promise<string> {
	return ((await ask(["version"], options)) as { version: string }).version;
}

/** What the inspection finds in code, without running it (`brig check`). */
export async function check(code: string, options: CheckOptions & HostOptions = {}): Promise<CheckResult> {
	const { kind = "code", language = "python", ...others } = options;
	const asked = kind === "code" ? ["--lang", language] : ["--kind", kind];
	// --json must stand before the line of shell, which is the rest of the command line.
	const text = kind === "code"
		? await say(["check", ...checkWords(others), ...asked, "--json", "-"], options, [0, 1, 2], code)
		: await say(["check", ...checkWords(others), ...asked, "--json", "--", code], options, [0, 1, 2]);
	const document = camelKeys(JSON.parse(text)) as Omit<CheckResult, "ok">;
	const { blocked, worst, inspected, findings } = document;
	return { ok: !blocked, blocked, worst, language: document.language, inspected, findings };
}
