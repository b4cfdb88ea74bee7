// SPDX-License-Identifier: Apache-2.0
// The API of `brig serve`, as the console uses it.  The token is kept for this tab only.
import { createStore } from "./store.js";
import { readEvents } from "./sse.js";

const TOKEN_KEY = "brig.token";

// asking: the server wants a token; version: counts tokens, so that views load anew with the next one.
export const session = createStore({ asking: false, refused: "", version: 0, who: null });

export class ApiError extends Error {
	constructor(status, code, message, retryAfter) {
		super(message);
		this.status = status;
		this.code = code;
		this.retryAfter = retryAfter;
	}
}

function storedToken() {
	try {
		return sessionStorage.getItem(TOKEN_KEY) || "";
	} catch {
		return "";
	}
}

let token = storedToken();

export function setToken(value) {
	token = value.trim();
	try {
		if (token) sessionStorage.setItem(TOKEN_KEY, token);
		else sessionStorage.removeItem(TOKEN_KEY);
	} catch {
		// Without storage the token lasts until the page is left.
	}
	session.set({ asking: false, refused: "", version: session.get().version + 1, who: null });
}

export const hasToken = () => token !== "";

// A token in the address (#token=...) must not stay there: addresses are shared and kept by browsers.
export function takeTokenFromAddress() {
	const found = /^#token=([^&]*)$/.exec(location.hash);
	if (!found) return;
	history.replaceState(null, "", location.pathname + location.search + "#/run");
	setToken(found[1]);
}

async function errorOf(response) {
	let code = "";
	let message = `the server answered ${response.status}`;
	try {
		const { error } = await response.json();
		code = error.code || "";
		message = error.message || message;
	} catch {
		// Not one of brig's own answers: the status is all there is.
	}
	return new ApiError(response.status, code, message, response.headers.get("Retry-After"));
}

// body: a document; data: bytes as they are.
async function request(path, { method = "GET", body, data, accept = "application/json", signal } = {}) {
	const headers = { Accept: accept };
	const sent = token;
	if (sent) headers.Authorization = `Bearer ${sent}`;
	if (body !== undefined) headers["Content-Type"] = "application/json";
	else if (data !== undefined) headers["Content-Type"] = "application/octet-stream";
	let response;
	try {
		response = await fetch(path, {
			method,
			headers,
			signal,
			cache: "no-store",
			credentials: "omit",
			redirect: "error",
			body: body === undefined ? data : JSON.stringify(body),
		});
	} catch (error) {
		if (error.name === "AbortError") throw error;
		throw new ApiError(0, "unreachable", "the server cannot be reached; is 'brig serve' still running?");
	}
	if (response.ok) return response;
	const error = await errorOf(response);
	if (response.status === 401 && sent === token) session.set({ asking: true, refused: sent ? error.message : "" });
	throw error;
}

export async function get(path, signal) {
	return (await request(path, { signal })).json();
}

export async function post(path, body, signal) {
	return (await request(path, { method: "POST", body, signal })).json();
}

export async function remove(path) {
	return (await request(path, { method: "DELETE" })).json();
}

export async function cancelExecution(id) {
	await request(executionPath(id), { method: "DELETE" });
}

// Posts the document and reads the events that answer it.
export async function streamFrom(path, body, onEvent, signal) {
	await readEvents(await request(path, { method: "POST", body, accept: "text/event-stream", signal }), onEvent);
}

export async function followEvents(path, onEvent, signal) {
	await readEvents(await request(path, { accept: "text/event-stream", signal }), onEvent);
}

// Paths have each segment already percent-encoded (format.js).
export async function fetchBytes(path, signal) {
	const response = await request(path, { accept: "*/*", signal });
	return new Uint8Array(await response.arrayBuffer());
}

export async function putBytes(path, data) {
	return (await request(path, { method: "PUT", data })).json();
}

export const executionPath = (id) => `/v1/executions/${encodeURIComponent(id)}`;
export const sessionPath = (id) => `/v1/sessions/${encodeURIComponent(id)}`;

export function query(path, members) {
	const given = Object.entries(members).filter(([, value]) => value !== "" && value !== undefined && value !== null);
	return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}
