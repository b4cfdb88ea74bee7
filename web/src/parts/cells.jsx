// SPDX-License-Identifier: Apache-2.0
// The cells of a notebook, and the contexts that they run in.
import { useEffect, useRef, useState } from "preact/hooks";
import { post, remove, sessionPath } from "../api.js";
import { Editor } from "../editor.jsx";
import { inspectionText, useInspection } from "../inspection.js";
import { CONTEXT_LANGUAGES } from "../languages.js";
import { CELLS_MAX } from "../notebook.js";
import { useStore } from "../store.js";
import { ActionButton, Badge, Failure, Select } from "./basics.jsx";
import { FindingList } from "./result.jsx";
import { Shown, Traceback } from "./rich.jsx";

const LANGUAGE = "python"; // of a cell that has no context yet
const isBusy = (cell) => cell.run.phase === "running" || cell.run.phase === "waiting";
const nameOf = (context) => `${context.language} ${context.id}`;

// ---- what came of a cell ----

function Item({ item, label }) {
	if (item.forms && item.forms.traceback !== undefined) return <Traceback error={item.forms} />;
	if (item.forms) return <Shown label={label} forms={item.forms} />;
	return (
		<pre class="stream-text" tabIndex={0} aria-label={item.stream === "stderr" ? "Error output" : "Output"}>
			<span class={item.stream}>{item.text}</span>
		</pre>
	);
}

function Outcome({ run, number }) {
	const word = run.phase === "over" ? run.verdict : run.phase === "idle" ? "" : run.phase;
	const hasError = run.items.some((item) => item.forms && item.forms.traceback !== undefined);
	let results = 0;
	return (
		<div class="cell-outcome">
			<div role="status" class="verdict-line">
				{word && word !== "ok" && <Badge word={word} />}
				{word === "ok" && <span class="unseen">Cell {number}: ok</span>}
				{run.phase === "over" && run.reason && !hasError && <span class="reason">{run.reason}</span>}
			</div>
			{run.hint && (
				<p class="advice">
					<strong>Hint:</strong> {run.hint}
				</p>
			)}
			<Failure error={run.trouble ? { message: run.trouble } : null} />
			<div role="log" aria-label={`Output of cell ${number}`}>
				{run.items.map((item, at) => (
					<Item key={at} item={item} label={`Result ${item.forms ? ++results : 0} of cell ${number}`} />
				))}
			</div>
			{run.cut && <p class="remark">There is more than is shown here; the record of this run has what was kept.</p>}
			{(run.warnings || []).map((text) => (
				<p class="remark" key={text}>
					{text}
				</p>
			))}
			{run.verdict === "blocked" && run.findings.length > 0 && <FindingList findings={run.findings} />}
			{run.id && run.phase === "over" && (
				<p class="muted small-text">
					<a href={`#/executions/${run.id}`}>The record of this run</a>
				</p>
			)}
		</div>
	);
}

// ---- a cell ----

function contextOptions(contexts, chosen) {
	const rows = contexts.map((context) => ({ value: String(context.id), label: nameOf(context) }));
	if (!chosen) return [{ value: "0", label: `${LANGUAGE}, a new one` }, ...rows];
	const isThere = contexts.some((context) => context.id === chosen);
	return isThere ? rows : [{ value: String(chosen), label: `${chosen}, which has ended` }, ...rows];
}

function CellButtons({ cell, number, last, book, live, onRun, onRemove }) {
	return (
		<div class="actions">
			{isBusy(cell) && cell.run.phase === "running" ? (
				<ActionButton label={`Interrupt cell ${number}`} act={() => book.interrupt(cell.context)}>
					Interrupt
				</ActionButton>
			) : (
				<button
					type="button"
					disabled={!live || isBusy(cell)}
					onClick={onRun}
					aria-label={`Run cell ${number}`}
					aria-keyshortcuts="Shift+Enter"
					title="Shift+Enter"
				>
					Run
				</button>
			)}
			<button
				type="button"
				disabled={number === 1}
				aria-label={`Move cell ${number} up`}
				onClick={() => book.move(cell.key, -1)}
			>
				Up
			</button>
			<button
				type="button"
				disabled={last}
				aria-label={`Move cell ${number} down`}
				onClick={() => book.move(cell.key, 1)}
			>
				Down
			</button>
			<button type="button" disabled={isBusy(cell)} aria-label={`Remove cell ${number}`} onClick={onRemove}>
				Remove
			</button>
		</div>
	);
}

function Cell({ cell, number, last, row, contexts, book, live, focus, onRun, onRunOn, onRemove }) {
	const context = contexts.find((one) => one.id === cell.context);
	const language = context ? context.language : LANGUAGE;
	const inspection = useInspection({ code: cell.code, language, trust: row.trust });
	const editor = useRef(null);
	return (
		<section class={`cell ${isBusy(cell) ? "is-busy" : ""}`} aria-label={`Cell ${number}`}>
			<div class="toolbar">
				<span class="cell-count" title="How many runs its context had">
					[{isBusy(cell) ? "*" : (cell.run.count ?? " ")}]
				</span>
				<select
					aria-label={`Context of cell ${number}`}
					value={String(cell.context)}
					disabled={isBusy(cell)}
					onChange={(event) => book.change(cell.key, { context: Number(event.currentTarget.value) })}
				>
					{contextOptions(contexts, cell.context).map((option) => (
						<option key={option.value} value={option.value} selected={option.value === String(cell.context)}>
							{option.label}
						</option>
					))}
				</select>
				<CellButtons {...{ cell, number, last, book, live, onRun, onRemove }} />
			</div>
			<Editor
				class="is-cell"
				label={`Code of cell ${number}`}
				value={cell.code}
				edition={cell.edition}
				language={language}
				findings={inspection.findings}
				handle={editor}
				focus={focus}
				onChange={(code) => book.setCode(cell.key, code)}
				onRun={onRun}
				onRunOn={onRunOn}
			/>
			{(inspection.findings.length > 0 || inspection.error) && (
				<details class={`inspection ${inspection.blocked ? "is-blocked" : ""}`}>
					<summary>
						<span role="status">{inspectionText(inspection)}</span>
					</summary>
					<FindingList
						findings={inspection.findings}
						onShow={(finding) => editor.current.show(finding.line, finding.column)}
					/>
				</details>
			)}
			{cell.run.phase !== "idle" && <Outcome run={cell.run} number={number} />}
		</section>
	);
}

// ---- contexts ----

function Contexts({ row, contexts, book, live, chosen, onChoose, reload }) {
	const [language, setLanguage] = useState(LANGUAGE);
	const path = `${sessionPath(row.id)}/contexts/${chosen}`;
	const none = !live || !chosen;
	return (
		<div class="toolbar contexts" role="group" aria-label="Contexts">
			<Select
				label="Context"
				value={String(chosen)}
				onChange={(value) => onChoose(Number(value))}
				options={
					contexts.length > 0
						? contexts.map((context) => ({ value: String(context.id), label: nameOf(context) }))
						: [{ value: "0", label: "none yet" }]
				}
			/>
			<div class="actions">
				<ActionButton disabled={none} act={() => book.interrupt(chosen)} onDone={reload}>
					Interrupt
				</ActionButton>
				<ActionButton disabled={none} sure="Forget its state?" act={() => post(`${path}/restart`)} onDone={reload}>
					Restart
				</ActionButton>
				<ActionButton disabled={none} sure="Close it?" act={() => remove(path)} onDone={reload}>
					Close
				</ActionButton>
			</div>
			<Select
				label="New context in"
				value={language}
				onChange={setLanguage}
				options={CONTEXT_LANGUAGES.map((name) => ({ value: name, label: name }))}
			/>
			<div class="actions">
				<ActionButton disabled={!live} act={async () => onChoose(await book.makeContext(language))} onDone={reload}>
					Start a context
				</ActionButton>
			</div>
		</div>
	);
}

// The cell after this one, which is made if there is none.
function nextKey(book, key) {
	const { cells } = book.store.get();
	const at = cells.findIndex((cell) => cell.key === key);
	return at + 1 < cells.length ? cells[at + 1].key : book.add(key, cells[at].context);
}

export function Cells({ row, book, live, reload }) {
	const { cells } = useStore(book.store);
	const [focus, setFocus] = useState({ key: "", times: 0 });
	const contexts = book.contextsOf(row);
	const [wanted, setWanted] = useState(0);
	const chosen = contexts.some((one) => one.id === wanted) ? wanted : contexts.length > 0 ? contexts[0].id : 0;
	useEffect(() => {
		if (chosen) book.adopt(chosen);
	}, [chosen, cells.length]);
	const lead = (key) => setFocus({ key, times: focus.times + 1 });
	// The focus must not be lost with what had it.
	function removeAt(at) {
		book.remove(cells[at].key);
		const left = book.store.get().cells;
		lead(left[Math.min(at, left.length - 1)].key);
	}
	const run = (cell) => live && book.run(cell.key, LANGUAGE).then(reload);
	return (
		<div class="notebook">
			<Contexts {...{ row, contexts, book, live, chosen, reload }} onChoose={setWanted} />
			{cells.map((cell, at) => (
				<Cell
					key={cell.key}
					{...{ cell, row, contexts, book, live }}
					number={at + 1}
					last={at === cells.length - 1}
					focus={focus.key === cell.key ? focus.times : 0}
					onRun={() => run(cell)}
					onRunOn={() => {
						run(cell);
						lead(nextKey(book, cell.key));
					}}
					onRemove={() => removeAt(at)}
				/>
			))}
			<div class="actions">
				<button type="button" disabled={cells.length >= CELLS_MAX} onClick={() => book.add("", chosen)}>
					Add a cell
				</button>
				<button type="button" disabled={!live} onClick={() => cells.forEach(run)}>
					Run all
				</button>
				<button type="button" disabled={cells.some(isBusy)} onClick={book.clear}>
					Clear the output
				</button>
			</div>
		</div>
	);
}
