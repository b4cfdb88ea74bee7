// SPDX-License-Identifier: Apache-2.0
/** What the cases share.  The package under test is the one that was installed from its archive. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

/** A ceiling for what takes a moment, not a measure. */
export const PATIENCE_MS = 120_000;

/** Limits that are not the subject of a case are generous. */
export const CALM = { timeout: 120 };

/** A folder that is gone when the file's cases are over. */
export function folder() {
	const made = mkdtempSync(join(tmpdir(), "brig-js-test-"));
	after(() => rmSync(made, { recursive: true, force: true }));
	return made;
}

export async function until(condition, what) {
	for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(20)) {
		const found = await condition();
		if (found) return found;
	}
	throw new Error(`in vain waited for ${what}`);
}

/** A module of the package that it does not export. */
export function inner(name) {
	return import(new URL(`../node_modules/brig/dist/${name}.js`, import.meta.url));
}
