// SPDX-License-Identifier: Apache-2.0
// Sessions: cells that stay.  Those that there are, and a form that begins one.
import { useEffect, useState } from "preact/hooks";
import { get, post, remove, session, sessionPath } from "../api.js";
import { ago, dateTime, untilThen } from "../format.js";
import { CONTEXT_LANGUAGES } from "../languages.js";
import { forgetOthers, notebookOf } from "../notebook.js";
import { go } from "../route.js";
import { ActionButton, Badge, Failure, Page, Select, Table, TextField, useLoaded } from "../parts/basics.jsx";
import { environmentOptions, trustOptions } from "../parts/choices.js";
import { useStore } from "../store.js";

const EVERY_MS = 2000;
const EMPTY = { language: "python", environment: "", trust: "", minutes: "" };
export const isLive = (row) => row.state !== "ended" && row.state !== "ending";

export function timeLeft(row) {
	return isLive(row) && row.ends ? untilThen(row.ends) : "";
}

// End, pause, resume: of a row of the list, or of the session that is looked at.
export function SessionActions({ row, onDone }) {
	const path = sessionPath(row.id);
	const isPaused = row.state === "paused";
	if (!isLive(row)) return null;
	return (
		<>
			<ActionButton
				label={`${isPaused ? "Resume" : "Pause"} ${row.id}`}
				disabled={row.state === "starting"}
				act={() => post(`${path}/${isPaused ? "resume" : "pause"}`)}
				onDone={onDone}
			>
				{isPaused ? "Resume" : "Pause"}
			</ActionButton>
			<ActionButton label={`End ${row.id}`} sure="End it?" act={() => remove(path)} onDone={onDone}>
				End
			</ActionButton>
		</>
	);
}

const COLUMNS = [
	{ title: "State", cell: (row) => <Badge word={row.state} /> },
	{
		title: "Id",
		cell: (row) => (
			<a href={`#/sessions/${row.id}`}>
				<code>{row.id}</code>
			</a>
		),
	},
	{ title: "Owner", cell: (row) => (row.door ? `${row.token}, through ${row.door}` : row.token) },
	{ title: "Trust", cell: (row) => row.trust },
	{ title: "Contexts", cell: (row) => (row.contexts || []).map((one) => one.language).join(", ") },
	{ title: "Started", cell: (row) => <time title={dateTime(row.created)}>{ago(row.created)}</time> },
	{ title: "Time left", class: "term", cell: timeLeft },
	{ title: "Reason", class: "wide", cell: (row) => row.reason || "" },
];

async function begin({ language, environment, trust, minutes }) {
	const wanted = {};
	if (environment) wanted.environment = environment;
	if (trust) wanted.trust = trust;
	if (minutes.trim()) wanted.timeout = Number(minutes) * 60;
	if (Number.isNaN(wanted.timeout)) throw new Error(`'${minutes}' is no number of minutes.`);
	const { id } = await post("/v1/sessions", wanted);
	const book = notebookOf(id);
	const [cell] = book.store.get().cells;
	try {
		book.adopt(await book.makeContext(language));
	} catch (error) {
		// The session is there and is of use without: who began it must know of it all the same.
		book.change(cell.key, { run: { ...cell.run, phase: "over", trouble: error.message } });
	}
	return id;
}

function Form() {
	const { who } = useStore(session);
	const environments = useLoaded((signal) => get("/v1/environments", signal));
	const [values, setValues] = useState(EMPTY);
	const [state, setState] = useState({ busy: false, error: null });
	const set = (name) => (value) => setValues((before) => ({ ...before, [name]: value }));
	async function onSubmit(event) {
		event.preventDefault();
		setState({ busy: true, error: null });
		try {
			go(`#/sessions/${await begin(values)}`);
		} catch (error) {
			setState({ busy: false, error });
		}
	}
	return (
		<form onSubmit={onSubmit} aria-label="Start a session" class="panel">
			<h2>Start a session</h2>
			<div class="fields">
				<Select
					label="Language"
					value={values.language}
					onChange={set("language")}
					options={CONTEXT_LANGUAGES.map((name) => ({ value: name, label: name }))}
				/>
				<Select
					label="Environment"
					value={values.environment}
					onChange={set("environment")}
					options={environmentOptions(environments.value)}
				/>
				<Select label="Trust" value={values.trust} onChange={set("trust")} options={trustOptions(who)} />
				<TextField
					label="Minutes"
					value={values.minutes}
					placeholder="as the policy says"
					onChange={set("minutes")}
					hint="How long it lasts at most."
				/>
			</div>
			<div class="actions">
				<button type="submit" class="primary" disabled={state.busy}>
					{state.busy ? "Starting" : "Start"}
				</button>
			</div>
			<Failure error={state.error} />
		</form>
	);
}

export function SessionsView() {
	const { who } = useStore(session);
	const loaded = useLoaded((signal) => get("/v1/sessions", signal), [], EVERY_MS);
	useEffect(() => {
		if (loaded.value) forgetOthers(loaded.value.sessions.map((row) => row.id));
	}, [loaded.value]);
	const action = {
		title: "Action",
		cell: (row) =>
			isLive(row) && (
				<div class="actions">
					<SessionActions row={row} onDone={loaded.reload} />
				</div>
			),
	};
	return (
		<Page title="Sessions">
			<p class="muted">
				Cells that stay: each run finds what the one before it left. Interpreters, files and processes end with the session.
			</p>
			<Failure error={loaded.error} retry={loaded.reload} />
			{who && who.languages ? (
				<p class="remark">
					Your token may use {who.languages.join(", ")} only. In a session any command can be run, so it may have none.
				</p>
			) : (
				<Form />
			)}
			{loaded.value && (
				<Table
					caption="Sessions"
					rows={loaded.value.sessions}
					rowKey={(row) => row.id}
					empty="There are no sessions."
					columns={[...COLUMNS, action]}
				/>
			)}
		</Page>
	);
}
