// SPDX-License-Identifier: Apache-2.0
// The tools fit the AI SDK's own types.
import { generateText, type LanguageModel, stepCountIs, type ToolSet } from "ai";
import { Sandbox } from "brig";
import { brigTools } from "brig/ai";

export async function use(model: LanguageModel): Promise<string> {
	const sandbox = new Sandbox({ timeout: 5 });
	const tools = brigTools(sandbox);
	const set: ToolSet = tools;
	const { text, steps } = await generateText({ model, tools, stopWhen: stepCountIs(5), prompt: "What is 6 * 7?" });
	console.log(Object.keys(set), steps.map((step) => step.toolResults.map((row) => row.output)), brigTools(sandbox, { only: ["run_code"] }).run_code);
	return text;
}
