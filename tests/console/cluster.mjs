// SPDX-License-Identifier: Apache-2.0
// The cluster page: a front, a broker and a worker that are there (cluster.py), and nodes that only a bad one would tell of.
import { check, equal, picture, setting, test, until } from "./browser.mjs";
import { nameless, overflow, structure } from "./look.mjs";

const NODES = "**/v1/nodes";
const row = (page, table, name) =>
	page.getByRole("table", { name: table, exact: true }).getByRole("row").filter({ hasText: name });
const menu = (page) =>
	page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Cluster", exact: true });

// With the node as the server has it, once it has told all.
async function ask(page) {
	return until(async () => {
		const { nodes } = await (await page.request.get(`${setting.clusterUrl}/v1/nodes`)).json();
		return nodes.find((node) => node.name === setting.worker && node.state === "live" && node.protections.length > 0);
	}, "a node that has told what it can enforce");
}

async function runOnNode(page) {
	const data = { language: "python", code: 'print("elsewhere")', async: true };
	const { id } = await (await page.request.post(`${setting.clusterUrl}/v1/executions`, { data })).json();
	return id;
}

function needsCluster(skip) {
	if (!setting.clusterUrl) skip(setting.noCluster || "there is no cluster");
}

test(
	"cluster.none",
	"without a queue there is no such page in the menu, and its address says why",
	async ({ open }) => {
		const page = await open("/#/cluster", { expected: [/404/] });
		await page.getByRole("alert").filter({ hasText: "this service has no queue" }).waitFor();
		await page.locator(".who span").waitFor();
		equal(await menu(page).count(), 0, "links to the page");
		await page.getByRole("link", { name: "History" }).click();
		await page.locator("main.view-history [role=status]").waitFor();
		equal(await page.getByRole("columnheader", { name: "Node" }).count(), 0, "columns for nodes in the history");
	},
);

test(
	"cluster.page",
	"nodes, what each can enforce, what waits; reached and read by the keyboard",
	async ({ open, skip }) => {
		needsCluster(skip);
		const page = await open("/", { base: setting.clusterUrl });
		await menu(page).focus();
		await page.keyboard.press("Enter");
		await until(
			() => page.evaluate(() => document.activeElement.textContent === "Cluster"),
			"the focus on the heading",
		);
		const node = await ask(page);
		const health = row(page, "Nodes", setting.worker);
		const enforces = row(page, "What each node can enforce", setting.worker);
		await health.filter({ hasText: "live" }).filter({ hasText: "left" }).waitFor();
		await enforces
			.filter({ hasText: `${node.protections.length} protection` })
			.filter({ hasText: "native" })
			.waitFor();
		check((await enforces.textContent()).includes("python"), "python is not among the languages");
		for (const title of ["Live nodes", "Free places", "Jobs in the queue", "Oldest job", "Redelivered", "Lost"])
			equal(await page.locator(".tile dt").filter({ hasText: title }).count(), 1, `tiles called ${title}`);
		const summary = enforces.locator("summary");
		await summary.focus();
		await page.keyboard.press("Enter");
		await enforces.getByText("seccomp").waitFor();
		equal((await nameless(page)).bad.join(", "), "", "roles without a name");
		equal(await structure(page), "", "the structure");
	},
);

test(
	"cluster.where",
	"the node that a job ran on is told, and executions can be looked at by node",
	async ({ open, skip }) => {
		needsCluster(skip);
		const page = await open("/#/activity", { base: setting.clusterUrl });
		const id = await runOnNode(page);
		const ended = row(page, "Recent executions", id);
		await ended.filter({ hasText: setting.worker }).waitFor();
		await ended.getByRole("link", { name: id }).click();
		await page.getByText(`Ran on the node ${setting.worker}.`).waitFor();
		await page.goto(`${setting.clusterUrl}/#/activity?node=nobody`);
		await page.getByText("Nothing has run recently.").waitFor();
		await page.getByLabel("Node", { exact: true }).selectOption(setting.worker);
		await ended.waitFor();
		check(page.url().endsWith(`?node=${setting.worker}`), `the filter is not in the address ${page.url()}`);
		await page.getByRole("link", { name: "History", exact: true }).click();
		await row(page, "Executions", id).filter({ hasText: setting.worker }).waitFor();
	},
);

for (const [name, options] of Object.entries({
	phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: "dark" },
	narrow: { viewport: { width: 320, height: 640 } },
	light: {},
	dark: { colorScheme: "dark" },
})) {
	test(`cluster.look-${name}`, "the page fits without scrolling sideways", async ({ open, skip }) => {
		needsCluster(skip);
		const page = await open("/#/cluster", { base: setting.clusterUrl, ...options });
		await ask(page);
		await row(page, "What each node can enforce", setting.worker).filter({ hasText: "protection" }).waitFor();
		equal(await overflow(page), "", "the page");
		await picture(page, `${name}-cluster`);
	});
}

const SAID = {
	key: "0".repeat(64),
	state: "live",
	seen: "2026-01-01T00:00:00Z",
	until: "2026-01-01T00:00:15Z",
	running: 0,
	slots: 4,
	places: 4,
	begun: 0,
	begun_again: 0,
	begun_warm: 0,
	pressure_cpu: null,
	pressure_memory: null,
	classes: [],
	ready: [],
	protections: [],
	lacks: [],
	backends: [],
	cannot: [],
};
const numbered = (n, more = {}) => ({ ...SAID, name: `node-${n}`, key: n.toString(16).padStart(64, "0"), ...more });
const SCRIPT = '<img src=x onerror="alert(1)"><script>alert(2)</script>';
const TURNED = "evil\u202Etxt.1-llec\u0000\u0007\u001b[31m\n\r\u2028\u0085end";

// What a server would have to say that is not ours, or was told by a node that somebody has taken over.
async function openWith(open, nodes, more = {}, options = {}) {
	const page = await open("/", { base: setting.clusterUrl, ...options });
	const told = {
		brokers: true,
		depth: 0,
		oldest_seconds: 0,
		begun_again: 0,
		published: 0,
		lost: 0,
		refused: 0,
		nodes,
		...more,
	};
	await page.route(NODES, (route) => route.fulfill({ json: told }));
	await page.goto(`${setting.clusterUrl}/#/cluster`);
	await page.getByRole("table", { name: "Nodes", exact: true }).waitFor();
	return page;
}

test(
	"cluster.hostile",
	"names that are scripts, turn the line round or have no end are shown as harmless text",
	async ({ open, skip }) => {
		needsCluster(skip);
		const texts = [SCRIPT, TURNED, "x".repeat(100_000), "javascript:alert(3)", "../../evil?node=a#/run"];
		const said = (text) => ({
			name: text,
			classes: [`${text}.${text}`, `unknown.env-${text}`],
			ready: [`unknown.${text}`],
			protections: [text],
			lacks: [text],
			backends: [text],
		});
		const nodes = texts.map((text, at) => numbered(at, said(text)));
		const page = await openWith(open, nodes, {}, { viewport: { width: 390, height: 844 } });
		equal(await page.locator("main img, main script, main iframe").count(), 0, "elements that names became");
		check((await page.locator("main").textContent()).includes("<script>alert(2)"), "the script is not shown as text");
		const shown = await page.locator("main").textContent();
		check(
			!/[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/u.test(shown),
			"a character that moves or turns text is in the page",
		);
		check(shown.includes("evil\uFFFDtxt"), "where one was is not shown");
		check(!shown.includes("x".repeat(100)), "a name without end is shown whole");
		equal(await overflow(page), "", "the page with such names");
		const links = await page.locator("main a").evaluateAll((list) => list.map((link) => link.getAttribute("href")));
		check(
			links.length > 0 && links.every((href) => /^#\/activity\?node=[^#&?/<>"]*$/.test(href)),
			`links: ${links.map((href) => href.slice(0, 60))}`,
		);
		equal((await nameless(page)).bad.join(", "), "", "roles without a name");
		await picture(page, "cluster-hostile");
	},
);

test(
	"cluster.trouble",
	"nodes that are gone, protections that are missing, brokers that are away and redeliveries are told",
	async ({ open, skip }) => {
		needsCluster(skip);
		const weak = numbered(1, {
			lacks: ["landlock", "memory_limit"],
			protections: ["seccomp"],
			pressure_cpu: 93.5,
			pressure_memory: 2,
		});
		const gone = numbered(0, { state: "gone" });
		const page = await openWith(open, [gone, weak], {
			brokers: false,
			depth: 7,
			oldest_seconds: 90,
			begun_again: 3,
			lost: 1,
		});
		await page.getByText("No broker answers").waitFor();
		const rows = await page.getByRole("table", { name: "Nodes", exact: true }).locator("tbody tr").allTextContents();
		check(
			rows[0].startsWith("node-1live") && rows[1].startsWith("node-0gone"),
			`the live one is not the first: ${rows}`,
		);
		check(rows[0].includes("cpu 94 %, memory 2 %"), `no pressure in ${rows[0]}`);
		check(rows[1].includes("over"), "a lease that is over is not called so");
		const weakRow = await row(page, "What each node can enforce", "node-1").textContent();
		check(weakRow.includes("missing landlock, memory limit"), `what is missing is not told: ${weakRow}`);
		const tiles = await page.locator(".tile").allTextContents();
		for (const text of ["Free places4", "Jobs in the queue7", "Oldest job1 min 30 s", "Redelivered3", "Lost1"])
			check(tiles.includes(text), `no ${text} in ${tiles}`);
	},
);

test(
	"cluster.many",
	"of thousands of nodes the first are shown, and more when they are asked for",
	async ({ open, skip }) => {
		needsCluster(skip);
		const page = await openWith(
			open,
			Array.from({ length: 3000 }, (_, n) => numbered(n)),
		);
		const rows = page.getByRole("table", { name: "Nodes", exact: true }).locator("tbody tr");
		equal(await rows.count(), 100, "rows at first");
		await page.getByRole("button", { name: "Show more of 3000 nodes" }).click();
		await until(async () => (await rows.count()) === 400, "more rows");
	},
);
