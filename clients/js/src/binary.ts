// SPDX-License-Identifier: Apache-2.0
/** Which brig is started: the option, then $BRIG_BIN, then PATH.  This package has none of its own. */
import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { BinaryNotFound } from "./errors.js";

const REMEDY = "install brig, or name it with the option `binary` or the variable BRIG_BIN";

function isProgram(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return statSync(path).isFile();
	} catch {
		return false;
	}
}

export function findBinary(option?: string): string {
	const source = option !== undefined ? "the option binary" : "$BRIG_BIN";
	const wanted = option ?? (process.env["BRIG_BIN"] || "brig");
	if (wanted.includes("/")) {
		const path = resolve(wanted);
		if (isProgram(path)) return path;
		throw new BinaryNotFound(`${source} names ${path}, which is not a program`, REMEDY);
	}
	for (const folder of (process.env["PATH"] ?? "").split(delimiter)) {
		// An empty or relative folder of PATH would start whatever lies in the current one.
		if (folder.startsWith("/") && isProgram(join(folder, wanted))) return join(folder, wanted);
	}
	throw new BinaryNotFound(`no program '${wanted}' is in PATH`, REMEDY);
}
