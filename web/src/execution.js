// SPDX-License-Identifier: Apache-2.0
// An execution as it comes: events in, one value to show out.  It lives outside of the views, so that looking at the
// history does not end a run.
import { cancelExecution, executionPath, followEvents, streamFrom } from "./api.js";
import { createStore } from "./store.js";
import { shownText } from "./format.js";

export const SHOWN_OUTPUT = 512 * 1024; // characters of output in the page; the result has all of it
const SHOWN_SAMPLES = 1200;
const SHOWN_NOTICES = 50;
const FRAME_MS = 60; // how often a fast program's output is drawn

const EMPTY = {
	phase: "idle", // idle, waiting (queued or being built), running, over
	id: "",
	output: [],
	dropped: 0,
	samples: [],
	notices: [],
	findings: [],
	position: null,
	result: null,
	verdict: "",
	error: null,
	cancelling: false,
};

// Output is a row of { stream, text } pieces; neighbours of one stream are one piece.
function appendOutput(state, stream, text) {
	if (text === "") return;
	const last = state.output[state.output.length - 1];
	if (last && last.stream === stream) last.text += text;
	else state.output.push({ stream, text });
	state.length += text.length;
	while (state.length > SHOWN_OUTPUT) {
		const first = state.output[0];
		const much = Math.min(state.length - SHOWN_OUTPUT, first.text.length);
		first.text = first.text.slice(much);
		state.length -= much;
		state.dropped += much;
		if (first.text === "") state.output.shift();
	}
}

function thinned(samples) {
	return samples.length < SHOWN_SAMPLES ? samples : samples.filter((_, i) => i % 2 === 0);
}

const HANDLERS = {
	queued(state, data) {
		state.phase = "waiting";
		state.id = data.id || state.id;
		state.position = data.position ?? state.position;
	},
	started(state, data) {
		state.phase = "running";
		state.id = data.id || state.id;
		state.position = null;
	},
	stdout: (state, data) => appendOutput(state, "stdout", shownText(data.data, data.encoding)),
	stderr: (state, data) => appendOutput(state, "stderr", shownText(data.data, data.encoding)),
	sample(state, data) {
		state.samples = [...thinned(state.samples), data];
	},
	finding(state, data) {
		state.findings.push(data);
	},
	notice(state, data) {
		if (state.notices.length < SHOWN_NOTICES) state.notices.push(data.text);
	},
	verdict(state, data) {
		state.phase = "over";
		state.result = data.result || null;
		state.verdict = data.verdict || (data.result && data.result.verdict) || "";
		state.id = data.id || (data.result && data.result.id) || state.id;
	},
};

// The execution of one page: the one of the editor, or one that is looked at by its id.
export function createExecution() {
	const store = createStore({ ...EMPTY });
	let state = null;
	let stop = null;
	let timer = 0;

	function publish() {
		clearTimeout(timer);
		timer = 0;
		store.set({ ...state, output: state.output.map((piece) => ({ ...piece })) });
	}
	function onEvent(name, data) {
		const handler = HANDLERS[name];
		if (!handler) return;
		handler(state, data);
		if (name === "verdict" || name === "started" || name === "queued") publish();
		else if (!timer) timer = setTimeout(publish, FRAME_MS);
	}
	async function read(stream) {
		stop?.abort();
		const mine = new AbortController();
		stop = mine;
		state = { ...EMPTY, phase: "waiting", output: [], findings: [], notices: [], length: 0 };
		const own = state;
		publish();
		try {
			await stream((name, data) => stop === mine && onEvent(name, data), mine.signal);
			if (own.phase !== "over")
				own.error = new Error("the server ended the stream before the verdict; is it still running?");
		} catch (error) {
			if (error.name !== "AbortError") own.error = error;
			else if (own.phase !== "over") own.verdict = "cancelled";
		}
		if (stop !== mine) return;
		own.phase = "over";
		publish();
	}
	return {
		store,
		run: (job) => read((onEach, signal) => streamFrom("/v1/executions", job, onEach, signal)),
		follow: (id, path = executionPath(id)) => read((onEach, signal) => followEvents(`${path}/events`, onEach, signal)),
		leave() {
			stop?.abort();
			stop = null;
			clearTimeout(timer);
		},
		// Until the server has told the id there is nothing to name: then hanging up is the way to cancel.
		async cancel() {
			if (!state || state.phase === "over") return;
			state.cancelling = true;
			publish();
			if (!state.id) return stop.abort();
			try {
				await cancelExecution(state.id);
			} catch (error) {
				if (error.status !== 404) stop.abort();
			}
		},
	};
}

// The output of a result or of what the history kept of one, which does not tell what came first: { pieces, dropped }.
export function outputOf(result) {
	const state = { output: [], length: 0, dropped: 0 };
	for (const stream of ["stdout", "stderr"]) {
		const value = result[stream];
		if (typeof value === "string") appendOutput(state, stream, shownText(value, result[`${stream}_encoding`]));
		else if (value && value.text) appendOutput(state, stream, shownText(value.text, value.encoding));
	}
	return { pieces: state.output, dropped: state.dropped };
}
