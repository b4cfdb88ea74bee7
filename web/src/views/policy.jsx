// SPDX-License-Identifier: Apache-2.0
// Every setting in force under a trust level, and who set it.
import { useState } from "preact/hooks";
import { get, query } from "../api.js";
import { words } from "../format.js";
import { go } from "../route.js";
import { Badge, Failure, Page, Select, Table, TextField, useLoaded } from "../parts/basics.jsx";

const TRUST = ["untrusted", "unknown", "trusted"];

function Origin({ row }) {
	return (
		<>
			<Badge word={row.layer} tone={row.layer === "built-in" ? "quiet" : "busy"}>
				{row.layer}
			</Badge>
			{row.place && row.place !== row.layer && <div class="muted">{row.place}</div>}
		</>
	);
}

function matches(row, text, onlySet) {
	if (onlySet && row.layer === "built-in") return false;
	const wanted = text.trim().toLowerCase();
	return (
		wanted === "" || row.key.includes(wanted.replaceAll(" ", "_")) || (row.help || "").toLowerCase().includes(wanted)
	);
}

export function PolicyView({ search }) {
	const trust = search.get("trust") || "";
	const loaded = useLoaded((signal) => get(query("/v1/policy", { trust }), signal), [trust]);
	const [text, setText] = useState("");
	const [onlySet, setOnlySet] = useState(false);
	const rows = ((loaded.value && loaded.value.settings) || []).filter((row) => matches(row, text, onlySet));
	return (
		<Page title="Policy">
			<form class="filters" aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
				<Select
					label="Trust"
					value={trust}
					onChange={(value) => go(query("#/policy", { trust: value }))}
					options={[
						{ value: "", label: loaded.value && !trust ? `default (${loaded.value.trust})` : "default" },
						...TRUST.map((value) => ({ value, label: value })),
					]}
				/>
				<TextField label="Find" type="search" value={text} onChange={setText} />
				<label class="check">
					<input type="checkbox" checked={onlySet} onChange={(event) => setOnlySet(event.currentTarget.checked)} /> only
					settings that were changed
				</label>
			</form>
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.value && (
				<>
					<p class="muted" role="status">
						{rows.length} settings under trust {loaded.value.trust}, preset {loaded.value.preset}
					</p>
					<Table
						caption="Settings in force"
						rows={rows}
						rowKey={(row) => row.key}
						empty="No setting matches."
						columns={[
							{
								title: "Setting",
								class: "term",
								cell: (row) => (
									<>
										<code>{row.key}</code>
										{row.section && <div class="muted">{words(row.section)}</div>}
									</>
								),
							},
							{ title: "Value", class: "long", cell: (row) => <code>{row.text === "" ? "(empty)" : row.text}</code> },
							{ title: "Set by", cell: (row) => <Origin row={row} /> },
							{ title: "Meaning", class: "wide", cell: (row) => row.help },
						]}
					/>
				</>
			)}
		</Page>
	);
}
