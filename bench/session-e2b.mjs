// SPDX-License-Identifier: Apache-2.0
// session-e2b.mjs URL ROUNDS PAUSE_MS - milliseconds of a sandbox through E2B's own SDK: made, code run in it, killed.  For bench/session.
import { createRequire } from "node:module";
import { setTimeout } from "node:timers/promises";

const [url, rounds, pause] = process.argv.slice(2);
Object.assign(process.env, { E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_API_KEY: "e2b_bench" });
const require = createRequire(new URL("../tests/doors/package.json", import.meta.url));
const { Sandbox } = require("@e2b/code-interpreter");
const times = [];
for (let i = 0; i < Number(rounds) + 5; i++) {
	await setTimeout(Number(pause));
	const begin = performance.now();
	const sandbox = await Sandbox.create();
	const made = performance.now();
	const { text } = await sandbox.runCode("6 * 7");
	const ran = performance.now();
	await sandbox.kill();
	const end = performance.now();
	if (text !== "42")
		throw new Error(`the code says ${text}`);
	if (i >= 5)
		times.push([end - begin, made - begin, ran - made, end - ran]);
}
console.log(JSON.stringify(times));
