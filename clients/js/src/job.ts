// SPDX-License-Identifier: Apache-2.0
/** From what somebody wants to run to the command line and the channels of a brig that runs it. */
import { type FileHandle, mkdtemp, open, rm, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findBinary } from "./binary.js";
import { UsageError } from "./errors.js";
import type { MemoryFiles } from "./files.js";
import { environment, type RunOptions, runWords, type SandboxOptions, type Work } from "./options.js";
import { CODE_IN, FILES_IN, FILES_OUT, type Launch } from "./process.js";

export type JobOptions = SandboxOptions & RunOptions;

/** A brig that is about to be started. */
export interface Job {
	readonly launch: Launch;
	/** Where the receipt will be. */
	readonly receipt: string | null;
	/** Files that go in and come out. */
	readonly memory: MemoryFiles | null;
	/** Takes away what was made for the run. */
	release(): Promise<void>;
}

/** The kernel takes 128 KB for one argument. */
const ARGUMENT_BYTES = 100 * 1024;

/** How the work reaches brig. */
interface Channel {
	readonly words: readonly string[];
	readonly stdin?: Uint8Array | undefined;
	readonly codeFile?: FileHandle;
}

function bytesOf(contents: string | Uint8Array): Uint8Array {
	return typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
}

/** A file that has no name any more, so that nothing is left of it, however we end. */
async function namelessFile(data: Uint8Array): Promise<FileHandle> {
	const folder = await mkdtemp(join(tmpdir(), "brig-js-"));
	try {
		const file = await open(join(folder, "code"), "wx+", 0o600);
		await unlink(join(folder, "code"));
		// Written by position: the descriptor, which brig inherits, must still stand at the beginning.
		for (let at = 0; at < data.length; ) at += (await file.write(data, at, data.length - at, at)).bytesWritten;
		return file;
	} finally {
		await rm(folder, { recursive: true });
	}
}

async function codeChannel(text: string, options: JobOptions): Promise<Channel> {
	const code = bytesOf(text);
	const stdin = options.stdin === undefined ? undefined : bytesOf(options.stdin);
	const words = ["--lang", options.language ?? "python"];
	const args = options.args?.length ? ["--", ...options.args] : [];
	if (code.length <= ARGUMENT_BYTES && !text.includes("\0")) {
		return { words: [...words, "--stdin", stdin ? "-" : "none", "--code", text, ...args], stdin };
	}
	if (!stdin) return { words: [...words, "-", ...args], stdin: code };
	return { words: [...words, "--stdin", "-", `/dev/fd/${CODE_IN}`, ...args], stdin, codeFile: await namelessFile(code) };
}

function commandChannel(command: string | readonly string[], options: JobOptions): Channel {
	if (command.length === 0) throw new UsageError("the command is empty");
	if (options.args?.length) throw new UsageError("args are for code; a command has its own", "give the command as a list");
	const stdin = options.stdin === undefined ? undefined : bytesOf(options.stdin);
	const words = typeof command === "string" ? ["--shell", command] : ["--", ...command];
	return { words: ["--stdin", stdin ? "-" : "none", ...words], stdin };
}

function testChannel(work: { test: string | null; framework?: string }): Channel {
	const framework = work.framework === undefined ? [] : ["--framework", work.framework];
	// Words behind "--" would be arguments of the framework.
	const path = work.test?.startsWith("-") ? `./${work.test}` : work.test;
	return { words: ["--stdin", "none", ...framework, ...(path === null ? [] : [path])] };
}

function channelOf(work: Work, options: JobOptions): Promise<Channel> | Channel {
	if ("code" in work) return codeChannel(work.code, options);
	return "command" in work ? commandChannel(work.command, options) : testChannel(work);
}

function nameOf(work: Work): string {
	if ("code" in work) return "run";
	return "command" in work ? "exec" : "test";
}

export async function prepare(work: Work, options: JobOptions, memory: MemoryFiles | null, format: string): Promise<Job> {
	const binary = findBinary(options.binary);
	const env = environment(options.network);
	const folder = options.receipt ? await mkdtemp(join(tmpdir(), "brig-js-")) : null;
	let codeFile: FileHandle | undefined;
	const release = async () => {
		await codeFile?.close();
		if (folder) await rm(folder, { recursive: true, force: true });
	};
	try {
		const channel = await channelOf(work, options);
		codeFile = channel.codeFile;
		const receipt = folder ? join(folder, "receipt.json") : null;
		const takesFiles = memory !== null || (options.artifacts?.length ?? 0) > 0;
		const args = [
			nameOf(work), format, ...runWords(options),
			...(receipt ? ["--receipt", receipt] : []),
			...(memory ? ["--files", `fd:${FILES_IN}`] : []),
			...(takesFiles ? ["--out-tar", `fd:${FILES_OUT}`] : []),
			...channel.words,
		];
		const { graceMs } = options;
		const launch = { binary, args, env, stdin: channel.stdin, files: memory?.archive(), takesFiles, codeFd: codeFile?.fd, graceMs };
		return { launch, receipt, memory, release };
	} catch (error) {
		await release();
		throw error;
	}
}
