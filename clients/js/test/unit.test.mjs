// SPDX-License-Identifier: Apache-2.0
// What needs no cell: names, archives, options, where brig is.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import * as brig from "brig";
import { folder, inner } from "./bed.mjs";

const { packTar, unpackTar } = await inner("tar");
const { cleanPath, decodeName, encodeName } = await inner("names");
const { environment, runWords } = await inner("options");

const bytes = (text) => new TextEncoder().encode(text);
const ODD = ["a", "with space", "-dash", "ä/ö\u{1f600}", "new\nline", "x".repeat(99), "y".repeat(100), "z".repeat(101),
	`${"long/".repeat(60)}name`, "\udcff\udc80raw", "\ufeffbom", "*?[]\\"];

test("names.bytes: every name of bytes has one string and finds its way back", () => {
	for (const row of [[0xff], [0x61, 0xc3], [0xc3, 0xa4], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98, 0x80], [0xef, 0xbb, 0xbf, 0x41], [0xc0, 0xaf]]) {
		assert.deepEqual([...encodeName(decodeName(Uint8Array.from(row)))], row);
	}
	assert.equal(decodeName(Uint8Array.from([0x61, 0xff])), "a\udcff");
	assert.throws(() => encodeName("\ud800x"), brig.UsageError);
});

test("names.paths: what leads out of the workspace is refused", () => {
	assert.equal(cleanPath("./a//b/."), "a/b");
	assert.equal(cleanPath("/workspace/a"), "a");
	for (const path of ["", ".", "/", "/etc/passwd", "..", "a/../../b", "a/..", "a\0b", "/workspace/../etc"]) {
		assert.throws(() => cleanPath(path), brig.UsageError, JSON.stringify(path));
	}
});

test("tar.round: an archive gives back what was put in", () => {
	const entries = ODD.map((path, index) => ({ path, data: bytes("x".repeat(index * 200)), mode: index % 2 ? 0o755 : 0o644 }));
	entries.push({ path: "folder", data: null, mode: 0o755 });
	assert.deepEqual(unpackTar(packTar(entries)), entries);
	assert.deepEqual(unpackTar(packTar([])), []);
});

test("tar.system: the system's tar reads it, and we read every format of that", () => {
	const place = folder();
	writeFileSync(join(place, "ours.tar"), packTar(ODD.map((path) => ({ path, data: bytes(path), mode: 0o644 }))));
	mkdirSync(join(place, "out"));
	const done = spawnSync("tar", ["-xf", "ours.tar", "-C", "out"], { cwd: place });
	assert.equal(done.status, 0, done.stderr.toString());
	for (const path of ODD) assert.deepEqual(Uint8Array.from(readFileSync(Buffer.from(encodeName(join(place, "out", path))))), bytes(path));
	for (const format of ["gnu", "pax", "posix"]) {
		assert.equal(spawnSync("tar", [`--format=${format}`, "-cf", `${format}.tar`, "-C", "out", "."], { cwd: place }).status, 0);
		const read = new Map(unpackTar(readFileSync(join(place, `${format}.tar`))).filter((e) => e.data).map((e) => [e.path, e.data]));
		assert.deepEqual([...read.keys()].sort(), [...ODD].sort());
		for (const path of ODD) assert.deepEqual(Uint8Array.from(read.get(path)), bytes(path));
	}
});

test("tar.hostile: links, names that lead out and broken archives are errors", () => {
	const place = folder();
	symlinkSync("/etc/passwd", join(place, "link"));
	spawnSync("tar", ["-cf", "link.tar", "link"], { cwd: place });
	assert.throws(() => unpackTar(readFileSync(join(place, "link.tar"))), brig.TransportError);
	const good = packTar([{ path: "abc", data: bytes("x"), mode: 0o644 }]);
	for (const length of [0, 100, 512, 700, 1024, 1400]) assert.throws(() => unpackTar(good.subarray(0, length)), brig.TransportError, String(length));
	const changed = good.slice();
	changed[0] ^= 1;
	assert.throws(() => unpackTar(changed), brig.TransportError);
	for (const path of ["../up", "/abs", "a/../../b"]) {
		assert.throws(() => unpackTar(packTar([{ path, data: bytes(""), mode: 0o644 }])), brig.TransportError);
	}
});

test("tar.noise: changed bytes give entries or an error of ours, nothing else", () => {
	const good = packTar(ODD.map((path) => ({ path, data: bytes(path), mode: 0o644 })));
	let seed = 1;
	const random = (below) => (seed = (seed * 48271) % 0x7fffffff) % below;
	for (let round = 0; round < 300; round++) {
		const bad = good.slice();
		for (let count = 0; count < 3; count++) bad[random(bad.length)] = random(256);
		try {
			for (const { path } of unpackTar(bad)) assert.equal(cleanPath(path), path);
		} catch (error) {
			assert.ok(error instanceof brig.BrigError, String(error));
		}
	}
});

test("options.words: each option becomes its words, an unknown one is refused", () => {
	assert.deepEqual(runWords({ timeout: 5, memory: "64m", packages: ["a", "b"], rules: { r: "allow" }, backend: "auto", apply: false, language: "x" }),
		["--timeout", "5", "--memory", "64m", "--packages", "a", "--packages", "b", "--rule", "r=allow"]);
	assert.throws(() => new brig.Sandbox({ tiemout: 5 }), /tiemout/);
	assert.throws(() => new brig.Sandbox({ workspace: ".", files: { a: "" } }), brig.UsageError);
});

test("options.network: hosts go through the environment, which is a layer of the policy", () => {
	const before = process.env.BRIG_BIN;
	const env = environment(["pypi.org", "*.example.org"]);
	assert.equal(env.BRIG_NETWORK_MODE, "allowlist");
	assert.equal(env.BRIG_WHITELIST, "pypi.org,*.example.org");
	assert.equal(env.BRIG_BIN, undefined, "brig would take it for a setting");
	assert.equal(environment(false).BRIG_NETWORK_MODE, "none");
	assert.equal(environment().BRIG_NETWORK_MODE, process.env.BRIG_NETWORK_MODE);
	assert.throws(() => environment(["a,b"]), brig.UsageError);
	assert.equal(process.env.BRIG_BIN, before);
});

test("binary.lookup: a brig that is not there is a typed error with a remedy", async () => {
	const missing = { name: "BinaryNotFound", remedy: /BRIG_BIN/ };
	await assert.rejects(brig.run("1", { binary: "/nowhere/brig" }), missing);
	await assert.rejects(brig.run("1", { binary: folder() }), missing);
	const { BRIG_BIN, PATH } = process.env;
	try {
		process.env.PATH = folder();
		delete process.env.BRIG_BIN;
		await assert.rejects(brig.doctor(), missing);
		process.env.BRIG_BIN = "/nowhere/brig";
		await assert.rejects(brig.run("1"), { name: "BinaryNotFound", message: /\$BRIG_BIN/ });
	} finally {
		Object.assign(process.env, { BRIG_BIN, PATH });
	}
});

test("binary.wrong: a program that is no brig is a typed error with what it said", async () => {
	const place = folder();
	for (const [script, message] of [["echo no; echo why >&2", /not JSON: no/], ["echo why >&2; exit 3", /exited with 3 without a result: why/],
		["kill -9 $$", /SIGKILL/]]) {
		writeFileSync(join(place, "brig"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
		await assert.rejects(brig.run("1", { binary: join(place, "brig") }), { name: "TransportError", message });
	}
	writeFileSync(join(place, "brig"), "#!/bin/sh\necho refused >&2; exit 125\n", { mode: 0o755 });
	await assert.rejects(brig.history({ binary: join(place, "brig") }), { name: "CommandError", message: /refused/ });
});
