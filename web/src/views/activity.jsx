// SPDX-License-Identifier: Apache-2.0
// What runs and waits now, the queue, and the cells that are kept ready.
import { useState } from "preact/hooks";
import { cancelExecution, get, query, session } from "../api.js";
import { ago, bytes, dateTime, milliseconds, oneLine } from "../format.js";
import { Badge, Failure, Page, Select, Table, Tile, useLoaded } from "../parts/basics.jsx";
import { go } from "../route.js";
import { useStore } from "../store.js";

const EVERY_MS = 2000;
const LATELY = 20;
const isLive = (row) => row.state === "queued" || row.state === "running";

function CancelButton({ row, onDone }) {
	const [state, setState] = useState({ asked: false, error: null });
	async function cancel() {
		setState({ asked: true, error: null });
		try {
			await cancelExecution(row.id);
		} catch (error) {
			setState({ asked: false, error });
		}
		onDone();
	}
	return (
		<>
			<button type="button" class="small" disabled={state.asked} aria-label={`Cancel ${row.id}`} onClick={cancel}>
				Cancel
			</button>
			{state.error && <span class="muted"> {state.error.message}</span>}
		</>
	);
}

const COLUMNS = [
	{ title: "State", cell: (row) => <Badge word={row.state === "finished" ? row.verdict || row.state : row.state} /> },
	{
		title: "Id",
		cell: (row) => (
			<a href={`#/executions/${row.id}`}>
				<code>{row.id}</code>
			</a>
		),
	},
	{ title: "Language", cell: (row) => row.language || row.kind },
	{ title: "Trust", cell: (row) => row.trust },
	{ title: "Token", cell: (row) => (row.door ? `${row.token}, through ${row.door}` : row.token) },
	{
		title: "Since",
		cell: (row) => <time title={dateTime(row.started || row.created)}>{ago(row.started || row.created)}</time>,
	},
];

// Only where there are nodes.
const NODE = { title: "Node", cell: (row) => (row.node ? <code>{oneLine(row.node)}</code> : "") };
const columnsOf = (rows) => (rows.some((row) => row.node) ? [...COLUMNS, NODE] : COLUMNS);

function NodeFilter({ node }) {
	const cluster = useLoaded((signal) => get("/v1/nodes", signal));
	const names = new Set(((cluster.value && cluster.value.nodes) || []).map((one) => one.name));
	if (node) names.add(node);
	return (
		<form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
			<Select
				label="Node"
				value={node}
				onChange={(value) => go(query("#/activity", { node: value }))}
				options={[{ value: "", label: "any" }, ...[...names].sort().map((value) => ({ value, label: oneLine(value) }))]}
			/>
		</form>
	);
}

function Live({ rows, reload }) {
	return (
		<>
			<h2>Running and waiting</h2>
			<Table
				caption="Running and waiting"
				rows={rows.filter(isLive)}
				rowKey={(row) => row.id}
				empty="Nothing is running or waiting."
				columns={[...columnsOf(rows), { title: "Action", cell: (row) => <CancelButton row={row} onDone={reload} /> }]}
			/>
		</>
	);
}

function Lately({ rows }) {
	return (
		<>
			<h2>Recent</h2>
			<Table
				caption="Recent executions"
				rows={rows.filter((row) => !isLive(row)).slice(0, LATELY)}
				rowKey={(row) => row.id}
				empty="Nothing has run recently."
				columns={columnsOf(rows)}
			/>
			<p>
				<a href="#/history">All executions are in the history</a>
			</p>
		</>
	);
}

const hitRate = ({ hits, misses }) => (hits + misses > 0 ? `${Math.round((100 * hits) / (hits + misses))} %` : "");

function readyText(pool) {
	if (pool.given_up) return "its interpreter cannot wait";
	const more = pool.building > 0 ? ` and ${pool.building} being made` : "";
	return `${pool.ready} of ${pool.wanted}${more}`;
}

// A pool is what requests of the same language, packages and policy share.
function Pools({ pools }) {
	return (
		<>
			<h2>Pools of cells</h2>
			<Table
				caption="Cells that are kept ready"
				rows={pools}
				empty="No cell is kept ready: the first run of a language makes some."
				columns={[
					{ title: "Language", cell: (row) => row.language },
					{ title: "Step", cell: (row) => row.step },
					{ title: "Environment", cell: (row) => row.environment || "none" },
					{ title: "Trust", cell: (row) => row.trust },
					{ title: "Memory limit", cell: (row) => bytes(row.memory_limit) },
					{ title: "Ready", cell: readyText },
					{ title: "In use", cell: (row) => row.in_use },
					{ title: "Made", cell: (row) => row.made },
					{ title: "Hits", cell: (row) => `${row.hits} of ${row.hits + row.misses}` },
					{ title: "Hit rate", cell: hitRate },
					{ title: "Memory", cell: (row) => bytes(row.memory_bytes) },
				]}
			/>
		</>
	);
}

function Queue({ queue }) {
	return (
		<>
			<h2>Queue</h2>
			<dl class="tiles">
				<Tile title="Running" value={queue.running} />
				<Tile title="Waiting" value={queue.waiting} />
				<Tile title="Cells at once" value={queue.jobs} />
				{queue.finished !== undefined && <Tile title="Finished" value={queue.finished} />}
			</dl>
			{(queue.tokens || []).length > 0 && (
				<Table
					caption="Queue by token"
					rows={queue.tokens}
					rowKey={(row) => row.name}
					columns={[
						{ title: "Token", cell: (row) => row.name || "none" },
						{ title: "Running", cell: (row) => row.running },
						{ title: "Waiting", cell: (row) => row.waiting },
					]}
				/>
			)}
			{queue.draining && <p class="remark">The server is about to stop and takes nothing new.</p>}
		</>
	);
}

function Cells({ cells }) {
	return (
		<>
			<h2>Cells</h2>
			<Table
				caption="Cells on this host"
				rows={cells.cells || []}
				rowKey={(row) => row.name || row.id}
				empty="There are no cells at the moment."
				columns={[
					{ title: "Id", cell: (row) => <code>{row.id || row.name}</code> },
					{ title: "Backend", cell: (row) => row.backend },
					{ title: "Language", cell: (row) => row.language },
					{ title: "Owner", cell: (row) => row.owner },
					{
						title: "State",
						cell: (row) => <Badge word={row.orphan ? "orphan" : row.waiting ? "waiting" : "running"} />,
					},
					{ title: "Age", cell: (row) => milliseconds(row.age_ms) },
				]}
			/>
		</>
	);
}

export function ActivityView({ search }) {
	const node = search.get("node") || "";
	const { who } = useStore(session);
	const executions = useLoaded(
		(signal) => get(query("/v1/executions", { limit: 100, node }), signal),
		[node],
		EVERY_MS,
	);
	const queue = useLoaded((signal) => get("/v1/queue", signal), [], EVERY_MS);
	// Only an administrator's token may see every cell of the host.
	const cells = useLoaded(
		(signal) => (who && who.admin ? get("/v1/cells", signal) : Promise.resolve(null)),
		[who && who.admin],
		2 * EVERY_MS,
	);
	const rows = (executions.value && executions.value.executions) || [];
	return (
		<Page title="Activity">
			<Failure error={executions.error || queue.error} />
			{who && who.nodes && <NodeFilter node={node} />}
			<Live rows={rows} reload={executions.reload} />
			{queue.value && <Queue queue={queue.value} />}
			{queue.value && <Pools pools={queue.value.pools || []} />}
			<Lately rows={rows} />
			{cells.value && <Cells cells={cells.value} />}
		</Page>
	);
}
