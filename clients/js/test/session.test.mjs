// SPDX-License-Identifier: Apache-2.0
// Sessions: cells that stay, at a service that was named and at one's own.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test from "node:test";
import { ClosedError, FileMissing, ProgramError, Sandbox, ServiceError, Session, TimeLimit, TransportError, UsageError } from "brig";
import { CALM, folder, until } from "./bed.mjs";

// What is left behind is looked for in a folder that no other file of cases uses.
process.env.TMPDIR = folder();

/** A session for the length of a case. */
async function withSession(body, options = {}) {
	const session = new Sandbox({ session: true, ...CALM, ...options });
	try {
		return await body(session);
	} finally {
		await session.close();
	}
}

const sockets = () => readdirSync(tmpdir()).filter((name) => name.startsWith("brig-session-"));

async function free(session, code) {
	return until(async () => {
		try {
			return (await session.run(code)).text;
		} catch (error) {
			assert.equal(error.status, 409);
			return null;
		}
	}, "a context that is free");
}

test("session.copies: a fork and a snapshot have the files, and none of the state", () =>
	withSession(async (session) => {
		await session.files.write("kept.txt", "one");
		await session.run("x = 1");
		const other = await session.fork({ sessionTimeout: 600 });
		await other.files.write("kept.txt", "two");
		assert.equal((await other.run("'x' in globals()")).text, "False");
		assert.equal(new TextDecoder().decode(await session.files.read("kept.txt")), "one");
		const snapshot = await session.snapshot("first");
		assert.deepEqual((await session.snapshots()).map(({ id, name }) => [id, name]), [[snapshot.id, "first"]]);
		const host = `unix:${join(tmpdir(), sockets()[0])}`;
		const again = new Session({ host, snapshot });
		assert.equal(new TextDecoder().decode(await again.files.read("kept.txt")), "one");
		await Promise.all([other.close(), again.close()]);
		await session.removeSnapshot(snapshot);
		const late = new Session({ host, snapshot: snapshot.id });
		await assert.rejects(late.run("1"), ServiceError);
		await late.close();
	}));

test("session.watch: changes below a folder as they happen", () =>
	withSession(async (session) => {
		await session.files.mkdir("out/in");
		const watch = await session.files.watch("out", { recursive: true });
		await session.files.write("out/in/a.txt", "x");
		for await (const { change, name } of watch) {
			assert.equal(name, "in/a.txt");
			if (change === "written") watch.close();
		}
		await assert.rejects(session.files.watch("none"), ServiceError);
	}));

test("session.terminal: a program on a terminal: typed to, of another size, its end", () =>
	withSession(async (session) => {
		const terminal = await session.terminal(["sh"], { rows: 31, columns: 97, env: { PS1: "> " } });
		let out = "";
		await terminal.write("stty size; read x; stty size; exit 3\n");
		let typed = false;
		for await (const piece of terminal) {
			out += new TextDecoder().decode(piece);
			if (out.includes("31 97") && !typed) {
				typed = true;
				await terminal.resize(11, 33);
				await terminal.write("\n");
			}
		}
		assert.match(out, /11 33/);
		assert.equal(terminal.result.exitCode, 3);
		const killed = await session.terminal("sleep 1000");
		await killed.kill();
		assert.equal((await killed.wait()).verdict, "crash");
	}));

test("session.state: interpreters keep their state; results, errors and limits", () =>
	withSession(async (session) => {
		assert.ok(session instanceof Session && session instanceof Sandbox);
		assert.match(await session.id(), /^[a-z2-7]{16}$/);
		assert.equal((await session.run("x = 20")).text, null);
		const result = await session.run("print('said'); x * 2 + 2");
		assert.deepEqual([result.text, result.stdout, result.verdict], ["42", "said\n", "ok"]);
		assert.equal((await session.run("z=5; echo $z", { language: "bash" })).stdout, "5\n");
		assert.deepEqual((await session.contexts.list()).map((context) => context.language), ["python", "shell"]);
		const failed = await session.run("1 / 0");
		assert.equal(failed.error.name, "ZeroDivisionError");
		assert.throws(() => failed.raiseForVerdict(), ProgramError);
		const slow = await session.run("while True: pass", { timeout: "300ms" });
		assert.throws(() => slow.raiseForVerdict(), TimeLimit);
		assert.equal((await session.run("x")).text, "20");
		assert.equal((await session.info()).state, "ready");
		await assert.rejects(session.run("1", { memory: "1m" }), UsageError);
	}));

test("session.commands: input, folder, variables and exit codes of commands", () =>
	withSession(async (session) => {
		const result = await session.exec(["sh", "-c", "cat; exit 3"], { stdin: "in\n" });
		assert.deepEqual([result.stdout, result.exitCode], ["in\n", 3]);
		assert.equal((await session.exec("pwd; echo $V", { cwd: "/tmp", env: { V: "w" } })).stdout, "/tmp\nw\n");
		await assert.rejects(session.exec("cat", { stdin: new Uint8Array(1 << 21) }), UsageError);
	}));

test("session.files: written, read, listed, moved, removed, fetched", () =>
	withSession(
		async (session) => {
			assert.equal((await session.run("open('first').read()")).text, "here");
			const data = Uint8Array.from({ length: 256 }, (_, n) => n);
			await session.files.write("d/a b#.bin", data);
			assert.deepEqual(await session.files.read("d/a b#.bin"), data);
			await session.files.mkdir("e/f");
			await session.files.move("d/a b#.bin", "e/f/c");
			assert.deepEqual(await session.files.list(), [{ path: "e/f/c", size: 256 }, { path: "first", size: 4 }]);
			const out = folder();
			await session.files.download("e", join(out, "got"));
			assert.deepEqual(readdirSync(join(out, "got", "f")), ["c"]);
			await session.files.remove("e");
			await assert.rejects(session.files.read("e/f/c"), FileMissing);
		},
		{ files: { first: "here" } },
	));

test("session.interrupt: by name, by an AbortSignal, by leaving the stream; contexts run side by side", () =>
	withSession(async (session) => {
		await session.run("n = 1");
		let end;
		for await (const event of session.stream("print('up', flush=True)\nwhile True: pass")) {
			if (event.event === "stdout") await session.interrupt();
			if (event.event === "result") end = event.result;
		}
		assert.equal(end.error.name, "KeyboardInterrupt");
		for await (const event of session.stream("print('up', flush=True)\nwhile True: pass")) if (event.event === "stdout") break;
		assert.equal(await free(session, "n"), "1");
		const stop = new AbortController();
		const running = session.run("while True: pass", { signal: stop.signal });
		stop.abort(new Error("enough"));
		await assert.rejects(running, /enough/);
		assert.equal(await free(session, "n"), "1");
		const other = await session.contexts.create();
		const there = (own, peer) => `open('${own}', 'w')\nimport os, time\nwhile not os.path.exists('${peer}'): time.sleep(0.01)\n'${own}'`;
		const both = await Promise.all([session.run(there("p", "q")), session.run(there("q", "p"), { context: other })]);
		assert.deepEqual(both.map((result) => result.text), ["p", "q"]);
		await assert.rejects(session.interrupt(), UsageError);
		await session.contexts.remove(other);
		await session.restart();
		assert.equal((await session.run("'n' in globals()")).text, "False");
		await assert.rejects(session.run("1", { context: other }), (error) => error instanceof ServiceError && error.status === 404);
		await session.pause();
		await session.resume();
		await session.setTimeout("5m");
	}));

test("session.named: a service that is named, with its token", async () => {
	const state = folder();
	const brig = process.env.BRIG_BIN;
	const token = spawnSync(brig, ["token", "create", "--state", state, "ada"], { encoding: "utf8" }).stdout.trim();
	const server = spawn(brig, ["serve", "--listen", "127.0.0.1:0", "--socket", "none", "--state", state], { stdio: ["ignore", "pipe", "ignore"] });
	const ended = new Promise((done) => server.once("close", done));
	let host;
	try {
		for await (const line of createInterface({ input: server.stdout })) {
			if (line.startsWith("ready ")) {
				host = line.slice("ready ".length);
				break;
			}
		}
		await withSession(
			async (session) => {
				assert.equal((await session.run("6 * 7")).text, "42");
				assert.equal((await session.info()).token, "ada");
				assert.deepEqual(sockets(), []);
			},
			{ host, token, memory: "128m", sessionTimeout: 100 },
		);
		await assert.rejects(new Session({ host, token: "brig_wrong" }).run("1"), (error) => error.status === 401);
		await assert.rejects(new Session({ host, token, policy: "/x" }).run("1"), UsageError);
	} finally {
		server.kill();
		await ended;
	}
	await assert.rejects(new Session({ host, token }).run("1"), TransportError);
	await assert.rejects(new Session({ host: "nonsense" }).run("1"), UsageError);
});

test("session.left: nothing is left after close, nor when the process is killed or forgets it", async () => {
	const session = new Session(CALM);
	await session.run("1");
	assert.equal(sockets().length, 1);
	await session.close();
	await session.close();
	assert.deepEqual(sockets(), []);
	await assert.rejects(async () => session.run("1"), ClosedError);
	for (const [signal, rest] of [["SIGKILL", "await new Promise((done) => setTimeout(done, 1e9));"], [null, ""]]) {
		const code = `import { Session } from "brig"; const s = new Session(); console.log((await s.run("7")).text); ${rest}`;
		const child = spawn(process.execPath, ["--input-type=module", "-e", code], { cwd: new URL("..", import.meta.url), stdio: ["ignore", "pipe", "inherit"] });
		const ended = new Promise((done) => child.once("close", done));
		for await (const line of createInterface({ input: child.stdout })) {
			assert.equal(line, "7");
			if (signal) child.kill(signal);
		}
		await ended;
		await until(() => sockets().length === 0, "the service's end");
	}
});

test("session.wrong: options that sessions do not have", () => {
	for (const wrong of [{ workspace: "." }, { packages: ["numpy"] }, { backend: "docker" }, { nonsense: 1 }]) {
		assert.throws(() => new Sandbox({ session: true, ...wrong }), UsageError);
	}
	assert.throws(() => new Sandbox({ host: "http://127.0.0.1:1" }), UsageError);
});
