// SPDX-License-Identifier: Apache-2.0
// compare.mjs BUILD MUTANTS - a second opinion on src/net/http1.c.
//
// The requests of test_http1_cases.h, the seeds of the fuzzers and so many mutants of them are read by our parser (see.c) and by
// Node.js, whose parser is llhttp.  Whatever we let through, Node lets through with the same method, target, fields, body and
// opinion about the connection; or the difference is one of those listed here, with its reason.  What we refuse and some
// version of Node accepts is listed, too: what is not there is refused by mistake.  And forms that Node writes as browsers do
// (FormData) are read as they were meant (src/net/multipart.c).
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import http from "node:http";
import { dirname, join } from "node:path";
import { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [build, mutants] = [process.argv[2], Number(process.argv[3])];
const seer = join(build, "tests/http1/see-http1");
const methods = new Set(http.METHODS);
const PATIENCE = 60000; // ms after which an answer is counted as missing; decides no case that works

// ---- what we let through and Node does not ---------------------------------------------------------------------
const onlyWe = [
	{ why: "Node has a list of methods; here it is the server that answers 405 or 501", is: (ours) => !methods.has(text(ours.method)) },
	{
		why: "a trailer that would be framing as a field; all of them are dropped",
		is: (ours, bytes) => /\r\n(content-length|transfer-encoding):/i.test(bytes.toString("latin1").split("\r\n\r\n")[1]),
	},
];

// ---- what both let through, with another opinion about the connection ------------------------------------------
const lessAlive = {
	why: "HTTP/1.0 with both keep-alive and close: to close is what everybody expects",
	is: (ours) => !ours.keep_alive && ours.version === "1.0",
};

// ---- what Node lets through and we do not ----------------------------------------------------------------------
const onlyNode = {
	not_http: "an empty line before the request, which no client of today sends",
	bare_lf: "a request line of HTTP/0.9 that ends with LF",
	length_huge: "Node takes as many zeros before a number as somebody likes",
	coding_1_0: "Node reads chunks of HTTP/1.0",
	host_missing: "Node is told to leave that to the application, lest it answers by itself",
	expect: "Node is content if 100-continue is among what is expected",
	request_line: "llhttp takes more than one blank before the version, and bytes of a target that we do not",
	version: "Node serves what llhttp calls a version: 0.9, 2.0",
	target_char: "a fragment, or bytes beyond ASCII: they must be percent-encoded (RFC 3986)",
	target_form: "Node leaves it to the application whether the target means anything",
	asterisk: "the same",
	user_info: "the same",
	authority: "the same",
	twice: "Node drops all but the first, or joins them: nobody knows which one the sender meant",
	host_twice: "Node keeps the first Host",
	host_value: "Node does not look at Host",
	host_differs: "the same",
	coding: "llhttp takes a list that ends with chunked, whose other codings nobody undoes",
	connect_body: "Node ignores the body of CONNECT",
	connection_names: "Node does not pass requests on",
	// These by older versions only.
	folded: "folded lines of fields that are no framing",
	name_empty: "a field without a name",
	bare_cr: "CR LF CR X is taken for the end of a head",
	chunk_end: "what is behind the data of a chunk is not looked at",
	chunk_extension: "blanks, quotes and whatever else in extensions",
};

// ---- the two readers -------------------------------------------------------------------------------------------

const hex = (latin1) => Buffer.from(latin1, "latin1").toString("hex");
const text = (inHex) => Buffer.from(inHex, "hex").toString("latin1");

function framed(requests) {
	return Buffer.concat(requests.flatMap((bytes) => {
		const length = Buffer.alloc(4);
		length.writeUInt32LE(bytes.length);
		return [length, bytes];
	}));
}

function unframed(bytes) {
	const requests = [];
	for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32LE(at))
		requests.push(bytes.subarray(at + 4, at + 4 + bytes.readUInt32LE(at)));
	return requests;
}

function see(words, input) {
	const done = spawnSync(seer, words, { input, maxBuffer: 1 << 30 });
	if (done.status !== 0)
		throw new Error(`${seer}: ${done.error ?? done.signal ?? done.status}`);
	return done.stdout;
}

const askOurs = (requests) => see([], framed(requests)).toString().split("\n").slice(0, -1).map((line) => JSON.parse(line));

// The first request of the bytes, as Node's server tells its application: null if there is none, or not all of it.
function askNode(bytes) {
	return new Promise((resolve) => {
		const server = http.createServer({ maxHeaderSize: 65536, requireHostHeader: false, connectionsCheckingInterval: 1 << 30 });
		const wire = new Duplex({ read() {}, write(chunk, encoding, done) { done(); }, autoDestroy: false });
		const guard = setTimeout(() => resolve("neither accepted nor refused"), PATIENCE);
		let first = null;
		const settle = (answer) => {
			clearTimeout(guard);
			server.close();
			resolve(answer);
		};
		const told = (request, body, keepAlive) => settle({
			method: hex(request.method), target: hex(request.url), lines: request.rawHeaders.map(hex),
			version: request.httpVersion, keep_alive: keepAlive, body,
		});
		// Trouble behind the first request is none of it, and neither is its end before the application has read all of it.
		const giveUp = () => first?.complete || settle(null);
		server.maxHeadersCount = 0;
		server.httpAllowHalfOpen = true;
		server.on("request", (request, response) => {
			if (first)
				return;
			const pieces = [], keepAlive = response.shouldKeepAlive;
			first = request;
			request.on("data", (piece) => pieces.push(piece));
			request.on("end", () => (request.complete ? told(request, Buffer.concat(pieces).toString("hex"), keepAlive) : settle(null)));
			request.on("error", () => settle(null));
		});
		server.on("connect", (request) => first || told(request, "", undefined));
		server.on("checkExpectation", () => first || settle(null));
		server.on("clientError", giveUp);
		wire.on("error", giveUp);
		wire.on("finish", giveUp); // answered without asking the application
		wire.on("end", () => setImmediate(giveUp)); // all bytes have been read
		server.emit("connection", wire);
		wire.push(Buffer.from(bytes));
		wire.push(null);
	});
}

// ---- the comparison --------------------------------------------------------------------------------------------

function differs(ours, theirs) {
	for (const key of ["method", "target", "version", "body"])
		if (ours[key] !== theirs[key])
			return key;
	if (theirs.keep_alive !== undefined && ours.keep_alive !== theirs.keep_alive && !lessAlive.is(ours))
		return "keep_alive";
	return JSON.stringify(ours.lines) === JSON.stringify(theirs.lines) ? null : "lines";
}

// Null, or what is wrong.
function judge(bytes, ours, theirs) {
	const accepted = ours.outcome === "ok";
	if (typeof theirs === "string")
		return `by Node ${theirs}`;
	if (accepted && theirs) {
		const what = differs(ours, theirs);
		return what && `both accept it, with another ${what}: ${JSON.stringify(ours)}, ${JSON.stringify(theirs)}`;
	}
	if (accepted) {
		const known = onlyWe.find((row) => row.is(ours, bytes));
		return known ? null : "we accept it, Node does not";
	}
	if (theirs && ours.outcome === "more")
		return "Node has a whole request, we wait for more";
	return !theirs || onlyNode[ours.outcome] ? null : `Node accepts it, we refuse it (${ours.outcome})`;
}

let passed = 0, failed = 0;

function say(ok, what, details = []) {
	ok ? passed++ : failed++;
	console.log(`${ok ? "ok" : "not ok"} ${passed + failed} - ${what}`);
	for (const line of details.slice(0, 20))
		console.log(`#   ${line}`);
}

async function compare(what, requests) {
	const wrong = [], counts = { accepted: 0, refused: 0 };
	const ours = askOurs(requests);
	for (const [i, bytes] of requests.entries()) {
		const trouble = judge(bytes, ours[i], await askNode(bytes));
		counts[ours[i].outcome === "ok" ? "accepted" : "refused"]++;
		if (trouble)
			wrong.push(`${JSON.stringify(bytes.toString("latin1"))}: ${trouble}`);
	}
	say(wrong.length === 0 && ours.length === requests.length && counts.accepted > 0, `${what}: ${requests.length}, of which we accept ${counts.accepted}`, wrong);
}

// ---- requests --------------------------------------------------------------------------------------------------

// The same numbers in every run.
let state = 17;
function random(below) {
	state = (Math.imul(state, 1103515245) + 12345) >>> 0;
	return (state >>> 8) % below;
}

const words = ["\r\n", "\n", "\r", " ", "\t", "\0", ":", ",", ";", "0", "5", "%2e", "#", "@", "\xff", "\r\n ", "\r\n\r\n", "Host: a.test\r\n",
	"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "Connection: keep-alive\r\n",
	"Expect: 100-continue\r\n", "Upgrade: x\r\n", "X: y\r\n", "0\r\n\r\n", "chunked", "HTTP/1.0", "HTTP/1.1", "http://a.test"];

function mutate(bytes, other) {
	const at = random(bytes.length + 1), n = random(8);
	switch (random(5)) {
	case 0: // a word more
		return Buffer.concat([bytes.subarray(0, at), Buffer.from(words[random(words.length)], "latin1"), bytes.subarray(at)]);
	case 1: // some bytes less
		return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + n)]);
	case 2: { // another byte
		const changed = Buffer.from(bytes);
		if (at < changed.length)
			changed[at] = random(256);
		return changed;
	}
	case 3: { // a line twice
		const lines = bytes.toString("latin1").split("\r\n"), i = random(lines.length);
		lines.splice(i, 0, lines[i]);
		return Buffer.from(lines.join("\r\n"), "latin1");
	}
	default: // one's beginning, another's end
		return Buffer.concat([bytes.subarray(0, at), other.subarray(random(other.length + 1))]);
	}
}

const cases = unframed(see(["--cases"], ""));
const seeds = ["fuzz_http1", "fuzz_egress_http"].flatMap((name) => {
	const folder = join(here, "../fuzz/corpus", name);
	return readdirSync(folder).sort().map((file) => readFileSync(join(folder, file)));
});
await compare("cases", cases);
await compare("seeds of the fuzzers", seeds);
const all = [...cases, ...seeds].filter((bytes) => bytes.length > 0);
const made = [];
while (made.length < mutants) {
	let bytes = all[random(all.length)];
	for (let i = random(3); i >= 0; i--)
		bytes = mutate(bytes, all[random(all.length)]);
	if (bytes.length > 0)
		made.push(bytes);
}
await compare("mutants", made);

// ---- forms -----------------------------------------------------------------------------------------------------

const utf8 = (string) => Buffer.from(string).toString("hex");

// name, value; or name, value, file name
async function form(fields) {
	const data = new FormData();
	for (const [name, value, file] of fields)
		file === undefined ? data.append(name, value) : data.append(name, new Blob([value], { type: "text/x-test" }), file);
	const response = new Response(data);
	return Buffer.concat([Buffer.from(response.headers.get("content-type") + "\n"), Buffer.from(await response.arrayBuffer())]);
}

const forms = [
	[],
	[["code", "print(1)\n"]],
	[["a", ""], ["a", "x"]],
	[["files", "\r\n--\r\n\0\r", "src/\u00fc \u20ac;x=y.txt"], ["files", "x".repeat(100000), "../..\\b"]],
	[["q\"uote", "x", "q\"uote\r\n"], ["\u{1f600}", "y"]],
];
// As browsers do: https://html.spec.whatwg.org/#multipart-form-data
const ends = (value, end) => value.replace(/\r\n?|\n/g, end);
const escaped = (name) => utf8(ends(name, "%0D%0A").replace(/"/g, "%22"));
const part = ([name, value, file]) => (file === undefined ? [escaped(name), null, null, utf8(ends(value, "\r\n"))]
	: [escaped(name), escaped(file), utf8("text/x-test"), utf8(value)]);
const read = see(["--forms"], framed(await Promise.all(forms.map(form)))).toString().split("\n").slice(0, -1).map((line) => JSON.parse(line));
const unread = forms.map((fields, i) => [read[i], { parts: fields.map(part), outcome: "ok" }].map((what) => JSON.stringify(what)))
	.filter(([is, should]) => is !== should).map(([is, should]) => `${is.slice(0, 400)} instead of ${should.slice(0, 400)}`);
say(unread.length === 0, `forms that Node writes: ${forms.length}`, unread);
console.log(`${passed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
