// SPDX-License-Identifier: Apache-2.0
// A result of a context: each value in one of the forms that it has (shown.js says what is safe about them).
import { useMemo, useState } from "preact/hooks";
import { fromBase64 } from "../format.js";
import { formsOf, frameDocument, isTooLong, pictureAddress, prettyJson, tableOf, withoutEscapes } from "../shown.js";
import { useStore } from "../store.js";
import { theme } from "../theme.js";
import { download } from "./basics.jsx";

const TEXT_MAX = 256 * 1024;

function Text({ label, text }) {
	const shown = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}\n...` : text;
	return (
		<pre class="stream-text" tabIndex={0} aria-label={label}>
			{shown}
		</pre>
	);
}

function DataTable({ label, table }) {
	return (
		<>
			<div class="data-table" role="region" aria-label={label} tabIndex={0}>
				<table>
					<caption class={table.caption ? "" : "unseen"}>{table.caption || label}</caption>
					<tbody>
						{table.rows.map((row, at) => (
							<tr key={at} class={row.isHead ? "is-head" : ""}>
								{row.cells.map((cell, column) => {
									const Cell = cell.isHead ? "th" : "td";
									return (
										<Cell
											key={column}
											colSpan={cell.columns}
											rowSpan={cell.rows}
											scope={cell.isHead ? (row.isHead ? "col" : "row") : undefined}
										>
											{cell.text}
										</Cell>
									);
								})}
							</tr>
						))}
					</tbody>
				</table>
			</div>
			{table.beside && <p class="muted">{table.beside}</p>}
			{table.cut && <p class="remark">The table has more rows than are shown here.</p>}
		</>
	);
}

function Html({ label, value }) {
	const { name } = useStore(theme);
	const table = useMemo(() => tableOf(value), [value]);
	const frame = useMemo(() => (table || isTooLong(value) ? "" : frameDocument(value, name)), [value, table, name]);
	if (table) return <DataTable label={label} table={table} />;
	if (!frame) return <p class="remark">It is too long to be shown: save it.</p>;
	return <iframe class="shown-html" title={label} sandbox="" referrerpolicy="no-referrer" srcdoc={frame} />;
}

function Picture({ label, name, value, alt }) {
	const address = useMemo(() => pictureAddress(name, value), [name, value]);
	if (!address) return <p class="remark">This picture cannot be read.</p>;
	return (
		<div class="picture">
			<img src={address} alt={alt ? `${label}: ${alt}` : label} />
		</div>
	);
}

const SHOW = {
	png: Picture,
	jpeg: Picture,
	svg: Picture,
	html: Html,
	json: ({ label, value }) => <Text label={label} text={prettyJson(value)} />,
	pdf: () => <p class="muted">A PDF document: save it to open it.</p>,
};
const Plain = ({ label, value }) => <Text label={label} text={value} />;
const BYTES = new Set(["png", "jpeg", "pdf"]);
const ENDING = { text: "txt", markdown: "md", latex: "tex", javascript: "js" };

function save(name, value) {
	try {
		download(`result.${ENDING[name] || name}`, BYTES.has(name) ? fromBase64(value.replace(/\s/g, "")) : value);
	} catch {
		download("result.txt", value);
	}
}

export function Shown({ label, forms }) {
	const names = formsOf(forms);
	const [chosen, setChosen] = useState("");
	const name = names.includes(chosen) ? chosen : names[0];
	if (!name) return <p class="muted">This value cannot be shown.</p>;
	const Show = SHOW[name] || Plain;
	const isPlain = names.length === 1 && name === "text";
	return (
		<div class="shown">
			<Show key={name} label={`${label} as ${name}`} name={name} value={forms[name]} alt={forms.text} />
			{!isPlain && (
				<div class="row">
					{names.length > 1 && (
						<div class="choice" role="group" aria-label={`Forms of ${label.toLowerCase()}`}>
							{names.map((one) => (
								<button type="button" key={one} aria-pressed={one === name} onClick={() => setChosen(one)}>
									{one}
								</button>
							))}
						</div>
					)}
					<button
						type="button"
						class="small"
						aria-label={`Save ${label.toLowerCase()}`}
						onClick={() => save(name, forms[name])}
					>
						Save
					</button>
				</div>
			)}
		</div>
	);
}

// An error as the interpreter tells it.
export function Traceback({ error }) {
	return (
		<div class="failure traceback">
			<p>
				<strong>{error.name}</strong>
				{error.value ? `: ${withoutEscapes(error.value)}` : ""}
			</p>
			{error.traceback && (
				<pre tabIndex={0} aria-label="Traceback">
					{withoutEscapes(error.traceback)}
				</pre>
			)}
		</div>
	);
}
