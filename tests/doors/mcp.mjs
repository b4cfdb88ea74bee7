// SPDX-License-Identifier: Apache-2.0
// mcp.mjs KIND URL TOKEN - the protocol's clients, unchanged, against a door of brig serve; one line for each thing that was seen.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [kind, url, token] = process.argv.slice(2);
const info = { name: "brig-tests", version: "1" };
const from = createRequire(new URL("../mcp/package.json", import.meta.url)); // where the packages are
const load = (name) => import(pathToFileURL(from.resolve(name)).href);

async function packages() {
	if (kind === "v1") {
		const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
		const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");
		return { Client, StreamableHTTPClientTransport, call: (client, what, options) => client.callTool(what, undefined, options) };
	}
	const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
	return { Client, StreamableHTTPClientTransport, call: (client, what, options) => client.callTool(what, options) };
}

const { Client, StreamableHTTPClientTransport, call } = await packages();
const modes = { "v2-auto": "auto", "v2-modern": { pin: "2026-07-28" } };
const isModern = kind in modes;
const options = isModern ? { versionNegotiation: { mode: modes[kind] } } : {};
const errors = [];

async function connect(key = token) {
	const client = new Client(info, options);
	const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
	client.onerror = (error) => errors.push(error);
	await client.connect(transport);
	return { client, transport };
}

let failed = 0;
async function see(what, fn) {
	try {
		await fn();
		console.log(`ok ${what}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${what}: ${error.stack}`);
	}
}

console.log(`# ${kind}`);
const { client, transport } = await connect();
const run = (name, args, callOptions) => call(client, { name, arguments: args }, callOptions);
const python = (code, more, callOptions) => run("run_code", { language: "python", code, ...more }, callOptions);

await see("the server has a name, capabilities and instructions", async () => {
	assert.equal(client.getServerVersion()?.name, "brig");
	assert.ok(client.getServerCapabilities().tools);
	assert.match(client.getInstructions(), /isolated cells/);
	assert.equal(Boolean(transport.sessionId), !isModern);
});
await see("tools are listed, with schemas that the client can compile", async () => {
	const { tools } = await client.listTools();
	assert.deepEqual(tools.map((t) => t.name), ["run_code", "run_command", "check_code", "explain_finding", "explain_policy", "list_languages", "get_execution", "verify_receipt"]);
	assert.equal(tools[0].inputSchema.properties.in_project, undefined);
	assert.ok(tools.every((t) => !("without_project" in t) && !/project/.test(t.description)));
});
let first;
await see("quickstart: code runs, and its result fits the schema", async () => {
	first = await python("print('grüße')");
	assert.ok(!first.isError);
	assert.equal(first.structuredContent.stdout, "grüße\n");
	assert.match(first.content[0].text, /grüße/);
});
await see("input, arguments and files", async () => {
	const r = await python("import sys; print(sys.stdin.read(), sys.argv[1:], open('d/a').read())", { stdin: "in", args: ["x"], files: { "d/a": "ü" } });
	assert.equal(r.structuredContent.stdout, "in ['x'] ü\n");
});
await see("files that it leaves", async () => {
	const r = await python("open('a.csv', 'w').write('1,2')", { artifacts: ["*.csv"] });
	assert.deepEqual(r.structuredContent.files.map((f) => [f.path, f.content]), [["a.csv", "1,2"]]);
});
await see("a command", async () => assert.equal((await run("run_command", { command: "echo $((1 + 1)) | cat" })).structuredContent.stdout, "2\n"));
await see("a failing program is a result", async () => {
	const r = await run("run_code", { language: "shell", code: "echo out; exit 3" });
	assert.deepEqual([r.isError, r.structuredContent.exit_code, r.structuredContent.stdout], [true, 3, "out\n"]);
});
await see("so is one that is blocked", async () => {
	const r = await run("run_code", { language: "shell", code: "rm -rf /" });
	assert.deepEqual([r.isError, r.structuredContent.verdict], [true, "blocked"]);
	assert.match(r.content[0].text, /do instead/);
});
await see("one that is stopped at a limit", async () => {
	const r = await python("while True: pass", { timeout: 0.3 });
	assert.deepEqual([r.structuredContent.verdict, r.structuredContent.exit_code], ["timeout", null]);
});
await see("arguments that do not fit", async () => {
	const r = await run("run_code", { language: "python" });
	assert.equal(r.isError, true);
	assert.match(r.content[0].text, /code/);
});
await see("an unknown language", async () => assert.equal((await run("run_code", { language: "nope", code: "" })).isError, true));
await see("an unknown tool", async () => assert.rejects(run("nope", {}), /no such tool/));
await see("a tool that needs a project", async () => assert.rejects(run("read_file", { path: "a" }), /no such tool/));
await see("inspection", async () => {
	const r = await run("check_code", { kind: "command", code: "rm -rf /" });
	assert.equal(r.structuredContent.blocked, true);
	const rule = await run("explain_finding", { rule: r.structuredContent.findings[0].rule });
	assert.match(rule.content[0].text, /Do instead/);
	assert.equal((await run("explain_finding", { rule: "nope" })).isError, true);
});
await see("the policy", async () => assert.match((await run("explain_policy", { setting: "timeout" })).content[0].text, /execution_timeout_ms/));
await see("languages", async () => assert.ok((await run("list_languages", {})).structuredContent.languages.some((l) => l.name === "python")));
await see("what was run before", async () => {
	const r = await run("get_execution", { execution_id: first.structuredContent.execution_id });
	assert.match(r.content[0].text, /grüße/);
	assert.equal((await run("get_execution", { execution_id: "a".repeat(16) })).isError, true);
});
await see("resources", async () => {
	assert.deepEqual((await client.listResources()).resources.map((r) => r.uri), ["brig://policy", "brig://executions"]);
	assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
	const all = JSON.parse((await client.readResource({ uri: "brig://executions" })).contents[0].text);
	assert.ok(all.executions.some((e) => e.id === first.structuredContent.execution_id));
	const one = await client.readResource({ uri: `brig://executions/${first.structuredContent.execution_id}` });
	assert.equal(JSON.parse(one.contents[0].text).id, first.structuredContent.execution_id);
	await assert.rejects(client.readResource({ uri: "brig://nope" }), /no such resource/);
});
await see("progress, with growing numbers and what was written", async () => {
	const seen = [];
	const code = "import sys\nfor i in range(3): print('line', i, flush=True)";
	const r = await python(code, {}, { onprogress: (p) => seen.push(p) });
	assert.equal(r.structuredContent.stdout, "line 0\nline 1\nline 2\n");
	assert.ok(seen.length > 0 && seen.every((p, i) => i === 0 || p.progress > seen[i - 1].progress));
	assert.equal(seen.map((p) => p.message).join(""), r.structuredContent.stdout);
});
await see("cancelling ends the program", async () => {
	const stop = new AbortController();
	const call = python("print('on', flush=True)\nimport time\ntime.sleep(50)", {}, { signal: stop.signal, onprogress: () => stop.abort("enough") });
	await assert.rejects(call);
	for (;;) { // ends with the run, or the case with its time
		const all = JSON.parse((await client.readResource({ uri: "brig://executions" })).contents[0].text).executions;
		if (all.some((e) => e.verdict === "cancelled"))
			break;
	}
});
await see("much", async () => assert.ok((await python("print('x' * 300000)")).structuredContent.truncated));
await see("side by side", async () => {
	const all = await Promise.all([1, 2, 3, 4].map((n) => python(`print(${n})`)));
	assert.deepEqual(all.map((r) => r.structuredContent.stdout), ["1\n", "2\n", "3\n", "4\n"]);
});
await see("a wrong token", async () => assert.rejects(connect("brig_wrong")));
if (kind === "v1") {
	await see("a ping", async () => assert.deepEqual(await client.ping(), {}));
	await see("the session ends", async () => {
		await transport.terminateSession();
		assert.equal(transport.sessionId, undefined);
	});
}
await client.close();
await see("nothing went wrong on the way", async () => assert.deepEqual(errors.filter((e) => !/abort|Unauthorized|401|token|Token/i.test(String(e))), []));
process.exit(failed ? 1 : 0);
