// SPDX-License-Identifier: Apache-2.0
// piston.mjs URL - Piston's clients, unchanged, against a door of brig serve; one line for each thing that was seen.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { once } from "node:events";
import piston from "piston-client";

const require = createRequire(import.meta.url);
const { PistonClient: Api } = require("piston-api");
const { NodePistonClient: Wrapper } = require("piston-api-client");
const WebSocket = require("ws");
const url = process.argv[2];

const cases = [];
const see = (what, fn) => cases.push({ what, fn });

// ---- piston-client
const simple = piston({ server: url });
const hello = "print('Hello World!')";
see("client: runtimes", async () => {
	const list = await simple.runtimes();
	assert.ok(list.every((r) => /^\d+\.\d+\.\d+$/.test(r.version) && Array.isArray(r.aliases)));
	assert.ok(list.some((r) => r.language === "python" && r.version.startsWith("3.")));
});
see("client: quickstart", async () => {
	const r = await simple.execute("python", hello);
	assert.equal(r.run.stdout, "Hello World!\n");
	assert.deepEqual([r.run.code, r.run.signal, r.run.status, r.run.message, r.language], [0, null, null, null, "python"]);
});
see("client: javascript", async () => assert.equal((await simple.execute("javascript", "console.log([1,2,3].map(x => x + 1))")).run.output, "[ 2, 3, 4 ]\n"));
see("client: its usual arguments", async () => assert.equal((await simple.execute("python", "import sys; print(sys.argv[1:])")).run.stdout, "['1', '2', '3']\n"));
see("client: input gets a line end", async () => assert.equal((await simple.execute("python", { files: [{ content: "import sys; print(repr(sys.stdin.read()))" }], stdin: "a" })).run.stdout, "'a\\n'\n"));
see("client: an alias has no version", async () => assert.equal((await simple.execute("py", hello)).message, "version is required as a string"));
see("client: an unknown language", async () => assert.equal((await simple.execute({ language: "nope", version: "1.0.0", files: [{ content: "" }] })).message, "nope-1.0.0 runtime is unknown"));
see("client: a key in the address", async () => assert.equal((await piston({ server: url.replace("//", "//u:k@") }).execute("python", hello)).run.code, 0));
see("client: a key in the path", async () => assert.equal((await piston({ server: url + "/t/key" }).execute("python", hello)).run.code, 0));
see("client: a key that is refused", async () => assert.match((await piston({ server: url + "/t/bad" }).runtimes()).message, /refuse/));
see("client: C++ by the name that Piston has", async () => {
	const r = await simple.execute("c++", '#include <iostream>\nint main() { std::cout << "two " << 2 << std::endl; }');
	assert.deepEqual([r.run.stdout, r.compile.code, r.language], ["two 2\n", 0, "c++"]);
});

// ---- piston-api-client
const wrapper = new Wrapper({ server: url });
const run = async (job) => {
	const r = await wrapper.execute({ version: "*", ...job });
	assert.ok(r.success, JSON.stringify(r));
	return r.data;
};
see("wrapper: runtimes", async () => assert.ok((await wrapper.runtimes()).data.length > 3));
see("wrapper: quickstart", async () => assert.match((await run({ language: "js", files: [{ content: "console.log(process.argv.slice(2))" }], args: ["Hello", "World"] })).run.output, /Hello.*World/));
see("wrapper: several files", async () => assert.equal((await run({ language: "python", files: [{ name: "main.py", content: "import other; print(other.x, open('raw').read())" }, { name: "other.py", content: "x = 5" }, { name: "raw", content: "c8O2", encoding: "base64" }] })).run.stdout, "5 sö\n"));
see("wrapper: a file in hex, in a folder", async () => assert.equal((await run({ language: "python", files: [{ content: "print(open('sub/b').read())" }, { name: "sub/b", content: "6869", encoding: "hex" }] })).run.stdout, "hi\n"));
see("wrapper: an exit code", async () => {
	const { run: r } = await run({ language: "python", files: [{ content: "import sys; print(1); sys.stderr.write('e'); sys.exit(7)" }] });
	assert.deepEqual([r.code, r.status, r.stdout, r.stderr, r.output, r.message], [7, "RE", "1\n", "e", "1\ne", "Exited with error status 7"]);
});
see("wrapper: a signal", async () => {
	const { run: r } = await run({ language: "python", files: [{ content: "import os; os.kill(os.getpid(), 11)" }] });
	assert.deepEqual([r.code, r.signal, r.status, r.message], [null, "SIGSEGV", "SG", "Caught fatal signal 11"]);
});
see("wrapper: time is over", async () => {
	const { run: r } = await run({ language: "python", files: [{ content: "import time; print('x', flush=True); time.sleep(9)" }], runTimeout: 300, run_timeout: 300 });
	assert.deepEqual([r.code, r.signal, r.status, r.stdout], [null, "SIGKILL", "TO", "x\n"]);
});
see("wrapper: C that does not compile", async () => {
	const r = await run({ language: "c", files: [{ name: "main.c", content: "int main() { return x; }" }] });
	assert.equal(r.compile.code, 1);
	assert.match(r.compile.stderr, /undeclared/);
	assert.deepEqual(r.run, r.compile);
});
see("wrapper: no newline, no ASCII, much", async () => assert.equal((await run({ language: "python", files: [{ content: "print('ü' * 100000, end='')" }] })).run.stdout, "ü".repeat(100000)));
see("wrapper: bytes that are no text", async () => assert.equal((await run({ language: "python", files: [{ content: "import sys; sys.stdout.buffer.write(b'a\\xffb')" }] })).run.stdout, "a\ufffdb"));
see("wrapper: side by side", async () => {
	const all = await Promise.all([1, 2, 3, 4].map((n) => run({ language: "python", files: [{ content: `print(${n})` }] })));
	assert.deepEqual(all.map((r) => r.run.stdout), ["1\n", "2\n", "3\n", "4\n"]);
});
for (const selector of ["*", "3.x", "^3.0.0", ">=3", "3", "1 || 3.*"])
	see(`wrapper: version ${selector}`, async () => assert.equal((await wrapper.execute({ language: "python", version: selector, files: [{ content: "print(1)" }] })).data.run.code, 0));

const file = (name, content) => ({ name, content });
for (const [what, language, files, out] of [
	["C: two sources and a header", "c", [file("main.c", '#include <stdio.h>\n#include "twice.h"\nint main() { printf("%d\\n", twice(4)); }'), file("twice.c", '#include "twice.h"\nint twice(int a) { return 2 * a; }'), file("twice.h", "int twice(int);")], "8\n"],
	["C: sources without a name, the second needs a library", "c", [{ content: '#include <stdio.h>\ndouble root(double); int main() { printf("%.0f\\n", root(9)); }' }, { content: "#include <math.h>\ndouble root(double a) { return sqrt(a); }" }], "3\n"],
	["C: folders, and a file to be read", "c", [file("src/main.c", '#include <stdio.h>\n#include "../inc/a.h"\nint main() { FILE *f = fopen("d.txt", "r"); printf("%d %c\\n", A, fgetc(f)); }'), file("inc/a.h", "#define A 7"), file("d.txt", "x")], "7 x\n"],
	["C++: endings of all kinds", "c++", [file("m.cpp", "#include <iostream>\nint f(); int main() { std::cout << f() << std::endl; }"), file("f.cc", "int f() { return 6; }")], "6\n"],
	["TypeScript: what it imports", "typescript", [file("m.ts", 'import { a } from "./a";\nconst n: number = a;\nconsole.log(n)'), file("a.ts", "export const a: number = 5;")], "5\n"],
])
	see(`wrapper: ${what}`, async () => assert.equal((await run({ language, files })).run.stdout, out));
see("wrapper: C that two sources are wrong with", async () => {
	const r = await run({ language: "c", files: [file("a.c", "int main() { return 0; }"), file("b.c", "int f() { return x; }")] });
	assert.deepEqual([r.compile.code, r.run.code], [1, 1]);
	assert.match(r.compile.stderr, /b\.c.*undeclared/s);
});
see("wrapper: nothing as input is an empty line", async () => assert.equal((await run({ language: "python", files: [{ content: "print([input()])" }] })).run.stdout, "['']\n"));

for (const [alias, language] of [["py3", "python"], ["node-javascript", "javascript"], ["node-js", "javascript"], ["sh", "bash"], ["cpp", "c++"]])
	see(`wrapper: by the name ${alias}`, async () => assert.equal((await run({ language: alias, files: [{ content: language === "c++" ? "int main() {}" : "" }] })).language, language));

// ---- piston-api, which holds every answer against a schema
const api = new Api({ baseUrl: url });
see("api: an instance", async () => assert.ok(await api.validateInstance()));
see("api: quickstart", async () => assert.equal((await api.run({ language: "python", code: "print(input())", stdin: "User Input" })).run.stdout, "User Input\n"));
see("api: packages", async () => assert.ok((await api.getPackages()).some((p) => p.language === "python" && p.installed)));
see("api: a package that is there", async () => assert.equal((await api.installRuntime("python")).language, "python"));
see("api: one that is not", async () => assert.rejects(api.installPackage({ language: "cobol", version: "1.0.0" }), /Requested package cobol-1.0.0 does not exist/));
see("api: too long a time", async () => assert.rejects(api.run({ language: "python", code: "", run_timeout: 3001 }), /run_timeout cannot exceed the configured limit of 3000/));
see("api: no such runtime", async () => assert.rejects(api.run({ language: "python", version: "2.x", code: "" }), /python-2.x runtime is unknown/));

const interactive = async (code, language, more) => {
	const seen = { output: "", code: undefined, error: undefined };
	const own = new Api({ baseUrl: url });
	own.on("sessionOutput", (_id, text) => (seen.output += text));
	own.on("sessionError", (_id, text) => (seen.error = text));
	const done = new Promise((resolve) => own.on("sessionCompleted", (_id, n) => resolve(n)));
	const id = await own.runInteractive(code, language, more);
	return { own, id, seen, done };
};
see("api: a session with input", async () => {
	const s = await interactive("while True:\n    e = input('> ')\n    if e == 'quit': break\n    print('=', eval(e))\n", "python");
	await s.own.sendInput(s.id, "2 + 3\n");
	await s.own.sendInput(s.id, "quit\n");
	assert.equal(await s.done, 0);
	assert.match(s.seen.output, /= 5/);
});
see("api: a compiled session", async () => {
	const s = await interactive("#include <stdio.h>\nint main() { int a; if (scanf(\"%d\", &a) != 1) return 2; printf(\"%d\\n\", a * 2); return 5; }", "c");
	await s.own.sendInput(s.id, "21\n");
	const codes = await s.done;
	assert.ok(codes === 0 || codes === 5); // the first one is of the compiler
	while (!s.seen.output) await once(s.own, "sessionOutput");
	assert.equal(s.seen.output, "42\n");
});

// ---- the socket by itself
const talk = (messages, path = "/api/v2/connect", options = {}) =>
	new Promise((resolve, reject) => {
		const ws = new WebSocket(url.replace("http", "ws") + path, options), seen = [];
		ws.on("open", () => messages.filter((m) => typeof m !== "function").forEach((m) => ws.send(typeof m === "string" ? m : JSON.stringify(m))));
		ws.on("message", (text) => {
			seen.push(JSON.parse(text));
			messages.filter((m) => typeof m === "function").forEach((m) => m(ws, seen.at(-1)));
		});
		ws.on("close", (code, reason) => resolve({ code, reason: String(reason), seen }));
		ws.on("error", reject);
	});
const init = (content, more = {}) => ({ type: "init", language: "python", version: "*", files: [{ content }], ...more });
see("socket: the order of things", async () => {
	const r = await talk([init("print('o')")]);
	// What a program writes may come in any number of pieces.
	assert.deepEqual(r.seen.map((m) => m.type).filter((type, i, all) => type !== all[i - 1]), ["runtime", "stage", "data", "exit"]);
	assert.equal(r.seen.map((m) => m.data ?? "").join(""), "o\n");
	assert.deepEqual(r.seen.at(-1), { type: "exit", stage: "run", code: 0, signal: null });
	assert.deepEqual([r.code, r.reason], [4999, "Job Completed"]);
});
see("socket: input that comes at once with init", async () => {
	const r = await talk([init("print(input() + input())"), { type: "data", stream: "stdin", data: "ü😀\n" }, { type: "data", stream: "stdin", data: "2\n" }]);
	assert.equal(r.seen.map((m) => m.data ?? "").join(""), "ü😀2\n");
});
see("socket: stages of what is compiled", async () => {
	const r = await talk([init("int main() { return 3; }", { language: "c" })]);
	assert.deepEqual(r.seen.map((m) => m.stage), [undefined, "compile", "compile", "run", "run"]);
	assert.equal(r.seen.at(-1).code, 3);
});
see("socket: what does not compile", async () => {
	const r = await talk([init("int main( {", { language: "c" })]);
	assert.deepEqual([r.seen.at(-1).type, r.seen.at(-1).stage, r.seen.at(-1).code, r.code], ["exit", "compile", 1, 4999]);
});
const signal = (name, text = "up") => {
	let isSent = false;
	return (ws, m) => {
		if (isSent || m.type !== "data" || !m.data.includes(text)) return;
		isSent = true;
		ws.send(JSON.stringify({ type: "signal", signal: name }));
	};
};
const texts = (r) => r.seen.map((m) => m.data ?? "").join("");
see("socket: signals that it catches", async () => {
	const r = await talk([init("import os, signal, sys, time\ndef on(n, f):\n    os.write(1, b'got %d\\n' % n)\n    if n == 15: sys.exit(7)\nfor n in (10, 15): signal.signal(n, on)\nos.write(1, b'up\\n')\ntime.sleep(2.9)\ntime.sleep(2.9)"), signal("SIGUSR1"), signal("SIGTERM", "got 10")]);
	assert.equal(texts(r), "up\ngot 10\ngot 15\n");
	assert.deepEqual(r.seen.at(-1), { type: "exit", stage: "run", code: 7, signal: null });
});
see("socket: SIGINT as a program of C has it", async () => {
	const r = await talk([init('#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nvoid on(int n) { _exit(n + 40); }\nint main() { signal(SIGINT, on); puts("up"); fflush(stdout); for (;;) pause(); }', { language: "c" }), signal("SIGINT")]);
	assert.equal(r.seen.at(-1).code, 42);
});
see("socket: SIGWINCH ends nothing, SIGKILL all", async () => {
	const r = await talk([init("import time\nprint('up', flush=True)\ntime.sleep(0.1)\nprint('on', flush=True)\ntime.sleep(2.9)"), signal("SIGWINCH"), signal("SIGKILL", "on")]);
	assert.deepEqual(r.seen.at(-1), { type: "exit", stage: "run", code: null, signal: "SIGKILL" });
});
see("socket: SIGTERM while it is compiled", async () => {
	const r = await talk([init('#include <regex>\nint main() { std::regex r("a"); for (;;); }', { language: "c++" }), (ws, m) => m.stage === "compile" && m.type === "stage" && ws.send(JSON.stringify({ type: "signal", signal: "SIGTERM" }))]);
	assert.deepEqual([r.seen.at(-1).type, r.seen.at(-1).signal, r.code], ["exit", "SIGTERM", 4999]);
});
see("socket: SIGTERM ends it", async () => {
	const r = await talk([init("import time\nprint('up', flush=True)\ntime.sleep(2.9)"), (ws, m) => m.type === "data" && ws.send(JSON.stringify({ type: "signal", signal: "SIGTERM" }))]);
	assert.deepEqual(r.seen.at(-1), { type: "exit", stage: "run", code: null, signal: "SIGTERM" });
});
see("socket: errors", async () => {
	const r = await talk([init("", { version: "2.x" })]);
	assert.deepEqual([r.code, r.seen], [4002, [{ type: "error", message: "python-2.x runtime is unknown" }]]);
	const early = await talk([{ type: "init", language: "python" }]); // which is seen while the message is read
	assert.deepEqual([early.code, early.seen], [4002, [{ type: "error", message: "version is required as a string" }]]);
});
const endless = "import time\ntime.sleep(2.9)";
for (const [code, what, messages] of [
	[4000, "a second init", [init(endless), init("")]],
	[4001, "no init", []],
	[4002, "no JSON", ["{"]],
	[4003, "data before init", [{ type: "data", stream: "stdin", data: "x" }]],
	[4003, "a signal before init", [{ type: "signal", signal: "SIGTERM" }]],
	[4004, "data for another stream", [init(endless), { type: "data", stream: "stdout", data: "x" }]],
	[4005, "an unknown signal", [init(endless), { type: "signal", signal: "SIGNOPE" }]],
	[1009, "a message without end", ["x".repeat(2 << 20)]],
])
	see(`socket: ${what}`, async () => assert.equal((await talk(messages)).code, code));
see("socket: a key that is refused", async () => assert.rejects(talk([init("")], "/t/bad/api/v2/connect"), /401/));
see("socket: a page of a stranger's", async () => assert.rejects(talk([init("")], undefined, { origin: "http://evil.example" }), /403/));

let failed = 0;
for (let at = 0; at < cases.length; at += 4) // four at a time, as there are cells
	await Promise.all(
		cases.slice(at, at + 4).map(async ({ what, fn }) => {
			try {
				await fn();
				console.log(`ok ${what}`);
			} catch (error) {
				failed++;
				console.log(`not ok ${what}: ${error.stack}`);
			}
		}),
	);
console.log(`${cases.length} cases, ${failed} failed`);
process.exit(failed ? 1 : 0);
