// SPDX-License-Identifier: Apache-2.0
// The page of one execution, by its address: it runs, it is over, or only the history knows it.
import { useEffect, useMemo } from "preact/hooks";
import { get, session } from "../api.js";
import { draft, setCode } from "../draft.js";
import { createExecution } from "../execution.js";
import { oneLine } from "../format.js";
import { go } from "../route.js";
import { CopyButton, Failure, Page, useLoaded } from "../parts/basics.jsx";
import { ExecutionResult } from "../parts/result.jsx";
import { useStore } from "../store.js";

const isLive = (state) => state === "queued" || state === "running";

// The history alone has the code; the service alone has what runs and the samples.
async function loadExecution(id, signal) {
	const name = encodeURIComponent(id);
	const found = await orNothing(get(`/v1/executions/${name}`, signal));
	if (found && isLive(found.state))
		return { id, state: found.state, position: found.position, node: found.node, result: null };
	const old = await orNothing(get(`/v1/history/${name}`, signal));
	if (!found && !old) throw new Error(`There is no execution ${id}, or it is not yours to see.`);
	return merged(id, found || {}, old || {});
}

async function orNothing(asked) {
	try {
		return await asked;
	} catch (error) {
		if (error.status === 404) return null;
		throw error;
	}
}

function merged(id, found, old) {
	const result = found.result || (found.verdict && found.evidence ? found : null);
	return {
		id,
		state: found.state || "finished",
		node: found.node || old.node,
		reason: found.reason,
		result: result ? { ...old, ...result } : old.verdict ? old : null,
		code: old.code,
		language: old.language,
	};
}

function openInEditor(found) {
	setCode({ code: found.code.text, language: found.language || draft.get().language });
	go("#/run");
}

export function ExecutionView({ id }) {
	const loaded = useLoaded((signal) => loadExecution(id, signal), [id]);
	const { version } = useStore(session);
	const execution = useMemo(() => createExecution(), [id]);
	const e = useStore(execution.store);
	const found = loaded.value;
	const live = found && isLive(found.state);
	useEffect(() => {
		if (!live) return undefined;
		execution.follow(id).then(loaded.reload);
		return () => execution.leave();
	}, [live, id, version]);
	const shown =
		live || e.phase !== "idle"
			? e
			: {
					...e,
					phase: "over",
					id,
					verdict: found && found.result ? found.result.verdict : "",
					result: found && found.result,
				};
	const lost = found && found.state === "lost";
	return (
		<Page
			title={
				<>
					Execution <code>{id}</code>
				</>
			}
			actions={
				<>
					{live && e.phase !== "over" && (
						<button type="button" onClick={execution.cancel}>
							Cancel
						</button>
					)}
					{found && found.code && found.code.text && (
						<button type="button" onClick={() => openInEditor(found)}>
							Open in the editor
						</button>
					)}
					<CopyButton text={() => location.href}>Copy the link</CopyButton>
				</>
			}
		>
			<Failure error={loaded.error} retry={loaded.reload} />
			{loaded.loading && <p class="muted">Loading…</p>}
			{found && found.node && (
				<p>
					{live ? "Runs" : "Ran"} on the node <code>{oneLine(found.node)}</code>.
				</p>
			)}
			{lost && (found.reason || !found.result) && (
				<p class="remark">
					{found.reason || "The server ended while this was under way, and nobody knows what became of it."}
				</p>
			)}
			{found && (live || found.result || e.phase !== "idle") && (
				<div class="panel">
					<ExecutionResult e={withResult(shown, found)} />
				</div>
			)}
		</Page>
	);
}

// A stream that was followed to its end has the output in its order; the rest is in what is kept.
function withResult(e, found) {
	return e.phase === "over" && found.result ? { ...e, result: { ...found.result, ...(e.result || {}) } } : e;
}
