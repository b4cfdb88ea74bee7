// SPDX-License-Identifier: Apache-2.0
// e2b_files.mjs URL - E2B's own client, unchanged, against a door of brig serve: commands and files; one line for each thing that was seen.
import assert from "node:assert/strict";
import { Sandbox, CommandExitError, NotFoundError, FileNotFoundError, InvalidArgumentError, AuthenticationError, SandboxError, TimeoutError, NotEnoughSpaceError, FilesystemEventType, FileType } from "e2b";

const url = process.argv[2];
Object.assign(process.env, { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: "e2b_0123456789" });

const cases = [];
const see = (what, fn) => cases.push({ what, fn });
const box = await Sandbox.create({ envs: { GREETING: "héllo" }, timeoutMs: 300_000 });
const { commands, files, pty } = box;
const HOME = "/home/user";
const failed = async (promise) => {
	try {
		await promise;
	} catch (e) {
		return e;
	}
	throw new Error("it did not fail");
};
const rpc = async (method, body, headers = {}) => {
	const r = await fetch(`${url}/${method}`, {
		method: "POST", body: typeof body === "string" ? body : JSON.stringify(body),
		headers: { "Content-Type": "application/json", "E2b-Sandbox-Id": box.sandboxId, "X-Access-Token": box.envdAccessToken, ...headers },
	});
	return { status: r.status, body: await r.json() };
};

// ---- commands
see("the quickstart", async () => assert.deepEqual({ ...(await commands.run('echo "Hello from E2B!"')) }, { exitCode: 0, stdout: "Hello from E2B!\n", stderr: "", error: undefined }));
see("an exit code is an error with all that was written", async () => {
	const e = await failed(commands.run("echo o; echo e >&2; exit 3"));
	assert.ok(e instanceof CommandExitError);
	assert.deepEqual([e.exitCode, e.stdout, e.stderr, e.error, e.message], [3, "o\n", "e\n", "exit status 3", "exit status 3"]);
});
see("callbacks, as it is written", async () => {
	const out = [], err = [];
	const p = await commands.run("echo one; read x; echo $x >&2", { background: true, stdin: true, onStdout: (d) => { out.push(d); if (d === "one\n") void commands.sendStdin(p.pid, "two\n"); }, onStderr: (d) => void err.push(d) });
	assert.equal((await p.wait()).exitCode, 0);
	assert.deepEqual([out.join(""), err.join("")], ["one\n", "two\n"]);
});
see("text that is not ASCII, and bytes that are no text", async () => {
	const r = await commands.run("printf 'h\\303\\251llo \\360\\237\\230\\200 \\377\\n'");
	assert.equal(r.stdout, "héllo 😀 \ufffd\n");
});
see("a character that comes in two pieces", async () => assert.equal((await commands.run("printf '\\303'; sleep 0.05; printf '\\251'")).stdout, "é"));
see("much output", async () => {
	const r = await commands.run("head -c 2000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero | tr '\\0' y >&2");
	assert.deepEqual([r.stdout.length, r.stderr.length], [2_000_000, 1_000_000]);
});
see("more than a run may write elsewhere, to a reader that takes its time", async () => {
	let calls = 0;
	const r = await commands.run("head -c 24000000 /dev/zero | tr '\\0' x", { onStdout: async () => { if (calls++ < 20) await new Promise((done) => setTimeout(done, 20)); } });
	assert.equal(r.stdout.length, 24_000_000);
	assert.ok(calls > 20);
});
see("which sandbox it is, in variables of commands and terminals; not in lists", async () => {
	const line = "echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $E2B_TEAM_ID";
	const wanted = `true ${box.sandboxId} base local`;
	assert.equal((await commands.run(line)).stdout, wanted + "\n");
	assert.ok((await terminal({ cols: 90, rows: 20 }, `${line}; exit\n`)).includes(wanted));
	assert.equal((await commands.run(line, { envs: { E2B_SANDBOX: "no" } })).stdout, `no ${box.sandboxId} base local\n`);
	const p = await commands.run("sleep 100", { background: true, envs: { X: "y" } });
	assert.deepEqual((await commands.list()).find((q) => q.pid === p.pid).envs, { X: "y" });
	await p.kill();
});
see("variables: the sandbox's, and the call's over them", async () => {
	assert.equal((await commands.run("echo $GREETING $X", { envs: { X: "a b=c" } })).stdout, "héllo a b=c\n");
	assert.equal((await commands.run("echo $GREETING", { envs: { GREETING: "ho" } })).stdout, "ho\n");
});
see("a folder to run in", async () => {
	assert.equal((await commands.run("basename $PWD", { cwd: "/tmp" })).stdout, "tmp\n");
	await files.makeDir("in/here");
	assert.equal((await commands.run("basename $PWD", { cwd: "in/here" })).stdout, "here\n");
});
see("at home", async () => {
	assert.equal((await commands.run("echo $HOME $USER $(whoami) $PWD ~")).stdout, `${HOME} user user ${HOME} ${HOME}\n`);
	await files.write(`${HOME}/by/name`, "x");
	assert.equal((await commands.run(`cat ${HOME}/by/name; ls ${HOME}/by`)).stdout, "xname\n");
	assert.deepEqual((await files.list("/home")).map((e) => e.path), [HOME]);
});
see("a folder that is not there", async () => assert.ok((await failed(commands.run("true", { cwd: "/nope" }))) instanceof InvalidArgumentError));
see("a user that is not there", async () => assert.ok((await failed(commands.run("true", { user: "stranger" }))) instanceof AuthenticationError));
see("a time limit kills it", async () => {
	const e = await failed(commands.run("echo $$ > pid-of-slow; sleep 100", { timeoutMs: 300 }));
	assert.ok(e instanceof TimeoutError, `${e}`);
	const pid = Number(await files.read("pid-of-slow"));
	await commands.run(`while kill -0 ${pid} 2>/dev/null; do sleep 0.02; done`);
	assert.ok(!(await commands.list()).some((p) => p.pid === pid));
});
see("a long argument", async () => {
	const text = "x".repeat(120_000);
	assert.equal((await commands.run(`printf %s '${text}' | wc -c`)).stdout.trim(), "120000");
});
see("in the background: list, kill, kill again", async () => {
	const p = await commands.run("echo up; sleep 100", { background: true });
	const [row] = (await commands.list()).filter((r) => r.pid === p.pid);
	assert.deepEqual([row.cmd, row.args, row.cwd, row.tag], ["/bin/bash", ["-l", "-c", "echo up; sleep 100"], HOME, undefined]);
	assert.equal(await p.kill(), true);
	const e = await failed(p.wait());
	assert.deepEqual([e instanceof CommandExitError, e.exitCode, e.error], [true, -1, "signal: killed"]);
	assert.equal(await p.kill(), false);
	assert.equal(await commands.kill(999_999), false);
});
see("its pid is the one that it has itself", async () => {
	const p = await commands.run("echo $$", { background: true });
	assert.equal((await p.wait()).stdout, `${p.pid}\n`);
});
see("who leaves it leaves it running; who connects hears the rest", async () => {
	const p = await commands.run("echo early; read x; echo late; exit 4", { background: true, stdin: true });
	await p.disconnect();
	const again = await commands.connect(p.pid);
	await commands.sendStdin(p.pid, "go\n");
	const e = await failed(again.wait());
	assert.deepEqual([again.pid, e.exitCode, e.stdout.replace("early\n", "")], [p.pid, 4, "late\n"]);
});
see("two who hear the same", async () => {
	const p = await commands.run("read x; echo $x", { background: true, stdin: true });
	const also = await commands.connect(p.pid);
	await commands.sendStdin(p.pid, "both\n");
	assert.deepEqual([(await p.wait()).stdout, (await also.wait()).stdout], ["both\n", "both\n"]);
});
see("who connects when it has ended hears how", async () => {
	const p = await commands.run("exit 6", { background: true });
	await failed(p.wait());
	assert.equal((await failed((await commands.connect(p.pid)).wait())).exitCode, 6);
});
see("who connects to nothing", async () => assert.ok((await failed(commands.connect(999_999))) instanceof NotFoundError));
see("input, and its end", async () => {
	const p = await commands.run("wc -c", { background: true, stdin: true });
	await commands.sendStdin(p.pid, "äbc\n");
	await commands.closeStdin(p.pid);
	assert.equal((await p.wait()).stdout.trim(), "5");
});
see("much input", async () => {
	const p = await commands.run("wc -c", { background: true, stdin: true });
	await commands.sendStdin(p.pid, "x".repeat(2_000_000));
	await p.closeStdin();
	assert.equal((await p.wait()).stdout.trim(), "2000000");
});
see("without an input it reads nothing", async () => {
	assert.equal((await commands.run("cat; echo end")).stdout, "end\n");
	const p = await commands.run("sleep 100", { background: true });
	assert.match((await failed(commands.sendStdin(p.pid, "x"))).message, /stdin/);
	await p.kill();
});
see("a signal that it caused itself", async () => {
	const e = await failed(commands.run("kill -SEGV $$"));
	assert.deepEqual([e.exitCode, e.error], [-1, "signal: segmentation fault"]);
});
see("what its children write behind it, until they close the pipe", async () => {
	assert.equal((await commands.run("exec > >(tee log); echo teed")).stdout, "teed\n");
	const e = await failed(commands.run("(sleep 0.01; echo late; echo later >&2) & exit 3"));
	assert.deepEqual([e.exitCode, e.stdout, e.stderr], [3, "late\n", "later\n"]);
});
see("a child that keeps the pipe open does not keep the command", async () => {
	const r = await commands.run("sleep 1000 & echo $!");
	await commands.run(`kill ${r.stdout}`);
});
see("what it leaves in the background goes on", async () => {
	await commands.run("(sleep 0.1; echo done > left-behind) > /dev/null 2>&1 &");
	await commands.run("while ! [ -s left-behind ]; do sleep 0.02; done");
});
see("what the inspection blocks", async () => {
	const e = await failed(commands.run("rm -rf / --no-preserve-root"));
	assert.ok(e instanceof SandboxError);
	assert.match(e.message, /permission_denied.*rm -rf/);
});
see("sudo is the user that there is, and nothing passes by it", async () => {
	assert.equal((await commands.run("sudo id -un && echo x | sudo -n tee sudo.txt >/dev/null; cat sudo.txt")).stdout, "user\nx\n");
	for (const line of ["sudo rm -rf /", "true && sudo -E rm -rf /", "sudo -i", "su -c id"])
		assert.match((await failed(commands.run(line))).message, /permission_denied/);
});
see("two hundred short ones at once, as many as a client has connections", async () => {
	const all = await Promise.all(Array.from({ length: 200 }, (_, i) => commands.run(`echo ${i}`)));
	assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 200 }, (_, i) => `${i}\n`));
});
see("its git", async () => {
	const path = `${HOME}/repository`;
	await box.git.init(path, { initialBranch: "main" });
	await files.write(`${path}/a.txt`, "1");
	assert.equal((await box.git.status(path)).isClean, false);
	await box.git.add(path);
	await box.git.commit(path, "first", { authorName: "N", authorEmail: "n@example.com" });
	assert.equal((await box.git.status(path)).isClean, true);
	await box.git.createBranch(path, "dev");
	assert.deepEqual((await box.git.branches(path)).branches.sort(), ["dev", "main"]);
	assert.equal((await commands.run("git log --format=%an", { cwd: path, envs: { GIT_AUTHOR_NAME: "X" } })).stdout, "N\n");
});
see("forty at once", async () => {
	const all = await Promise.all(Array.from({ length: 40 }, (_, i) => commands.run(`echo ${i}`)));
	assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 40 }, (_, i) => `${i}\n`));
});
see("a caller that gives up hears so, and the command goes on", async () => {
	const control = new AbortController();
	const p = await commands.run("sleep 100", { background: true, signal: control.signal });
	control.abort();
	await failed(p.wait());
	assert.equal(await commands.kill(p.pid), true);
});

// ---- terminals
const terminal = async (options, input, act) => {
	let text = "";
	const p = await pty.create({ ...options, onData: (d) => { text += new TextDecoder().decode(d); } });
	if (act) await act(p);
	await pty.sendInput(p.pid, new TextEncoder().encode(input));
	await p.wait();
	return text;
};
see("a terminal and its size", async () => assert.match(await terminal({ cols: 90, rows: 20 }, "stty size; exit\n"), /20 90/));
see("another size, and variables", async () => assert.match(await terminal({ cols: 90, rows: 20, envs: { X: "y" } }, "stty size; echo $TERM-$X; exit\n", (p) => pty.resize(p.pid, { cols: 77, rows: 33 })), /33 77\r\nxterm-256color-y/));
see("its end", async () => {
	const p = await pty.create({ cols: 80, rows: 24, onData: () => {} });
	assert.equal(await pty.kill(p.pid), true);
	assert.equal((await failed(p.wait())).exitCode, -1);
});

// ---- files
see("written and read", async () => {
	const w = await files.write("a.txt", "hällo");
	assert.deepEqual([w.path, w.name, w.type], [`${HOME}/a.txt`, "a.txt", "file"]);
	assert.equal(await files.read("a.txt"), "hällo");
	assert.equal(await files.read(`${HOME}/a.txt`), "hällo");
	assert.equal(await files.read("~/a.txt"), "hällo");
	assert.equal((await commands.run("cat a.txt")).stdout, "hällo");
});
see("every form of bytes", async () => {
	const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
	await files.write("raw", bytes.buffer);
	assert.deepEqual(await files.read("raw", { format: "bytes" }), bytes);
	await files.write("raw", new Blob([bytes]));
	assert.deepEqual(new Uint8Array(await (await files.read("raw", { format: "blob" })).arrayBuffer()), bytes);
	await files.write("raw", new Blob([bytes]).stream());
	let n = 0;
	for await (const piece of await files.read("raw", { format: "stream" })) n += piece.length;
	assert.equal(n, 256);
});
see("an empty one", async () => {
	await files.write("empty", "");
	assert.equal(await files.read("empty"), "");
});
see("what cannot be written says why, folders on the way or not", async () => {
	for (const path of ["/etc/x", "/nope/x"])
		assert.match((await failed(files.write(path, "x"))).message, /403: .*Read-only file system/, path);
	await files.write("moved", "x");
	assert.match((await failed(files.rename("moved", "/nope/x"))).message, /permission_denied.*Read-only file system/);
});
see("several at once, folders on the way", async () => {
	const w = await files.write([{ path: "m/1", data: "one" }, { path: `${HOME}/m/deep/er/2`, data: "two" }]);
	assert.deepEqual(w.map((f) => f.path), [`${HOME}/m/1`, `${HOME}/m/deep/er/2`]);
	assert.equal((await commands.run("cat m/1 m/deep/er/2")).stdout, "onetwo");
});
see("names of all kinds", async () => {
	for (const name of ['q"uote', "new\nline", "blank and +%22&=?#", "ünïcode 文件", "semi;colon"]) {
		assert.equal((await files.write(`names/${name}`, name)).name, name);
		assert.equal(await files.read(`names/${name}`), name);
	}
});
see("packed both ways", async () => {
	const text = "gzip ".repeat(50_000);
	await files.write("packed", text, { gzip: true });
	assert.equal((await commands.run("wc -c < packed")).stdout.trim(), "250000");
	assert.equal(await files.read("packed", { gzip: true }), text);
});
see("a large one", async () => {
	await files.write("large", new Uint8Array(6_000_000).fill(120).buffer, { useOctetStream: true });
	assert.equal((await files.read("large")).length, 6_000_000);
	await files.remove("large");
});
see("metadata", async () => {
	const w = await files.write("meta", "x", { metadata: { Author: "me", note: "a=b" } });
	assert.deepEqual(w.metadata, { author: "me", note: "a=b" });
	assert.deepEqual((await files.getInfo("meta")).metadata, { author: "me", note: "a=b" });
	assert.deepEqual((await files.rename("meta", "meta2")).metadata, { author: "me", note: "a=b" });
	await files.write("meta2", "y");
	assert.equal((await files.getInfo("meta2")).metadata, undefined);
});
see("what one is", async () => {
	await commands.run("chmod 640 a.txt");
	const i = await files.getInfo("a.txt");
	assert.deepEqual([i.name, i.type, i.path, i.size, i.mode, i.permissions, i.owner, i.group], ["a.txt", FileType.FILE, `${HOME}/a.txt`, 6, 0o640, "-rw-r-----", "user", "user"]);
	assert.ok(Math.abs(i.modifiedTime - Date.now()) < 600_000);
	assert.deepEqual([await files.exists("a.txt"), await files.exists("nope"), await files.exists("/tmp")], [true, false, true]);
});
see("links", async () => {
	await commands.run("mkdir -p l && ln -s ../a.txt l/to-file && ln -s /tmp l/to-folder && ln -s nowhere l/to-nothing");
	const i = await files.getInfo("l/to-file");
	assert.deepEqual([i.type, i.symlinkTarget, i.mode], [FileType.FILE, `${HOME}/a.txt`, 0o640]);
	assert.deepEqual((await files.list("l")).map((e) => [e.name, e.type]), [["to-file", FileType.FILE], ["to-folder", FileType.DIR]]);
});
see("modes, as the original writes them", async () => {
	const one = async (path) => (await rpc("filesystem.Filesystem/Stat", { path })).body.entry;
	await commands.run("mkdir k && cd k && mkdir -m 1777 sticky && mkdir -m 2755 group && mkfifo -m 644 fifo && ln -s nowhere dangling && ln -s /dev/null device");
	const seen = {};
	for (const name of ["sticky", "group", "fifo", "dangling"]) seen[name] = await one(`k/${name}`).then((e) => [e.permissions, e.mode]);
	assert.deepEqual(seen, { sticky: ["dtrwxrwxrwx", 0o777], group: ["dgrwxr-xr-x", 0o755], fifo: ["prw-r--r--", 0o644], dangling: ["Lrwxrwxrwx", 0] });
	assert.deepEqual([(await one("/tmp")).permissions, (await one("/tmp")).mode, (await one("/dev/null")).permissions], ["dtrwxrwxrwx", 0o777, "Dcrw-rw-rw-"]);
	assert.deepEqual([(await one("k/dangling")).symlinkTarget, (await one("k/device")).symlinkTarget], [`${HOME}/k/dangling`, "/dev/null"]);
});
see("lists", async () => {
	await files.write([{ path: "t/b/2", data: "" }, { path: "t/a", data: "" }, { path: "t/b/c/3", data: "" }]);
	const names = async (depth) => (await files.list("t", { depth })).map((e) => e.path.slice(HOME.length + 3));
	assert.deepEqual(await names(1), ["a", "b"]);
	assert.deepEqual(await names(2), ["a", "b", "b/2", "b/c"]);
	assert.deepEqual(await names(3), ["a", "b", "b/2", "b/c", "b/c/3"]);
	assert.ok((await failed(files.list("t", { depth: 0 }))) instanceof InvalidArgumentError);
	assert.ok((await failed(files.list("t/a"))) instanceof InvalidArgumentError);
	assert.ok((await failed(files.list("nope"))) instanceof FileNotFoundError);
});
see("folders", async () => {
	assert.deepEqual([await files.makeDir("f/g/h"), await files.makeDir("f/g/h"), await files.makeDir("f/g/")], [true, false, false]);
	assert.ok((await failed(files.makeDir("a.txt"))) instanceof InvalidArgumentError);
});
see("another name", async () => {
	await files.write("old", "moved");
	const i = await files.rename("old", "new/place/it");
	assert.deepEqual([i.name, i.path, await files.exists("old"), await files.read("new/place/it")], ["it", `${HOME}/new/place/it`, false, "moved"]);
	assert.ok((await failed(files.rename("old", "x"))) instanceof NotFoundError);
	assert.equal((await files.rename("new/place", "/tmp/elsewhere")).type, FileType.DIR);
	assert.equal(await files.read("/tmp/elsewhere/it"), "moved");
});
see("removed, with all that is in it; nothing is no error", async () => {
	await files.write("gone/deep/er", "x");
	await files.remove("gone");
	assert.equal(await files.exists("gone/deep"), false);
	await files.remove("gone");
});
see("what cannot be read", async () => {
	assert.ok((await failed(files.read("nope"))) instanceof FileNotFoundError);
	assert.ok((await failed(files.read("t"))) instanceof InvalidArgumentError);
	assert.ok((await failed(files.read("a.txt", { user: "stranger" }))) instanceof AuthenticationError);
	assert.ok((await failed(files.read("~other/x"))) instanceof InvalidArgumentError);
	assert.ok((await failed(files.write("t", "x"))) instanceof InvalidArgumentError);
});
see("no room", async () => {
	await commands.run("head -c 10G /dev/zero > fill 2>/dev/null; true");
	assert.ok((await failed(files.write("more", "x".repeat(1_000_000)))) instanceof NotEnoughSpaceError);
	await files.remove("fill");
	await files.write("more", "x".repeat(1_000_000));
});
see("a hundred at once", async () => {
	await Promise.all(Array.from({ length: 100 }, (_, i) => files.write(`many/${i}`, `${i}`)));
	assert.equal((await files.list("many")).length, 100);
});

// ---- signed addresses
see("addresses that are signed", async () => {
	const form = new FormData();
	form.append("file", new Blob(["signed"]), "any");
	const up = await fetch(await box.uploadUrl("up+ load.txt"), { method: "POST", body: form });
	assert.deepEqual([up.status, (await up.json())[0].path], [200, `${HOME}/up+ load.txt`]);
	const address = await box.downloadUrl("up+ load.txt", { useSignatureExpiration: 60 });
	const late = await fetch(await box.downloadUrl("up+ load.txt", { useSignatureExpiration: -60 }));
	assert.deepEqual([late.status, await late.json()], [401, { code: 401, message: "signature is already expired" }]);
	assert.equal(await (await fetch(address)).text(), "signed");
	for (const [from, to] of [["signature=v1_", "signature=v1_A"], ["path=up", "path=down"], [/signature_expiration=\d/, "signature_expiration=9"]])
		assert.equal((await fetch(address.replace(from, to))).status, 401);
	assert.equal((await fetch(address, { method: "POST", body: form })).status, 401);
	assert.equal((await fetch(await box.downloadUrl("a.txt", { useSignatureExpiration: -5 }))).status, 401);
});

// ---- watches
const until = async (fn) => {
	while (!fn()) await new Promise((r) => setTimeout(r, 10));
};
see("a folder that is watched", async () => {
	const seen = [];
	let exits = 0;
	await files.makeDir("w");
	const h = await files.watchDir("w", (e) => void seen.push(e), { includeEntry: true, onExit: () => { exits++; } });
	await files.write("w/a", "x");
	await files.rename("w/a", "w/b");
	await commands.run("chmod 600 w/b");
	await files.remove("w/b");
	await until(() => seen.some((e) => e.type === FilesystemEventType.REMOVE));
	assert.deepEqual([...new Set(seen.map((e) => `${e.type} ${e.name}`))], ["create a", "write a", "rename a", "create b", "chmod b", "remove b"]);
	assert.equal(seen.find((e) => e.type === "remove").entry, undefined);
	await h.stop();
	await until(() => exits === 1);
});
see("and what is below it", async () => {
	const seen = [];
	await files.makeDir("w/sub");
	const h = await files.watchDir("w", (e) => void seen.push(`${e.type} ${e.name}`), { recursive: true });
	await files.write("w/sub/x", "x");
	await until(() => seen.includes("write sub/x"));
	await h.stop();
});
see("what cannot be watched", async () => {
	assert.ok((await failed(files.watchDir("nope", () => {}))) instanceof FileNotFoundError);
	assert.ok((await failed(files.watchDir("a.txt", () => {}))) instanceof InvalidArgumentError);
});
see("a watcher that is asked", async () => {
	const { body: w } = await rpc("filesystem.Filesystem/CreateWatcher", { path: "w" });
	await files.write("w/asked", "x");
	let found = [];
	while (!found.some((e) => e.type === "EVENT_TYPE_WRITE")) found = found.concat((await rpc("filesystem.Filesystem/GetWatcherEvents", w)).body.events);
	assert.deepEqual(found[0], { name: "asked", type: "EVENT_TYPE_CREATE" });
	assert.deepEqual((await rpc("filesystem.Filesystem/RemoveWatcher", w)), { status: 200, body: {} });
	assert.equal((await rpc("filesystem.Filesystem/GetWatcherEvents", w)).body.code, "not_found");
});

// ---- what the SDK never sends
see("a process by its tag, and input in several messages", async () => {
	const frame = (m) => { const b = Buffer.from(JSON.stringify(m)); const h = Buffer.alloc(5); h.writeUInt32BE(b.length, 1); return Buffer.concat([h, b]); };
	const head = { "Content-Type": "application/connect+json", "E2b-Sandbox-Id": box.sandboxId, "X-Access-Token": box.envdAccessToken };
	const start = await fetch(`${url}/process.Process/Start`, { method: "POST", headers: head, body: frame({ process: { cmd: "cat" }, tag: "mine" }) });
	const reader = start.body.getReader();
	await reader.read();
	const process = { selector: 0, tag: "mine" };
	const body = Buffer.concat([frame({ start: { process } }), frame({ data: { input: { stdin: "YQ==" } } }), frame({ keepalive: {} }), frame({ data: { input: { stdin: "Ygo=" } } })]);
	const sent = Buffer.from(await (await fetch(`${url}/process.Process/StreamInput`, { method: "POST", headers: head, body })).arrayBuffer());
	assert.equal(sent.toString("latin1"), "\0\0\0\0\x02{}\x02\0\0\0\x02{}");
	assert.equal((await rpc("process.Process/List", {})).body.processes.filter((p) => p.tag === "mine").length, 1);
	assert.match(Buffer.from((await reader.read()).value).toString(), /YWIK/);
	assert.deepEqual(await rpc("process.Process/CloseStdin", { process }), { status: 200, body: {} });
	let rest = "";
	for (let piece; !(piece = await reader.read()).done;) rest += Buffer.from(piece.value).toString("latin1");
	assert.match(rest, /"exited":true.*\x02\0\0\0\x02\{\}$/);
});

// ---- its end
see("a sandbox that ends takes its commands and watches with it", async () => {
	const own = await Sandbox.create({ timeoutMs: 60_000 });
	const p = await own.commands.run("sleep 100", { background: true });
	let exit;
	await own.files.watchDir("/tmp", () => {}, { onExit: (e) => { exit = e ?? "over"; } });
	const end = failed(p.wait());
	await own.kill();
	assert.match((await end).message, /sandbox was killed/);
	await until(() => exit);
	assert.ok((await failed(own.commands.run("true"))).message.length > 0);
	assert.ok((await failed(own.files.read("x"))) instanceof TimeoutError);
	assert.equal(await own.isRunning(), false);
});

let wrong = 0;
for (const { what, fn } of cases) {
	try {
		await fn();
		console.log(`ok ${what}`);
	} catch (e) {
		wrong++;
		console.log(`not ok ${what}\n${e?.stack ?? e}`);
	}
}
await box.kill();
process.exit(wrong ? 1 : 0);
