// SPDX-License-Identifier: Apache-2.0
// Package sets that have a name: those that there are, and, for who may, a form that makes one.
import { useState } from "preact/hooks";
import { get, post, remove, session } from "../api.js";
import { splitWords } from "../draft.js";
import { bytes, dateTime } from "../format.js";
import { Badge, Failure, Page, Select, Table, TextField, useLoaded } from "../parts/basics.jsx";
import { useStore } from "../store.js";

const EVERY_MS = 2000;
const LANGUAGES = ["python", "javascript", "go"].map((name) => ({ value: name, label: name }));
const EMPTY = { name: "", language: "python", packages: "", warm: "" };
const TONE = { ready: "good", creating: "busy", missing: "warn", unreadable: "bad" };

// As the server will see it; what it refuses in the end it says itself.
function mayMake(who, name) {
	if (!who) return false;
	const names = who.environments || [];
	if (name !== undefined && names.length > 0 && !names.includes(name)) return false;
	return who.admin || (who.makes_environments && names.length > 0);
}

function RemoveButton({ row, onDone }) {
	const [state, setState] = useState({ sure: false, busy: false, error: null });
	async function onClick() {
		if (!state.sure) return setState({ ...state, sure: true });
		setState({ sure: true, busy: true, error: null });
		try {
			await remove(`/v1/environments/${encodeURIComponent(row.name)}`);
		} catch (error) {
			setState({ sure: false, busy: false, error });
		}
		return onDone();
	}
	return (
		<>
			<button type="button" disabled={state.busy} aria-label={`Remove ${row.name}`} onClick={onClick}>
				{state.sure ? "Remove it?" : "Remove"}
			</button>
			{state.error && <span class="muted"> {state.error.message}</span>}
		</>
	);
}

function stateCell(row) {
	return (
		<>
			<Badge word={row.state} tone={TONE[row.state]} />
			{row.execution && (
				<>
					{" "}
					<a href={`#/executions/${row.execution}`}>
						<code>{row.execution}</code>
					</a>
				</>
			)}
			{row.problem && <span class="muted"> {row.problem}</span>}
		</>
	);
}

const COLUMNS = [
	{ title: "Name", cell: (row) => <code>{row.name}</code> },
	{ title: "State", cell: stateCell },
	{ title: "Kind", cell: (row) => row.ecosystem },
	{ title: "Packages", cell: (row) => (row.packages || []).join(", ") },
	{ title: "Preloaded modules", cell: (row) => (row.warm || []).join(", ") },
	{ title: "Trust", cell: (row) => row.trust },
	{ title: "Size", cell: (row) => bytes(row.bytes) },
	{ title: "Created", cell: (row) => dateTime(row.created) },
];

function Made({ made }) {
	return (
		<p role="status">
			{made && (
				<>
					{made.name} is being made by the execution{" "}
					<a href={`#/executions/${made.id}`}>
						<code>{made.id}</code>
					</a>
					, whose page says what went wrong if it is not there afterwards.
				</>
			)}
		</p>
	);
}

function Form({ onMade }) {
	const [values, setValues] = useState(EMPTY);
	const [state, setState] = useState({ busy: false, error: null, made: null });
	const set = (name) => (value) => setValues((before) => ({ ...before, [name]: value }));
	async function onSubmit(event) {
		event.preventDefault();
		setState({ busy: true, error: null, made: null });
		const list = (text) => splitWords(text.replaceAll(",", " "));
		const { name, language } = values;
		try {
			const { id } = await post("/v1/environments", {
				name: name.trim(),
				language,
				packages: list(values.packages),
				warm: list(values.warm),
			});
			setState({ busy: false, error: null, made: { name: name.trim(), id } });
			setValues(EMPTY);
		} catch (error) {
			setState({ busy: false, error, made: null });
		}
		onMade();
	}
	return (
		<form onSubmit={onSubmit} aria-label="Create an environment">
			<h2>Create an environment</h2>
			<div class="fields">
				<TextField label="Name" value={values.name} onChange={set("name")} hint="Lower-case letters, digits and ._-" />
				<Select label="Language" value={values.language} onChange={set("language")} options={LANGUAGES} />
				<TextField
					label="Packages"
					value={values.packages}
					onChange={set("packages")}
					hint="Separated by spaces or commas: numpy pandas==2.2.2"
				/>
				<TextField
					label="Preloaded modules"
					value={values.warm}
					onChange={set("warm")}
					hint="Cells that are kept ready have imported these; each is tried."
				/>
			</div>
			<div class="actions">
				<button type="submit" class="primary" disabled={state.busy || values.name.trim() === ""}>
					Create
				</button>
			</div>
			<Failure error={state.error} />
			<Made made={state.made} />
		</form>
	);
}

export function EnvironmentsView() {
	const { who } = useStore(session);
	const loaded = useLoaded((signal) => get("/v1/environments", signal), [], EVERY_MS);
	const action = {
		title: "Action",
		cell: (row) =>
			row.state !== "creating" && mayMake(who, row.name) && <RemoveButton row={row} onDone={loaded.reload} />,
	};
	return (
		<Page title="Environments">
			<p class="muted">Named sets of packages, installed once: a program chooses one by its name.</p>
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.value && (
				<Table
					caption="Environments"
					rows={loaded.value.environments}
					rowKey={(row) => row.name}
					empty="There are no environments yet."
					columns={mayMake(who) ? [...COLUMNS, action] : COLUMNS}
				/>
			)}
			{mayMake(who) && <Form onMade={loaded.reload} />}
		</Page>
	);
}
