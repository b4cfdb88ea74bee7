// SPDX-License-Identifier: Apache-2.0
// The types, as a strict type checker of a user meets them; the sources were checked when the package was made.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";

const STRICT = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext"];

function check(file, ...options) {
	const words = ["node_modules/typescript/bin/tsc", ...STRICT, ...options, file];
	const done = spawnSync(process.execPath, words, { cwd: new URL("..", import.meta.url), encoding: "utf8" });
	assert.equal(done.stdout + done.stderr, "");
	assert.equal(done.status, 0);
}

test("types.usage: a caller with strict types and without those of Node.js", () => {
	check("test/types/usage.ts", "--lib", "es2022,dom,esnext.disposable");
});

test("types.ai: the AI SDK takes the tools", () => {
	check("test/types/usage-ai.ts", "--lib", "es2022,dom,dom.iterable,esnext.disposable", "--skipLibCheck");
});

test("types.public: no type of Node.js in what is public", () => {
	const folder = new URL("../node_modules/brig/dist/", import.meta.url);
	const seen = new Set(), open = ["index.d.ts", "ai.d.ts"];
	for (let name = open.pop(); name; name = open.pop()) {
		if (seen.has(name)) continue;
		seen.add(name);
		const text = readFileSync(new URL(name, folder), "utf8");
		assert.doesNotMatch(text, /\bBuffer\b|from "node:|NodeJS\./, name);
		open.push(...[...text.matchAll(/from "\.\/(\w+)\.js"/g)].map((found) => `${found[1]}.d.ts`));
	}
	assert.ok(seen.size > 5 && readdirSync(folder).length > seen.size);
});
