// SPDX-License-Identifier: Apache-2.0
// The code in README.md works: each ```js block is run, those marked no-run are not.  What a block prints must be what its
// comments `// => text` say, in their order.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import test from "node:test";

const top = new URL("..", import.meta.url);
const readme = readFileSync(new URL("README.md", top), "utf8");
const blocks = [...readme.matchAll(/^```js *(no-run)?\n(.*?)^```/gms)];
const hasAi = existsSync(new URL("node_modules/ai", top));

test("readme.blocks: there are some", () => assert.ok(blocks.length > 5));

blocks.forEach(([, mark, code], index) => {
	const line = readme.slice(0, readme.indexOf(code)).split("\n").length;
	// As an ordinary user only what needs nothing but brig is tested.
	if (mark || (/"brig\/ai"/.test(code) && !hasAi)) return;
	test(`readme.${index + 1}: the code at line ${line} works`, () => {
		const folder = new URL(`readme-${index}/`, top);
		mkdirSync(new URL("project/", folder), { recursive: true });
		writeFileSync(new URL("project/note.txt", folder), "a draft\n");
		writeFileSync(new URL("main.mjs", folder), code);
		const done = spawnSync(process.execPath, ["main.mjs"], { cwd: folder, encoding: "utf8" });
		assert.equal(done.status, 0, done.stderr);
		const wanted = [...code.matchAll(/\/\/ => (.*)$/gm)].map((found) => found[1]);
		assert.deepEqual(done.stdout.trimEnd().split("\n").filter(Boolean), wanted);
	});
});
