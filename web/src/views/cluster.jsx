// SPDX-License-Identifier: Apache-2.0
// The nodes of the queue: how they are, what each can enforce and takes, and how much waits for them.
import { useState } from "preact/hooks";
import { get } from "../api.js";
import { ago, dateTime, milliseconds, oneLine, plural, untilThen, words } from "../format.js";
import { Badge, Failure, Page, Table, Tile, useLoaded } from "../parts/basics.jsx";

const EVERY_MS = 2000;
const AT_ONCE = 100; // rows; there may be thousands of nodes
const isLive = (node) => node.state === "live" && node.role !== "front"; // a front is here for its sessions
const freeOf = (node) => (isLive(node) ? Math.max(0, node.places - node.running) : 0);
const byNameLiveFirst = (a, b) => isLive(b) - isLive(a) || (a.name < b.name ? -1 : 1);
const sum = (nodes, of) => nodes.reduce((before, node) => before + of(node), 0);

// "unknown.python", "unknown.env-data", "unknown.kind-shell", "unknown.any": trust, and what is to be run.
function takes(classes) {
	const found = { trust: new Set(), languages: new Set(), environments: new Set() };
	for (const name of classes) {
		const at = name.indexOf(".");
		const what = name.slice(at + 1);
		found.trust.add(name.slice(0, at));
		if (what.startsWith("env-")) found.environments.add(what.slice(4));
		else if (what !== "any" && !what.startsWith("kind-")) found.languages.add(what);
	}
	return found;
}

const listed = (names) => [...names].map((name) => oneLine(words(name))).join(", ") || "none";

function NodeName({ node }) {
	return (
		<a href={`#/activity?${new URLSearchParams({ node: node.name })}`}>
			<code title={`key ${node.key}`}>{oneLine(node.name)}</code>
		</a>
	);
}

function Pressure({ cpu, memory }) {
	if (cpu === null && memory === null) return "not told";
	const text = (name, n) => (n === null ? "" : `${name} ${Math.round(n)} %`);
	return [text("cpu", cpu), text("memory", memory)].filter(Boolean).join(", ");
}

const HEALTH = [
	{ title: "Node", cell: (node) => <NodeName node={node} /> },
	{ title: "State", cell: (node) => <Badge word={node.state} tone={{ live: "good", draining: "warn" }[node.state] || "bad"} /> },
	{ title: "Running", class: "term", cell: (node) => `${node.running} of ${node.slots}` },
	{ title: "Free", cell: freeOf },
	{ title: "Pressure", cell: (node) => <Pressure cpu={node.pressure_cpu} memory={node.pressure_memory} /> },
	{
		title: "Last word",
		cell: (node) => (
			<time dateTime={node.seen} title={dateTime(node.seen)}>
				{ago(node.seen)}
			</time>
		),
	},
	{ title: "Lease", class: "term", cell: (node) => (isLive(node) ? `${untilThen(node.until)} left` : "over") },
	{ title: "Begun", cell: (node) => node.begun },
	{ title: "Begun again", cell: (node) => node.begun_again },
];

function Protections({ node }) {
	if (node.protections.length + node.lacks.length === 0) return "not told yet";
	return (
		<>
			{node.lacks.length > 0 && (
				<div>
					<Badge word="missing" /> {listed(node.lacks)}
				</div>
			)}
			<details>
				<summary aria-label={`${plural(node.protections.length, "protection")} of ${oneLine(node.name)}`}>
					{node.lacks.length > 0
						? plural(node.protections.length, "protection")
						: `all ${plural(node.protections.length, "protection")}`}
				</summary>
				{listed(node.protections)}
			</details>
		</>
	);
}

const ENFORCES = [
	{ title: "Node", cell: (node) => <NodeName node={node} /> },
	{ title: "Protections", class: "wide", cell: (node) => <Protections node={node} /> },
	{ title: "Backends", cell: (node) => listed(node.backends) },
	{ title: "Trust", cell: (node) => listed(takes(node.classes).trust) },
	{ title: "Languages", class: "wide", cell: (node) => listed(takes(node.classes).languages) },
	{ title: "Environments", cell: (node) => listed(takes(node.classes).environments) },
	{ title: "Warm", cell: (node) => listed(node.ready.map((name) => name.replace(".", " ").replace(" env-", " "))) },
];

function Summary({ cluster }) {
	const live = cluster.nodes.filter(isLive);
	return (
		<>
			<p role="status">
				<Badge word={cluster.brokers ? "ok" : "missing"} tone={cluster.brokers ? "good" : "bad"}>
					{cluster.brokers ? "connected" : "no broker"}
				</Badge>{" "}
				{cluster.brokers
					? `${live.length} of ${plural(cluster.nodes.length, "node")} can be given jobs.`
					: "No broker answers: what is below is what was last heard."}
			</p>
			<dl class="tiles">
				<Tile title="Live nodes" value={live.length} />
				<Tile title="Free places" value={sum(live, freeOf)} />
				<Tile title="Jobs in the queue" value={cluster.depth} />
				<Tile title="Oldest job" value={cluster.depth > 0 ? milliseconds(cluster.oldest_seconds * 1000) : "none"} />
				<Tile title="Redelivered" value={cluster.begun_again} />
				<Tile title="Given by this server" value={cluster.published} />
				<Tile title="Lost" value={cluster.lost} />
				<Tile title="Forged or altered" value={cluster.refused} />
			</dl>
		</>
	);
}

const NONE =
	"No node has said anything so far. Start one with brig worker --queue, and have its key in the list of --nodes.";

function Nodes({ nodes }) {
	const [most, setMost] = useState(AT_ONCE);
	const rows = [...nodes].sort(byNameLiveFirst).slice(0, most);
	return (
		<>
			<h2>Nodes</h2>
			<Table caption="Nodes" rows={rows} rowKey={(node) => node.key} columns={HEALTH} empty={NONE} />
			{rows.length > 0 && (
				<>
					<h2>What each can enforce, and takes</h2>
					<Table caption="What each node can enforce" rows={rows} rowKey={(node) => node.key} columns={ENFORCES} />
				</>
			)}
			{rows.length < nodes.length && (
				<button type="button" onClick={() => setMost(most * 4)}>
					Show more of {plural(nodes.length, "node")}
				</button>
			)}
		</>
	);
}

export function ClusterView() {
	const loaded = useLoaded((signal) => get("/v1/nodes", signal), [], EVERY_MS);
	return (
		<Page title="Cluster">
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.value && <Summary cluster={loaded.value} />}
			{loaded.value && <Nodes nodes={loaded.value.nodes} />}
		</Page>
	);
}
