// SPDX-License-Identifier: Apache-2.0
// Numbers, times and bytes for people; base64 and paths for the API.

const UNLIMITED = 2 ** 62; // counters have 63 bits; what is near that is no limit

export function bytes(n) {
	if (n === null || n === undefined) return "";
	if (n >= UNLIMITED) return "unlimited";
	if (n < 1024) return `${n} B`;
	const units = ["KiB", "MiB", "GiB", "TiB"];
	let unit = -1;
	do {
		n /= 1024;
		unit++;
	} while (n >= 1024 && unit < units.length - 1);
	return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[unit]}`;
}

export function milliseconds(n) {
	if (n === null || n === undefined) return "";
	if (n >= UNLIMITED) return "unlimited";
	if (n < 10) return `${Number(n.toFixed(2))} ms`;
	if (n < 1000) return `${Math.round(n)} ms`;
	if (n < 60000) return `${(n / 1000).toFixed(n < 10000 ? 2 : 1)} s`;
	const minutes = Math.floor(n / 60000);
	return minutes < 60
		? `${minutes} min ${Math.round((n % 60000) / 1000)} s`
		: `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function dateTime(text) {
	const at = new Date(text);
	if (!text || Number.isNaN(at.getTime())) return "";
	return at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function ago(text, now = Date.now()) {
	const at = new Date(text).getTime();
	if (!text || Number.isNaN(at)) return "";
	const seconds = Math.max(0, Math.round((now - at) / 1000));
	if (seconds < 60) return `${seconds} s ago`;
	if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
	if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
	return `${Math.floor(seconds / 86400)} d ago`;
}

// How long it is until then: "4 min 10 s".
export function untilThen(text, now = Date.now()) {
	const at = new Date(text).getTime();
	if (!text || Number.isNaN(at)) return "";
	return milliseconds(Math.max(0, Math.round((at - now) / 1000)) * 1000).replace(/^(\d+)\.\d+ s$/, "$1 s");
}

export const plural = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
export const words = (name) => String(name).replaceAll("_", " ");

// A name of somebody else's on one line: nothing in it moves, hides or turns what is beside it, and there is an end to it.
export function oneLine(name, most = 64) {
	const text = String(name).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "\uFFFD");
	return text.length > most ? `${text.slice(0, most)}\u2026` : text;
}

export function fromBase64(text) {
	const raw = atob(text);
	const result = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++) result[i] = raw.charCodeAt(i);
	return result;
}

export function toBase64(data) {
	let raw = "";
	for (let at = 0; at < data.length; at += 0x8000) raw += String.fromCharCode(...data.subarray(at, at + 0x8000));
	return btoa(raw);
}

// The text of bytes, or null if they are not UTF-8 or hold NUL.
export function textOf(data) {
	try {
		const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
		return text.includes("\0") ? null : text;
	} catch {
		return null;
	}
}

// Text, or bytes in base64: what the members of a job may be.
export function jobBytes(data) {
	const text = textOf(data);
	return text === null ? { base64: toBase64(data) } : text;
}

// What a program wrote, as text to look at: bytes that are not UTF-8 become U+FFFD.
export function shownText(text, encoding) {
	return encoding === "base64" ? new TextDecoder().decode(fromBase64(text)) : text;
}

export function pathText(entry) {
	return shownText(entry.path, entry.path_encoding);
}

// The path in an address; bytes that are not UTF-8 go as they are.
export function pathInAddress(entry) {
	const data = entry.path_encoding === "base64" ? fromBase64(entry.path) : new TextEncoder().encode(entry.path);
	let result = "";
	for (const byte of data) {
		const letter = String.fromCharCode(byte);
		result += /[A-Za-z0-9_.~/-]/.test(letter) ? letter : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
	}
	return result;
}
