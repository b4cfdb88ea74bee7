// SPDX-License-Identifier: Apache-2.0
// One session: its notebook, files, processes and ports.
import { useEffect } from "preact/hooks";
import { get, query, sessionPath } from "../api.js";
import { dateTime } from "../format.js";
import { notebookOf } from "../notebook.js";
import { go } from "../route.js";
import { Badge, CopyButton, Failure, Page, Tabs, useLoaded } from "../parts/basics.jsx";
import { Cells } from "../parts/cells.jsx";
import { SessionFiles } from "../parts/session_files.jsx";
import { SessionPorts } from "../parts/session_ports.jsx";
import { SessionProcesses } from "../parts/session_processes.jsx";
import { SessionActions, isLive, timeLeft } from "./sessions.jsx";

const EVERY_MS = 2000;

function About({ row }) {
	const left = timeLeft(row);
	return (
		<div class="verdict-line about-session">
			<span role="status">
				<span class="unseen">State: </span>
				<Badge word={row.state} />
			</span>
			<span>
				owner {row.token}, trust {row.trust}, started <time>{dateTime(row.created)}</time>
			</span>
			{left && <span>{left} left</span>}
			{row.verdict && <Badge word={row.verdict} />}
			{row.reason && <span class="muted">{row.reason}</span>}
		</div>
	);
}

function tabsOf(row, book, reload) {
	const live = isLive(row);
	const given = { id: row.id, book, live };
	return [
		{ id: "notebook", title: "Notebook", body: () => <Cells {...given} row={row} reload={reload} /> },
		{ id: "files", title: "Files", body: () => <SessionFiles {...given} /> },
		{ id: "processes", title: "Processes", body: () => <SessionProcesses {...given} /> },
		{ id: "ports", title: "Ports", body: () => <SessionPorts {...given} /> },
	];
}

export function SessionView({ id, search }) {
	const loaded = useLoaded((signal) => get(sessionPath(id), signal), [id], EVERY_MS);
	const book = notebookOf(id);
	const row = loaded.value;
	// Somebody else's address, or a session that is forgotten: then there is nothing to keep.
	useEffect(() => {
		if (loaded.error && loaded.error.status === 404 && !row) book.forget();
	}, [loaded.error]);
	return (
		<Page
			title={
				<>
					Session <code>{id}</code>
				</>
			}
			actions={
				<>
					{row && <SessionActions row={row} onDone={loaded.reload} />}
					<CopyButton text={() => location.href}>Copy the link</CopyButton>
				</>
			}
		>
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.loading && <p class="muted">Loading.</p>}
			{row && (
				<>
					<About row={row} />
					<Tabs
						label="Parts of the session"
						tabs={tabsOf(row, book, loaded.reload)}
						selected={search.get("show") || "notebook"}
						onSelect={(show) => go(query(`#/sessions/${id}`, { show: show === "notebook" ? "" : show }))}
					/>
				</>
			)}
		</Page>
	);
}
