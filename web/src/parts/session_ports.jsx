// SPDX-License-Identifier: Apache-2.0
// Ports of a session: servers that its programs have on their own loopback, by the address that leads there.
import { useState } from "preact/hooks";
import { hasToken, post, sessionPath } from "../api.js";
import { dateTime } from "../format.js";
import { useStore } from "../store.js";
import { ActionButton, TextField } from "./basics.jsx";

const PORTS_MAX = 50;
const USUAL = [3000, 5000, 8000, 8080];

// The port's own name lets its pages be pages, with scripts and cookies, and needs no token; below the service's own address
// they are shown without, and to who needs no token only.
function Port({ id, port, onRemove }) {
	const [link, setLink] = useState(null);
	const isOpen = !hasToken();
	const make = async () => setLink(await post(`${sessionPath(id)}/links`, { port }));
	return (
		<li>
			<div class="row">
				<code class="name">{port}</code>
				{isOpen && (
					<a href={`${sessionPath(id)}/ports/${port}/`} target="_blank" rel="noopener noreferrer">
						Look at port {port}
					</a>
				)}
				{link && (
					<a href={link.url} target="_blank" rel="noopener noreferrer">
						Open port {port}
					</a>
				)}
				{link && <span class="muted">good until {dateTime(link.expires)}; who has the address can open it</span>}
				<div class="actions">
					<ActionButton label={`Make a link to port ${port}`} act={make}>
						Make a link
					</ActionButton>
					{onRemove && (
						<button type="button" aria-label={`Remove port ${port}`} onClick={onRemove}>
							Remove
						</button>
					)}
				</div>
			</div>
		</li>
	);
}

export function SessionPorts({ id, book, live }) {
	const { ports } = useStore(book.store);
	const [text, setText] = useState("");
	const port = /^\d{1,5}$/.test(text.trim()) ? Number(text) : 0;
	const isPort = port >= 1 && port <= 65535;
	const rows = ports.length > 0 ? ports : USUAL;
	function add(event) {
		event.preventDefault();
		if (!isPort) return;
		book.store.set({ ports: [port, ...ports.filter((one) => one !== port)].slice(0, PORTS_MAX) });
		setText("");
	}
	return (
		<div class="ports">
			<form onSubmit={add} aria-label="A port">
				<div class="fields">
					<TextField
						label="Port"
						value={text}
						onChange={setText}
						hint="1 to 65535: where a program of the session listens."
					/>
				</div>
				<div class="actions">
					<button type="submit" class="primary" disabled={!isPort}>
						Add
					</button>
				</div>
			</form>
			<h2>Ports</h2>
			{!live && <p class="empty">The session has ended, and its servers with it.</p>}
			{live && (
				<ul class="entries">
					{rows.map((one) => (
						<Port
							key={one}
							id={id}
							port={one}
							onRemove={
								ports.includes(one) && (() => book.store.set({ ports: ports.filter((other) => other !== one) }))
							}
						/>
					))}
				</ul>
			)}
		</div>
	);
}
