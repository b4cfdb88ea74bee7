// SPDX-License-Identifier: Apache-2.0
// e2b_older.mjs URL - an older client of E2B's, unchanged, against the E2B door of brig serve: it has the first version of the addresses, names no
// sandbox where it asks for files, and lacks what came later; one line for each thing that was seen.
import assert from "node:assert/strict";
import { Sandbox, CommandExitError, NotFoundError, TimeoutError } from "e2b-older";

const url = process.argv[2];
Object.assign(process.env, { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: `e2b_${"0123456789".repeat(4)}` });

const cases = [];
const see = (what, fn) => cases.push({ what, fn });
const box = await Sandbox.create({ metadata: { suite: "older" }, envs: { GREETING: "héllo" }, timeoutMs: 120_000 });
const run = (command, options) => box.commands.run(command, options);
const until = async (what, fn) => {
	for (let i = 0; i < 1200 && !fn(); i++) await new Promise((resolve) => setTimeout(resolve, 25));
	assert.ok(fn(), what);
};

see("a command", async () => {
	const r = await run('echo "Hello $GREETING"; echo bad >&2');
	assert.deepEqual([r.stdout, r.stderr, r.exitCode], ["Hello héllo\n", "bad\n", 0]);
});
see("one that fails", async () => assert.rejects(run("exit 3"), (e) => e instanceof CommandExitError && e.exitCode === 3));
see("variables that programs look for others by", async () => {
	await box.files.write([{ path: "bin/own", data: "#!/bin/sh\necho own" }, { path: "lib/mine.py", data: "x = 7" }]);
	await run("chmod +x bin/own");
	const envs = { PATH: "/home/user/bin:/usr/bin:/bin", HOME: "/tmp", PYTHONPATH: "/home/user/lib" };
	assert.equal((await run("own; cd; pwd; python3 -c 'import mine; print(mine.x)'", { envs })).stdout, "own\n/tmp\n7\n");
	await assert.rejects(run("true", { envs: { LD_PRELOAD: "x.so" } }), /LD_PRELOAD/);
});
see("its time limit", async () => assert.rejects(run("sleep 60", { timeoutMs: 300 }), TimeoutError));
see("in the background, with input", async () => {
	const command = await run("read x; echo got $x", { background: true, stdin: true });
	assert.ok((await box.commands.list()).some((p) => p.pid === command.pid));
	await box.commands.sendStdin(command.pid, "it\n");
	assert.equal((await command.wait()).stdout, "got it\n");
	assert.equal(await box.commands.kill(command.pid), false);
});
see("files", async () => {
	assert.equal((await box.files.write("d/a.txt", "hällo")).path, "/home/user/d/a.txt");
	assert.equal(await box.files.read("d/a.txt"), "hällo");
	assert.deepEqual((await box.files.list("d")).map((e) => [e.name, e.type]), [["a.txt", "file"]]);
	assert.equal(await box.files.makeDir("d"), false);
	assert.equal((await box.files.rename("d/a.txt", "d/b.txt")).path, "/home/user/d/b.txt");
	assert.equal(await box.files.exists("d/a.txt"), false);
	await box.files.remove("d");
	await assert.rejects(box.files.read("d/b.txt"), NotFoundError);
});
see("a watch", async () => {
	await box.files.makeDir("w");
	const seen = [];
	const watch = await box.files.watchDir("w", (e) => seen.push(`${e.type} ${e.name}`));
	await box.files.write("w/n", "1");
	await until("it was told", () => seen.includes("create n") && seen.includes("write n"));
	await watch.stop();
});
see("signed addresses", async () => {
	const form = new FormData();
	form.append("file", new Blob(["up"]), "up.txt");
	assert.equal((await fetch(await box.uploadUrl("up.txt"), { method: "POST", body: form })).status, 200);
	assert.equal(await (await fetch(await box.downloadUrl("up.txt", { useSignatureExpiration: 60 }))).text(), "up");
});
see("a terminal", async () => {
	let out = "";
	const terminal = await box.pty.create({ cols: 71, rows: 24, envs: { PS1: "> " }, onData: (data) => { out += new TextDecoder().decode(data); } });
	await box.pty.sendInput(terminal.pid, new TextEncoder().encode("stty size; exit 5\n"));
	await assert.rejects(terminal.wait(), (e) => e.exitCode === 5);
	assert.match(out, /24 71/);
});
see("what is known of it, and the list", async () => {
	assert.equal((await box.getInfo()).metadata.suite, "older");
	const pages = Sandbox.list({ query: { metadata: { suite: "older" } } });
	assert.deepEqual((await pages.nextItems()).map((s) => s.sandboxId), [box.sandboxId]);
	await box.setTimeout(90_000);
});
see("connecting to it", async () => assert.equal((await (await Sandbox.connect(box.sandboxId)).commands.run("echo again")).stdout, "again\n"));
see("a pause", async () => {
	await box.betaPause();
	assert.equal((await Sandbox.getInfo(box.sandboxId)).state, "paused");
	await Sandbox.connect(box.sandboxId);
	assert.equal((await run("echo on")).stdout, "on\n");
});
see("its end", async () => {
	await box.kill();
	assert.equal(await box.isRunning(), false);
	await assert.rejects(run("true"));
	await assert.rejects(Sandbox.connect(box.sandboxId), NotFoundError);
});

let failed = 0;
for (const [i, { what, fn }] of cases.entries()) {
	try {
		await fn();
		console.log(`ok ${i + 1} - ${what}`);
	} catch (e) {
		failed++;
		console.log(`not ok ${i + 1} - ${what}\n${String(e?.stack ?? e).replace(/^/gm, "# ")}`);
	}
}
process.exit(failed ? 1 : 0);
