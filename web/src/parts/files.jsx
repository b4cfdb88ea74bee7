// SPDX-License-Identifier: Apache-2.0
// Files of a run: artifacts with their pictures, changes with their difference.  A picture is only ever the source of an
// <img>: whatever else is in the file, it is not run.
import { useEffect, useMemo, useState } from "preact/hooks";
import { executionPath, fetchBytes } from "../api.js";
import { filesOf } from "../diff.js";
import { bytes, fromBase64, pathInAddress, pathText, textOf, toBase64 } from "../format.js";
import { Badge, Failure, Table, download } from "./basics.jsx";

const PICTURES = {
	png: "image/png",
	jpg: "image/jpeg",
	jpeg: "image/jpeg",
	gif: "image/gif",
	webp: "image/webp",
	svg: "image/svg+xml",
	avif: "image/avif",
	bmp: "image/bmp",
};
export const PICTURE_MAX = 16 * 1024 * 1024;
export const TEXT_MAX = 512 * 1024;

export const pictureType = (entry) => PICTURES[pathText(entry).split(".").pop().toLowerCase()];

async function contentsOf(id, entry, signal) {
	if (entry.content !== undefined) {
		return entry.content_encoding === "base64" ? fromBase64(entry.content) : new TextEncoder().encode(entry.content);
	}
	return fetchBytes(`${executionPath(id)}/artifacts/${pathInAddress(entry)}`, signal);
}

// An SVG from a blob: address would be a document of this origin if somebody opened it alone; data: has no origin.
export function addressOf(data, type) {
	if (type === "image/svg+xml") return `data:${type};base64,${toBase64(data)}`;
	return URL.createObjectURL(new Blob([data], { type }));
}

function Picture({ id, entry }) {
	const [state, setState] = useState({ address: "", error: null });
	useEffect(() => {
		const stop = new AbortController();
		let address = "";
		contentsOf(id, entry, stop.signal)
			.then((data) => {
				address = addressOf(data, pictureType(entry));
				setState({ address, error: null });
			})
			.catch((error) => stop.signal.aborted || setState({ address: "", error }));
		return () => {
			stop.abort();
			if (address.startsWith("blob:")) URL.revokeObjectURL(address);
		};
	}, [id, entry.sha256]);
	const name = pathText(entry);
	return (
		<figure class="picture">
			{state.address && <img src={state.address} alt={`Picture that the program made: ${name}`} />}
			{state.error && (
				<p class="remark">
					{name} is not held any more: {state.error.message}
				</p>
			)}
			<figcaption>{name}</figcaption>
		</figure>
	);
}

// kind: what to do with the contents once they are here.
function useContents(id, entry) {
	const [state, setState] = useState({ text: null, error: null });
	async function load(use) {
		try {
			use(await contentsOf(id, entry));
		} catch (error) {
			setState({ text: null, error });
		}
	}
	function show(data) {
		const text = data.length <= TEXT_MAX ? textOf(data) : null;
		setState(
			text === null
				? { text: null, error: new Error("It is not text, or too long to be shown: save it.") }
				: { text, error: null },
		);
	}
	return { ...state, load, show, hide: () => setState({ text: null, error: null }) };
}

function Artifact({ id, entry }) {
	const contents = useContents(id, entry);
	const name = pathText(entry);
	const isShown = contents.text !== null;
	return (
		<li>
			<div class="row">
				<code class="name">{name}</code>
				<span class="muted">{bytes(entry.size)}</span>
				<div class="actions">
					{!pictureType(entry) && (
						<button
							type="button"
							aria-expanded={isShown}
							aria-label={`${isShown ? "Hide" : "Show"} ${name}`}
							onClick={() => (isShown ? contents.hide() : contents.load(contents.show))}
						>
							{isShown ? "Hide" : "Show"}
						</button>
					)}
					<button
						type="button"
						aria-label={`Save ${name}`}
						onClick={() => contents.load((data) => download(name.split("/").pop(), data))}
					>
						Save
					</button>
				</div>
			</div>
			<Failure error={contents.error} />
			{isShown && (
				<pre class="stream-text" tabIndex={0} aria-label={name}>
					{contents.text}
				</pre>
			)}
		</li>
	);
}

const DIFF_TITLE = { "-": "taken away", "+": "added" };
const DIFF_CLASS = { " ": "same", "-": "old", "+": "new", "@": "gap", "\\": "gap" };

function Diff({ name, rows }) {
	return (
		<pre class="diff" tabIndex={0} aria-label={`Changes of ${name}`}>
			{rows.map((row, at) => (
				<span key={at} class={`diff-${DIFF_CLASS[row.kind]}`} title={DIFF_TITLE[row.kind]}>
					{row.kind === "@" || row.kind === "\\" ? row.text : `${row.kind} ${row.text}`}
					{"\n"}
				</span>
			))}
		</pre>
	);
}

// rows: of the result's diff; undefined: it has none for this one.
function Change({ change, rows }) {
	const name = pathText(change);
	const [open, setOpen] = useState(false);
	return (
		<li>
			<div class="row">
				<Badge word={change.change} tone={{ added: "good", deleted: "bad" }[change.change] || "busy"} />
				<code class="name">{name}</code>
				<span class="muted">
					{change.type}
					{change.size !== undefined && change.change !== "deleted" ? `, ${bytes(change.size)}` : ""}
				</span>
				{rows && rows.length > 0 && (
					<div class="actions">
						<button
							type="button"
							aria-expanded={open}
							aria-label={`Difference of ${name}`}
							onClick={() => setOpen(!open)}
						>
							{open ? "Hide" : "Diff"}
						</button>
					</div>
				)}
			</div>
			{open && rows && <Diff name={name} rows={rows} />}
		</li>
	);
}

function Changes({ result }) {
	const rows = useMemo(() => filesOf(result.diff), [result.diff]);
	return (
		<>
			<h3>Changed files</h3>
			<ul class="entries">
				{result.changes.map((change) => (
					<Change key={change.path} change={change} rows={rows.get(pathText(change))} />
				))}
			</ul>
			{result.diff && result.diff.truncated && (
				<p class="muted">There are more differences than a result has: those of some files are left out.</p>
			)}
			{result.diff && result.diff.text && (
				<div class="actions">
					<button type="button" onClick={() => download(`${result.id}.diff`, bytesOfDiff(result.diff))}>
						Save as a patch
					</button>
				</div>
			)}
		</>
	);
}

const bytesOfDiff = (diff) =>
	diff.encoding === "base64" ? fromBase64(diff.text) : new TextEncoder().encode(diff.text);

export function Files({ result }) {
	const artifacts = result.artifacts || [];
	const changes = result.changes || [];
	const left = result.left || [];
	const pictures = artifacts.filter((entry) => pictureType(entry) && entry.size <= PICTURE_MAX);
	if (artifacts.length + changes.length + left.length === 0) return <p class="empty">The program left no files.</p>;
	return (
		<div class="files">
			{pictures.length > 0 && (
				<div class="pictures">
					{pictures.map((entry) => (
						<Picture key={entry.path} id={result.id} entry={entry} />
					))}
				</div>
			)}
			{changes.length > 0 && <Changes result={result} />}
			{artifacts.length > 0 && (
				<>
					<h3>Artifacts</h3>
					<ul class="entries">
						{artifacts.map((entry) => (
							<Artifact key={entry.path} id={result.id} entry={entry} />
						))}
					</ul>
				</>
			)}
			{left.length > 0 && (
				<>
					<h3>Left behind</h3>
					<p class="muted">Nobody asked for these; name a pattern under Artifacts to fetch them.</p>
					<Table
						caption="Files that were left behind"
						rows={left}
						columns={[
							{ title: "Path", cell: (row) => <code>{pathText(row)}</code> },
							{ title: "Size", cell: (row) => bytes(row.size) },
						]}
					/>
				</>
			)}
		</div>
	);
}
