// SPDX-License-Identifier: Apache-2.0
// Streams, and runs that are given up.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "brig";
import { CALM, folder, until } from "./bed.mjs";

const FOREVER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.05)";

let count = 0;

/** A word that no other process has among its arguments. */
const mark = () => `marked-${process.pid}-${++count}`;

/** The processes with this word among their arguments, as far as `isWanted` wants their program: brigs, and what they run. */
function marked(word, isWanted = () => true) {
	return readdirSync("/proc").filter((name) => {
		try {
			const words = /^\d+$/.test(name) ? readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0") : [];
			return words.includes(word) && isWanted(words[0]);
		} catch {
			return false; // it has ended meanwhile
		}
	});
}

const isProgram = (path) => /python/.test(path);
const isGone = (word) => until(() => marked(word).length === 0, `the end of ${word}`);

test("stream.order: events come in order, the pieces are the output, the result is last", async () => {
	const code = `import sys, time
for n in range(3):
    print(n, 'ä', flush=True)
    time.sleep(0.05)
sys.stdout.buffer.write(b'\\xff\\x00\\n')
print('e', file=sys.stderr)`;
	const events = [];
	for await (const event of new Sandbox(CALM).stream(code)) events.push(event);
	const names = events.map((row) => row.event);
	assert.equal(names[0], "started");
	assert.equal(names.indexOf("result"), names.length - 1);
	const pieces = events.filter((row) => row.event === "stdout").map((row) => Buffer.from(row.bytes));
	const { result } = events.at(-1);
	assert.equal(events[0].id, result.id);
	assert.deepEqual(Uint8Array.from(Buffer.concat(pieces)), result.stdoutBytes);
	assert.ok(names.indexOf("stdout") < names.lastIndexOf("stdout"), "more than one piece");
	assert.equal(events.filter((row) => row.event === "stderr").map((row) => row.data).join(""), "e\n");
});

test("stream.blocked: findings come, a start does not", async () => {
	const events = [];
	for await (const event of new Sandbox({ inspect: "guard" }).stream("import os; os.system('rm -rf /')")) events.push(event);
	assert.ok(events.some((row) => row.event === "finding" && row.severity === "CRITICAL" && row.endLine === 1));
	assert.ok(!events.some((row) => row.event === "started"));
	assert.equal(events.at(-1).result.verdict, "blocked");
});

test("stream.command: commands can be streamed too, with files", async () => {
	const sandbox = new Sandbox({ ...CALM, files: { "in.txt": "hello" } });
	let text = "";
	for await (const event of sandbox.stream({ command: "cat in.txt; echo made >out.txt" })) if (event.event === "stdout") text += event.data;
	assert.equal(text, "hello");
	assert.equal(await sandbox.files.readText("out.txt"), "made\n");
});

test("stream.slow: a slow reader gets every byte", async () => {
	const total = 8 << 20;
	let seen = 0;
	for await (const event of new Sandbox({ ...CALM, outputLimit: "9m" }).stream(`import sys\nfor n in range(8): sys.stdout.write('x' * ${1 << 20})`)) {
		if (event.event !== "stdout") continue;
		seen += event.bytes.length;
		if (seen < total / 4) await new Promise((done) => setImmediate(done));
	}
	assert.equal(seen, total);
});

test("stream.waits: what nobody has asked for is not read", async () => {
	const place = folder();
	const file = join(place, "brig");
	const line = JSON.stringify({ event: "notice", text: "x".repeat(1000) });
	writeFileSync(file, `#!/bin/sh\nyes '${line}' | head -n 20000\ntouch ${place}/all\n`, { mode: 0o755 });
	const stream = new Sandbox({ binary: file }).stream("1");
	await stream.next();
	await sleep(500);
	assert.ok(!existsSync(join(place, "all")), "20 MB were taken in");
	let count = 1;
	await assert.rejects(async () => { for await (const event of stream) count += event.event === "notice" ? 1 : 0; }, /without a result/);
	assert.equal(count, 20000);
	assert.ok(existsSync(join(place, "all")));
});

test("stream.break: leaving the loop ends the run before the loop is left", async () => {
	const sandbox = new Sandbox({ ...CALM, files: { keep: "1" } });
	const word = mark();
	for await (const event of sandbox.stream(FOREVER, { args: [word] })) {
		if (event.event !== "stdout") continue;
		assert.ok(marked(word, isProgram).length > 0, "it runs");
		break;
	}
	assert.deepEqual(marked(word, isProgram), [], "the program is gone");
	await isGone(word);
	assert.equal(await sandbox.files.readText("keep"), "1");
	assert.equal((await sandbox.run("print(1)")).stdout, "1\n", "the sandbox can be used again");
});

test("cancel.signal: a signal rejects with its reason, and the cell is gone", async () => {
	const sandbox = new Sandbox(CALM);
	const reason = new Error("enough");
	const controller = new AbortController();
	const word = mark();
	await assert.rejects(async () => {
		for await (const event of sandbox.stream(FOREVER, { signal: controller.signal, args: [word] })) {
			if (event.event === "stdout") controller.abort(reason);
		}
	}, (error) => error === reason);
	assert.deepEqual(marked(word, isProgram), [], "the program is gone");
	await isGone(word);
	await assert.rejects(sandbox.run("print(1)", { signal: controller.signal }), (error) => error === reason);
	await assert.rejects(sandbox.run(FOREVER, { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
	const later = new AbortController();
	const running = sandbox.run(FOREVER, { signal: later.signal });
	later.abort();
	await assert.rejects(running, { name: "AbortError" });
});

test("cancel.close: closing a sandbox ends its runs and refuses new ones", async () => {
	const sandbox = new Sandbox(CALM);
	const word = mark();
	const running = sandbox.stream(FOREVER, { args: [word] });
	const { value } = await running.next();
	assert.equal(value.event, "started");
	const rest = assert.rejects(async () => { for await (const event of running) void event; }, { name: "ClosedError" });
	await sandbox.close();
	await rest;
	await isGone(word);
	await assert.rejects(sandbox.run("1"), { name: "ClosedError" });
	await sandbox[Symbol.asyncDispose]();
});

test("cancel.stubborn: a brig that does not end at SIGTERM is killed after the grace", async () => {
	const file = join(folder(), "brig");
	writeFileSync(file, "#!/bin/sh\ntrap '' TERM\necho '{\"event\":\"notice\",\"text\":\"up\"}'\nwhile :; do sleep 0.1; done\n", { mode: 0o755 });
	for await (const event of new Sandbox({ binary: file, graceMs: 100 }).stream("1")) {
		assert.deepEqual(event, { event: "notice", text: "up" });
		break;
	}
});

test("left.kill: a Node.js that is killed leaves no cell", async () => {
	const word = mark();
	const script = `import { Sandbox } from "brig";
		for await (const event of new Sandbox().stream(${JSON.stringify(FOREVER)}, { timeout: 120, args: [process.argv[1]] })) {
			if (event.event === "stdout") console.log("up");
		}`;
	const cwd = new URL(".", import.meta.url);
	const child = spawn(process.execPath, ["--input-type=module", "-e", script, word], { cwd, stdio: ["ignore", "pipe", "inherit"] });
	let text = "";
	child.stdout.setEncoding("utf8").on("data", (piece) => (text += piece));
	await until(() => text.includes("up") || child.exitCode !== null, "the program");
	assert.ok(marked(word, isProgram).length > 0, "it runs");
	child.kill("SIGKILL");
	await isGone(word);
});
