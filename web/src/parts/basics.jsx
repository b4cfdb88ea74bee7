// SPDX-License-Identifier: Apache-2.0
// Small pieces that every view is made of.
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { session } from "../api.js";
import { words } from "../format.js";
import { useStore } from "../store.js";

const TONE = {
	ok: "good",
	kept: "good",
	works: "good",
	ready: "good",
	running: "busy",
	starting: "busy",
	ending: "busy",
	paused: "warn",
	ended: "quiet",
	queued: "busy",
	waiting: "busy",
	info: "quiet",
	finished: "quiet",
	timeout: "warn",
	cpu_limit: "warn",
	memory_limit: "warn",
	output_limit: "warn",
	disk_limit: "warn",
	pids_limit: "warn",
	cancelled: "quiet",
	missing: "warn",
	degraded: "warn",
	MEDIUM: "warn",
	HIGH: "warn",
	LOW: "quiet",
	CRITICAL: "bad",
};

export const toneOf = (word) => TONE[word] || "bad";

export function Badge({ word, tone = toneOf(word), children }) {
	return <span class={`badge tone-${tone}`}>{children || words(word)}</span>;
}

export function Failure({ error, retry }) {
	if (!error) return null;
	return (
		<div class="failure" role="alert">
			<p>
				{error.message}
				{error.retryAfter ? ` Try again in ${error.retryAfter} s.` : ""}
			</p>
			{retry && (
				<button type="button" onClick={retry}>
					Try again
				</button>
			)}
		</div>
	);
}

export function Field({ label, hint, children, class: extra = "" }) {
	const id = useId();
	return (
		<div class={`field ${extra}`}>
			<label for={id}>{label}</label>
			{children(id, hint ? `${id}-hint` : undefined)}
			{hint && (
				<p class="hint" id={`${id}-hint`}>
					{hint}
				</p>
			)}
		</div>
	);
}

export function Select({ label, value, onChange, options, hint }) {
	return (
		<Field label={label} hint={hint}>
			{(id, hintId) => (
				<select
					id={id}
					value={value}
					aria-describedby={hintId}
					onChange={(event) => onChange(event.currentTarget.value)}
				>
					{options.map((option) => (
						<option
							key={option.value}
							value={option.value}
							disabled={option.disabled}
							selected={option.value === value}
						>
							{option.label}
						</option>
					))}
				</select>
			)}
		</Field>
	);
}

export function TextField({ label, value, onChange, hint, placeholder, type = "text", list }) {
	return (
		<Field label={label} hint={hint}>
			{(id, hintId) => (
				<input
					id={id}
					type={type}
					value={value}
					placeholder={placeholder}
					aria-describedby={hintId}
					autocomplete="off"
					spellcheck={false}
					onInput={(event) => onChange(event.currentTarget.value)}
				/>
			)}
		</Field>
	);
}

export function Tile({ title, value }) {
	return (
		<div class="tile">
			<dt>{title}</dt>
			<dd>{value}</dd>
		</div>
	);
}

// columns: [{ title, cell(row), class? }]; on a phone each row is a card, and data-title names its cells.
export function Table({ caption, columns, rows, rowKey, rowClass, empty = "There is nothing here." }) {
	if (rows.length === 0) return <p class="empty">{empty}</p>;
	return (
		<table class="cards">
			<caption class={caption.hidden === false ? "" : "unseen"}>{caption.text || caption}</caption>
			<thead>
				<tr>
					{columns.map((column) => (
						<th key={column.title} scope="col" class={column.class}>
							{column.title}
						</th>
					))}
				</tr>
			</thead>
			<tbody>
				{rows.map((row, at) => (
					<tr key={rowKey ? rowKey(row) : at} class={rowClass ? rowClass(row) : undefined}>
						{columns.map((column) => (
							<td key={column.title} class={column.class} data-title={column.title}>
								{column.cell(row)}
							</td>
						))}
					</tr>
				))}
			</tbody>
		</table>
	);
}

// tabs: [{ id, title, count?, body() }].  Arrow keys move between them, as the pattern of the WAI wants it.
export function Tabs({ label, tabs, selected, onSelect }) {
	const base = useId();
	const list = useRef(null);
	const active = tabs.find((tab) => tab.id === selected) || tabs[0];
	function onKeyDown(event) {
		const at = tabs.indexOf(active);
		const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
		if (to === undefined) return;
		event.preventDefault();
		const next = (to + tabs.length) % tabs.length;
		onSelect(tabs[next].id);
		list.current.children[next].focus();
	}
	return (
		<div class="tabs">
			<div role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
				{tabs.map((tab) => (
					<button
						type="button"
						role="tab"
						key={tab.id}
						id={`${base}-${tab.id}`}
						aria-selected={tab === active}
						aria-controls={`${base}-panel`}
						tabIndex={tab === active ? 0 : -1}
						onClick={() => onSelect(tab.id)}
					>
						{tab.title}
						{tab.count !== undefined && <span class="count">{tab.count}</span>}
					</button>
				))}
			</div>
			<div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${active.id}`} tabIndex={0}>
				{active.body()}
			</div>
		</div>
	);
}

// Loads when it appears, when inputs change, when there is a new token, and every `every` milliseconds while it is seen.
export function useLoaded(load, inputs = [], every = 0) {
	const { version } = useStore(session);
	const [state, setState] = useState({ value: null, error: null, loading: true });
	const [round, setRound] = useState(0);
	useEffect(() => {
		const stop = new AbortController();
		let timer = 0;
		async function once() {
			try {
				const value = await load(stop.signal);
				if (!stop.signal.aborted) setState({ value, error: null, loading: false });
			} catch (error) {
				if (!stop.signal.aborted) setState((before) => ({ ...before, error, loading: false }));
			}
			if (every && !stop.signal.aborted) timer = setTimeout(next, every);
		}
		const next = () => (document.hidden ? (timer = setTimeout(next, every)) : once());
		once();
		return () => {
			stop.abort();
			clearTimeout(timer);
		};
	}, [...inputs, version, round]);
	return { ...state, reload: () => setRound((n) => n + 1) };
}

export function Page({ title, actions, children }) {
	return (
		<>
			<div class="page-head">
				<h1 tabIndex={-1}>{title}</h1>
				{actions && <div class="actions">{actions}</div>}
			</div>
			{children}
		</>
	);
}

// A button that asks once more before it does something that cannot be undone, and tells what went wrong.
// act(): what it does; sure: what it says the second time.
export function ActionButton({ label, act, onDone, sure, disabled, children }) {
	const [state, setState] = useState({ asked: false, busy: false, error: null });
	async function onClick() {
		if (sure && !state.asked) return setState({ asked: true, busy: false, error: null });
		setState({ asked: false, busy: true, error: null });
		let error = null;
		try {
			await act();
		} catch (trouble) {
			error = trouble;
		}
		setState({ asked: false, busy: false, error });
		if (onDone) onDone();
		return undefined;
	}
	return (
		<>
			<button type="button" disabled={disabled || state.busy} aria-label={label} onClick={onClick}>
				{state.asked ? sure : children}
			</button>
			{state.error && (
				<span class="muted" role="alert">
					{" "}
					{state.error.message}
				</span>
			)}
		</>
	);
}

export function CopyButton({ text, children }) {
	const [done, setDone] = useState("");
	async function copy() {
		try {
			await navigator.clipboard.writeText(text());
			setDone("Copied");
		} catch {
			setDone("Not allowed to copy");
		}
		setTimeout(() => setDone(""), 2000);
	}
	return (
		<button type="button" onClick={copy}>
			<span aria-live="polite">{done || children}</span>
		</button>
	);
}

export function download(name, data) {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
	link.download = name;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
