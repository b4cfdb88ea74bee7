// SPDX-License-Identifier: Apache-2.0
/** Tools for the AI SDK (`ai` on npm, version 5 or newer): generateText({ tools: brigTools(sandbox) }). */
import { jsonSchema, type Tool, tool } from "ai";
import type { Sandbox } from "./sandbox.js";
import { describe, dispatch, type ToolName, type ToolResult } from "./tools.js";

export interface BrigToolsOptions<Name extends ToolName = ToolName> {
	/** Only these; all without. */
	only?: readonly Name[];
	/** Of every text as many characters as this, from its beginning and its end. */
	maxChars?: number;
}

type Input = Record<string, string>;

/** One tool per verb, all of them in this sandbox. A run whose generation is aborted is cancelled. */
export function brigTools<Name extends ToolName = ToolName>(
	sandbox: Sandbox,
	{ only, maxChars }: BrigToolsOptions<Name> = {},
): Record<Name, Tool<Input, ToolResult>> {
	const wanted = describe().filter(({ name }) => !only || (only as readonly ToolName[]).includes(name));
	const rows = wanted.map(({ name, description, schema }) => [
		name,
		tool({
			description,
			inputSchema: jsonSchema<Input>(schema),
			execute: (input: Input, { abortSignal }): Promise<ToolResult> =>
				dispatch(name, input, sandbox, { ...(abortSignal && { signal: abortSignal }), ...(maxChars !== undefined && { maxChars }) }),
		}),
	]);
	return Object.fromEntries(rows) as Record<Name, Tool<Input, ToolResult>>;
}
