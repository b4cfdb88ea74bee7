// SPDX-License-Identifier: Apache-2.0
// The files of a session: folders that open, files that are shown, saved, put there and removed.
import { useRef, useState } from "preact/hooks";
import { fetchBytes, get, post, putBytes, query, remove, sessionPath } from "../api.js";
import { bytes, pathInAddress, plural, textOf } from "../format.js";
import { ActionButton, Failure, Field, TextField, download, useLoaded } from "./basics.jsx";
import { PICTURE_MAX, TEXT_MAX, addressOf, pictureType } from "./files.jsx";

const UPLOAD_MAX = 32 * 1024 * 1024; // the server takes bodies of so many bytes
const lastOf = (path) => path.split("/").pop();
const joined = (folder, name) => (folder ? `${folder}/${name}` : name);
const addressIn = (id, path) => `${sessionPath(id)}/files/${pathInAddress({ path })}`;

// The session tells "./a" of its own folder.
const relative = (path) => path.replace(/^\.\//, "");
const inOrder = (a, b) => (b.type === "folder") - (a.type === "folder") || a.path.localeCompare(b.path);

async function listFolder(id, path, signal) {
	const { files, truncated } = await get(query(`${sessionPath(id)}/files`, { path, depth: 1 }), signal);
	return { rows: files.map((row) => ({ ...row, path: relative(row.path) })).sort(inOrder), truncated };
}

// ---- a file ----

function Contents({ name, contents }) {
	if (contents.picture)
		return (
			<div class="picture">
				<img src={contents.picture} alt={`Picture in the session: ${name}`} />
			</div>
		);
	if (contents.text === null) return <p class="remark">It is not text, or too long to be shown: save it.</p>;
	return (
		<pre class="stream-text" tabIndex={0} aria-label={name}>
			{contents.text}
		</pre>
	);
}

function contentsOf(row, data) {
	const type = pictureType(row);
	if (type && data.length <= PICTURE_MAX) return { picture: addressOf(data, type) };
	return { text: data.length <= TEXT_MAX ? textOf(data) : null };
}

function FileEntry({ id, row, live, onChanged }) {
	const [shown, setShown] = useState(null);
	const name = row.path;
	const address = addressIn(id, name);
	async function toggle() {
		if (shown && shown.picture && shown.picture.startsWith("blob:")) URL.revokeObjectURL(shown.picture);
		setShown(shown ? null : contentsOf(row, await fetchBytes(address)));
	}
	return (
		<li>
			<div class="row">
				<code class="name">{lastOf(name)}</code>
				<span class="muted">
					{row.type === "link" ? `leads to ${row.target}` : row.type === "file" ? bytes(row.bytes) : row.type}
				</span>
				<div class="actions">
					{row.type !== "other" && (
						<>
							<ActionButton label={`${shown ? "Hide" : "Show"} ${name}`} disabled={!live} act={toggle}>
								{shown ? "Hide" : "Show"}
							</ActionButton>
							<ActionButton
								label={`Save ${name}`}
								disabled={!live}
								act={async () => download(lastOf(name), await fetchBytes(address))}
							>
								Save
							</ActionButton>
						</>
					)}
					<ActionButton
						label={`Remove ${name}`}
						sure="Remove it?"
						disabled={!live}
						act={() => remove(address)}
						onDone={onChanged}
					>
						Remove
					</ActionButton>
				</div>
			</div>
			{shown && <Contents name={name} contents={shown} />}
		</li>
	);
}

// ---- folders ----

function FolderEntry({ id, row, live, round, onChanged, onChoose }) {
	const [open, setOpen] = useState(false);
	return (
		<li>
			<div class="row">
				<button
					type="button"
					class="link folder"
					aria-expanded={open}
					aria-label={`Folder ${row.path}`}
					onClick={() => setOpen(!open)}
				>
					{open ? "▾" : "▸"} {lastOf(row.path)}/
				</button>
				<div class="actions">
					<button type="button" aria-label={`Put files into ${row.path}`} onClick={() => onChoose(row.path)}>
						Upload here
					</button>
					<ActionButton
						label={`Remove ${row.path}`}
						sure="Remove all of it?"
						disabled={!live}
						act={() => remove(addressIn(id, row.path))}
						onDone={onChanged}
					>
						Remove
					</ActionButton>
				</div>
			</div>
			{open && <Folder {...{ id, live, round, onChanged, onChoose }} path={row.path} />}
		</li>
	);
}

// round: counts changes that were made here, so that open folders are read anew.
function Folder({ id, path, live, round, onChanged, onChoose }) {
	const loaded = useLoaded((signal) => listFolder(id, path, signal), [id, path, round]);
	const { value } = loaded;
	return (
		<>
			<Failure error={loaded.error} retry={loaded.reload} />
			{value && value.rows.length === 0 && <p class="empty">It is empty.</p>}
			{value && (
				<ul class="entries tree">
					{value.rows.map((row) => {
						const Entry = row.type === "folder" ? FolderEntry : FileEntry;
						return <Entry key={row.path} {...{ id, row, live, round, onChanged, onChoose }} />;
					})}
				</ul>
			)}
			{value && value.truncated && <p class="remark">There is more in it than is shown here.</p>}
		</>
	);
}

// ---- what is put there ----

async function putAll(id, folder, list) {
	for (const file of list) {
		if (file.size > UPLOAD_MAX)
			throw new Error(
				`${file.name} has ${bytes(file.size)}; the console puts at most ${bytes(UPLOAD_MAX)} into a file.`,
			);
	}
	for (const file of list) {
		const name = joined(folder, (file.webkitRelativePath || file.name).replace(/^\/+/, ""));
		await putBytes(addressIn(id, name), new Uint8Array(await file.arrayBuffer()));
	}
}

function Put({ id, live, folder, setFolder, onChanged }) {
	const [state, setState] = useState({ text: "", error: null });
	const input = useRef(null);
	const into = folder.trim().replace(/^\/+|\/+$/g, "");
	async function add(list) {
		setState({ text: "", error: null });
		try {
			await putAll(id, into, [...list]);
			setState({ text: `${plural(list.length, "file")} put into ${into || "the session's own folder"}.`, error: null });
		} catch (error) {
			setState({ text: "", error });
		}
		input.current.value = "";
		onChanged();
	}
	return (
		<div
			class="fields"
			onDragOver={(event) => event.preventDefault()}
			onDrop={(event) => {
				event.preventDefault();
				if (live) add(event.dataTransfer.files);
			}}
		>
			<TextField
				label="Folder"
				value={folder}
				onChange={setFolder}
				placeholder="the session's own"
				hint="Where files are uploaded to; it is created if it is missing."
			/>
			<Field label="Upload files" hint="Drop them here, or choose.">
				{(field, hint) => (
					<input
						id={field}
						ref={input}
						type="file"
						multiple
						disabled={!live}
						aria-describedby={hint}
						onChange={(event) => add(event.currentTarget.files)}
					/>
				)}
			</Field>
			<div class="actions">
				<ActionButton
					disabled={!live || into === ""}
					act={() => post(`${sessionPath(id)}/folders`, { path: into })}
					onDone={onChanged}
				>
					Create this folder
				</ActionButton>
			</div>
			<Failure error={state.error} />
			<p role="status" class="muted">
				{state.text}
			</p>
		</div>
	);
}

export function SessionFiles({ id, live }) {
	const [round, setRound] = useState(0);
	const [folder, setFolder] = useState("");
	const onChanged = () => setRound((n) => n + 1);
	return (
		<div class="files">
			<Put {...{ id, live, folder, setFolder, onChanged }} />
			<div class="row">
				<h2>Files</h2>
				<div class="actions">
					<button type="button" onClick={onChanged}>
						Refresh
					</button>
				</div>
			</div>
			{live ? (
				<Folder {...{ id, live, round, onChanged }} path="" onChoose={setFolder} />
			) : (
				<p class="empty">The session has ended, and its files are gone.</p>
			)}
		</div>
	);
}
