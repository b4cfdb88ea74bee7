// SPDX-License-Identifier: Apache-2.0
// e2b.mjs URL - E2B's own client, unchanged, against a door of brig serve: sandboxes; one line for each thing that was seen.
import assert from "node:assert/strict";
import { request } from "node:http";
import { Sandbox, SandboxNotFoundError, AuthenticationError, SandboxError, ALL_TRAFFIC } from "e2b";

const url = process.argv[2];
Object.assign(process.env, { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: "e2b_0123456789" });

const cases = [];
const see = (what, fn) => cases.push({ what, fn });
const box = await Sandbox.create({ metadata: { suite: "e2b", "a b": "ü&=" }, envs: { GREETING: "héllo" }, timeoutMs: 120_000 });
const raw = (path, options = {}) => fetch(url + path, { ...options, headers: { "X-API-KEY": "e2b_0123456789", ...options.headers } });
const data = (path, headers = {}, options = {}) => fetch(url + path, { ...options, headers: { "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "49983", ...headers } });
const all = async (query) => {
	const found = [];
	for (const pages = Sandbox.list(query); pages.hasNext; ) found.push(...(await pages.nextItems()));
	return found;
};

see("it has an id and runs", async () => {
	assert.match(box.sandboxId, /^[a-z2-7]{16}$/);
	assert.equal(await box.isRunning(), true);
});
see("what is known of it", async () => {
	const info = await box.getInfo();
	assert.equal(info.sandboxId, box.sandboxId);
	assert.equal(info.templateId, "base");
	assert.deepEqual(info.metadata, { suite: "e2b", "a b": "ü&=" });
	assert.equal(info.state, "running");
	const left = info.endAt - Date.now();
	assert.ok(info.startedAt <= new Date() && left > 60_000 && left <= 121_000, `${left} ms are left`);
	assert.ok(info.cpuCount >= 1 && info.memoryMB >= 64);
});
see("a longer time", async () => {
	await box.setTimeout(600_000);
	assert.ok((await box.getInfo()).endAt - Date.now() > 500_000);
});
see("connecting never shortens it", async () => {
	const again = await Sandbox.connect(box.sandboxId, { timeoutMs: 60_000 });
	assert.equal(again.sandboxId, box.sandboxId);
	assert.ok((await again.getInfo()).endAt - Date.now() > 500_000);
	assert.equal(await again.isRunning(), true);
});
see("connecting lengthens it", async () => {
	await box.connect({ timeoutMs: 1200_000 });
	assert.ok((await box.getInfo()).endAt - Date.now() > 1100_000);
});
see("a time beyond the policy's is the policy's", async () => {
	await box.setTimeout(24 * 3600_000);
	const left = (await box.getInfo()).endAt - Date.now();
	assert.ok(left > 3000_000 && left <= 3600_000, `${left} ms are left`);
});
see("a shorter time", async () => {
	await box.setTimeout(300_000);
	assert.ok((await box.getInfo()).endAt - Date.now() <= 300_000);
});
see("the list has it", async () => {
	const found = await all();
	assert.equal(found.filter((s) => s.sandboxId === box.sandboxId).length, 1);
});
see("the list by metadata", async () => {
	assert.deepEqual((await all({ query: { metadata: { "a b": "ü&=" } } })).map((s) => s.sandboxId), [box.sandboxId]);
	assert.deepEqual(await all({ query: { metadata: { "a b": "other" } } }), []);
	assert.deepEqual(await all({ query: { metadata: { suite: "e2b", none: "x" } } }), []);
});
see("the list by state", async () => {
	assert.ok((await all({ query: { state: ["running"] } })).some((s) => s.sandboxId === box.sandboxId));
	assert.ok(!(await all({ query: { state: ["paused"] } })).some((s) => s.sandboxId === box.sandboxId));
	assert.ok((await all({ query: { state: ["running", "paused"] } })).some((s) => s.sandboxId === box.sandboxId));
});
see("the list by template and beginning", async () => {
	assert.deepEqual(await all({ query: { template: "other" } }), []);
	assert.deepEqual(await all({ query: { startedAfter: new Date(Date.now() + 60_000) } }), []);
	assert.ok((await all({ query: { template: "base", startedAfter: new Date(0) } })).length > 0);
	const { startedAt } = await box.getInfo();
	assert.ok((await all({ query: { startedAfter: startedAt } })).some((s) => s.sandboxId === box.sandboxId));
});
see("the list in pages, both ways", async () => {
	const more = await Promise.all([1, 2, 3, 4].map((n) => Sandbox.create({ metadata: { page: String(n), pages: "yes" } })));
	const pages = Sandbox.list({ limit: 2, query: { metadata: { pages: "yes" } } });
	const first = await pages.nextItems();
	assert.equal(first.length, 2);
	assert.equal(pages.hasNext, true);
	const second = await pages.nextItems();
	assert.equal(second.length, 2);
	assert.equal(pages.hasNext, false);
	assert.equal(new Set([...first, ...second].map((s) => s.sandboxId)).size, 4);
	const oldest = await all({ limit: 3, order: "asc", query: { metadata: { pages: "yes" } } });
	assert.deepEqual(oldest.map((s) => s.sandboxId), [...first, ...second].reverse().map((s) => s.sandboxId));
	assert.deepEqual(await Promise.all(more.map((s) => s.kill())), [true, true, true, true]);
});
see("a sandbox that was killed", async () => {
	const other = await Sandbox.create("base", { timeoutMs: 30_000 });
	assert.equal(await other.kill(), true);
	assert.equal(await other.kill(), false);
	assert.equal(await other.isRunning(), false);
	await assert.rejects(other.getInfo(), SandboxNotFoundError);
	await assert.rejects(other.setTimeout(1000), SandboxNotFoundError);
	await assert.rejects(Sandbox.connect(other.sandboxId), SandboxNotFoundError);
	await assert.rejects(other.pause(), SandboxNotFoundError);
	await assert.rejects(other.getMetrics(), SandboxNotFoundError);
	await assert.rejects(other.updateNetwork({}), SandboxNotFoundError);
	assert.ok(!(await all()).some((s) => s.sandboxId === other.sandboxId));
});
see("a sandbox that never was", async () => {
	assert.equal(await Sandbox.kill("nosuchsandbox"), false);
	await assert.rejects(Sandbox.getInfo("nosuchsandbox"), SandboxNotFoundError);
	await assert.rejects(Sandbox.connect("nosuchsandbox"), SandboxNotFoundError);
	await assert.rejects(Sandbox.setTimeout("nosuchsandbox", 1000), SandboxNotFoundError);
});
see("a sandbox whose time is over", async () => {
	const other = await Sandbox.create({ timeoutMs: 3600_000 });
	await other.setTimeout(0);
	while (await other.isRunning());
	await assert.rejects(other.getInfo(), SandboxNotFoundError);
});
see("a page that follows none", async () => {
	for (const nextToken of ["garbage", "a/b", "2026-01-01T00:00:00Z/../../etc", "x".repeat(300)])
		await assert.rejects(all({ nextToken }), /400: .*nextToken/);
	for (const path of ["/v2/sandboxes?nextToken=garbage", "/snapshots?nextToken=garbage"]) {
		const r = await raw(path);
		assert.deepEqual([r.status, (await r.json()).code], [400, 400], path);
	}
});
see("pause, and on again", async () => {
	assert.equal(await box.pause(), true);
	assert.equal(await box.pause(), false);
	assert.equal((await box.getInfo()).state, "paused");
	assert.equal(await box.isRunning(), false);
	assert.deepEqual((await all({ query: { state: ["paused"] } })).map((s) => s.sandboxId), [box.sandboxId]);
	const r = await raw(`/v2/sandboxes/${box.sandboxId}/connect`, { method: "POST", body: '{"timeout":200}' });
	assert.equal(r.status, 201);
	assert.equal(await box.isRunning(), true);
	const left = (await box.getInfo()).endAt - Date.now();
	assert.ok(left > 100_000 && left <= 200_000, `${left} ms are left`);
});
see("processes go on after a pause, and one that is paused can be killed", async () => {
	const other = await Sandbox.create();
	const command = await other.commands.run("read line; echo got $line", { background: true, stdin: true });
	assert.equal(await other.pause(), true);
	await other.connect();
	await other.commands.sendStdin(command.pid, "it\n");
	assert.equal((await command.wait()).stdout, "got it\n");
	assert.equal(await other.pause(), true);
	assert.equal(await other.kill(), true);
	await assert.rejects(other.getInfo(), SandboxNotFoundError);
});
see("a pause that would lose its processes", async () => {
	await assert.rejects(box.pause({ keepMemory: false }), /501: .*keeps its processes/);
	assert.equal(await box.isRunning(), true);
});
see("paused by its timeout, and on again when somebody connects", async () => {
	const other = await Sandbox.create({ lifecycle: { onTimeout: "pause" }, timeoutMs: 600_000 });
	assert.deepEqual((await other.getInfo()).lifecycle, { onTimeout: "pause", autoResume: false });
	const left = (await other.getInfo()).endAt - Date.now();
	assert.ok(left > 500_000 && left <= 600_000, `${left} ms are left`);
	await other.setTimeout(0);
	while (await other.isRunning());
	assert.equal((await other.getInfo()).state, "paused");
	await other.connect({ timeoutMs: 100_000 });
	assert.equal(await other.isRunning(), true);
	const now = (await other.getInfo()).endAt - Date.now();
	assert.ok(now > 50_000 && now <= 100_000, `${now} ms are left`);
	assert.equal(await other.kill(), true);
	await assert.rejects(Sandbox.create({ lifecycle: { onTimeout: { action: "pause", keepMemory: false } } }), /501: /);
});
see("on again when something is asked of it", async () => {
	const other = await Sandbox.create({ lifecycle: { onTimeout: "pause", autoResume: true }, timeoutMs: 600_000 });
	assert.deepEqual((await other.getInfo()).lifecycle, { onTimeout: "pause", autoResume: true });
	assert.equal(await other.pause(), true);
	assert.equal((await other.getInfo()).state, "paused");
	const r = await fetch(url + "/nothing", { headers: { "E2b-Sandbox-Id": other.sandboxId, "X-Access-Token": other.envdAccessToken } });
	assert.equal(r.status, 404);
	assert.equal((await other.getInfo()).state, "running");
	assert.equal(await other.kill(), true);
});
see("what files take", async () => {
	await box.files.write("large", "x".repeat(5_000_000), { metadata: { of: "test" } });
	let metric;
	for (let i = 0; i < 1200 && !(metric?.diskUsed >= 5_000_000); i++) {
		await new Promise((resolve) => setTimeout(resolve, 50));
		[metric] = await box.getMetrics();
	}
	assert.ok(metric.diskUsed >= 5_000_000 && metric.diskUsed < metric.diskTotal, JSON.stringify(metric));
});
see("metrics", async () => {
	const [metric] = await box.getMetrics();
	assert.ok(metric.cpuCount >= 1 && metric.cpuUsedPct >= 0 && metric.memTotal > 0 && metric.memUsed >= 0 && metric.diskTotal > 0);
	assert.ok(Math.abs(metric.timestamp - Date.now()) < 60_000);
	const hour = 3600_000;
	assert.deepEqual(await box.getMetrics({ start: new Date(Date.now() - hour), end: new Date(Date.now() - hour / 2) }), []);
	assert.equal((await box.getMetrics({ start: new Date(Date.now() - hour), end: new Date() })).length, 1);
});
see("the network, where there is none", async () => {
	await box.updateNetwork({ denyOut: [ALL_TRAFFIC] });
	assert.deepEqual((await box.getInfo()).network.denyOut, ["0.0.0.0/0"]);
	assert.deepEqual((await box.getInfo()).metadata, { suite: "e2b", "a b": "ü&=" });
	await assert.rejects(box.updateNetwork({ egressProxy: { address: "p:1" } }), /501: /);
	const other = await Sandbox.create({ allowInternetAccess: false });
	assert.equal((await other.getInfo()).allowInternetAccess, false);
	await other.kill();
});
see("a server in it has a name", async () => {
	const server = await box.commands.run("echo served > index.html; exec python3 -u -m http.server 3000", { background: true });
	assert.equal(box.getHost(3000), `3000-${box.sandboxId}.localhost:${new URL(url).port}`);
	const get = (headers) => new Promise((resolve, reject) => {
		request(url, { headers: { host: box.getHost(3000), ...headers } }, (r) => r.setEncoding("utf8").on("data", (text) => resolve([r.statusCode, text]))).on("error", reject).end();
	});
	let seen;
	while ((seen = await get({ "X-Access-Token": box.envdAccessToken }))[0] === 502);
	assert.deepEqual(seen, [200, "served\n"]);
	assert.deepEqual(await get({ "E2B-Traffic-Access-Token": box.trafficAccessToken }), [200, "served\n"]);
	assert.equal((await get({ "X-Access-Token": "a".repeat(32) }))[0], 401);
	assert.equal(await server.kill(), true);
});
const asked = (host, headers = {}) => new Promise((resolve, reject) => {
	request(url, { headers: { host, ...headers } }, (r) => {
		let body = "";
		r.setEncoding("utf8").on("data", (text) => (body += text)).on("end", () => resolve([r.statusCode, body]));
	}).on("error", reject).end();
});
see("a request to its server resumes a sandbox that wants that, and no other", async () => {
	for (const autoResume of [true, false]) {
		const other = await Sandbox.create({ lifecycle: { onTimeout: "pause", autoResume }, timeoutMs: 3600_000 });
		const [copy] = await other.fork({ timeoutMs: 3600_000 });
		for (const s of [other, copy]) {
			await s.commands.run("exec python3 -u -m http.server 3000", { background: true });
			while ((await asked(s.getHost(3000)))[0] === 502);
			assert.equal(await s.pause(), true);
			const [status, body] = await asked(s.getHost(3000));
			if (autoResume) {
				assert.equal(status, 200);
				const info = await s.getInfo();
				assert.equal(info.state, "running");
				assert.ok(info.endAt - Date.now() <= 300_000, "for five minutes");
			} else {
				assert.deepEqual([status, JSON.parse(body)], [502, { sandboxId: s.sandboxId, message: "The sandbox is paused", code: 502 }]);
				assert.equal((await s.getInfo()).state, "paused");
			}
			assert.equal(await s.kill(), true);
		}
	}
});
see("a fork is paused by its timeout if the first one is", async () => {
	const other = await Sandbox.create({ lifecycle: { onTimeout: "pause" }, timeoutMs: 600_000 });
	const [copy] = await other.fork({ timeoutMs: 600_000 });
	await copy.setTimeout(0);
	while (await copy.isRunning());
	assert.equal((await copy.getInfo()).state, "paused");
	await Promise.all([copy.kill(), other.kill()]);
});
see("ports without public traffic need the key of the sandbox", async () => {
	const other = await Sandbox.create({ network: { allowPublicTraffic: false } });
	const [copy] = await other.fork();
	for (const s of [other, copy]) {
		await s.commands.run("exec python3 -u -m http.server 3000", { background: true });
		let seen;
		while ((seen = await asked(s.getHost(3000), { "e2b-traffic-access-token": s.trafficAccessToken }))[0] === 502);
		assert.equal(seen[0], 200);
		assert.equal((await asked(s.getHost(3000)))[0], 403);
		assert.equal(await s.kill(), true);
	}
});
see("the name of a port of a sandbox that was killed, or never was", async () => {
	const other = await Sandbox.create();
	const host = other.getHost(3000);
	assert.equal(await other.kill(), true);
	for (const [id, name] of [[other.sandboxId, host], ["a".repeat(16), host.replace(other.sandboxId, "a".repeat(16))]]) {
		const [status, body] = await asked(name);
		assert.deepEqual([status, JSON.parse(body)], [502, { sandboxId: id, message: "The sandbox was not found", code: 502 }]);
	}
});
see("a snapshot is a template", async () => {
	await box.files.write("kept/ü.txt", "content");
	const made = await box.createSnapshot({ name: "first" });
	assert.deepEqual(made.names, ["first"]);
	const pages = Sandbox.listSnapshots();
	assert.deepEqual(await pages.nextItems(), [made]);
	assert.equal(pages.hasNext, false);
	await box.files.write("kept/ü.txt", "changed");
	for (const name of [made.snapshotId, "first"]) {
		const other = await Sandbox.create(name, { envs: { A: "b" }, metadata: { of: "snapshot" } });
		assert.equal(await other.files.read("kept/ü.txt"), "content");
		assert.equal((await other.commands.run("echo $A")).stdout, "b\n");
		assert.deepEqual((await other.getInfo()).metadata, { of: "snapshot" });
		assert.deepEqual((await other.files.getInfo("large")).metadata, { of: "test" });
		assert.equal(await other.kill(), true);
	}
	await box.createSnapshot();
	const one = Sandbox.listSnapshots({ limit: 1, sandboxId: box.sandboxId });
	const all = [...(await one.nextItems()), ...(await one.nextItems())];
	assert.deepEqual([new Set(all.map((s) => s.snapshotId)).size, one.hasNext], [2, false]);
	for (const s of all) assert.equal(await Sandbox.deleteSnapshot(s.snapshotId), true);
	assert.equal(await Sandbox.deleteSnapshot(made.snapshotId), false);
	await assert.rejects(Sandbox.create("first"), /404/);
	await assert.rejects(Sandbox.createSnapshot("nosuchsandbox"), SandboxNotFoundError);
});
see("which sandbox it is: after a pause, in a fork, and where its creator says something else", async () => {
	const own = await Sandbox.create("code-interpreter-v1", { envs: { E2B_TEAM_ID: "mine" }, timeoutMs: 600_000 });
	const line = "echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $E2B_TEAM_ID";
	const wanted = (s) => `true ${s.sandboxId} code-interpreter-v1 mine\n`;
	assert.equal((await own.commands.run(line)).stdout, wanted(own));
	await own.pause();
	assert.equal((await (await Sandbox.connect(own.sandboxId)).commands.run(line)).stdout, wanted(own));
	const [copy] = await own.fork();
	assert.notEqual(copy.sandboxId, own.sandboxId);
	assert.equal((await copy.commands.run(line)).stdout, wanted(copy));
	await copy.kill();
	await own.kill();
});
see("forks have its files", async () => {
	await box.files.write("forked", "one");
	const forks = await box.fork({ count: 2 });
	assert.equal(forks.length, 2);
	await box.files.write("forked", "two");
	for (const other of forks) {
		assert.ok(other instanceof Sandbox, String(other));
		assert.equal(await other.files.read("forked"), "one");
		assert.equal((await other.commands.run("echo $GREETING")).stdout, "héllo\n");
		assert.equal(await other.kill(), true);
	}
	await assert.rejects(Sandbox.fork("nosuchsandbox"), SandboxNotFoundError);
});
see("a template that is none", async () => assert.rejects(Sandbox.create("no-such-template"), /404: template 'no-such-template' not found/));
see("what is not there says so", async () => {
	await assert.rejects(Sandbox.create({ volumeMounts: { "/mnt": "v" } }), /501: .*volumes/);
	assert.equal(await Sandbox.deleteSnapshot("none"), false);
});
see("a key that is refused", async () => {
	await assert.rejects(Sandbox.create({ apiKey: "e2b_bad" }), AuthenticationError);
	await assert.rejects(Sandbox.getInfo(box.sandboxId, { apiKey: "e2b_bad" }), AuthenticationError);
	await assert.rejects(Sandbox.kill(box.sandboxId, { apiKey: "e2b_bad" }), AuthenticationError);
	await assert.rejects(Sandbox.list({ apiKey: "e2b_bad" }).nextItems(), AuthenticationError);
});
see("the first version of the addresses", async () => {
	const r = await raw("/sandboxes", { method: "POST", body: '{"templateID":"base","timeout":300,"secure":true}' });
	const made = await r.json();
	assert.deepEqual([r.status, made.templateID, typeof made.envdAccessToken, made.domain], [201, "base", "string", `localhost:${new URL(url).port}`]);
	assert.equal((await raw(`/sandboxes/${made.sandboxID}/connect`, { method: "POST", body: '{"timeout":300}' })).status, 200);
	assert.equal((await raw(`/sandboxes/${made.sandboxID}/resume`, { method: "POST" })).status, 200);
	assert.equal((await raw(`/sandboxes/${made.sandboxID}/refreshes`, { method: "POST", body: '{"duration":60}' })).status, 204);
	assert.ok((await (await raw("/sandboxes")).json()).some((s) => s.sandboxID === made.sandboxID));
	assert.equal((await raw(`/sandboxes/${made.sandboxID}`, { method: "DELETE" })).status, 204);
	assert.equal((await raw(`/sandboxes/${made.sandboxID}`, { method: "DELETE" })).status, 404);
});
see("bodies that are none", async () => {
	for (const [path, body, status] of [
		["/v2/sandboxes", "{", 400], ["/v2/sandboxes", "[]", 400], ["/v2/sandboxes", "{}", 400], ["/v2/sandboxes", '{"templateID":7}', 400],
		["/v2/sandboxes", '{"templateID":"base","timeout":"x"}', 400], ["/v2/sandboxes", '{"templateID":"base","timeout":-1}', 400],
		["/v2/sandboxes", '{"templateID":"base","metadata":{"a":1}}', 400], ["/v2/sandboxes", '{"templateID":"base","metadata":[]}', 400],
		["/v2/sandboxes", '{"templateID":"base","envVars":{"a":null}}', 400], ["/v2/sandboxes", '{"templateID":"base","envVars":{"a=b":"c"}}', 400],
		["/v2/sandboxes", `{"templateID":"base","metadata":{"a":"${"x".repeat(20_000)}"}}`, 400],
		["/v2/sandboxes", '{"templateID":"base","network":7}', 400], [`/sandboxes/${box.sandboxId}/timeout`, "{}", 400],
		[`/sandboxes/${box.sandboxId}/nothing`, "{}", 404], ["/v3/templates", "{}", 501], ["/volumes", "{}", 501],
	]) {
		const r = await raw(path, { method: "POST", body });
		const { code, message } = await r.json();
		assert.deepEqual([r.status, code, typeof message], [status, status, "string"], `${path} ${body.slice(0, 60)}`);
	}
	for (const query of ["limit=0", "limit=x", "state=dead", "order=up", "metadata=a", "startedAfter=soon"])
		assert.equal((await raw("/v2/sandboxes?" + query)).status, 400, query);
});
see("the sandbox's own key", async () => {
	const key = box.envdAccessToken;
	assert.ok(key && key === box.trafficAccessToken);
	assert.equal((await data("/nothing", { "X-Access-Token": key })).status, 404);
	assert.equal((await data("/nothing", { "E2B-Traffic-Access-Token": key, "E2b-Sandbox-Port": "49999" })).status, 404);
	assert.equal((await data("/nothing", { "X-Access-Token": key.replace(/.$/, (l) => (l === "a" ? "b" : "a")) })).status, 401);
	assert.equal((await data("/nothing")).status, 401);
	assert.equal((await data("/nothing", { "X-API-KEY": "e2b_0123456789" })).status, 401);
	assert.equal((await fetch(url + "/nothing", { headers: { "X-Access-Token": key } })).status, 404);
	assert.equal((await fetch(url + "/nothing", { headers: { "X-Access-Token": "other" } })).status, 401);
	assert.equal((await data("/v1/sessions", { "X-Access-Token": key })).status, 404);
});
see("a key is of one sandbox", async () => {
	const other = await Sandbox.create();
	assert.notEqual(other.envdAccessToken, box.envdAccessToken);
	assert.equal((await data("/nothing", { "X-Access-Token": other.envdAccessToken })).status, 401);
	await other.kill();
	const r = await fetch(url + "/nothing", { headers: { "E2b-Sandbox-Id": other.sandboxId, "X-Access-Token": other.envdAccessToken } });
	assert.deepEqual([r.status, await r.json()], [502, { sandboxId: other.sandboxId, message: "The sandbox was not found", code: 502 }]);
});
see("health needs no key", async () => {
	assert.equal((await data("/health")).status, 204);
	const r = await data("/health", { "E2b-Sandbox-Port": "49999" });
	assert.deepEqual([r.status, await r.json()], [200, "OK"]);
	assert.equal((await fetch(url + "/health", { headers: { "X-Access-Token": box.envdAccessToken } })).status, 204);
	assert.equal((await fetch(url + "/health", { headers: { "X-Access-Token": "none" } })).status, 502);
	assert.equal((await fetch(url + "/health", { headers: { "E2b-Sandbox-Id": "x".repeat(500) } })).status, 502);
});
see("many at once", async () => {
	const boxes = await Promise.all(Array.from({ length: 12 }, (_, n) => Sandbox.create({ metadata: { many: String(n) } })));
	assert.equal(new Set(boxes.map((s) => s.sandboxId)).size, 12);
	assert.ok((await Promise.all(boxes.map((s) => s.isRunning()))).every((x) => x));
	assert.ok((await Promise.all(Array.from({ length: 200 }, () => boxes[0].isRunning()))).every((x) => x));
	assert.ok((await Promise.all(boxes.map((s) => s.kill()))).every((x) => x));
});
see("debug mode: one sandbox that nobody made", async () => {
	const debug = await Sandbox.create({ debug: true });
	assert.equal(debug.sandboxId, "debug_sandbox_id");
	assert.equal(await debug.isRunning(), true);
	assert.equal(await debug.kill(), true);
	assert.deepEqual(await debug.getMetrics(), []);
	const asked = () => fetch(url + "/nothing", { headers: { "E2b-Sandbox-Id": "debug_sandbox_id" } });
	assert.deepEqual((await Promise.all([asked(), asked(), asked()])).map((r) => r.status), [404, 404, 404]);
	const older = await fetch(url + "/process.Process/List", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
	assert.deepEqual(await older.json(), { processes: [] }, "a client that does not even name it");
	const made = (await all()).filter((s) => s.sandboxId !== box.sandboxId);
	assert.equal(made.length, 1, "all three had the same one");
	assert.equal(await Sandbox.kill(made[0].sandboxId), true);
	assert.equal((await asked()).status, 404);
	const anew = (await all()).filter((s) => s.sandboxId !== box.sandboxId);
	assert.deepEqual([anew.length, anew[0].sandboxId === made[0].sandboxId], [1, false]);
	assert.equal(await Sandbox.kill(anew[0].sandboxId), true);
});
see("the end", async () => {
	assert.equal(await Sandbox.kill(box.sandboxId), true);
	assert.equal(await box.isRunning(), false);
	assert.deepEqual(await all(), []);
	assert.ok(SandboxError);
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
