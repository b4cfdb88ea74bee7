// SPDX-License-Identifier: Apache-2.0
// The tools in the real AI SDK, with its own model for tests.
import assert from "node:assert/strict";
import test from "node:test";
import { generateText, stepCountIs, streamText } from "ai";
import { MockLanguageModelV2, simulateReadableStream } from "ai/test";
import { Sandbox } from "brig";
import { brigTools } from "brig/ai";
import { CALM } from "./bed.mjs";

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
const call = (toolName, input, toolCallId = toolName) => ({ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) });

/** A model that says these things, one after the other. */
function model(...answers) {
	return new MockLanguageModelV2({
		doGenerate: answers.map((content) => ({
			content, usage, warnings: [], finishReason: content[0].type === "text" ? "stop" : "tool-calls",
		})),
	});
}

test("ai.generate: a model writes a file, runs code on it and reads the answer", async () => {
	const sandbox = new Sandbox(CALM);
	const mock = model(
		[call("write_file", { path: "n.txt", content: "41" })],
		[call("run_code", { code: "print(int(open('n.txt').read()) + 1)" })],
		[{ type: "text", text: "It is 42." }],
	);
	const { steps, text } = await generateText({ model: mock, tools: brigTools(sandbox), stopWhen: stepCountIs(5), prompt: "add one" });
	assert.equal(text, "It is 42.");
	assert.deepEqual(steps[1].toolResults[0].output, { ok: true, verdict: "ok", stdout: "42\n" });
	const told = mock.doGenerateCalls[2].prompt.filter((message) => message.role === "tool");
	assert.ok(JSON.stringify(told).includes("42\\\\n") || JSON.stringify(told).includes("42\\n"), "the model got the answer");
	const described = mock.doGenerateCalls[0].tools.find((tool) => tool.name === "run_code");
	assert.deepEqual(described.inputSchema.required, ["code"]);
});

test("ai.blocked: a blocked run is an answer with its remedy", async () => {
	const mock = model([call("run_code", { code: "import os; os.system('rm -rf /')" })]);
	const { toolResults } = await generateText({ model: mock, tools: brigTools(new Sandbox({ inspect: "guard" }), { only: ["run_code"] }), prompt: "x" });
	assert.equal(toolResults[0].output.verdict, "blocked");
	assert.match(toolResults[0].output.remedy, /name exactly/);
	assert.deepEqual(mock.doGenerateCalls[0].tools.map((tool) => tool.name), ["run_code"]);
});

test("ai.stream: the tools work in streamText too", async () => {
	const chunks = [
		{ type: "stream-start", warnings: [] },
		call("run_command", { command: "echo hi" }),
		{ type: "finish", finishReason: "tool-calls", usage },
	];
	const mock = new MockLanguageModelV2({ doStream: async () => ({ stream: simulateReadableStream({ chunks }) }) });
	const { toolResults } = streamText({ model: mock, tools: brigTools(new Sandbox(CALM)), prompt: "x" });
	assert.equal((await toolResults)[0].output.stdout, "hi\n");
});

test("ai.abort: aborting the generation ends the run", async () => {
	const sandbox = new Sandbox(CALM);
	const controller = new AbortController();
	const tools = brigTools(sandbox);
	const running = tools.run_code.execute({ code: "while True: pass" }, { abortSignal: controller.signal, toolCallId: "1", messages: [] });
	setTimeout(() => controller.abort(), 300);
	await assert.rejects(async () => running, { name: "AbortError" });
});
