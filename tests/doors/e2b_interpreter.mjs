// SPDX-License-Identifier: Apache-2.0
// e2b_interpreter.mjs URL - @e2b/code-interpreter, unchanged, against the E2B door of brig serve; one line for each thing that was seen.
import assert from "node:assert/strict";

const url = process.argv[2];
process.env.E2B_API_URL = process.env.E2B_SANDBOX_URL = url;
process.env.E2B_API_KEY ??= "e2b_test";
const { Sandbox } = await import("@e2b/code-interpreter");
const sandbox = await Sandbox.create({ envs: { OF_SANDBOX: "held" } });
const cases = [];
const see = (what, fn) => cases.push({ what, fn });
const run = (code, more) => sandbox.runCode(code, more);
const text = async (code, more) => {
	const e = await run(code, more);
	assert.equal(e.error, undefined, JSON.stringify(e.error));
	return e.text;
};
const never = (name) => (error) => {
	assert.equal(error.name, name, `${error.name}: ${error.message}`);
	return true;
};

// It begins here, so that others run meanwhile, and is looked at below.
const silence = sandbox.createCodeContext().then(async ({ id }) => {
	const headers = { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49999", "E2B-Traffic-Access-Token": sandbox.trafficAccessToken ?? "" };
	return (await fetch(`${url}/execute`, { method: "POST", headers, body: JSON.stringify({ code: "import time; time.sleep(6); 'woke'", context_id: id }) })).text();
});

// ---- runs
see("quickstart", async () => {
	await run("x = 1");
	assert.equal(await text("x+=1; x"), "2");
});
see("the number of a run", async () => {
	const a = await run("1"), b = await run("2");
	assert.equal(b.executionCount, a.executionCount + 1);
});
see("logs, and their callbacks", async () => {
	const out = [], err = [];
	const e = await run("import sys\nprint('one', flush=True)\nprint('two')\nprint('bad', file=sys.stderr)", { onStdout: (m) => out.push(m), onStderr: (m) => err.push(m) });
	assert.equal(e.logs.stdout.join(""), "one\ntwo\n");
	assert.equal(e.logs.stderr.join(""), "bad\n");
	assert.deepEqual([out.map((m) => m.line).join(""), err[0].line, err[0].error, typeof out[0].timestamp], ["one\ntwo\n", "bad\n", true, "number"]);
	assert.equal(e.results.length, 0);
});
see("output as it is written", async () => {
	// The program waits for a file that the callback makes: output that came at the end only would never come.
	let made;
	const e = await run("import os\nprint('first', flush=True)\nwhile not os.path.exists('seen'): pass\nprint('second')", {
		onStdout: () => { made ??= sandbox.createCodeContext({ language: "bash" }).then((context) => run("touch ~/seen 2>/dev/null; touch seen", { context })); },
	});
	await made;
	assert.equal(e.logs.stdout.join(""), "first\nsecond\n");
});
see("numbers beyond integers, and arrays, in JSON", async () => {
	assert.deepEqual((await run("{'much': 2**70, 'one': 1}")).results[0].json, { much: 2 ** 70, one: 1 });
	assert.deepEqual((await run("import array\n[array.array('i', [1, 2])]")).results[0].json, [[1, 2]]);
});
see("forms that have no name, by their media type", async () => {
	const bundle = "{'text/html': '<b>', 'application/vnd.own.v1+json': {'a': [1]}, 'image/x-own': b'\\0'}";
	const of = `class Own:\n    def _repr_mimebundle_(self, include=None, exclude=None): return ${bundle}\nOwn()`;
	for (const code of [of, `display(${bundle}, raw=True)`]) {
		const [result] = (await run(code)).results;
		assert.equal(result.html, "<b>");
		assert.deepEqual(result.extra, { "application/vnd.own.v1+json": { a: [1] }, "image/x-own": "AA==" });
		assert.deepEqual(result.formats(), ["html", "application/vnd.own.v1+json", "image/x-own"]);
	}
});
see("a table as data", async () => {
	// What it has of pandas is what the interpreter asks for.
	await sandbox.files.write("stand/pandas.py", "class DataFrame:\n    def __init__(self, **columns): self.items = columns.items\nclass Column(list):\n    def tolist(self): return list(self)\n");
	const e = await run("import sys, datetime\nsys.path.insert(0, 'stand')\nimport pandas\nt = pandas.DataFrame(a=pandas.Column([1, float('nan')]), b=pandas.Column([datetime.datetime(2020, 1, 2), 'x']))\nt");
	await run("sys.path.remove('stand')\ndel sys.modules['pandas']");
	assert.deepEqual(e.results[0].data, { a: [1, null], b: ["2020-01-02T00:00:00", "x"] });
});
see("pictures that are shown or saved by name", async () => {
	const code = "class Image:\n    def save(self, fp, format=None, **_): pass\n    def show(self): raise OSError('no screen')\n    def _repr_png_(self): return b'png'\n";
	await sandbox.files.write([{ path: "stand/PIL/__init__.py", data: "" }, { path: "stand/PIL/Image.py", data: code }]);
	const e = await run("import sys, io\nsys.path.insert(0, 'stand')\nimport PIL.Image\np = PIL.Image.Image()\np.show()\np.save('own.png')\np.save(io.BytesIO())");
	await run("sys.path.remove('stand')");
	assert.equal(e.error, undefined);
	assert.deepEqual(e.results.map((r) => r.png), ["cG5n", "cG5n"]);
});
see("tasks of a piece that awaits", async () => {
	assert.equal(await text("import asyncio\nasync def late(n):\n    await asyncio.sleep(0)\n    return n\ntasks = [asyncio.create_task(late(n)) for n in range(3)]\nawait asyncio.gather(*tasks)"), "[0, 1, 2]");
	assert.equal((await run("import asyncio\nawait asyncio.sleep(0)\nasyncio.get_running_loop()\n1/0")).error.name, "ZeroDivisionError");
});
see("imports of JavaScript and TypeScript, as a file there has them", async () => {
	await sandbox.files.write("own.mjs", "export const own = 7;\n");
	const e = await run("import path from 'path'\nimport { own } from './own.mjs'\n[path.join('a', 'b'), own].join()", { language: "js" });
	assert.deepEqual([e.error, e.text, e.logs.stderr], [undefined, "a/b,7", []]);
	const t = await run("import * as os from 'os'\nconst name: string = typeof os.cpus\nname", { language: "ts" });
	assert.deepEqual([t.error, t.text, t.logs.stderr], [undefined, "function", []]);
	const bad = await run("await import('./none.mjs')", { language: "js" });
	assert.equal(bad.error.name, "Error");
	assert.match((await run("null.x", { language: "js" })).error.traceback, /^cell-\d+:1\n/);
});
see("a string is shown without quotes", async () => assert.equal(await text("'hello'"), "hello"));
see("not ASCII", async () => {
	const e = await run("print('äöü 😀 ' * 3)\n'日本語 𝄞'");
	assert.deepEqual([e.logs.stdout.join(""), e.text], ["äöü 😀 äöü 😀 äöü 😀 \n", "日本語 𝄞"]);
});
see("much that is not ASCII", async () => assert.equal((await run("print('ü' * 300000, end='')")).logs.stdout.join(""), "ü".repeat(300000)));
see("bytes that are no text", async () => assert.equal((await run("import sys; sys.stdout.buffer.write(b'a\\xffb'); sys.stdout.flush()")).logs.stdout.join(""), "a\ufffdb"));
see("many lines", async () => assert.equal((await run("for i in range(5000): print(i)")).logs.stdout.join("").split("\n").length, 5001));
see("empty code", async () => {
	const e = await run("");
	assert.deepEqual([e.results, e.error, e.text], [[], undefined, undefined]);
});
see("an error", async () => {
	let told;
	const e = await run("def f():\n    return 1 / 0\nf()", { onError: (error) => { told = error; } });
	assert.deepEqual([e.error.name, e.error.value, told.name], ["ZeroDivisionError", "division by zero", "ZeroDivisionError"]);
	assert.match(e.error.traceback, /return 1 \/ 0/);
});
see("an error of syntax", async () => assert.equal((await run("def")).error.name, "SyntaxError"));
see("output before an error stays", async () => assert.equal((await run("print('kept'); raise ValueError('v')")).logs.stdout.join(""), "kept\n"));
see("input() says why it cannot be", async () => {
	const e = await run("input('name? ')");
	assert.equal(e.error.name, "StdinNotImplementedError");
	assert.match(e.error.value, /input/);
});
see("await", async () => assert.equal(await text("import asyncio\nawait asyncio.sleep(0, 'slept')"), "slept"));

see("commands and magics between lines of Python", async () => {
	const e = await run("found = !echo one\n!echo {found[0]} two\n%time 6 * 7");
	assert.deepEqual([e.error, e.text, e.logs.stdout.join("").split("\n")[0]], [undefined, "42", "one two"]);
	assert.equal((await run("%%bash\necho $((6 * 7))")).logs.stdout.join(""), "42\n");
	assert.match((await run("!pip install cowsay")).error.value, /brig env create/);
	assert.equal((await run("!rm -rf /")).error.name, "BlockedByPolicy");
});
see("code that is indented as a whole, as in a template", async () => assert.equal(await text(`
	if True:
		n = 3
	n
`), "3"));
see("pictures of IPython.display", async () => {
	const e = await run("from IPython.display import Image, HTML\ndisplay(HTML('<b>'))\nImage(data=b'\\x89PNG')");
	assert.deepEqual([e.error, e.results[0].html, e.results[1].png.trim()], [undefined, "<b>", "iVBORw=="]);
});
see("variables that programs look for others by", async () => assert.equal(await text("import os; os.environ['PATH'] + os.environ['PYTHONPATH']", { envs: { PATH: "/a:", PYTHONPATH: "/b" } }), "/a:/b"));

// ---- results
see("every form of a result", async () => {
	const e = await run(`class Shown:
    def _repr_html_(self): return "<b>h</b>"
    def _repr_markdown_(self): return "*m*"
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_latex_(self): return "$l$"
    def _repr_json_(self): return {"a": [1]}
    def __repr__(self): return "Shown()"
display(Shown())
Shown()`);
	const [shown, main] = e.results;
	assert.deepEqual([shown.isMainResult, main.isMainResult, e.text], [false, true, "Shown()"]);
	assert.deepEqual([main.html, main.markdown, main.svg, main.png, main.latex, main.json], ["<b>h</b>", "*m*", "<svg/>", "iVBORw==".slice(0, 6) + "==", "$l$", { a: [1] }]);
	assert.ok(["html", "png", "json"].every((f) => main.formats().includes(f)));
});
see("onResult, and what was shown before", async () => {
	const seen = [];
	const e = await run("display('one')\ndisplay({'k': 1})\n3", { onResult: (r) => seen.push(r.text) });
	assert.deepEqual([seen, e.results.length, e.text, e.results[1].json], [["one", "{'k': 1}", "3"], 3, "3", { k: 1 }]);
});
see("many large results, and more than are kept", async () => {
	const e = await run("for i in range(100): display(f'{i:05}' * 4000)\n1 / 0");
	assert.deepEqual(e.results.map((r) => r.text.slice(0, 5)), [...Array(100).keys()].map((i) => String(i).padStart(5, "0")));
	assert.equal(e.error.name, "ZeroDivisionError");
	const many = await run("for i in range(300): display(i)");
	assert.equal(many.results.length, 256);
	assert.match(many.logs.stderr.join(""), /left out/);
});
see("forms of other kinds are extra", async () => {
	const e = await run("class M:\n    def _repr_mimebundle_(self, **_): return {'text/plain': 'm', 'text/html': '<i>', 'application/json': [1]}\nM()");
	assert.deepEqual([e.results[0].html, e.results[0].json], ["<i>", [1]]);
});

// ---- variables
see("variables of one run", async () => {
	assert.equal(await text("import os; os.environ.get('OF_RUN')", { envs: { OF_RUN: "a=b ü" } }), "a=b ü");
	assert.equal(await text("str(os.environ.get('OF_RUN'))"), "None");
	const many = Object.fromEntries([...Array(200).keys()].map((n) => [`OF_RUN_${n}`, "v"]));
	assert.equal(await text("sum(k.startswith('OF_RUN_') for k in os.environ)", { envs: many }), "200");
});
see("which sandbox it is, in variables", async () => {
	const one = /^true \S+ (code-interpreter-v1|base)\n$/;
	const python = "import os, subprocess\nprint(*map(os.environ.get, ('E2B_SANDBOX', 'E2B_SANDBOX_ID', 'E2B_TEMPLATE_ID')))";
	const said = (await run(python)).logs.stdout.join("");
	assert.match(said, one);
	if (process.env.E2B_DEBUG !== "true") assert.equal(said.split(" ")[1], sandbox.sandboxId);
	assert.equal((await run(python, { context: await sandbox.createCodeContext() })).logs.stdout.join(""), said);
	assert.equal((await run("console.log(process.env.E2B_SANDBOX, process.env.E2B_SANDBOX_ID, process.env.E2B_TEMPLATE_ID)", { language: "javascript" })).logs.stdout.join(""), said);
	assert.equal((await run("echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID", { language: "bash" })).logs.stdout.join(""), said);
	assert.equal((await run("!echo $E2B_SANDBOX", { envs: { E2B_SANDBOX: "no" } })).logs.stdout.join(""), "no\n");
});
if (process.env.E2B_DEBUG !== "true")
	see("variables of the sandbox", async () => assert.equal(await text("import os; os.environ.get('OF_SANDBOX')"), "held"));

// ---- contexts
see("the list has the default context", async () => {
	const list = await sandbox.listCodeContexts();
	assert.ok(list.some((c) => c.language === "python" && c.cwd === "/home/user" && typeof c.id === "string"), JSON.stringify(list));
});
see("the list has the default contexts first, those that were made behind them", async () => {
	const made = await sandbox.createCodeContext({ cwd: "/root" });
	const list = await sandbox.listCodeContexts();
	assert.deepEqual(list.slice(0, 2).map((c) => c.language).sort(), ["javascript", "python"]);
	assert.ok(list.findIndex((c) => c.id === made.id) > 1, JSON.stringify(list));
	assert.equal(made.cwd, "/home/user"); // root's home is the user's
	assert.equal(await text("process.cwd()", { context: list.find((c) => c.language === "javascript") }), "/home/user");
	await sandbox.removeCodeContext(made);
});
see("a context of its own", async () => {
	await run("own = 'default'");
	const context = await sandbox.createCodeContext();
	assert.deepEqual([context.language, context.cwd], ["python", "/home/user"]);
	assert.equal((await run("own", { context })).error.name, "NameError");
	assert.equal(await text("own = 5; own", { context }), "5");
	assert.equal(await text("own"), "default");
	assert.ok((await sandbox.listCodeContexts()).some((c) => c.id === context.id));
	await sandbox.removeCodeContext(context);
	assert.ok(!(await sandbox.listCodeContexts()).some((c) => c.id === context.id));
	await assert.rejects(run("1", { context }), never("NotFoundError"));
});
see("restart forgets, with the same name", async () => {
	const context = await sandbox.createCodeContext({ language: "python" });
	await run("gone = 1", { context });
	await sandbox.restartCodeContext(context.id);
	assert.equal(await text("'gone' in globals()", { context }), "False");
	await sandbox.removeCodeContext(context.id);
});
see("a folder of its own", async () => {
	await run("import os; os.makedirs('sub', exist_ok=True)");
	const context = await sandbox.createCodeContext({ cwd: "/home/user/sub" });
	assert.equal(context.cwd, "/home/user/sub");
	assert.equal(await text("import os; os.getcwd()", { context }), "/home/user/sub");
	await assert.rejects(sandbox.createCodeContext({ cwd: "/home/user/none" }), /./);
});
see("the home folder", async () => {
	const who = "import os, getpass\n[os.getcwd(), os.path.expanduser('~'), os.environ['HOME'], getpass.getuser()]";
	assert.equal(await text(who), "['/home/user', '/home/user', '/home/user', 'user']");
	assert.equal(await text("open('/home/user/made', 'w').write('x'); open('made').read()"), "x");
	assert.equal(await text("process.cwd()", { language: "js" }), "/home/user");
	assert.equal((await run("pwd; echo ~", { language: "bash" })).logs.stdout.join(""), "/home/user\n/home/user\n");
});
see("as many contexts as there can be, and one more", async () => {
	const own = await Sandbox.create();
	const first = (await own.listCodeContexts()).length;
	for (let n = first; n < 48; n++) await own.createCodeContext({ language: "bash" });
	await assert.rejects(own.createCodeContext({ language: "bash" }), /409/);
	assert.equal((await own.commands.run("echo room for commands")).stdout, "room for commands\n");
	await own.kill();
});
see("contexts that are not there", async () => {
	for (const id of ["nope", "999999", "0", "1e3"]) {
		await assert.rejects(run("1", { context: { id } }), (e) => never("NotFoundError")(e) && e.message.includes(`Context ${id} not found`));
		await assert.rejects(sandbox.restartCodeContext(id), never("NotFoundError"));
		await assert.rejects(sandbox.removeCodeContext(id), never("NotFoundError"));
	}
});
see("both context and language", async () => assert.rejects(run("1", { context: { id: "1" }, language: "python" }), never("InvalidArgumentError")));
see("an unknown language", async () => {
	await assert.rejects(run("1", { language: "cobol" }), (e) => e.message.startsWith("500"));
	await assert.rejects(sandbox.createCodeContext({ language: "cobol" }), (e) => e.message.startsWith("500"));
});

// ---- languages
see("JavaScript", async () => {
	const e = await run("const n = 20; console.log('out'); n * 2 + 2", { language: "js" });
	assert.deepEqual([e.text, e.logs.stdout.join("")], ["42", "out\n"]);
	assert.equal(await text("const n = 5; await Promise.resolve(n)", { language: "javascript" }), "5");
	assert.equal(await text("n", { language: "JS" }), "5");
	assert.equal((await run("null.x", { language: "js" })).error.name, "TypeError");
});
see("TypeScript", async () => {
	assert.equal(await text("interface P { x: number }\nconst p: P = { x: 41 }\np.x + 1", { language: "ts" }), "42");
	assert.equal(await text("(p.x as number) + n2(1)\nfunction n2(v: number): number { return v }", { language: "typescript" }), "42");
});
see("bash", async () => {
	assert.equal((await run("z=3; echo $((z + 1))", { language: "bash" })).logs.stdout.join(""), "4\n");
	assert.equal((await run("echo $z; exit_code() { return 7; }; exit_code", { language: "bash" })).error.value, "exit status 7");
});
see("languages have a context each", async () => {
	const list = (await sandbox.listCodeContexts()).map((c) => c.language);
	for (const language of ["python", "javascript", "typescript", "bash"]) assert.ok(list.includes(language), JSON.stringify(list));
});

// ---- time, ends, side by side
see("a timeout interrupts and keeps the state", async () => {
	await run("kept = 'kept'");
	await assert.rejects(run("import time\ntime.sleep(1000)", { timeoutMs: 500 }), never("TimeoutError"));
	assert.equal(await text("kept"), "kept");
	await assert.rejects(run("while True: pass", { timeoutMs: 300 }), never("TimeoutError"));
	assert.equal(await text("kept"), "kept");
});
see("a kernel that dies", async () => {
	const context = await sandbox.createCodeContext();
	const e = await run("import signal, os\nsignal.raise_signal(signal.SIGKILL)", { context });
	assert.deepEqual([e.error.name, e.error.value], ["ContextRestarting", "Context was restarted"]);
	assert.equal(await text("1 + 1", { context }), "2");
	await sandbox.removeCodeContext(context);
});
see("runs of one context wait for each other", async () => {
	await run("order = []");
	const all = await Promise.all([...Array(10).keys()].map((n) => run(`order.append(${n}); len(order)`)));
	assert.deepEqual(all.map((e) => Number(e.text)).sort((a, b) => a - b), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});
see("contexts run side by side", async () => {
	const wait = (mine, other) => `import os, time\nopen('${mine}', 'w').close()\nwhile not os.path.exists('${other}'): time.sleep(0.005)\n'${mine}'`;
	const [a, b] = await Promise.all([sandbox.createCodeContext(), sandbox.createCodeContext()]);
	const all = await Promise.all([run(wait("p", "q"), { context: a }), run(wait("q", "p"), { context: b })]);
	assert.deepEqual(all.map((e) => e.text), ["p", "q"]);
	await sandbox.removeCodeContext(a);
	await sandbox.removeCodeContext(b);
});
see("a context that is closed while it runs", async () => {
	const context = await sandbox.createCodeContext();
	let closed;
	const e = await run("print('up', flush=True)\nwhile True: pass", { context, onStdout: () => { closed ??= sandbox.removeCodeContext(context); } });
	await closed;
	assert.equal(e.error.name, "ContextRestarting");
});
see("silence is kept alive", async () => {
	const lines = (await silence).trim().split("\n").map((l) => JSON.parse(l));
	assert.ok(lines.filter((l) => l.type === "keepalive").length > 1 && lines.some((l) => l.text === "woke"), JSON.stringify(lines));
});
see("code that the policy blocks", async () => {
	const e = await run("import os\nos.system('rm -rf /')");
	assert.equal(e.error.name, "BlockedByPolicy");
	assert.match(e.error.traceback, /line 2/);
	assert.equal(await text("1"), "1");
});
see("health", async () => {
	const r = await fetch(`${url}/health`, { headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49999", "X-Access-Token": sandbox.envdAccessToken ?? "" } });
	assert.deepEqual([r.status, await r.json()], [200, "OK"]);
});
see("what these clients never send", async () => {
	const headers = { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49999", "Content-Type": "application/json" };
	if (sandbox.trafficAccessToken) headers["E2B-Traffic-Access-Token"] = sandbox.trafficAccessToken;
	const post = async (path, body) => (await fetch(url + path, { method: "POST", headers, body })).status;
	for (const body of ["", "{", "[]", "5", '{"code": 5}', '{"code": "1", "language": 5}', '{"code": "1", "env_vars": []}', '{"code": "1", "env_vars": {"a": 1}}', '{"code": "1", "context_id": "1", "language": "python"}'])
		assert.equal(await post("/execute", body), 400, body);
	assert.equal(await post("/contexts", '{"cwd": 5}'), 400);
	const r = await fetch(`${url}/execute`, { method: "POST", headers, body: JSON.stringify({ code: "print('ü')", language: null, env_vars: null }) });
	const lines = await r.text();
	assert.ok(/^[\x20-\x7e\n]*$/.test(lines) && !lines.includes("\n\n") && lines.endsWith("\n"), lines);
	assert.deepEqual(lines.trim().split("\n").map((l) => JSON.parse(l).type), ["keepalive", "stdout", "number_of_executions", "end_of_execution"]);
});
if (process.env.E2B_DEBUG !== "true") {
	see("a wrong key", async () => {
		for (const key of ["", "wrong"]) {
			const r = await fetch(`${url}/contexts`, { headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "49999", "E2B-Traffic-Access-Token": key } });
			assert.equal(r.status, 401);
		}
	});
	see("a sandbox that is killed while code runs, and after", async () => {
		const other = await Sandbox.create();
		let killed;
		await assert.rejects(other.runCode("print('up', flush=True)\nwhile True: pass", { onStdout: () => { killed ??= other.kill(); } }), never("TimeoutError"));
		await killed;
		await assert.rejects(other.runCode("1"), never("TimeoutError"));
		await assert.rejects(other.createCodeContext(), never("TimeoutError"));
		await assert.rejects(other.listCodeContexts(), never("TimeoutError"));
	});
}

let bad = 0;
for (const { what, fn } of cases) {
	try {
		await fn();
		console.log(`ok ${what}`);
	} catch (error) {
		bad++;
		console.log(`not ok ${what}: ${error?.stack ?? error}`);
	}
}
await sandbox.kill().catch(() => {});
process.exit(bad ? 1 : 0);
