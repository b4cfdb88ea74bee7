// SPDX-License-Identifier: Apache-2.0
// Write a program, see what the inspection says of it, run it, watch it.
import { useEffect, useRef, useState } from "preact/hooks";
import { get, session } from "../api.js";
import { FILES_MAX, current, draft, runDraft, setCode } from "../draft.js";
import { Editor } from "../editor.jsx";
import { bytes, plural } from "../format.js";
import { inspectionText, useInspection } from "../inspection.js";
import { isSample, sampleOf } from "../languages.js";
import { Failure, Field, Select, TextField, useLoaded } from "../parts/basics.jsx";
import { environmentOptions, trustOptions } from "../parts/choices.js";
import { ExecutionResult, FindingList } from "../parts/result.jsx";
import { useStore } from "../store.js";

function chooseLanguage(language) {
	const { code } = draft.get();
	if (isSample(code)) setCode({ language, code: sampleOf(language) });
	else draft.set({ language });
}

// What the token may not use is shown as such: that it is there explains why another token has it.
function languageOptions(known, chosen, who) {
	const may = (name) => !who || !who.languages || who.languages.includes(name);
	const remark = (row) => (!row.installed ? " (not installed)" : may(row.name) ? "" : " (not permitted)");
	const rows = (known || []).map((row) => ({
		value: row.name,
		label: `${row.name}${remark(row)}`,
		disabled: remark(row) !== "",
	}));
	return rows.some((row) => row.value === chosen) ? rows : [{ value: chosen, label: chosen }, ...rows];
}

function Selectors({ d }) {
	const languages = useLoaded((signal) => get("/v1/languages", signal));
	const environments = useLoaded((signal) => get("/v1/environments", signal));
	const { who } = useStore(session);
	return (
		<>
			<Select
				label="Language"
				value={d.language}
				onChange={chooseLanguage}
				options={languageOptions(languages.value && languages.value.languages, d.language, who)}
			/>
			<Select
				label="Environment"
				value={d.environment}
				onChange={(environment) => draft.set({ environment })}
				options={environmentOptions(environments.value)}
			/>
			<Select label="Trust" value={d.trust} onChange={(trust) => draft.set({ trust })} options={trustOptions(who)} />
			<Failure
				error={languages.error && languages.error.status !== 401 ? languages.error : null}
				retry={languages.reload}
			/>
		</>
	);
}

async function addFiles(list) {
	const { files } = draft.get();
	const added = await Promise.all(
		[...list].map(async (file) => ({
			path: (file.webkitRelativePath || file.name).replace(/^\/+/, ""),
			data: new Uint8Array(await file.arrayBuffer()),
		})),
	);
	const kept = files.filter((old) => !added.some((file) => file.path === old.path));
	const all = [...kept, ...added];
	const total = all.reduce((sum, file) => sum + file.data.length, 0);
	if (total > FILES_MAX)
		throw new Error(
			`these files take ${bytes(total)} together; a run takes at most ${bytes(FILES_MAX)} from the console`,
		);
	draft.set({ files: all });
}

function FilesToSend({ files }) {
	const [error, setError] = useState(null);
	async function add(list) {
		try {
			await addFiles(list);
			setError(null);
		} catch (trouble) {
			setError(trouble);
		}
	}
	function onDrop(event) {
		event.preventDefault();
		add(event.dataTransfer.files);
	}
	return (
		<div onDragOver={(event) => event.preventDefault()} onDrop={onDrop}>
			<Field label="Files" hint="They are in the program's working folder when it starts. Drop them here, or choose.">
				{(id, hintId) => (
					<input
						id={id}
						type="file"
						multiple
						aria-describedby={hintId}
						onChange={(event) => {
							add(event.currentTarget.files);
							event.currentTarget.value = "";
						}}
					/>
				)}
			</Field>
			<Failure error={error} />
			<ul class="entries">
				{files.map((file) => (
					<li key={file.path} class="row">
						<code class="name">{file.path}</code>
						<span class="muted">{bytes(file.data.length)}</span>
						<div class="actions">
							<button
								type="button"
								aria-label={`Remove ${file.path}`}
								onClick={() => draft.set({ files: files.filter((one) => one !== file) })}
							>
								Remove
							</button>
						</div>
					</li>
				))}
			</ul>
		</div>
	);
}

function given(d) {
	const found = [];
	if (d.timeout || d.memory) found.push("limits");
	if (d.stdin) found.push("input");
	if (d.args) found.push("arguments");
	if (d.files.length > 0) found.push(plural(d.files.length, "file"));
	if (d.artifacts) found.push("artifacts");
	return found.join(", ");
}

function Settings({ d }) {
	const set = (name) => (value) => draft.set({ [name]: value });
	return (
		<details class="settings">
			<summary>Input, files and limits{given(d) && <span class="muted"> ({given(d)})</span>}</summary>
			<div class="fields">
				<TextField
					label="Timeout"
					placeholder="as the policy says"
					value={d.timeout}
					onChange={set("timeout")}
					hint="Seconds, or 500ms, 2m."
				/>
				<TextField
					label="Memory"
					placeholder="as the policy says"
					value={d.memory}
					onChange={set("memory")}
					hint="Bytes, or 64m, 1g."
				/>
				<TextField
					label="Arguments"
					value={d.args}
					onChange={set("args")}
					hint="Separated by spaces; quotes keep words together."
				/>
				<TextField
					label="Artifacts"
					placeholder="all files that it leaves"
					value={d.artifacts}
					onChange={set("artifacts")}
					hint="Patterns of files to fetch: *.png out/**"
				/>
			</div>
			<Field label="Standard input">
				{(id) => (
					<textarea
						id={id}
						rows={3}
						spellcheck={false}
						value={d.stdin}
						onInput={(event) => draft.set({ stdin: event.currentTarget.value })}
					/>
				)}
			</Field>
			<FilesToSend files={d.files} />
		</details>
	);
}

export function RunView() {
	const d = useStore(draft);
	const e = useStore(current.store);
	const inspection = useInspection(d);
	const editor = useRef(null);
	const busy = e.phase === "waiting" || e.phase === "running";
	const showFinding = (finding) => editor.current.show(finding.line, finding.column);
	useEffect(() => {
		function onKey(event) {
			if (
				event.key === "Enter" &&
				(event.ctrlKey || event.metaKey) &&
				!event.defaultPrevented &&
				!document.querySelector("dialog[open]")
			) {
				event.preventDefault();
				runDraft();
			}
		}
		addEventListener("keydown", onKey);
		return () => removeEventListener("keydown", onKey);
	}, []);
	return (
		<div class="run-view">
			<h1 class="unseen" tabIndex={-1}>
				Run a program
			</h1>
			<section class="work" aria-label="Program">
				<div class="toolbar">
					<Selectors d={d} />
					<div class="actions">
						<button
							type="button"
							class="primary"
							disabled={busy}
							onClick={runDraft}
							aria-keyshortcuts="Control+Enter"
							title="Ctrl+Enter"
						>
							Run
						</button>
						<button type="button" disabled={!busy || e.cancelling} onClick={current.cancel}>
							Cancel
						</button>
					</div>
				</div>
				<Editor
					label="Code"
					value={d.code}
					edition={d.edition}
					language={d.language}
					findings={inspection.findings}
					handle={editor}
					onChange={(code) => draft.set({ code })}
					onRun={runDraft}
				/>
				<details class={`inspection ${inspection.blocked ? "is-blocked" : ""}`}>
					<summary>
						<span role="status">{inspectionText(inspection)}</span>
					</summary>
					{inspection.findings.length > 0 && <FindingList findings={inspection.findings} onShow={showFinding} />}
				</details>
				<Settings d={d} />
			</section>
			<section class="outcome" aria-label="Result">
				<ExecutionResult e={e} onShowFinding={showFinding} />
				{e.id && e.phase === "over" && (
					<p class="muted">
						This execution has a page of its own: <a href={`#/executions/${e.id}`}>{e.id}</a>
					</p>
				)}
			</section>
		</div>
	);
}
