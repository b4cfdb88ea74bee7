// SPDX-License-Identifier: Apache-2.0
/** Options of this package, and what brig is told for each: a row per option. */
import { resolve } from "node:path";
import { UsageError } from "./errors.js";

export type Trust = "untrusted" | "unknown" | "trusted";
export type Contents = string | Uint8Array;

/** What may be set for a sandbox and, over that, for a single run. */
export interface RunOptions {
	/** The language of the code; "python" if none is named. */
	language?: string;
	/** What the program reads as its standard input; empty without. */
	stdin?: Contents;
	/** Arguments of the program. */
	args?: readonly string[];
	/** Environment of the program. */
	env?: Readonly<Record<string, string>>;
	/** Ends the run: SIGTERM, later SIGKILL. The promise is rejected with the signal's reason. */
	signal?: AbortSignal;
	/** Wall clock: seconds, or "200ms", "2m". */
	timeout?: number | string;
	/** Bytes, or "512m". */
	memory?: number | string;
	/** Share of cpu time: 0.5 is half of one cpu. */
	cpus?: number;
	/** Processes and threads at once. */
	pids?: number;
	/** Bytes that the program may write to files, or "100m". */
	disk?: number | string;
	/** Bytes of stdout and stderr together, or "10m". */
	outputLimit?: number | string;
	trust?: Trust;
	/** "auto", "native", "docker" or "direct", as far as the policy leaves the choice. */
	backend?: string;
	preset?: "standard" | "strict";
	/** How the code is judged before it runs. */
	inspect?: "off" | "report" | "guard" | "strict";
	/** What single rules of the inspection do. */
	rules?: Readonly<Record<string, "allow" | "note" | "warn" | "block">>;
	/** Packages of other people that the program uses. */
	packages?: readonly string[];
	/** Install what requirements.txt, package.json or go.mod of the workspace name. */
	projectPackages?: boolean;
	/** An environment that `brig env create` has made: packages that are there already. */
	environment?: string;
	/** Protections that this host may lack. */
	allowDegraded?: readonly string[];
	/** Any other setting; `policy()` lists them. */
	settings?: Readonly<Record<string, string | number | boolean>>;
	/** Fetch only files with names like these: "*.png", "dist/". */
	artifacts?: readonly string[];
	/** Ask for a signed statement about the run. */
	receipt?: boolean;
	/** Move the changes of a workspace over to the project when the verdict is ok. */
	apply?: boolean;
}

/** Where brig is and what judges: for a whole sandbox. */
export interface HostOptions {
	/** The program to start; else $BRIG_BIN, else brig in PATH. */
	binary?: string;
	/** Policy file. */
	policy?: string;
	/** Folder of audit log, history and cache. */
	state?: string;
}

export interface SandboxOptions extends HostOptions, Omit<RunOptions, "stdin" | "args" | "signal"> {
	/** A project: runs work on a copy, their changes wait for `apply()`. Without it the sandbox has files of its own, in memory. */
	workspace?: string;
	workspaceMode?: "ro" | "cow" | "rw";
	/** Hosts that programs may reach; false: none, whatever the environment says. A policy file has the last word. */
	network?: readonly string[] | false;
	/** Files to begin with, if there is no workspace. */
	files?: Readonly<Record<string, Contents>>;
	/** One cell that stays, at a service: the sandbox is a `Session`. */
	session?: boolean;
	/** Of a session: its service, "http://HOST:PORT", "https://HOST:PORT" or "unix:PATH"; else $BRIG_HOST, a usual place, or one of its own. */
	host?: string;
	/** Of a session: the token for that; else $BRIG_TOKEN. */
	token?: string;
	/** Of a session: how long it may last; `timeout` is that of each run. */
	sessionTimeout?: number | string;
	/** Of a session: what its snapshot() gave, or the id of that: it begins with those files. */
	snapshot?: string | { readonly id: string };
	/** Milliseconds between SIGTERM and SIGKILL when a run is cancelled. */
	graceMs?: number;
}

/** What is run: code, a command (a line for sh, or a program and its arguments), or tests (of one path, or null for all). */
export type Work =
	| { readonly code: string }
	| { readonly command: string | readonly string[] }
	| { readonly test: string | null; readonly framework?: string };

type Words = (value: never) => string[];

const one = (option: string) => (value: string | number) => [option, String(value)];
const flag = (option: string) => (value: boolean) => (value ? [option] : []);
const each = (option: string) => (values: readonly string[]) => values.flatMap((value) => [option, value]);
const pairs = (option: string) => (values: Readonly<Record<string, string | number | boolean>>) =>
	Object.entries(values).flatMap(([name, value]) => [option, `${name}=${value}`]);
const folder = (option: string) => (value: string) => [option, resolve(value)];
const list = (option: string) => (values: readonly string[]) => (values.length > 0 ? [option, values.join(",")] : []);

/** Of `brig run`, `exec` and `test`. */
const RUN_ROWS: Record<string, Words> = {
	policy: one("--policy"),
	state: folder("--state"),
	preset: one("--preset"),
	trust: one("--trust"),
	backend: (name: string) => (name === "auto" ? [] : ["--backend", name]),
	timeout: one("--timeout"),
	memory: one("--memory"),
	cpus: one("--cpus"),
	pids: one("--pids"),
	disk: one("--disk"),
	outputLimit: one("--output-limit"),
	inspect: one("--inspect"),
	rules: pairs("--rule"),
	allowDegraded: list("--allow-degraded"),
	settings: pairs("--set"),
	env: pairs("--env"),
	packages: each("--packages"),
	projectPackages: flag("--project-packages"),
	environment: one("--env-name"),
	workspace: folder("--workspace"),
	workspaceMode: one("--workspace-mode"),
	apply: flag("--apply"),
	artifacts: each("--artifact"),
};

/** Of `brig check`. */
const CHECK_ROWS: Record<string, Words> = {
	policy: one("--policy"),
	trust: one("--trust"),
	inspect: (level: string) => (level === "off" ? [] : ["--inspect", level]),
	rules: pairs("--rule"),
};

/** Handled where the process is made. */
const OTHERS = new Set(["language", "stdin", "args", "signal", "receipt", "binary", "network", "files", "graceMs", "session"]);
const OF_SESSIONS = new Set(["host", "token", "sessionTimeout", "snapshot"]);

function words(rows: Record<string, Words>, options: object): string[] {
	return Object.entries(options).flatMap(([name, value]) => {
		const row = rows[name];
		return row && value !== undefined ? row(value as never) : [];
	});
}

export function runWords(options: object): string[] {
	return words(RUN_ROWS, options);
}

export function checkWords(options: object): string[] {
	return words(CHECK_ROWS, options);
}

/** A misspelt limit that nobody notices is a limit that is not there. */
export function refuseUnknown(options: object): void {
	for (const name of Object.keys(options)) {
		if (OF_SESSIONS.has(name) && (options as SandboxOptions).session) continue;
		if (OF_SESSIONS.has(name)) throw new UsageError(`'${name}' is of sessions`, "make it with session: true");
		if (!(name in RUN_ROWS) && !OTHERS.has(name)) throw new UsageError(`no option is called '${name}'`);
	}
}

const UNITS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3600 };

/** A time as services take it. */
export function secondsOf(time: number | string): number {
	const found = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(String(time));
	const seconds = found ? Number(found[1]) * UNITS[found[2] ?? "s"]! : 0;
	if (!(seconds > 0)) throw new UsageError(`${JSON.stringify(time)} is no time`, 'give seconds as a number, or text like "1.5s", "200ms", "2m"');
	return seconds;
}

/** The environment of brig itself.  Only policy layers can open the network, and the environment is one of them. */
export function environment(network?: readonly string[] | false): Record<string, string> {
	const env: Record<string, string> = {};
	for (const [name, value] of Object.entries(process.env)) {
		// brig takes every BRIG_ variable for a setting, and ours is none.
		if (value !== undefined && name !== "BRIG_BIN") env[name] = value;
	}
	if (network === undefined) return env;
	const hosts = network || [];
	for (const host of hosts) {
		if (host === "" || host.includes(",")) throw new UsageError(`${JSON.stringify(host)} is not the name of a host`);
	}
	env["BRIG_NETWORK_MODE"] = hosts.length > 0 ? "allowlist" : "none";
	env["BRIG_WHITELIST"] = hosts.join(",");
	return env;
}
