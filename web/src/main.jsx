// SPDX-License-Identifier: Apache-2.0
// The console of `brig serve`: one page, its views chosen by the fragment of the address.
import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./style.css";
import { get, hasToken, session, setToken, takeTokenFromAddress } from "./api.js";
import { useLoaded } from "./parts/basics.jsx";
import { TokenDialog } from "./parts/token.jsx";
import { useRoute } from "./route.js";
import { useStore } from "./store.js";
import { theme, toggleTheme } from "./theme.js";
import { ActivityView } from "./views/activity.jsx";
import { ClusterView } from "./views/cluster.jsx";
import { DoctorView } from "./views/doctor.jsx";
import { EnvironmentsView } from "./views/environments.jsx";
import { ExecutionView } from "./views/execution.jsx";
import { HistoryView } from "./views/history.jsx";
import { PolicyView } from "./views/policy.jsx";
import { RunView } from "./views/run.jsx";
import { SessionView } from "./views/session.jsx";
import { SessionsView } from "./views/sessions.jsx";
import { StatisticsView } from "./views/statistics.jsx";

// name in the address, title in the menu, what shows it; rows without a title are reached by links, and some are only for
// who can have something of them.
const VIEWS = [
	{ name: "run", title: "Run", show: () => <RunView /> },
	{
		name: "sessions",
		title: "Sessions",
		show: ({ id, search }) => (id ? <SessionView key={id} id={id} search={search} /> : <SessionsView />),
	},
	{ name: "activity", title: "Activity", show: ({ search }) => <ActivityView search={search} /> },
	{ name: "cluster", title: "Cluster", show: () => <ClusterView />, isFor: (who) => who && who.nodes },
	{ name: "history", title: "History", show: ({ search }) => <HistoryView search={search} /> },
	{ name: "environments", title: "Environments", show: () => <EnvironmentsView /> },
	{ name: "statistics", title: "Statistics", show: () => <StatisticsView /> },
	{ name: "policy", title: "Policy", show: ({ search }) => <PolicyView search={search} /> },
	{ name: "doctor", title: "Host", show: () => <DoctorView /> },
	{
		name: "executions",
		parent: "history",
		show: ({ id, search }) => (id ? <ExecutionView key={id} id={id} /> : <ActivityView search={search} />),
	},
];

function Menu({ active }) {
	const [open, setOpen] = useState(false);
	const { who } = useStore(session);
	return (
		<>
			<button
				type="button"
				class="menu-button"
				aria-expanded={open}
				aria-controls="menu"
				onClick={() => setOpen(!open)}
			>
				Menu
			</button>
			<nav id="menu" aria-label="Views" class={open ? "is-open" : ""}>
				{VIEWS.filter((view) => view.title && (!view.isFor || view.isFor(who))).map((view) => (
					<a
						key={view.name}
						href={`#/${view.name}`}
						aria-current={view.name === active ? "page" : undefined}
						onClick={() => setOpen(false)}
					>
						{view.title}
					</a>
				))}
			</nav>
		</>
	);
}

function Who() {
	const { value, error } = useLoaded(async (signal) => {
		const who = await get("/v1/whoami", signal);
		session.set({ who });
		return who;
	});
	const { asking, who } = useStore(session);
	return (
		<span class="who">
			{value && who && <span title={`at most ${who.max_trust}${who.admin ? ", administrator" : ""}`}>{who.name}</span>}
			{error && error.status === 401 && !asking && (
				<button type="button" onClick={() => session.set({ asking: true })}>
					Sign in
				</button>
			)}
			{hasToken() && (
				<button type="button" onClick={() => setToken("")}>
					Sign out
				</button>
			)}
		</span>
	);
}

function ThemeButton() {
	const { name } = useStore(theme);
	const other = name === "dark" ? "light" : "dark";
	return (
		<button type="button" onClick={toggleTheme} aria-label={`Use ${other} colours`}>
			{other === "dark" ? "Dark" : "Light"}
		</button>
	);
}

function App() {
	const route = useRoute();
	const view = VIEWS.find((one) => one.name === route.view) || VIEWS[0];
	const main = useRef(null);
	const first = useRef(true);
	// After a change of view the next word of a screen reader, and the next Tab, is at its heading.
	useEffect(() => {
		const heading = main.current.querySelector("h1");
		document.title = `${heading ? heading.textContent : "brig"} - brig console`;
		if (first.current) first.current = false;
		else if (heading) heading.focus({ preventScroll: false });
	}, [route.view, route.id]);
	return (
		<>
			<a
				class="skip"
				href="#main"
				onClick={(event) => {
					event.preventDefault();
					main.current.focus();
				}}
			>
				Skip to the content
			</a>
			<header>
				<a class="brand" href="#/run">
					brig
				</a>
				<Menu active={view.parent || view.name} />
				<div class="header-end">
					<Who />
					<ThemeButton />
				</div>
			</header>
			<main id="main" ref={main} tabIndex={-1} class={`view-${view.name}`}>
				{view.show(route)}
			</main>
			<footer>
				<a href="/openapi.json">API</a>
				<a href={document.querySelector("link[rel=license]").href}>Licences</a>
			</footer>
			<TokenDialog />
		</>
	);
}

// Before any view looks at the address, and when one with a token is pasted into a page that is there already.
takeTokenFromAddress();
addEventListener("hashchange", takeTokenFromAddress);
render(<App />, document.getElementById("app"));
