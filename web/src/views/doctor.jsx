// SPDX-License-Identifier: Apache-2.0
// What this host can enforce, and the fix for what it cannot.
import { get } from "../api.js";
import { words } from "../format.js";
import { Badge, Failure, Page, Table, useLoaded } from "../parts/basics.jsx";

function groups(rows) {
	const found = new Map();
	for (const row of rows) found.set(row.area, [...(found.get(row.area) || []), row]);
	return [...found];
}

const STATUS_TONE = { ok: "good", info: "quiet" };
const isMissing = (row) => row.status !== "ok" && row.status !== "info";
const toneOf = (row) => STATUS_TONE[row.status] || (row.required ? "bad" : "warn");

export function DoctorView() {
	const loaded = useLoaded((signal) => get("/v1/capabilities", signal));
	const rows = (loaded.value && loaded.value.rows) || [];
	const missing = rows.filter((row) => isMissing(row) && row.required);
	return (
		<Page
			title="Host"
			actions={
				<button type="button" onClick={loaded.reload}>
					Check again
				</button>
			}
		>
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.value && (
				<p role="status">
					<Badge word={loaded.value.ok ? "ok" : "missing"} tone={loaded.value.ok ? "good" : "bad"}>
						{loaded.value.ok ? "ready" : "not ready"}
					</Badge>{" "}
					{loaded.value.ok
						? "This host can keep the policy."
						: `This host cannot keep the policy: ${missing.map((row) => words(row.name)).join(", ")}.`}
				</p>
			)}
			{groups(rows).map(([area, list]) => (
				<section key={area}>
					<h2>{words(area)}</h2>
					<Table
						caption={words(area)}
						rows={list}
						rowKey={(row) => row.name}
						columns={[
							{ title: "What", class: "term", cell: (row) => words(row.name) },
							{ title: "Status", cell: (row) => <Badge word={row.status} tone={toneOf(row)} /> },
							{
								title: "Detail",
								class: "wide",
								cell: (row) => (
									<>
										<div>{row.detail}</div>
										{isMissing(row) && row.lost && <div>Without it {row.lost}.</div>}
										{isMissing(row) && row.fix && <div class="muted">Fix: {row.fix}</div>}
									</>
								),
							},
						]}
					/>
				</section>
			))}
		</Page>
	);
}
