// SPDX-License-Identifier: Apache-2.0
// An execution: its verdict, charts, output, and the tables that a result has.
import { Fragment } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Chart } from "../chart.jsx";
import { CodeView } from "../editor.jsx";
import { outputOf } from "../execution.js";
import { bytes, dateTime, milliseconds, plural, words } from "../format.js";
import { Badge, Failure, Table, Tabs } from "./basics.jsx";
import { Files } from "./files.jsx";
import { Output } from "./output.jsx";

// All files are asked for, so that pictures are shown; that there are none is no news.
const NO_FILES = "the program left no files";
const PHASE = { waiting: "waiting", running: "running" };

function summaryOf(result) {
	const found = [];
	if (result.exit_code !== null && result.exit_code !== undefined) found.push(`exit code ${result.exit_code}`);
	if (result.signal) found.push(result.signal);
	const { usage } = result;
	if (usage) {
		found.push(
			`${milliseconds(usage.wall_ms)} wall`,
			`${milliseconds(usage.cpu_ms)} cpu`,
			`${bytes(usage.memory_peak_bytes)} at most`,
		);
	}
	if (result.warm) found.push("warm cell");
	return found.join(", ");
}

// Announced as a whole when it changes; the sentence tells all that the colour does.
export function Verdict({ phase, verdict, result, error, position, notices = [], cancelling }) {
	const word = PHASE[phase] || verdict;
	return (
		<div class={`verdict ${word ? "" : "verdict-none"}`}>
			<div role="status" aria-live="polite" aria-atomic="true" class="verdict-line">
				{word && (
					<>
						<span class="unseen">Verdict: </span>
						<Badge word={word} />
					</>
				)}
				{phase === "waiting" && <span>{position ? `place ${position} in the queue` : "the cell is being made"}</span>}
				{phase === "running" && <span>{cancelling ? "is being cancelled" : "the program is running"}</span>}
				{result && <span>{summaryOf(result)}</span>}
				{!word && !error && <span class="muted">Nothing has run yet. Ctrl+Enter runs the program.</span>}
				{result && result.reason && <p class="reason">{result.reason}</p>}
			</div>
			{result && result.hint && (
				<p class="advice">
					<strong>Hint:</strong> {result.hint}
				</p>
			)}
			<Failure error={error} />
			{notices.map((text, at) => (
				<p class="remark" key={at}>
					{text}
				</p>
			))}
			{result &&
				(result.warnings || [])
					.filter((text) => text !== NO_FILES)
					.map((text, at) => (
						<p class="remark" key={`w${at}`}>
							{text}
						</p>
					))}
		</div>
	);
}

// cpu time is a counter: between two readings it is a share of one cpu.
function seriesOf(samples) {
	const at = [];
	const cpu = [];
	const memory = [];
	const pids = [];
	let before = { at_ms: 0, cpu_ms: 0 };
	for (const sample of samples) {
		const span = sample.at_ms - before.at_ms;
		if (span <= 0) continue;
		at.push(sample.at_ms / 1000);
		cpu.push(Math.max(0, ((sample.cpu_ms - before.cpu_ms) / span) * 100));
		memory.push(sample.memory_bytes);
		pids.push(sample.pids);
		before = sample;
	}
	return { at, cpu, memory, pids };
}

const last = (list) => list[list.length - 1] ?? 0;
const seconds = (n) => `${n} s`;
const BINARY = Array.from({ length: 40 }, (_, at) => 2 ** (at + 10)); // bytes are told in powers of two
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];

// What it uses while it runs; what it used in all when it is over, as the last reading is of a cell that is being removed.
function readings({ cpu, memory, pids }, usage) {
	if (!usage) return [`${Math.round(last(cpu))} %`, bytes(last(memory)), String(last(pids))];
	const mean = usage.wall_ms > 0 ? (usage.cpu_ms / usage.wall_ms) * 100 : 0;
	return [
		`mean ${Math.round(mean)} %`,
		`peak ${bytes(usage.memory_peak_bytes)}`,
		`peak ${usage.pids_peak ?? Math.max(...pids)}`,
	];
}

export function Charts({ samples, usage }) {
	const { at, cpu, memory, pids } = useMemo(() => seriesOf(samples), [samples]);
	if (at.length < 2) return null; // one reading is no line; the verdict tells the numbers
	const now = readings({ cpu, memory, pids }, usage);
	const rows = [
		{
			title: "CPU",
			now: now[0],
			data: cpu,
			color: "--chart-1",
			format: (n) => `${Math.round(n)} %`,
			max: 10,
		},
		{
			title: "Memory",
			now: now[1],
			data: memory,
			color: "--chart-2",
			format: (n) => bytes(n).replace(".0 ", " "),
			max: 1024 * 1024,
			steps: BINARY,
		},
		{
			title: "Processes",
			now: now[2],
			data: pids,
			color: "--chart-3",
			format: String,
			max: 2,
			steps: WHOLE,
		},
	];
	return (
		<div class="charts">
			{rows.map((row) => (
				<section key={row.title}>
					<h3>
						{row.title} <span class="now">{row.now}</span>
					</h3>
					<Chart
						label={`${row.title} over ${seconds(last(at).toFixed(1))}: ${row.now}, at most ${row.format(Math.max(...row.data))} in a reading`}
						data={[at, row.data]}
						series={[{ label: row.title, color: row.color }]}
						height={110}
						formatX={seconds}
						formatY={row.format}
						max={row.max}
						steps={row.steps}
					/>
				</section>
			))}
		</div>
	);
}

export function FindingList({ findings, onShow, code }) {
	return (
		<Table
			caption="Findings"
			rows={findings}
			rowKey={(row) => `${row.line}:${row.column}:${row.rule}:${row.name}`}
			empty="The inspection found nothing."
			columns={[
				{ title: "Severity", cell: (row) => <Badge word={row.severity}>{row.severity.toLowerCase()}</Badge> },
				{
					title: "Line",
					cell: (row) =>
						onShow ? (
							<button
								type="button"
								class="link"
								onClick={() => onShow(row)}
								aria-label={`Go to line ${row.line}: ${row.message}`}
							>
								{row.line}
							</button>
						) : (
							row.line
						),
				},
				{
					title: "Finding",
					class: "wide",
					cell: (row) => (
						<>
							<div>{row.message}</div>
							<div class="muted">{row.remedy}</div>
						</>
					),
				},
				{ title: "Rule", cell: (row) => <code>{row.rule}</code> },
			]}
		/>
	);
}

// Checks whose numbers are more than people read at a glance.
const UNITS = {
	memory_limit: bytes,
	swap_limit: bytes,
	socket_memory: bytes,
	disk_limit: bytes,
	output: bytes,
	wall_time: milliseconds,
	cpu_time: milliseconds,
	cpu_quota: (n) => `${n} %`,
};

// Numbers stay whole; what is longer may be broken anywhere.  The value is shown as it was read, with what it means below it.
function Value({ text, check }) {
	const number = /^(?:[<>]=? )?(\d+)$/.exec(text);
	const meaning = number && UNITS[check] && Number(number[1]) > 0 ? UNITS[check](Number(number[1])) : "";
	return (
		<>
			<code class={text.length > 16 ? "long" : undefined}>{text.replace(/^([<>]=?) /, "$1\u00a0")}</code>
			{meaning && <div class="meaning">{meaning}</div>}
		</>
	);
}

// A cell's group has a long name of its own, which the id tells already.  A path is broken where its parts end.
function Source({ text }) {
	const parts = text.replace(/brig-[a-z2-7]{16}[^/]*/, "*").split(/(?<=[/._])(?![/._])/);
	return (
		<code title={text}>
			{parts.map((part, at) => (
				<Fragment key={at}>
					{part}
					<wbr />
				</Fragment>
			))}
		</code>
	);
}

function Evidence({ result }) {
	const rows = result.evidence || [];
	const broken = rows.filter((row) => !row.kept).length;
	return (
		<>
			{rows.length > 0 && (
				<p>
					{broken === 0
						? `All ${rows.length} promises were kept, read back from the running cell.`
						: `${plural(broken, "promise")} of ${rows.length} not kept.`}
				</p>
			)}
			{(result.degraded || []).length > 0 && (
				<Table
					caption="Protections that this host could not give"
					rows={result.degraded}
					columns={[
						{ title: "Not given", cell: (row) => words(row.protection) },
						{ title: "What is lost", cell: (row) => row.lost },
						{ title: "Fix", cell: (row) => row.fix },
					]}
				/>
			)}
			<Table
				caption="Evidence"
				rows={rows}
				rowKey={(row) => row.check}
				rowClass={(row) => (row.kept ? "" : "broken")}
				empty="Nothing ran, so there is nothing to prove."
				columns={[
					{ title: "Promise", class: "term", cell: (row) => words(row.check) },
					{ title: "Declared", cell: (row) => <Value text={row.declared} check={row.check} /> },
					{ title: "Enforced", cell: (row) => <Value text={row.enforced} check={row.check} /> },
					{
						title: "Kept",
						cell: (row) => <Badge word={row.kept ? "kept" : "broken"}>{row.kept ? "kept" : "not kept"}</Badge>,
					},
					{
						title: "Read from",
						class: "source",
						cell: (row) => <Source text={row.source} />,
					},
				]}
			/>
		</>
	);
}

function Tried({ result }) {
	return (
		<>
			<h3>Refused</h3>
			<Table
				caption="What the program was refused"
				rows={result.denied || []}
				empty="The program tried nothing that was refused."
				columns={[
					{ title: "Kind", cell: (row) => row.kind },
					{ title: "What", cell: (row) => <code>{row.what}</code> },
					{ title: "Times", cell: (row) => row.count },
					{
						title: "Why",
						class: "wide",
						cell: (row) => (
							<>
								<div>{row.why}</div>
								{row.fix && <div class="muted">{row.fix}</div>}
							</>
						),
					},
				]}
			/>
			{(result.network || []).length > 0 && (
				<>
					<h3>Network</h3>
					<Table
						caption="Hosts that the program asked for"
						rows={result.network}
						columns={[
							{ title: "Host", cell: (row) => <code>{row.port ? `${row.host}:${row.port}` : row.host}</code> },
							{
								title: "Allowed",
								cell: (row) => (
									<Badge word={row.allowed ? "ok" : "refused"}>{row.allowed ? "allowed" : "refused"}</Badge>
								),
							},
							{ title: "Why", cell: (row) => row.reason },
							{ title: "Times", cell: (row) => row.count },
							{ title: "Bytes", cell: (row) => `${bytes(row.sent_bytes)} out, ${bytes(row.received_bytes)} in` },
						]}
					/>
				</>
			)}
		</>
	);
}

function limitText(name, value) {
	if (name.endsWith("_ms")) return milliseconds(value);
	if (name.endsWith("_bytes")) return bytes(value);
	return name === "cpu_percent" ? `${value} %` : String(value);
}

function Facts({ rows }) {
	return (
		<dl class="facts">
			{rows
				.filter(([, value]) => value !== null && value !== undefined && value !== "")
				.map(([name, value]) => (
					<div key={name}>
						<dt>{name}</dt>
						<dd>{value}</dd>
					</div>
				))}
		</dl>
	);
}

function Details({ result }) {
	const audit = result.audit ? `entry ${result.audit.entry}` : result.audit_seq ? `entry ${result.audit_seq}` : null;
	return (
		<>
			<Facts
				rows={[
					["Id", <code>{result.id}</code>],
					["Time", dateTime(result.time)],
					["Language", result.language],
					["Backend", result.backend],
					["Trust", `${result.trust} (${words(result.trust_source || "")})`],
					["Inspection", result.inspection],
					["Step", result.step],
					["Environment", result.environment],
					["Asked for by", result.who],
					["Through", result.door],
					["Audit log", audit],
					["Compile cache", result.cache && result.cache.compile],
					["Packages", result.packages && `${result.packages.ecosystem}: ${result.packages.state}`],
				]}
			/>
			<h3>Time</h3>
			<Facts
				rows={Object.entries(result.timing || {}).map(([name, value]) => [
					words(name.replace(/_ms$/, "")),
					milliseconds(value),
				])}
			/>
			<h3>Limits</h3>
			<Facts
				rows={Object.entries(result.limits || {}).map(([name, value]) => [
					words(name.replace(/_(ms|bytes)$/, "")),
					limitText(name, value),
				])}
			/>
		</>
	);
}

function tabsOf(e, findings, onShowFinding) {
	const { result } = e;
	const isSeen = e.output.length > 0 || !result; // as it came; else only the result knows it
	const output = () => (isSeen ? { pieces: e.output, dropped: e.dropped } : outputOf(result));
	const tabs = [
		{
			id: "output",
			title: "Output",
			body: () => <Output {...output()} result={result} busy={e.phase === "running"} />,
		},
	];
	if (result && result.code && result.code.text) {
		tabs.push({
			id: "code",
			title: "Code",
			body: () => <CodeView label="Code" value={result.code.text} language={result.language} />,
		});
	}
	if (findings.length > 0 || result)
		tabs.push({
			id: "findings",
			title: "Findings",
			count: findings.length,
			body: () => <FindingList findings={findings} onShow={onShowFinding} />,
		});
	if (!result) return tabs;
	const files = new Set(
		[...(result.artifacts || []), ...(result.changes || []), ...(result.left || [])].map((entry) => entry.path),
	).size;
	const tried = (result.denied || []).length + (result.network || []).length;
	tabs.push(
		{
			id: "evidence",
			title: "Evidence",
			count: (result.evidence || []).length,
			body: () => <Evidence result={result} />,
		},
		{ id: "tried", title: "What it tried", count: tried, body: () => <Tried result={result} /> },
		{ id: "files", title: "Files", count: files, body: () => <Files result={result} /> },
		{ id: "details", title: "Details", body: () => <Details result={result} /> },
	);
	return tabs;
}

// e: the value of an execution's store.
export function ExecutionResult({ e, onShowFinding }) {
	const [tab, setTab] = useState("output");
	const findings = (e.result && e.result.findings) || e.findings;
	const samples = e.samples.length > 0 ? e.samples : (e.result && e.result.samples) || [];
	const started = e.phase !== "idle";
	return (
		<div class="result">
			<Verdict {...e} />
			<Charts samples={samples} usage={e.result && e.result.usage} />
			{started && <Tabs label="Result" tabs={tabsOf(e, findings, onShowFinding)} selected={tab} onSelect={setTab} />}
		</div>
	);
}
