// SPDX-License-Identifier: Apache-2.0
// What was run, with filters that are part of the address.
import { get, query, session } from "../api.js";
import { ago, bytes, dateTime, milliseconds } from "../format.js";
import { go } from "../route.js";
import { Badge, Failure, Page, Select, Table, useLoaded } from "../parts/basics.jsx";
import { useStore } from "../store.js";

const VERDICTS = [
	"ok",
	"error",
	"crash",
	"timeout",
	"cpu_limit",
	"memory_limit",
	"output_limit",
	"disk_limit",
	"pids_limit",
	"blocked",
	"refused",
	"violated",
	"failed",
	"cancelled",
];
const DOORS = BRIG_DOORS; // web/build knows them
const TRUST = ["untrusted", "unknown", "trusted"];
const SINCE = { "1h": "last hour", "24h": "last day", "7d": "last 7 days", "30d": "last 30 days" };
const any = (names) => [
	{ value: "", label: "any" },
	...names.map((value) => ({ value, label: value.replaceAll("_", " ") })),
];

export function HistoryView({ search }) {
	const filter = Object.fromEntries(
		["verdict", "language", "trust", "door", "since", "limit"].map((name) => [name, search.get(name) || ""]),
	);
	const limit = Number(filter.limit) || 50;
	const { who } = useStore(session);
	const languages = useLoaded((signal) => get("/v1/languages", signal));
	const loaded = useLoaded((signal) => get(query("/v1/history", { ...filter, limit }), signal), [search.toString()]);
	const set = (name) => (value) => go(query("#/history", { ...filter, [name]: value }));
	const rows = (loaded.value && loaded.value.executions) || [];
	const total = loaded.value ? loaded.value.total : 0;
	const missing = (loaded.value && loaded.value.missing) || [];
	return (
		<Page
			title="History"
			actions={
				<button type="button" onClick={loaded.reload}>
					Refresh
				</button>
			}
		>
			<form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
				<Select label="Verdict" value={filter.verdict} onChange={set("verdict")} options={any(VERDICTS)} />
				<Select
					label="Language"
					value={filter.language}
					onChange={set("language")}
					options={any(((languages.value && languages.value.languages) || []).map((row) => row.name))}
				/>
				<Select label="Trust" value={filter.trust} onChange={set("trust")} options={any(TRUST)} />
				<Select label="Door" value={filter.door} onChange={set("door")} options={any(["none", ...DOORS])} />
				<Select
					label="Since"
					value={filter.since}
					onChange={set("since")}
					options={[{ value: "", label: "ever" }, ...Object.entries(SINCE).map(([value, label]) => ({ value, label }))]}
				/>
			</form>
			<Failure error={loaded.error} retry={loaded.reload} />
			{missing.length > 0 && (
				<p class="remark">
					{missing.length === 1 ? "A node" : `${missing.length} nodes`} of the queue did not answer, and what ran there
					is not listed: {missing.join(", ")}.
				</p>
			)}
			{loaded.value &&
				(loaded.value.history_warnings || []).map((text) => (
					<p class="remark" key={text}>
						{text}
					</p>
				))}
			{loaded.value && (
				<>
					<p class="muted" role="status">
						{rows.length < total
							? `The latest ${rows.length} of ${total} executions`
							: `${total} ${total === 1 ? "execution" : "executions"}`}
					</p>
					<Table
						caption="Executions"
						rows={rows}
						rowKey={(row) => `${row.id} ${row.node || ""}`}
						empty="No execution matches."
						columns={[
							{ title: "Verdict", cell: (row) => <Badge word={row.verdict} /> },
							{
								title: "Id",
								cell: (row) => (
									<a href={`#/executions/${row.id}`}>
										<code>{row.id}</code>
									</a>
								),
							},
							{
								title: "Time",
								cell: (row) => (
									<time dateTime={row.time} title={dateTime(row.time)}>
										{ago(row.time)}
									</time>
								),
							},
							{ title: "Language", cell: (row) => row.language },
							...(who && who.admin ? [{ title: "Token", class: "extra", cell: (row) => row.who || `uid ${row.uid}` }] : []),
							...(rows.some((row) => row.node) ? [{ title: "Node", class: "extra", cell: (row) => row.node || "" }] : []),
							{ title: "Door", cell: (row) => row.door || "" },
							{ title: "Trust", cell: (row) => row.trust },
							{ title: "Wall", class: "term", cell: (row) => milliseconds(row.wall_ms) },
							{
								title: "Memory",
								class: "extra",
								cell: (row) => (row.memory_peak_bytes ? bytes(row.memory_peak_bytes) : ""),
							},
							{ title: "Findings", class: "extra", cell: (row) => row.findings || "" },
							{ title: "Reason", class: "wide", cell: (row) => row.reason || "" },
						]}
					/>
					{rows.length < total && limit < 1000 && (
						<button type="button" onClick={() => set("limit")(String(limit * 4))}>
							Show more
						</button>
					)}
				</>
			)}
		</Page>
	);
}
