// SPDX-License-Identifier: Apache-2.0
// Processes of a session: started, watched, written to, sent signals.
import { useEffect, useMemo, useState } from "preact/hooks";
import { get, post, sessionPath } from "../api.js";
import { createExecution, outputOf } from "../execution.js";
import { useStore } from "../store.js";
import { ActionButton, Badge, Failure, Select, TextField, useLoaded } from "./basics.jsx";
import { Output } from "./output.jsx";

const EVERY_MS = 2000;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGCONT"];
const pathOf = (id, process) => `${sessionPath(id)}/processes/${process}`;

function ProcessOutput({ id, process, running }) {
	const execution = useMemo(() => createExecution(), [id, process]);
	const e = useStore(execution.store);
	useEffect(() => {
		execution.follow("", pathOf(id, process));
		return () => execution.leave();
	}, [execution]);
	const { pieces, dropped } =
		e.output.length > 0 || !e.result ? { pieces: e.output, dropped: e.dropped } : outputOf(e.result);
	return (
		<>
			<Failure error={e.error} />
			<Output pieces={pieces} dropped={dropped} result={e.result} busy={running} />
		</>
	);
}

function Input({ id, process }) {
	const [text, setText] = useState("");
	const [error, setError] = useState(null);
	async function send(event) {
		event.preventDefault();
		try {
			await post(`${pathOf(id, process)}/input`, { data: `${text}\n` });
			setText("");
			setError(null);
		} catch (trouble) {
			setError(trouble);
		}
	}
	return (
		<form class="row" onSubmit={send}>
			<TextField label={`A line for process ${process}`} value={text} onChange={setText} />
			<div class="actions">
				<button type="submit">Send</button>
				<ActionButton act={() => post(`${pathOf(id, process)}/input`, { close: true })}>End of input</ActionButton>
			</div>
			<Failure error={error} />
		</form>
	);
}

function Signal({ id, process, onDone }) {
	const [signal, setSignal] = useState("SIGTERM");
	return (
		<>
			<select
				aria-label={`Signal for process ${process}`}
				value={signal}
				onChange={(event) => setSignal(event.currentTarget.value)}
			>
				{SIGNALS.map((name) => (
					<option key={name} value={name} selected={name === signal}>
						{name}
					</option>
				))}
			</select>
			<ActionButton
				label={`Send the signal to process ${process}`}
				act={() => post(`${pathOf(id, process)}/signal`, { signal })}
				onDone={onDone}
			>
				Send
			</ActionButton>
		</>
	);
}

// known: what this page knows of it, which started it; or undefined.
function Process({ id, row, known, reload }) {
	const [open, setOpen] = useState(!!known && known.isNew);
	const running = row.state === "running";
	return (
		<li>
			<div class="row">
				<Badge word={running ? "running" : row.verdict || "finished"} />
				<span>{row.process}</span>
				<code class="name">{known ? known.line : row.command}</code>
				<div class="actions">
					<button
						type="button"
						aria-expanded={open}
						aria-label={`Output of process ${row.process}`}
						onClick={() => setOpen(!open)}
					>
						{open ? "Hide" : "Output"}
					</button>
					{running && <Signal id={id} process={row.process} onDone={reload} />}
				</div>
			</div>
			{open && <ProcessOutput id={id} process={row.process} running={running} />}
			{open && running && known && known.takesInput && <Input id={id} process={row.process} />}
		</li>
	);
}

function Start({ id, book, live, onStarted }) {
	const [line, setLine] = useState("");
	const [takesInput, setTakesInput] = useState(false);
	const [error, setError] = useState(null);
	async function start(event) {
		event.preventDefault();
		if (line.trim() === "") return;
		try {
			const wanted = { args: ["sh", "-c", line], async: true, interactive: takesInput };
			const { process } = await post(`${sessionPath(id)}/processes`, wanted);
			const { commands } = book.store.get();
			book.store.set({ commands: { ...commands, [process]: { line, takesInput, isNew: true } } });
			setLine("");
			setError(null);
		} catch (trouble) {
			setError(trouble);
		}
		onStarted();
	}
	return (
		<form onSubmit={start} aria-label="Start a command">
			<TextField
				label="Command"
				value={line}
				onChange={setLine}
				hint="A line for sh. It goes on when the page is left."
			/>
			<label class="check">
				<input type="checkbox" checked={takesInput} onChange={(event) => setTakesInput(event.currentTarget.checked)} />
				Its input stays open
			</label>
			<div class="actions">
				<button type="submit" class="primary" disabled={!live || line.trim() === ""}>
					Start
				</button>
			</div>
			<Failure error={error} />
		</form>
	);
}

export function SessionProcesses({ id, book, live }) {
	const { commands } = useStore(book.store);
	const loaded = useLoaded(
		(signal) => (live ? get(`${sessionPath(id)}/processes`, signal) : { processes: [] }),
		[live],
		EVERY_MS,
	);
	const rows = (loaded.value && loaded.value.processes) || [];
	return (
		<div class="processes">
			<Start id={id} book={book} live={live} onStarted={loaded.reload} />
			<h2>Processes</h2>
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.value && rows.length === 0 && (
				<p class="empty">{live ? "There are no processes." : "They have ended with the session."}</p>
			)}
			<ul class="entries">
				{rows.map((row) => (
					<Process key={row.process} id={id} row={row} known={commands[row.process]} reload={loaded.reload} />
				))}
			</ul>
		</div>
	);
}
