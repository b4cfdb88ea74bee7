// SPDX-License-Identifier: Apache-2.0
// clients.mjs KIND BRIG PROJECT - what an agent does, with the client package that it has; one line for each thing that was seen.
import assert from "node:assert/strict";

const [kind, brig, project] = process.argv.slice(2);
const info = { name: "brig-tests", version: "1" };

// Each package has names of its own for the same things.
async function packages() {
	if (kind === "v1") {
		const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
		const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
		const { ListRootsRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
		return { Client, StdioClientTransport, rootsMethod: ListRootsRequestSchema, call: (client, what, options) => client.callTool(what, undefined, options) };
	}
	const { Client } = await import("@modelcontextprotocol/client");
	const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
	return { Client, StdioClientTransport, rootsMethod: "roots/list", call: (client, what, options) => client.callTool(what, options) };
}

const { Client, StdioClientTransport, rootsMethod, call } = await packages();
const modes = { "v2-auto": "auto", "v2-modern": { pin: "2026-07-28" } };
const isModern = kind in modes;
const options = isModern ? { versionNegotiation: { mode: modes[kind] } } : {};

async function connect(words, more = {}, prepare = () => {}) {
	const client = new Client(info, { ...options, ...more });
	prepare(client);
	await client.connect(new StdioClientTransport({ command: brig, args: ["mcp", ...words], env: process.env, stderr: "inherit" }));
	return client;
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
const client = await connect(["--workspace", project]);
const run = (name, args, callOptions) => call(client, { name, arguments: args }, callOptions);

await see("the server has a name and capabilities", async () => {
	assert.equal(client.getServerVersion()?.name, "brig");
	assert.ok(client.getServerCapabilities().tools);
	assert.match(client.getInstructions(), /apply_changes/);
});
await see("tools are listed, with schemas that the client can compile", async () => {
	const { tools } = await client.listTools();
	assert.equal(tools.length, 14);
	assert.equal(tools.find((t) => t.name === "apply_changes").annotations.destructiveHint, true);
});
await see("code runs, and its result fits the schema", async () => {
	const r = await run("run_code", { language: "python", code: "print('grüße')" });
	assert.ok(!r.isError);
	assert.equal(r.structuredContent.stdout, "grüße\n");
	assert.match(r.content[0].text, /grüße/);
});
await see("a failing program is a result", async () => {
	const r = await run("run_code", { language: "shell", code: "echo out; exit 3" });
	assert.equal(r.isError, true);
	assert.equal(r.structuredContent.exit_code, 3);
});
await see("so is one that is blocked", async () => {
	const r = await run("run_code", { language: "shell", code: "rm -rf /" });
	assert.equal(r.isError, true);
	assert.equal(r.structuredContent.verdict, "blocked");
	assert.match(r.content[0].text, /do instead/);
});
await see("one that is stopped at a limit", async () => {
	const r = await run("run_code", { language: "python", code: "while True: pass", timeout: 0.3 });
	assert.equal(r.structuredContent.verdict, "timeout");
	assert.equal(r.structuredContent.exit_code, null);
});
await see("arguments that do not fit", async () => {
	const r = await run("run_code", { language: "python" });
	assert.equal(r.isError, true);
});
await see("a tool that there is not", () => assert.rejects(run("no_such", {}), (e) => e.code === -32602));
await see("every other tool gives what its schema says", async () => {
	const wrote = (await run("write_file", { path: "d/new.txt", content: "new\n" })).structuredContent;
	const good = [
		["list_languages", {}], ["explain_policy", {}], ["explain_finding", { rule: "py-process" }], ["check_code", { kind: "command", code: "rm -rf /" }],
		["list_files", {}], ["read_file", { path: "a.txt" }], ["show_changes", {}], ["show_changes", { execution_id: wrote.execution_id }],
		["apply_changes", { execution_id: wrote.execution_id }], ["get_execution", { execution_id: wrote.execution_id }], ["verify_receipt", { receipt: "{}" }],
		["run_command", { command: "cat a.txt d/new.txt; date >made" }],
	];
	for (const [name, args] of good) {
		const r = await run(name, args);
		assert.ok(!r.isError && r.structuredContent, `${name}: ${JSON.stringify(r)}`);
	}
	assert.equal((await run("run_tests", {})).isError, true);
});
await see("images are image content", async () => {
	const code = "import base64\nopen('x.png', 'wb').write(base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='))";
	const r = await run("run_code", { language: "python", code });
	assert.equal(r.content.find((c) => c.type === "image").mimeType, "image/png");
});
await see("progress comes while it runs", async () => {
	const told = [];
	const code = "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.2)";
	const r = await run("run_code", { language: "python", code }, { onprogress: (p) => told.push(p), resetTimeoutOnProgress: true });
	assert.equal(r.structuredContent.stdout, "0\n1\n2\n");
	assert.ok(told.length > 0 && told[0].message.startsWith("0"), JSON.stringify(told));
});
await see("cancelling ends the call", async () => {
	const stop = new AbortController();
	const running = run("run_code", { language: "sh", code: "echo there; sleep 100" }, { signal: stop.signal, onprogress: () => stop.abort("enough") });
	await assert.rejects(running);
	assert.equal((await run("run_code", { language: "sh", code: "echo next" })).structuredContent.stdout, "next\n");
});
await see("calls run side by side", async () => {
	const all = await Promise.all([...Array(12).keys()].map((i) => run("run_code", { language: "sh", code: `echo ${i}` })));
	assert.deepEqual(all.map((r) => r.structuredContent.stdout), [...Array(12).keys()].map((i) => `${i}\n`));
});
await see("resources are listed and read", async () => {
	const { resources } = await client.listResources();
	assert.deepEqual(resources.map((r) => r.uri), ["brig://policy", "brig://executions"]);
	assert.equal((await client.listResourceTemplates()).resourceTemplates[0].uriTemplate, "brig://executions/{id}");
	const { contents } = await client.readResource({ uri: "brig://executions" });
	const rows = JSON.parse(contents[0].text).executions;
	assert.ok(rows.length > 5);
	assert.equal(JSON.parse((await client.readResource({ uri: `brig://executions/${rows[0].id}` })).contents[0].text).id, rows[0].id);
	await assert.rejects(client.readResource({ uri: "brig://nothing" }), (e) => e.code === (isModern ? -32602 : -32002));
});
if (!isModern) {
	await see("ping", () => client.ping());
	await see("roots of the client are asked for", async () => {
		const other = await connect([], { capabilities: { roots: { listChanged: true } } }, (c) =>
			c.setRequestHandler(rootsMethod, () => ({ roots: [{ uri: `file://${project}`, name: "project" }] })));
		const r = await call(other, { name: "read_file", arguments: { path: "a.txt" } });
		assert.equal(r.structuredContent.content, "text of a\n");
		await other.close();
	});
}
await client.close();
process.exit(failed ? 1 : 0);
