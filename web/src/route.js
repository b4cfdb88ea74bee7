// SPDX-License-Identifier: Apache-2.0
// Views are addressed by the fragment: #/history?verdict=ok, #/executions/ID.
import { useEffect, useState } from "preact/hooks";

export function parseRoute(hash) {
	const [path, search = ""] = hash.replace(/^#\/?/, "").split("?");
	const [view, ...rest] = path.split("/").map((part) => {
		try {
			return decodeURIComponent(part);
		} catch {
			return part;
		}
	});
	return { view: view || "run", id: rest.join("/"), search: new URLSearchParams(search) };
}

export function useRoute() {
	const [route, setRoute] = useState(() => parseRoute(location.hash));
	useEffect(() => {
		const changed = () => setRoute(parseRoute(location.hash));
		addEventListener("hashchange", changed);
		return () => removeEventListener("hashchange", changed);
	}, []);
	return route;
}

export function go(hash) {
	location.hash = hash;
}
