// SPDX-License-Identifier: Apache-2.0
/**
 * Archives of regular files and folders: ustar, with a pax header for names that do not fit.  What is read may also have the long
 * names of GNU tar.  Links, devices and everything else is an error, and so is a name that leads out of the folder: contents and names
 * were chosen by the program that left them.
 */
import { TransportError, UsageError } from "./errors.js";
import { cleanPath, decodeName, encodeName } from "./names.js";

const BLOCK = 512;
const NAME_LENGTH = 100;
const MAX_SIZE = 0o77777777777;

export interface TarEntry {
	/** Relative, without '..'. */
	readonly path: string;
	/** null: a folder. */
	readonly data: Uint8Array | null;
	/** Permissions. */
	readonly mode: number;
}

function ascii(text: string): Uint8Array {
	return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function octal(value: number, width: number): Uint8Array {
	return ascii(value.toString(8).padStart(width - 1, "0"));
}

function checksum(header: Uint8Array): number {
	let sum = 0;
	for (let at = 0; at < BLOCK; at++) sum += at >= 148 && at < 156 ? 0x20 : (header[at] as number);
	return sum;
}

function headerOf(name: Uint8Array, type: string, size: number, mode: number): Uint8Array {
	const header = new Uint8Array(BLOCK);
	header.set(name.subarray(0, NAME_LENGTH), 0);
	header.set(octal(mode & 0o777, 8), 100);
	header.set(octal(0, 8), 108);
	header.set(octal(0, 8), 116);
	header.set(octal(size, 12), 124);
	header.set(octal(0, 12), 136);
	header.set(ascii(type), 156);
	header.set(ascii("ustar\u000000"), 257);
	header.set(octal(checksum(header), 7), 148);
	header[155] = 0x20;
	return header;
}

function padded(data: Uint8Array): Uint8Array[] {
	const rest = data.length % BLOCK;
	return rest === 0 ? [data] : [data, new Uint8Array(BLOCK - rest)];
}

/** "LENGTH key=value\n", where LENGTH counts its own digits. */
function paxRecord(key: string, value: Uint8Array): Uint8Array {
	const body = key.length + value.length + 3;
	let length = body + String(body).length;
	if (String(length).length > String(body).length) length++;
	return concat([ascii(`${length} ${key}=`), value, ascii("\n")]);
}

export function concat(pieces: readonly Uint8Array[]): Uint8Array {
	const all = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
	let at = 0;
	for (const piece of pieces) {
		all.set(piece, at);
		at += piece.length;
	}
	return all;
}

function packEntry(entry: TarEntry): Uint8Array[] {
	const name = encodeName(entry.data === null ? `${entry.path}/` : entry.path);
	const data = entry.data ?? new Uint8Array();
	if (data.length > MAX_SIZE) throw new UsageError(`${entry.path} is too large: more than 8 GB do not fit`);
	const pieces: Uint8Array[] = [];
	if (name.length > NAME_LENGTH) {
		const record = paxRecord("path", name);
		pieces.push(headerOf(ascii("pax"), "x", record.length, 0o644), ...padded(record));
	}
	pieces.push(headerOf(name, entry.data === null ? "5" : "0", data.length, entry.mode), ...padded(data));
	return pieces;
}

export function packTar(entries: Iterable<TarEntry>): Uint8Array {
	const pieces: Uint8Array[] = [];
	for (const entry of entries) pieces.push(...packEntry(entry));
	pieces.push(new Uint8Array(2 * BLOCK));
	return concat(pieces);
}

function broken(why: string): TransportError {
	return new TransportError(`the archive of the program's files cannot be read: ${why}`);
}

function field(header: Uint8Array, from: number, length: number): Uint8Array {
	const bytes = header.subarray(from, from + length);
	const end = bytes.indexOf(0);
	return end < 0 ? bytes : bytes.subarray(0, end);
}

function numberAt(header: Uint8Array, from: number, length: number): number {
	const lead = header[from] as number;
	if (lead === 0x80) {
		// GNU's form for what has no room in octal digits.
		return header.subarray(from + 1, from + length).reduce((value, byte) => value * 256 + byte, 0);
	}
	const digits = decodeName(field(header, from, length)).trim();
	if (!/^[0-7]*$/.test(digits)) throw broken("a number is not octal");
	return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function paxRecords(data: Uint8Array): Map<string, Uint8Array> {
	const records = new Map<string, Uint8Array>();
	for (let at = 0; at < data.length; ) {
		const space = data.indexOf(0x20, at);
		const length = space < 0 ? NaN : Number(decodeName(data.subarray(at, space)));
		if (!Number.isInteger(length) || length <= space - at || at + length > data.length) throw broken("a pax record has a wrong length");
		const equals = data.indexOf(0x3d, space);
		if (equals < 0 || equals >= at + length) throw broken("a pax record has no value");
		records.set(decodeName(data.subarray(space + 1, equals)), data.subarray(equals + 1, at + length - 1));
		at += length;
	}
	return records;
}

function ustarName(header: Uint8Array): Uint8Array {
	const name = field(header, 0, NAME_LENGTH);
	// The prefix is POSIX; GNU's own magic has other things in its place.
	const posix = decodeName(header.subarray(257, 263)) === "ustar\0";
	const prefix = posix ? field(header, 345, 155) : new Uint8Array();
	return prefix.length > 0 ? concat([prefix, ascii("/"), name]) : name;
}

/** What earlier headers say about the next entry. */
interface Said {
	name?: Uint8Array | undefined;
	size?: number | undefined;
}

function noteHeader(type: string, data: Uint8Array, said: Said): boolean {
	if (type === "g" || type === "K") return true;
	if (type === "L") {
		said.name = field(data, 0, data.length);
		return true;
	}
	if (type !== "x") return false;
	const records = paxRecords(data);
	said.name = records.get("path") ?? said.name;
	const size = records.get("size");
	if (size) said.size = Number(decodeName(size));
	return true;
}

function entryOf(type: string, name: Uint8Array, mode: number, data: Uint8Array): TarEntry | null {
	const path = decodeName(name);
	if (type === "5" && /^[./]*$/.test(path) && !path.includes("..")) return null; // the folder itself
	if (type !== "0" && type !== "\0" && type !== "5") throw broken(`${JSON.stringify(path)} is neither a file nor a folder`);
	try {
		return { path: cleanPath(path), data: type === "5" ? null : data, mode: mode & 0o777 };
	} catch (error) {
		throw broken((error as Error).message);
	}
}

export function unpackTar(archive: Uint8Array): TarEntry[] {
	const entries: TarEntry[] = [];
	let said: Said = {};
	for (let at = 0; ; ) {
		const header = archive.subarray(at, at + BLOCK);
		if (header.length < BLOCK) throw broken("it ends early");
		if (header.every((byte) => byte === 0)) return entries;
		if (numberAt(header, 148, 8) !== checksum(header)) throw broken("a checksum is wrong");
		const type = String.fromCharCode(header[156] as number);
		const isMeta = "xgLK".includes(type);
		const size = (isMeta ? undefined : said.size) ?? numberAt(header, 124, 12);
		const data = archive.subarray(at + BLOCK, at + BLOCK + size);
		if (!Number.isSafeInteger(size) || data.length !== size) throw broken("it ends early");
		if (!noteHeader(type, data, said)) {
			const entry = entryOf(type, said.name ?? ustarName(header), numberAt(header, 100, 8), data);
			if (entry) entries.push(entry);
			said = {};
		}
		at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
	}
}
