// SPDX-License-Identifier: Apache-2.0
/**
 * Errors by kind.  A run that ended badly is a result, not an exception; `result.raiseForVerdict()` makes an error of it, one class
 * per kind of verdict.  Thrown without being asked for is only what leaves no result: no brig, wrong use, an answer that is none.
 */
import type { Finding, Result, Verdict } from "./result.js";

/** Whatever this package throws, but for the reason of an AbortSignal. */
export class BrigError extends Error {
	/** What to do about it, if that is known. */
	readonly remedy: string | null;

	constructor(message: string, remedy: string | null = null, options?: { cause?: unknown }) {
		super(message, options);
		this.name = new.target.name;
		this.remedy = remedy;
	}
}

/** There is no brig to start. */
export class BinaryNotFound extends BrigError {}

/** An argument or option that cannot be right. */
export class UsageError extends BrigError {}

/** brig gave an answer that is none: another version, or it was killed. */
export class TransportError extends BrigError {}

/** A command of brig (`workspace apply`, `history` ...) said no. */
export class CommandError extends BrigError {}

/** A service refused what was asked of it: `status` is that of HTTP, `code` its word for it. */
export class ServiceError extends BrigError {
	readonly status: number;
	readonly code: string;

	constructor(message: string, status: number, code: string) {
		super(message);
		this.status = status;
		this.code = code;
	}
}

/** The sandbox was closed, by whoever owns it. */
export class ClosedError extends BrigError {}

/** The verdict of a result, as an error. */
export class VerdictError extends BrigError {
	readonly result: Result;

	constructor(result: Result) {
		super(messageOf(result), result.remedy);
		this.result = result;
	}

	get verdict(): Verdict {
		return this.result.verdict;
	}

	get findings(): readonly Finding[] {
		return this.result.findings;
	}
}

/** The program ended with an exit code other than 0. */
export class ProgramError extends VerdictError {}
/** The program died of a signal. */
export class Crashed extends VerdictError {}
/** Some limit ended the program, or made it fail. */
export class LimitReached extends VerdictError {}
/** Wall clock (`timeout`) or cpu time (`cpu_limit`). */
export class TimeLimit extends LimitReached {}
export class MemoryLimit extends LimitReached {}
export class OutputLimit extends LimitReached {}
export class DiskLimit extends LimitReached {}
export class ProcessLimit extends LimitReached {}
/** The inspection found what is plainly meant to harm; nothing ran. */
export class Blocked extends VerdictError {}
/** It cannot be enforced here, or asks for more than its trust allows; nothing ran. */
export class Refused extends VerdictError {}
/** It ran, but a promise was not kept. */
export class Violated extends VerdictError {}
/** brig's own fault, or the engine's. */
export class Failed extends VerdictError {}
/** Somebody ended the run, by other means than an AbortSignal. */
export class Cancelled extends VerdictError {}

const CLASSES: Record<Exclude<Verdict, "ok">, new (result: Result) => VerdictError> = {
	error: ProgramError,
	crash: Crashed,
	timeout: TimeLimit,
	cpu_limit: TimeLimit,
	memory_limit: MemoryLimit,
	output_limit: OutputLimit,
	disk_limit: DiskLimit,
	pids_limit: ProcessLimit,
	blocked: Blocked,
	refused: Refused,
	violated: Violated,
	failed: Failed,
	cancelled: Cancelled,
};

function messageOf(result: Result): string {
	const text = result.reason === "" ? result.verdict : `${result.verdict}: ${result.reason}`;
	const last = result.verdict === "error" ? result.stderr.trimEnd().split("\n").pop() : "";
	return last ? `${text}: ${last.slice(0, 200)}` : text;
}

/** The error of a result whose verdict is not ok. */
export function errorOf(result: Result): VerdictError {
	const kind = CLASSES[result.verdict as Exclude<Verdict, "ok">] ?? VerdictError;
	return new kind(result);
}
