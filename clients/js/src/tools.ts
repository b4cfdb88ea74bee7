// SPDX-License-Identifier: Apache-2.0
/**
 * Tools for language models: what they are called, what they take, and what is answered.  An answer is short, plain JSON, and says
 * what to do when something was not allowed.  Mistakes of the model are answers too; only a cancelled run is thrown.
 */
import { BrigError, UsageError } from "./errors.js";
import type { CheckResult } from "./host.js";
import type { Finding, Result } from "./result.js";
import type { Sandbox } from "./sandbox.js";

export type ToolName = "run_code" | "run_command" | "check_code" | "read_file" | "write_file" | "list_files";

/** What the model is told. */
export type ToolResult = Readonly<Record<string, unknown>> & { readonly ok: boolean };

export interface DispatchOptions {
	signal?: AbortSignal;
	/** Of every text as many characters as this, from its beginning and its end. */
	maxChars?: number;
}

interface CallOptions extends DispatchOptions {
	maxChars: number;
}

type Args = Readonly<Record<string, unknown>>;

interface Parameter {
	readonly description: string;
	readonly isOptional?: boolean;
}

interface Tool {
	readonly description: string;
	readonly parameters: Readonly<Record<string, Parameter>>;
	readonly call: (sandbox: Sandbox, args: Readonly<Record<string, string>>, options: CallOptions) => Promise<ToolResult>;
}

const LANGUAGE = { description: "python (the default), javascript, typescript, go, shell, c ...", isOptional: true };
const MAX_CHARS = 8000;
const MAX_ROWS = 20;
const MAX_FILES = 200;

const TOOLS: Readonly<Record<ToolName, Tool>> = {
	run_code: {
		description:
			"Run a program in an isolated sandbox and get its output. Files in its working directory last from one call to the next; " +
			"there is no network unless hosts were allowed.",
		parameters: {
			code: { description: "The whole program; it must print what you want to see." },
			language: LANGUAGE,
			stdin: { description: "What the program reads from its standard input.", isOptional: true },
		},
		call: async (sandbox, { code = "", ...rest }, { signal, maxChars }) =>
			tellRun(await sandbox.run(code, { ...rest, ...(signal && { signal }) }), maxChars),
	},
	run_command: {
		description: "Run a line of shell in the same sandbox, in the working directory with the files.",
		parameters: { command: { description: "The line, for sh." } },
		call: async (sandbox, { command = "" }, { signal, maxChars }) =>
			tellRun(await sandbox.exec(command, { ...(signal && { signal }) }), maxChars),
	},
	check_code: {
		description: "Say what the security inspection would object to in a program, without running it.",
		parameters: { code: { description: "The whole program." }, language: LANGUAGE },
		call: async (sandbox, { code = "", ...rest }, { signal }) =>
			tellCheck(await sandbox.check(code, { ...rest, ...(signal && { signal }) })),
	},
	read_file: {
		description: "Read a file of the sandbox as text.",
		parameters: { path: { description: "Relative to the working directory." } },
		call: async (sandbox, { path = "" }, { maxChars }) => {
			const text = await sandbox.files.readText(path);
			return { ok: true, path, content: shorten(text, maxChars) };
		},
	},
	write_file: {
		description: "Write a text file into the sandbox, replacing what is there.",
		parameters: {
			path: { description: "Relative to the working directory; folders are made." },
			content: { description: "All of the text." },
		},
		call: async (sandbox, { path = "", content = "" }) => {
			await sandbox.files.write(path, content);
			return { ok: true, path };
		},
	},
	list_files: {
		description: "List the files of the sandbox with their sizes in bytes.",
		parameters: { folder: { description: "Only those below this folder.", isOptional: true } },
		call: async (sandbox, { folder }) => {
			const files = await sandbox.files.list(folder);
			return { ok: true, files: files.slice(0, MAX_FILES), ...(files.length > MAX_FILES && { more: files.length - MAX_FILES }) };
		},
	},
};

/** The beginning and the end of a text that is too long, and how much is missing between them. */
function shorten(text: string, max: number): string {
	if (text.length <= max) return text;
	const half = Math.floor(max / 2);
	// A character of two units must not be cut in two.
	const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, "");
	const tail = text.slice(text.length - half).replace(/^[\udc00-\udfff]/, "");
	return `${head}\n... ${text.length - head.length - tail.length} characters left out ...\n${tail}`;
}

function tellFinding({ rule, severity, line, message, remedy }: Finding): object {
	return { rule, severity, line, message, remedy };
}

/** Members that say nothing are left out: the model pays for each of them. */
function compact(members: Record<string, unknown>): Record<string, unknown> {
	const says = (value: unknown) => value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);
	return Object.fromEntries(Object.entries(members).filter(([, value]) => says(value)));
}

function tellRun(result: Result, maxChars: number): ToolResult {
	const isBlocked = result.verdict === "blocked";
	return {
		ok: result.ok,
		verdict: result.verdict,
		...compact({
			exit_code: result.ok ? null : result.exitCode,
			reason: result.reason,
			remedy: result.remedy,
			stdout: shorten(result.stdout, maxChars),
			stderr: shorten(result.stderr, maxChars),
			truncated: result.truncated || null,
			findings: isBlocked ? result.findings.filter((row) => row.severity === "CRITICAL").slice(0, MAX_ROWS).map(tellFinding) : [],
			denied: result.denied.slice(0, MAX_ROWS).map(({ kind, what, why, fix }) => compact({ kind, what, why, fix })),
			changed_files: result.changes.slice(0, MAX_FILES).map(({ change, path }) => `${change} ${path}`),
		}),
	};
}

function tellCheck(checked: CheckResult): ToolResult {
	return { ok: checked.ok, blocked: checked.blocked, findings: checked.findings.slice(0, MAX_ROWS).map(tellFinding) };
}

/** A JSON Schema of what the tool takes. */
export interface ParameterSchema {
	type: "object";
	properties: Record<string, { type: "string"; description: string }>;
	required: string[];
	additionalProperties: false;
}

export interface OpenAITool {
	type: "function";
	function: { name: ToolName; description: string; parameters: ParameterSchema };
}

export interface AnthropicTool {
	name: ToolName;
	description: string;
	input_schema: ParameterSchema;
}

/** @internal */
export function describe(): { name: ToolName; description: string; schema: ParameterSchema }[] {
	return Object.entries(TOOLS).map(([name, tool]) => {
		const rows = Object.entries(tool.parameters);
		const schema: ParameterSchema = {
			type: "object",
			properties: Object.fromEntries(rows.map(([key, { description }]) => [key, { type: "string", description }])),
			required: rows.filter(([, row]) => !row.isOptional).map(([key]) => key),
			additionalProperties: false,
		};
		return { name: name as ToolName, description: tool.description, schema };
	});
}

/** The tools as the interfaces of models want them described. */
export function toolSchemas(options: { style: "anthropic" }): AnthropicTool[];
export function toolSchemas(options?: { style?: "openai" }): OpenAITool[];
export function toolSchemas({ style = "openai" }: { style?: "openai" | "anthropic" } = {}): (OpenAITool | AnthropicTool)[] {
	return describe().map(({ name, description, schema }) =>
		style === "anthropic"
			? { name, description, input_schema: schema }
			: { type: "function", function: { name, description, parameters: schema } },
	);
}

function refusal(error: BrigError): ToolResult {
	return { ok: false, ...compact({ error: error.message, remedy: error.remedy }) };
}

/** What the model gave, if it is what the tool takes. */
function argumentsOf(name: string, tool: Tool, given: Args | string): Record<string, string> {
	let args: unknown = given;
	if (typeof given === "string") {
		try {
			args = JSON.parse(given || "{}");
		} catch {
			throw new UsageError(`the arguments of ${name} are not JSON`);
		}
	}
	if (args === null || typeof args !== "object" || Array.isArray(args)) throw new UsageError(`the arguments of ${name} are not an object`);
	const found: Record<string, string> = {};
	for (const [key, value] of Object.entries(args)) {
		if (!Object.hasOwn(tool.parameters, key)) throw new UsageError(`${name} takes no '${key}'`, `it takes ${Object.keys(tool.parameters).join(", ")}`);
		if (value === null && tool.parameters[key]?.isOptional) continue;
		if (typeof value !== "string") throw new UsageError(`'${key}' of ${name} must be a string`);
		found[key] = value;
	}
	for (const [key, row] of Object.entries(tool.parameters)) {
		if (!row.isOptional && found[key] === undefined) throw new UsageError(`${name} needs '${key}'`);
	}
	return found;
}

/** Does what a model asked for. `args` may be the object or its JSON. */
export async function dispatch(name: string, args: Args | string, sandbox: Sandbox, options: DispatchOptions = {}): Promise<ToolResult> {
	options.signal?.throwIfAborted();
	try {
		const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name as ToolName] : undefined;
		if (!tool) throw new UsageError(`there is no tool '${name}'`, `there are ${Object.keys(TOOLS).join(", ")}`);
		return await tool.call(sandbox, argumentsOf(name, tool, args), { maxChars: MAX_CHARS, ...options });
	} catch (error) {
		options.signal?.throwIfAborted();
		if (error instanceof BrigError) return refusal(error);
		throw error;
	}
}
