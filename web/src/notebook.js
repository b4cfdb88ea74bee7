// SPDX-License-Identifier: Apache-2.0
// The cells of a session, in this page: what is written in them, what they run, what came of it.
//
// A notebook lives outside of the views, by the id of its session, so that looking elsewhere ends no run, and it is kept
// for this tab: a reload has cells and output again.  A run that is under way then is interrupted, for it belongs to the
// page.  In one context runs wait for each other here, in the order in which they were asked for; those that wait are
// dropped when one before them does not end well, as they may build on it.
import { post, sessionPath, streamFrom } from "./api.js";
import { createStore } from "./store.js";
import { shownText } from "./format.js";

const KEY = "brig.notebook.";
const KEPT_MAX = 1024 * 1024; // characters of a notebook that are kept for a reload: then without output, then not at all
const SHOWN_TEXT = 512 * 1024; // characters of output of a cell in the page; its record has all of it
const SHOWN_ITEMS = 1000;
const KEEP_AFTER_MS = 300;
const FRAME_MS = 60; // how often a fast program's output is drawn
export const CELLS_MAX = 200;

// phase: idle, waiting, running, over.  items: pieces of output and results in their order.
const UNTOLD = {
	phase: "idle",
	items: [],
	cut: false,
	count: null,
	verdict: "",
	reason: "",
	findings: [],
	trouble: "",
};

let lastKey = 0;
const newCell = (context) => ({ key: `c${++lastKey}`, code: "", edition: 0, context, run: UNTOLD });

// ---- kept for the tab ----

function readKept(id) {
	try {
		const { cells, commands, ports } = JSON.parse(sessionStorage.getItem(KEY + id));
		return {
			cells: cells.map((cell) => ({ ...newCell(cell.context), code: cell.code, run: { ...UNTOLD, ...cell.run } })),
			commands: commands || {},
			ports: ports || [],
		};
	} catch {
		return null;
	}
}

// What was under way is over when it is read again: its client was this page.
const runKept = (run) =>
	run.phase === "idle" || run.phase === "over"
		? run
		: { ...run, phase: "over", verdict: "cancelled", reason: "The page was left while this was under way." };

function write(id, state) {
	const cells = state.cells.map(({ code, context, run }) => ({ code, context, run: runKept(run) }));
	const rest = { commands: state.commands, ports: state.ports };
	const whole = JSON.stringify({ cells, ...rest });
	const bare = () => JSON.stringify({ cells: cells.map((cell) => ({ ...cell, run: undefined })), ...rest });
	for (const text of [whole, bare()]) {
		if (text.length > KEPT_MAX) continue;
		try {
			return sessionStorage.setItem(KEY + id, text);
		} catch {
			// No room: less of it may find some.
		}
	}
	return undefined;
}

// ---- output ----

function addText(run, stream, text) {
	const room = SHOWN_TEXT - run.length;
	const much = text.slice(0, Math.max(0, room));
	run.cut ||= much.length < text.length;
	run.length += much.length;
	const last = run.items[run.items.length - 1];
	if (much === "") return;
	if (last && last.stream === stream) last.text += much;
	else if (run.items.length < SHOWN_ITEMS) run.items.push({ stream, text: much });
	else run.cut = true;
}

function addForms(run, forms) {
	if (run.items.length < SHOWN_ITEMS) run.items.push({ forms });
	else run.cut = true;
}

// Of many long results the events leave some out: then the record's follow the text.
function addMissing(run, result) {
	const all = [...(result.results || []), ...(result.error ? [result.error] : [])];
	if (run.items.filter((item) => item.forms).length >= all.length) return;
	run.items = run.items.filter((item) => !item.forms);
	for (const forms of all) addForms(run, forms);
}

const HANDLERS = {
	stdout: (run, data) => addText(run, "stdout", shownText(data.data, data.encoding)),
	stderr: (run, data) => addText(run, "stderr", shownText(data.data, data.encoding)),
	result: (run, data) => addForms(run, data.result),
	verdict(run, { verdict, result }) {
		Object.assign(run, { phase: "over", verdict: verdict || (result && result.verdict) });
		if (!result) return;
		const { reason, findings = [], execution_count, id, hint, results_truncated, warnings = [] } = result;
		Object.assign(run, { reason, findings, count: execution_count, id, hint, warnings });
		run.cut ||= results_truncated || result.stdout_truncated || result.stderr_truncated;
		addMissing(run, result);
	},
};

// ---- notebooks ----

function createNotebook(id) {
	const path = sessionPath(id);
	const store = createStore(readKept(id) || { cells: [newCell(0)], commands: {}, ports: [] });
	const lanes = new Map(); // by context: the cells that run and wait in it
	const making = new Map(); // by language: a context that is being made
	const fresh = new Map(); // by number: the language of contexts that the session's document may not have yet
	let timer = 0;
	let isForgotten = false;

	store.watch(() => {
		clearTimeout(timer);
		if (!isForgotten) timer = setTimeout(() => write(id, store.get()), KEEP_AFTER_MS);
	});
	addEventListener("pagehide", () => isForgotten || write(id, store.get()));

	const find = (key) => store.get().cells.find((cell) => cell.key === key);
	const change = (key, changes) =>
		store.set({ cells: store.get().cells.map((cell) => (cell.key === key ? { ...cell, ...changes } : cell)) });
	const setRun = (key, run) => change(key, { run: { ...run, items: run.items.map((item) => ({ ...item })) } });

	// Cells that have no context yet go into this one.
	function adopt(context) {
		const { cells } = store.get();
		if (cells.some((cell) => !cell.context))
			store.set({ cells: cells.map((cell) => (cell.context ? cell : { ...cell, context })) });
	}
	async function makeContext(language) {
		if (!making.has(language))
			making.set(
				language,
				post(`${path}/contexts`, { language }).finally(() => making.delete(language)),
			);
		const { id: number } = await making.get(language);
		fresh.set(number, language);
		return number;
	}
	function contextsOf(row) {
		const told = row.contexts || [];
		for (const context of told) fresh.delete(context.id);
		return [...told, ...[...fresh].map(([number, language]) => ({ id: number, language }))];
	}

	async function execute(key) {
		const run = { ...UNTOLD, phase: "running", items: [], length: 0 };
		let frame = 0;
		const publish = () => {
			clearTimeout(frame);
			frame = 0;
			if (find(key)) setRun(key, run);
		};
		const onEvent = (name, data) => {
			HANDLERS[name]?.(run, data);
			if (!frame) frame = setTimeout(publish, FRAME_MS);
		};
		publish();
		try {
			const { code, context } = find(key);
			await streamFrom(`${path}/runs`, { code, context }, onEvent);
			if (run.phase !== "over") run.trouble = "The server ended the stream before the verdict; is it still running?";
		} catch (error) {
			run.trouble = error.message;
		}
		run.phase = "over";
		publish();
		return run.verdict === "ok";
	}

	async function workOff(context, lane) {
		while (lane.length > 0) {
			const isWell = !find(lane[0]) || (await execute(lane[0]));
			lane.shift();
			if (!isWell) dropFrom(lane, 0);
		}
		lanes.delete(context);
	}
	function dropFrom(lane, first) {
		for (const key of lane.splice(first)) if (find(key)) change(key, { run: UNTOLD });
	}

	// language: of the context to make if the cell has none.
	async function run(key, language) {
		const cell = find(key);
		if (!cell || cell.run.phase === "waiting" || cell.run.phase === "running") return;
		setRun(key, { ...UNTOLD, phase: "waiting" });
		let { context } = cell;
		try {
			if (!context) adopt((context = await makeContext(language)));
		} catch (error) {
			return setRun(key, { ...UNTOLD, phase: "over", trouble: error.message });
		}
		const lane = lanes.get(context);
		if (lane) return lane.push(key);
		lanes.set(context, [key]);
		await workOff(context, lanes.get(context));
	}

	return {
		store,
		makeContext,
		adopt,
		contextsOf,
		run,
		change,
		setCode: (key, code) => change(key, { code }),
		add(after, context) {
			const { cells } = store.get();
			if (cells.length >= CELLS_MAX) return "";
			const cell = newCell(context);
			const at = after ? cells.findIndex((one) => one.key === after) + 1 : cells.length;
			store.set({ cells: [...cells.slice(0, at), cell, ...cells.slice(at)] });
			return cell.key;
		},
		remove(key) {
			const cells = store.get().cells.filter((cell) => cell.key !== key);
			store.set({ cells: cells.length > 0 ? cells : [newCell(0)] });
		},
		move(key, by) {
			const cells = [...store.get().cells];
			const from = cells.findIndex((cell) => cell.key === key);
			const to = from + by;
			if (to < 0 || to >= cells.length) return;
			[cells[from], cells[to]] = [cells[to], cells[from]];
			store.set({ cells });
		},
		clear: () => store.set({ cells: store.get().cells.map((cell) => ({ ...cell, run: UNTOLD })) }),
		// Those that wait in the context do not begin any more.
		async interrupt(context) {
			const lane = lanes.get(context);
			if (lane) dropFrom(lane, 1);
			await post(`${path}/contexts/${context}/interrupt`);
		},
		forget() {
			isForgotten = true;
			clearTimeout(timer);
			notebooks.delete(id);
			try {
				sessionStorage.removeItem(KEY + id);
			} catch {
				// Without storage nothing was kept.
			}
		},
	};
}

const notebooks = new Map();

export function notebookOf(id) {
	if (!notebooks.has(id)) notebooks.set(id, createNotebook(id));
	return notebooks.get(id);
}

// Of what is kept for this tab, only notebooks of these sessions stay, and those that the page has open.
export function forgetOthers(ids) {
	try {
		for (const key of Object.keys(sessionStorage)) {
			const id = key.startsWith(KEY) ? key.slice(KEY.length) : "";
			if (id && !ids.includes(id) && !notebooks.has(id)) sessionStorage.removeItem(key);
		}
	} catch {
		// Without storage nothing was kept.
	}
}
