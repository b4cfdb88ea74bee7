// SPDX-License-Identifier: Apache-2.0
// Tools of language models.
import assert from "node:assert/strict";
import test from "node:test";
import { dispatch, Sandbox, toolSchemas } from "brig";
import { CALM } from "./bed.mjs";

const NAMES = ["run_code", "run_command", "check_code", "read_file", "write_file", "list_files"];

test("tools.schemas: the shapes that the interfaces of models want", () => {
	const openai = toolSchemas();
	assert.deepEqual(openai.map((row) => row.function.name), NAMES);
	for (const row of openai) {
		assert.equal(row.type, "function");
		assert.equal(row.function.parameters.type, "object");
		assert.ok(row.function.description.length > 20 && Array.isArray(row.function.parameters.required));
	}
	const anthropic = toolSchemas({ style: "anthropic" });
	assert.deepEqual(anthropic.map((row) => row.name), NAMES);
	assert.deepEqual(anthropic[0].input_schema, openai[0].function.parameters);
	assert.deepEqual(anthropic[0].input_schema.required, ["code"]);
});

test("tools.work: files, code and commands share one sandbox", async () => {
	const sandbox = new Sandbox(CALM);
	assert.deepEqual(await dispatch("write_file", { path: "in.txt", content: "6 7" }, sandbox), { ok: true, path: "in.txt" });
	const ran = await dispatch("run_code", JSON.stringify({ code: "a, b = map(int, open('in.txt').read().split()); print(a * b, file=open('out.txt', 'w'))" }), sandbox);
	assert.deepEqual(ran, { ok: true, verdict: "ok", changed_files: ["added out.txt"] });
	assert.deepEqual(await dispatch("read_file", { path: "/workspace/out.txt" }, sandbox), { ok: true, path: "/workspace/out.txt", content: "42\n" });
	assert.deepEqual((await dispatch("list_files", {}, sandbox)).files.map((row) => row.path), ["in.txt", "out.txt"]);
	assert.equal((await dispatch("run_command", { command: "cat out.txt" }, sandbox)).stdout, "42\n");
	const piped = await dispatch("run_code", { code: "console.log(require('fs').readFileSync(0, 'utf8'))", language: "javascript", stdin: "in" }, sandbox);
	assert.equal(piped.stdout, "in\n");
});

test("tools.answers: what went wrong is told in short, with what would help", async () => {
	const sandbox = new Sandbox({ ...CALM, inspect: "guard" });
	const blocked = await dispatch("run_code", { code: "import os; os.system('rm -rf /')" }, sandbox);
	assert.ok(!blocked.ok && blocked.verdict === "blocked" && blocked.findings[0].rule === "sh-delete-tree");
	assert.match(blocked.remedy, /name exactly/);
	const checked = await dispatch("check_code", { code: "rm -rf /", language: "shell" }, sandbox);
	assert.ok(!checked.ok && checked.findings.length > 0);
	const failed = await dispatch("run_code", { code: "raise SystemExit(3)" }, sandbox);
	assert.deepEqual([failed.ok, failed.verdict, failed.exit_code], [false, "error", 3]);
	const long = await dispatch("run_code", { code: "print('x' * 100000)" }, sandbox, { maxChars: 100 });
	assert.ok(long.stdout.length < 200 && /99901 characters left out/.test(long.stdout), long.stdout);
	JSON.stringify([blocked, checked, failed, long]);
});

test("tools.mistakes: mistakes of a model are answers, not exceptions", async () => {
	const sandbox = new Sandbox();
	for (const [name, args, error] of [
		["no_tool", {}, /no tool/], ["__proto__", {}, /no tool/], ["run_code", {}, /needs 'code'/], ["run_code", { code: 1 }, /must be a string/],
		["run_code", "{", /not JSON/], ["run_code", "[]", /not an object/], ["run_code", { code: "1", trust: "trusted" }, /takes no 'trust'/],
		["read_file", { path: "../../etc/passwd" }, /leads out/], ["read_file", { path: "nothing" }, /no file/], ["run_command", { command: "" }, /empty/],
	]) {
		const answer = await dispatch(name, args, sandbox);
		assert.equal(answer.ok, false);
		assert.match(answer.error, error);
	}
	const reason = new Error("stop");
	await assert.rejects(dispatch("run_code", { code: "1" }, sandbox, { signal: AbortSignal.abort(reason) }), (error) => error === reason);
});
