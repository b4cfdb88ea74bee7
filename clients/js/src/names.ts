// SPDX-License-Identifier: Apache-2.0
/**
 * Names of files are bytes; here they are strings.  Bytes that are not UTF-8 become lone surrogates U+DC80 to U+DCFF, which no
 * valid UTF-8 decodes to, so that every name has exactly one string and finds its way back (Python calls it surrogateescape).
 */
import { UsageError } from "./errors.js";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();
const LONE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;

/** How many bytes the character that begins with this byte should have. */
function lengthOf(lead: number): number {
	if (lead < 0x80) return 1;
	if (lead >= 0xc2 && lead < 0xe0) return 2;
	if (lead >= 0xe0 && lead < 0xf0) return 3;
	return lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
}

/** The text of these bytes, or null if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
	try {
		return strict.decode(bytes);
	} catch {
		return null;
	}
}

export function decodeName(bytes: Uint8Array): string {
	const whole = textOf(bytes);
	if (whole !== null) return whole;
	let name = "";
	for (let at = 0; at < bytes.length; ) {
		const lead = bytes[at] as number;
		const length = lengthOf(lead);
		const piece = length > 0 && at + length <= bytes.length ? textOf(bytes.subarray(at, at + length)) : null;
		name += piece ?? String.fromCharCode(0xdc00 + lead);
		at += piece === null ? 1 : length;
	}
	return name;
}

export function encodeName(name: string): Uint8Array {
	if (!LONE.test(name)) return encoder.encode(name);
	const bytes: number[] = [];
	for (const character of name) {
		const code = character.codePointAt(0) as number;
		if (code >= 0xdc80 && code <= 0xdcff) bytes.push(code - 0xdc00);
		else if (code >= 0xd800 && code <= 0xdfff) throw new UsageError(`${JSON.stringify(name)} is not a name: half of a surrogate pair`);
		else bytes.push(...encoder.encode(character));
	}
	return Uint8Array.from(bytes);
}

/** "a/b" of "./a//b"; refused is what leaves the workspace or is not the name of a file. */
export function cleanPath(path: string): string {
	if (path.includes("\0")) throw new UsageError(`${JSON.stringify(path)} has a NUL byte in it: no file can be called so`);
	if (path.startsWith("/workspace/")) path = path.slice("/workspace/".length);
	if (path.startsWith("/")) throw new UsageError(`${path} is absolute: name files relative to the workspace`);
	const parts = path.split("/").filter((part) => part !== "" && part !== ".");
	if (parts.includes("..")) throw new UsageError(`${path} leads out of the workspace: leave out '..'`);
	if (parts.length === 0) throw new UsageError(`${JSON.stringify(path)} names no file`);
	return parts.join("/");
}
