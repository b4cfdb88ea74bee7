// SPDX-License-Identifier: Apache-2.0
// What the inspection says of code as it stands, a moment after the last key.
import { useEffect, useState } from "preact/hooks";
import { post, session } from "./api.js";
import { plural } from "./format.js";
import { useStore } from "./store.js";

const AFTER_MS = 350;
const INSPECTED_MAX = 1024 * 1024; // characters; longer programs are inspected when they are run
const NOTHING = { findings: [], blocked: false, error: null, inspected: true, done: true };

export function useInspection({ code, language, trust }) {
	const { version } = useStore(session);
	const [state, setState] = useState({ ...NOTHING, done: false });
	useEffect(() => {
		const stop = new AbortController();
		const timer = setTimeout(async () => {
			if (code.trim() === "" || code.length > INSPECTED_MAX)
				return setState({ ...NOTHING, inspected: code.trim() === "" });
			try {
				const found = await post("/v1/inspections", { code, language, ...(trust ? { trust } : {}) }, stop.signal);
				const { findings = [], blocked, inspected } = found;
				setState({ ...NOTHING, findings, blocked, inspected });
			} catch (error) {
				if (!stop.signal.aborted) setState({ ...NOTHING, error, inspected: false });
			}
		}, AFTER_MS);
		return () => {
			clearTimeout(timer);
			stop.abort();
		};
	}, [code, language, trust, version]);
	return state;
}

export function inspectionText({ findings, blocked, error, inspected, done }) {
	if (error) return error.status === 401 ? "" : `The inspection could not be asked: ${error.message}`;
	if (!done) return "The code is being inspected.";
	if (!inspected) return "This language is not inspected.";
	if (findings.length === 0) return "The inspection finds nothing.";
	return `${plural(findings.length, "finding")}${blocked ? "; this program would be blocked" : ""}`;
}
