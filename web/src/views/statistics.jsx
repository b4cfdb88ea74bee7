// SPDX-License-Identifier: Apache-2.0
// What was counted, and how it went over time: the counters know totals, the history knows when.
import { useMemo, useState } from "preact/hooks";
import { get, query } from "../api.js";
import { Chart } from "../chart.jsx";
import { dateTime, milliseconds, words } from "../format.js";
import { Failure, Page, Select, Table, useLoaded } from "../parts/basics.jsx";

const SPANS = {
	"1h": { label: "last hour", step: 60 },
	"24h": { label: "last day", step: 1800 },
	"7d": { label: "last 7 days", step: 6 * 3600 },
	"30d": { label: "last 30 days", step: 86400 },
};
const SECONDS = { "1h": 3600, "24h": 86400, "7d": 7 * 86400, "30d": 30 * 86400 };
const ROWS_MAX = 5000;
const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

function quantile(sorted, share) {
	return sorted.length === 0 ? null : sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

// Bars: all executions, and before them those that did not end well, so that the rest is what did.
function bucketsOf(rows, span) {
	const { step } = SPANS[span];
	const end = Math.ceil(Date.now() / 1000 / step) * step;
	const count = Math.ceil(SECONDS[span] / step);
	const first = end - count * step;
	const buckets = Array.from({ length: count }, (_, i) => ({ at: first + i * step, all: 0, bad: 0, wall: [] }));
	for (const row of rows) {
		const bucket = buckets[Math.floor((new Date(row.time).getTime() / 1000 - first) / step)];
		if (!bucket) continue;
		bucket.all++;
		if (row.verdict !== "ok") bucket.bad++;
		if (row.wall_ms > 0) bucket.wall.push(row.wall_ms);
	}
	for (const bucket of buckets) bucket.wall.sort((a, b) => a - b);
	return buckets;
}

function OverTime({ rows, span }) {
	const buckets = useMemo(() => bucketsOf(rows, span), [rows, span]);
	const at = buckets.map((bucket) => bucket.at);
	const counts = useMemo(() => [at, buckets.map((b) => b.all || null), buckets.map((b) => b.bad || null)], [buckets]);
	const walls = useMemo(
		() => [at, buckets.map((b) => quantile(b.wall, 0.95)), buckets.map((b) => quantile(b.wall, 0.5))],
		[buckets],
	);
	const clock = (at) => (span === "30d" || span === "7d" ? day : hour).format(at * 1000);
	const used = buckets.filter((bucket) => bucket.all > 0);
	return (
		<>
			<section class="panel">
				<h2>
					Executions{" "}
					<span class="legend">
						<i class="key key-1" />
						all <i class="key key-4" />
						not ok
					</span>
				</h2>
				<Chart
					label={`Executions over the ${SPANS[span].label}: ${rows.length}`}
					data={counts}
					height={200}
					formatX={clock}
					bars={SPANS[span].step}
					series={[
						{ label: "all", color: "--chart-1" },
						{ label: "not ok", color: "--chart-4" },
					]}
					formatY={(n) => (Number.isInteger(n) ? String(n) : "")}
					max={4}
				/>
			</section>
			<section class="panel">
				<h2>
					Wall time{" "}
					<span class="legend">
						<i class="key key-2" />
						median <i class="key key-3" />
						95th percentile
					</span>
				</h2>
				<Chart
					label={`Wall time over the ${SPANS[span].label}`}
					data={walls}
					height={200}
					formatX={clock}
					bars={SPANS[span].step}
					series={[
						{ label: "95th percentile", color: "--chart-3" },
						{ label: "half", color: "--chart-2" },
					]}
					formatY={milliseconds}
					max={10}
				/>
			</section>
			<details>
				<summary>Show as a table</summary>
				<Table
					caption="Executions over time"
					rows={used}
					rowKey={(row) => row.at}
					empty="Nothing ran in this time."
					columns={[
						{ title: "From", cell: (row) => dateTime(row.at * 1000) },
						{ title: "Executions", cell: (row) => row.all },
						{ title: "Not ok", cell: (row) => row.bad },
						{ title: "Wall time, median", cell: (row) => milliseconds(quantile(row.wall, 0.5)) },
						{ title: "Wall time, 95th percentile", cell: (row) => milliseconds(quantile(row.wall, 0.95)) },
					]}
				/>
			</details>
		</>
	);
}

const percent = (share) => (share === null || share === undefined ? "" : `${(share * 100).toFixed(1)} %`);

function Shares({ title, counts, total }) {
	const rows = Object.entries(counts || {}).sort((a, b) => b[1] - a[1]);
	return (
		<section class="panel">
			<h2>By {title}</h2>
			<Table
				caption={`Executions by ${title}`}
				rows={rows}
				rowKey={(row) => row[0]}
				empty="Nothing was counted."
				columns={[
					{ title: words(title), cell: (row) => words(row[0]) },
					{ title: "Count", cell: (row) => row[1] },
					{
						title: "Share",
						class: "share",
						cell: (row) => (
							<>
								<meter min={0} max={total} value={row[1]} aria-label={`${row[0]}: share`} /> {percent(row[1] / total)}
							</>
						),
					},
				]}
			/>
		</section>
	);
}

function Totals({ counted }) {
	const rates = Object.entries(counted.rates || {}).filter(([, share]) => share > 0);
	return (
		<>
			<dl class="tiles">
				<div class="tile">
					<dt>Executions</dt>
					<dd>{counted.executions}</dd>
				</div>
				{rates.map(([name, share]) => (
					<div class="tile" key={name}>
						<dt>{words(name)}</dt>
						<dd>{percent(share)}</dd>
					</div>
				))}
				{counted.cache && counted.cache.hit_rate !== null && (
					<div class="tile">
						<dt>Compile cache hits</dt>
						<dd>{percent(counted.cache.hit_rate)}</dd>
					</div>
				)}
			</dl>
			<p class="muted">Counted since {dateTime(counted.since_ms)}.</p>
			<div class="panels">
				{["verdict", "language", "trust", "backend"].map((name) => (
					<Shares key={name} title={name} counts={(counted.by || {})[name]} total={counted.executions} />
				))}
			</div>
		</>
	);
}

export function StatisticsView() {
	const [span, setSpan] = useState("24h");
	const counted = useLoaded((signal) => get("/v1/statistics", signal));
	const past = useLoaded((signal) => get(query("/v1/history", { since: span, limit: ROWS_MAX }), signal), [span]);
	const rows = past.value ? past.value.executions : [];
	return (
		<Page
			title="Statistics"
			actions={
				<Select
					label="Time"
					value={span}
					onChange={setSpan}
					options={Object.entries(SPANS).map(([value, { label }]) => ({ value, label }))}
				/>
			}
		>
			<Failure
				error={counted.error || past.error}
				retry={() => {
					counted.reload();
					past.reload();
				}}
			/>
			{past.value && past.value.total > rows.length && (
				<p class="remark">
					Only the youngest {rows.length} of {past.value.total} executions are drawn.
				</p>
			)}
			{past.value && <OverTime rows={rows} span={span} />}
			{counted.value && <Totals counted={counted.value} />}
		</Page>
	);
}
