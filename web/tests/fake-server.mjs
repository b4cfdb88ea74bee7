#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
//
// fake-server FOLDER BRIG [PORT [TOKEN]] - a stand-in for `brig serve`, for work on the console only: it has neither the
// walls nor the checks of the real one.  FOLDER is what web/build made; executions are `brig run --events`.  The tests of
// the console (tests/console/run) do not use it.
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const [folder, brig, port = "8377", token = ""] = process.argv.slice(2);
const place = mkdtempSync(join(tmpdir(), "suite-fake-"));
const state = join(place, "state");
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
process.on("exit", () => rmSync(place, { recursive: true, force: true }));
const env = { ...process.env, BRIG_STATE: state };
const executions = new Map();
const CSP =
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = {
	html: "text/html; charset=utf-8",
	js: "text/javascript; charset=utf-8",
	css: "text/css; charset=utf-8",
};

function send(res, status, document, headers = {}) {
	res.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store", ...headers });
	res.end(typeof document === "string" || Buffer.isBuffer(document) ? document : JSON.stringify(document));
}
const fail = (res, status, message) => send(res, status, { error: { code: "fake", message, request_id: "x" } });

function ask(res, words, input) {
	const child = execFile(brig, words, { env, maxBuffer: 1 << 28 }, (_, stdout, stderr) =>
		stdout ? send(res, 200, stdout) : fail(res, words[0] === "show" ? 404 : 422, stderr),
	);
	child.stdin.on("error", () => {});
	child.stdin.end(input || "");
}

async function bodyOf(req) {
	const parts = [];
	for await (const part of req) parts.push(part);
	return JSON.parse(Buffer.concat(parts).toString());
}

const bytesOf = (value) => (typeof value === "string" ? Buffer.from(value) : Buffer.from(value.base64, "base64"));

function wordsOf(job, work) {
	const words = ["run", "--events", "--lang", job.language];
	if (job.trust) words.push("--trust", job.trust);
	if (job.environment) words.push("--env", job.environment);
	for (const [key, value] of Object.entries(job.options || {}))
		words.push(key === "memory" ? "--memory" : `--${key}`, String(value));
	for (const pattern of job.artifacts || []) words.push("--artifact", pattern);
	words.push("--out", join(work, "out"));
	if (job.artifacts) words.push("--inline-artifacts", "8m");
	if (job.files) {
		for (const [path, value] of Object.entries(job.files)) {
			mkdirSync(dirname(join(work, "in", path)), { recursive: true });
			writeFileSync(join(work, "in", path), bytesOf(value));
		}
		spawn("tar", ["-C", join(work, "in"), "-cf", join(work, "in.tar"), "."], { stdio: "ignore" });
		words.push("--files", join(work, "in.tar"));
	}
	writeFileSync(join(work, "stdin"), bytesOf(job.stdin || ""));
	writeFileSync(join(work, "code"), bytesOf(job.code || ""));
	words.push("--stdin", join(work, "stdin"), join(work, "code"));
	return job.args ? [...words, "--", ...job.args] : words;
}

function start(job) {
	const x = {
		id: randomBytes(8).toString("hex"),
		state: "running",
		events: [],
		watchers: new Set(),
		created: new Date().toISOString(),
		language: job.language,
		trust: job.trust || "unknown",
		kind: "code",
		token: "anonymous",
	};
	const work = mkdtempSync(join(place, "work-"));
	const words = wordsOf(job, work);
	x.work = work;
	setTimeout(
		() => {
			x.child = spawn(brig, words, { env, stdio: ["ignore", "pipe", "inherit"] });
			let rest = "";
			x.child.stdout.on("data", (data) => {
				const lines = (rest + data).split("\n");
				rest = lines.pop();
				for (const line of lines) take(x, JSON.parse(line));
			});
		},
		job.files ? 200 : 0,
	);
	executions.set(x.id, x);
	emit(x, "queued", { id: x.id, position: 1 });
	return x;
}

function take(x, event) {
	if (event.event === "started") {
		executions.delete(x.id);
		x.id = event.id;
		executions.set(x.id, x);
	}
	if (event.event !== "result") return emit(x, event.event, event);
	x.state = "finished";
	x.result = event.result;
	x.verdict = event.result.verdict;
	x.id = event.result.id;
	executions.set(x.id, x);
	emit(x, "verdict", { id: x.id, verdict: x.verdict, result: event.result });
	for (const res of x.watchers) res.end();
}

function emit(x, name, data) {
	const text = `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
	x.events.push(text);
	for (const res of x.watchers) res.write(text);
}

function watch(x, res) {
	res.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
	for (const text of x.events) res.write(text);
	if (x.state === "finished") return res.end();
	x.watchers.add(res);
	res.on("close", () => x.watchers.delete(res));
}

const seen = (x) => ({
	id: x.id,
	state: x.state,
	language: x.language,
	trust: x.trust,
	token: x.token,
	created: x.created,
	started: x.created,
	ended: null,
	verdict: x.verdict || null,
	kind: x.kind,
});

function execution(req, res, id, rest) {
	const x = executions.get(id);
	if (!x) return fail(res, 404, `no execution ${id}`);
	if (req.method === "DELETE") {
		x.child?.kill("SIGTERM");
		return send(res, 202, {});
	}
	if (rest === "events") return watch(x, res);
	if (rest.startsWith("artifacts/")) {
		const path = decodeURIComponent(rest.slice(10));
		const found = (x.result?.artifacts || []).find((entry) => entry.path === path);
		if (!found) return fail(res, 404, `no artifact ${path}`);
		return send(res, 200, readFileSync(join(x.work, "out", path)), { "Content-Type": "application/octet-stream" });
	}
	return send(res, 200, { ...seen(x), result: x.result });
}

function file(res, path) {
	try {
		const data = readFileSync(join(folder, path === "/" ? "index.html" : path));
		send(res, 200, data, {
			"Content-Type": TYPES[path === "/" ? "html" : path.split(".").pop()],
			"Content-Security-Policy": CSP,
		});
	} catch {
		fail(res, 404, `no file ${path}`);
	}
}

const DOCUMENTS = {
	languages: ["languages", "--json"],
	environments: ["env", "list", "--json"],
	capabilities: ["doctor", "--json"],
	statistics: ["stats", "--json"],
	cells: ["ps", "--json"],
};

async function api(req, res, url) {
	const [, , name, id, ...rest] = url.pathname.split("/");
	const given = [...url.searchParams].flatMap(([key, value]) => [key === "language" ? "--lang" : `--${key}`, value]);
	if (name === "executions" && req.method === "POST") return watch(start(await bodyOf(req)), res);
	if (name === "executions" && id) return execution(req, res, id, rest.join("/"));
	if (name === "executions")
		return send(res, 200, { executions: [...new Set(executions.values())].map(seen).reverse() });
	if (name === "inspections") {
		const job = await bodyOf(req);
		return ask(
			res,
			["check", "--json", "--lang", job.language, ...(job.trust ? ["--trust", job.trust] : []), "-"],
			job.code,
		);
	}
	if (name === "policy") return ask(res, ["policy", "show", "--json", ...given]);
	if (name === "history") return ask(res, id ? ["show", "--json", id] : ["history", "--json", ...given]);
	if (name === "whoami")
		return send(res, 200, { name: token ? "first" : "anonymous", max_trust: "trusted", admin: true });
	if (name === "queue") {
		return send(res, 200, {
			running: [...executions.values()].filter((x) => x.state === "running").length,
			waiting: 0,
			jobs: 2,
			tokens: [{ name: "anonymous", running: 0, waiting: 0 }],
			pools: [],
		});
	}
	if (DOCUMENTS[name]) return ask(res, DOCUMENTS[name]);
	return fail(res, 404, `no ${url.pathname}`);
}

createServer((req, res) => {
	const url = new URL(req.url, "http://localhost");
	if (!url.pathname.startsWith("/v1/")) return file(res, url.pathname);
	if (token && req.headers.authorization !== `Bearer ${token}`) return fail(res, 401, "this needs a token");
	return api(req, res, url).catch((error) => fail(res, 400, error.message));
}).listen(Number(port), "127.0.0.1", function ready() {
	console.log(`ready http://127.0.0.1:${this.address().port}`);
});
