// SPDX-License-Identifier: Apache-2.0
// A value that several views share and that outlives each of them.
import { useEffect, useState } from "preact/hooks";

export function createStore(initial) {
	let value = initial;
	const watchers = new Set();
	return {
		get: () => value,
		set(changes) {
			value = { ...value, ...changes };
			for (const watcher of watchers) watcher(value);
		},
		watch(watcher) {
			watchers.add(watcher);
			return () => watchers.delete(watcher);
		},
	};
}

export function useStore(store) {
	const [value, setValue] = useState(store.get());
	useEffect(() => {
		setValue(store.get());
		return store.watch(setValue);
	}, [store]);
	return value;
}
