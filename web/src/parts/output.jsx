// SPDX-License-Identifier: Apache-2.0
// What the program wrote, as text and nothing else.
import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, fromBase64, plural } from "../format.js";
import { download } from "./basics.jsx";

function Choice({ value, onChange }) {
	return (
		<div class="choice" role="group" aria-label="Streams to show">
			{["both", "stdout", "stderr"].map((name) => (
				<button type="button" key={name} aria-pressed={value === name} onClick={() => onChange(name)}>
					{name}
				</button>
			))}
		</div>
	);
}

function save(result, stream) {
	const value = result[stream];
	const text = typeof value === "string" ? value : value.text;
	const encoding = typeof value === "string" ? result[`${stream}_encoding`] : value.encoding;
	download(`${result.id || "output"}.${stream}.txt`, encoding === "base64" ? fromBase64(text) : text);
}

function Saves({ result }) {
	const streams = ["stdout", "stderr"].filter(
		(name) => result[name] && (typeof result[name] === "string" || result[name].text),
	);
	return streams.map((name) => (
		<button type="button" key={name} onClick={() => save(result, name)}>
			Save {name}
		</button>
	));
}

function remarks(result, dropped) {
	const found = [];
	if (dropped > 0) found.push(`The first ${plural(dropped, "character")} are not shown here.`);
	for (const name of ["stdout", "stderr"]) {
		const value = result && result[name];
		if (!value) continue;
		if (result[`${name}_truncated`] || value.truncated) found.push(`The program wrote more to ${name} than is kept.`);
		if (result[`${name}_encoding`] === "base64" || value.encoding === "base64") {
			found.push(`${name} is not text: save it to have its bytes.`);
		}
		if (typeof value === "object" && value.kept === false && value.bytes > 0) {
			found.push(`The history kept no text of ${name} (${bytes(value.bytes)}), as its policy says.`);
		}
	}
	return found;
}

export function Output({ pieces, dropped = 0, result, busy }) {
	const [choice, setChoice] = useState("both");
	const box = useRef(null);
	const follows = useRef(true);
	const shown = choice === "both" ? pieces : pieces.filter((piece) => piece.stream === choice);
	useEffect(() => {
		if (busy && follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
	}, [pieces, busy]);
	function onScroll({ currentTarget: at }) {
		follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < 30;
	}
	return (
		<div class="output">
			<div class="row">
				<Choice value={choice} onChange={setChoice} />
				<div class="actions">{result && <Saves result={result} />}</div>
			</div>
			{remarks(result, dropped).map((text) => (
				<p class="remark" key={text}>
					{text}
				</p>
			))}
			{/* A log is read out as it grows; it is focusable so that keys can scroll it. */}
			<pre class="stream-text" ref={box} onScroll={onScroll} role="log" aria-label="Output of the program" tabIndex={0}>
				{shown.map((piece, at) => (
					<span key={at} class={piece.stream} title={piece.stream === "stderr" ? "stderr" : undefined}>
						{piece.text}
					</span>
				))}
				{shown.length === 0 && (
					<span class="empty">{busy ? "No output yet." : "No output."}</span>
				)}
			</pre>
		</div>
	);
}
