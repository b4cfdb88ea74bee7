// SPDX-License-Identifier: Apache-2.0
// Charts.  A canvas says nothing to a screen reader: each chart has a sentence as its name, and its owner shows the
// same numbers as text.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import { color, theme } from "./theme.js";
import { useStore } from "./store.js";

const AXIS_FONT = "11px system-ui, sans-serif";

function axis(extra) {
	return {
		stroke: color("--muted"),
		font: AXIS_FONT,
		ticks: { stroke: color("--border"), width: 1, size: 4 },
		grid: { stroke: color("--line"), width: 1 },
		...extra,
	};
}

// bars: draw bars that are this many units of x wide instead of lines.
// steps: what the marks of y may be apart, the smallest first; without it whatever is round in decimals.
function optionsOf({ series, height, formatX, formatY, bars, max, steps }, width) {
	return {
		width,
		height,
		cursor: { show: false },
		legend: { show: false },
		padding: [8, 18, 0, 0],
		scales: {
			x: { time: Boolean(bars), ...(bars ? { range: (_, low, high) => [low - bars / 2, high + bars / 2] } : {}) },
			y: { range: (_, low, high) => [0, Math.max(high || 0, max || 0) * 1.08 || 1] },
		},
		axes: [
			axis({ space: 60, size: 26, ...(formatX ? { values: (_, at) => at.map(formatX) } : {}) }),
			axis({ size: 54, space: 26, values: (_, at) => at.map(formatY), ...(steps ? { incrs: steps } : {}) }),
		],
		series: [
			{},
			...series.map((row) => ({
				label: row.label,
				stroke: color(row.color),
				width: 1.5,
				points: { show: false },
				fill: row.fill === false ? undefined : `${color(row.color)}${bars ? "" : "26"}`,
				...(bars ? { paths: uPlot.paths.bars({ size: [0.8, 40], align: 0 }) } : {}),
			})),
		],
	};
}

// data: [x, y1, y2...]; series: [{ label, color: "--name" }] for each y.
export function Chart({ label, data, ...options }) {
	const host = useRef(null);
	const plot = useRef(null);
	const { name } = useStore(theme);
	const wanted = JSON.stringify([options.series, options.height, options.bars, options.max, name]);

	useEffect(() => {
		plot.current = new uPlot(optionsOf(options, host.current.clientWidth || 300), data, host.current);
		const watcher = new ResizeObserver(([entry]) => {
			const width = Math.floor(entry.contentRect.width);
			if (width > 0 && width !== plot.current.width) plot.current.setSize({ width, height: options.height });
		});
		watcher.observe(host.current);
		return () => {
			watcher.disconnect();
			plot.current.destroy();
		};
	}, [wanted]);
	useEffect(() => plot.current.setData(data), [data]);
	return <div class="chart" role="img" aria-label={label} ref={host} />;
}
