// SPDX-License-Identifier: Apache-2.0
// What `node --test` found, as the suites of this project tell it: TAP lines, and the sum at the end.
// A case that leaves something behind must not do so even once: its failure is final.
import { inspect } from "node:util";

function explained(error) {
	const text = inspect(error?.cause ?? error, { depth: 4 });
	return text.split("\n").slice(0, 40).map((line) => `#   ${line}\n`).join("");
}

export default async function* report(source) {
	const counts = { passed: 0, failed: 0, skipped: 0 };
	for await (const { type, data } of source) {
		if (type === "test:stdout" || type === "test:stderr") yield data.message.replace(/^(?=.)/gm, "# ");
		if (type !== "test:pass" && type !== "test:fail") continue;
		// A file that went well is no case; one that broke outside of its cases is a failure without a name.
		const isFile = data.name.endsWith(".mjs");
		if (type === "test:pass" && (isFile || data.details?.type === "suite")) continue;
		const seconds = ((data.details?.duration_ms ?? 0) / 1000).toFixed(1);
		const number = counts.passed + counts.failed + counts.skipped + 1;
		if (type === "test:fail") {
			counts.failed++;
			const final = data.name.startsWith("left.") ? " # FINAL left behind" : "";
			yield `not ok ${number} - ${data.name} (${seconds} s)${final}\n${explained(data.details?.error)}`;
		} else if (data.skip !== undefined && data.skip !== false) {
			// Cases that a name pattern leaves out are reported as skipped, too.
			if (/match pattern|name pattern/.test(String(data.skip))) continue;
			counts.skipped++;
			yield `ok ${number} - ${data.name} # SKIP ${data.skip}\n`;
		} else {
			counts.passed++;
			yield `ok ${number} - ${data.name} (${seconds} s)\n`;
		}
	}
	yield `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`;
}
