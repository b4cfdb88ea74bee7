// SPDX-License-Identifier: Apache-2.0
// Asks for the token when the server wants one.
import { useEffect, useRef, useState } from "preact/hooks";
import { session, setToken } from "../api.js";
import { useStore } from "../store.js";
import { TextField } from "./basics.jsx";

export function TokenDialog() {
	const { asking, refused } = useStore(session);
	const dialog = useRef(null);
	const [value, setValue] = useState("");
	useEffect(() => {
		if (asking && !dialog.current.open) dialog.current.showModal();
		if (!asking && dialog.current.open) dialog.current.close();
	}, [asking]);
	function submit(event) {
		event.preventDefault();
		if (!value.trim()) return;
		setToken(value);
		setValue("");
	}
	return (
		<dialog ref={dialog} aria-labelledby="token-title" onClose={() => session.set({ asking: false })}>
			<form onSubmit={submit}>
				<h2 id="token-title">Sign in with a token</h2>
				<p>
					This server requires a token. <code>brig token create NAME</code> creates one; the page keeps it until this tab
					is closed.
				</p>
				{refused && (
					<p class="failure" role="alert">
						{refused}
					</p>
				)}
				<TextField label="Token" type="password" value={value} onChange={setValue} placeholder="brig_..." />
				<div class="actions">
					<button type="submit" class="primary">
						Sign in
					</button>
					<button type="button" onClick={() => dialog.current.close()}>
						Not now
					</button>
				</div>
			</form>
		</dialog>
	);
}
