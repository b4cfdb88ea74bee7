// SPDX-License-Identifier: Apache-2.0
// Sessions in the console: the notebook, what is shown of results, files, processes, ports; and what a guest's HTML and SVG
// can do, which is nothing.
import { createServer } from "node:http";
import { check, choose, equal, picture, setting, test, until } from "./browser.mjs";
import { nameless, overflow, structure } from "./look.mjs";

const cell = (page, n) => page.getByRole("region", { name: `Cell ${n}`, exact: true });
const code = (page, n) => page.getByRole("textbox", { name: `Code of cell ${n}`, exact: true });
const log = (page, n) => page.getByRole("log", { name: `Output of cell ${n}` });
const tab = (page, name) => page.getByRole("tab", { name, exact: true });
const ENDLESS = 'import time\nprint("first line", flush=True)\nwhile True:\n    time.sleep(0.05)\n';

async function begin(page, language = "python") {
	await page.getByRole("link", { name: "Sessions" }).click();
	await choose(page, "Language", language);
	await page.getByRole("button", { name: "Start", exact: true }).click();
	await cell(page, 1).waitFor();
	return page.url().split("/").pop();
}

async function isInstalled(open, language) {
	const page = await open();
	const { languages } = await (await page.request.get(`${setting.url}/v1/languages`)).json();
	return languages.some((row) => row.name === language && row.installed);
}

async function open1(open, language, options) {
	const page = await open("/", options);
	const id = await begin(page, language);
	return { page, id };
}

async function type(page, n, text) {
	await code(page, n).click();
	await page.keyboard.press("Control+a");
	await page.keyboard.press("Delete");
	await page.keyboard.insertText(text);
}

async function says(page, n, text) {
	await until(async () => (await log(page, n).allTextContents()).join("").includes(text), `cell ${n} with ${text}`);
}

// Runs it and waits for its end: the count stands in brackets.
async function runCell(page, n, text, verdict = "ok") {
	await type(page, n, text);
	await page.keyboard.press("Control+Enter");
	await isOver(page, n, verdict);
}

async function isOver(page, n, verdict = "ok") {
	const told = cell(page, n).locator(".cell-outcome [role=status]").first();
	const seen = await until(async () => {
		const [text] = await told.allTextContents();
		return text && !/^(running|waiting)/.test(text) ? text : "";
	}, `the end of cell ${n}`);
	const failure = await cell(page, n).locator(".failure").allTextContents();
	const want = verdict === "ok" ? `Cell ${n}: ok` : verdict;
	check(seen.startsWith(want), `cell ${n}: ${seen} ${failure} instead of ${want}`);
}

async function end(page) {
	await page.getByRole("button", { name: /^End / }).click();
	await page.getByRole("button", { name: /^End / }).click();
	await until(
		async () => /ended|ending/.test(await page.locator(".about-session").textContent()),
		"the end of the session",
	);
}

test(
	"sessions.notebook",
	"cells build on each other, run by Shift+Enter, and tell output, results and errors",
	async ({ open }) => {
		const { page, id } = await open1(open);
		await type(page, 1, "n = 20\nprint('set', 'to', n)");
		await page.keyboard.press("Shift+Enter");
		await says(page, 1, "set to 20");
		await isOver(page, 1);
		await until(
			() => code(page, 2).evaluate((node) => node === node.getRootNode().activeElement),
			"the focus in a new cell",
		);
		await page.keyboard.insertText("n * 2 + 2");
		await page.keyboard.press("Control+Enter");
		await isOver(page, 2);
		await says(page, 2, "42");
		check((await cell(page, 2).locator(".cell-count").textContent()) === "[2]", "the count of the second run");
		await page.getByRole("button", { name: "Add a cell" }).click();
		await runCell(page, 3, "def deep():\n    return 1 / 0\ndeep()", "error");
		await says(page, 3, "ZeroDivisionError: division by zero");
		await cell(page, 3).getByLabel("Traceback").getByText("in deep").waitFor();
		// Output as it comes, and an end that somebody asks for.
		await type(page, 3, ENDLESS);
		await page.keyboard.press("Control+Enter");
		await says(page, 3, "first line");
		await page.getByRole("button", { name: "Interrupt cell 3" }).click();
		await says(page, 3, "KeyboardInterrupt");
		await runCell(page, 3, "n");
		await says(page, 3, "20");
		await picture(page, "session");
		await page.getByRole("button", { name: "Move cell 3 up" }).click();
		await says(page, 2, "20");
		await until(async () => (await code(page, 2).textContent()) === "n", "the name of an editor that was moved");
		await page.getByRole("button", { name: "Remove cell 2" }).click();
		await until(
			() => code(page, 2).evaluate((node) => node === node.getRootNode().activeElement),
			"the focus after it",
		);
		// The record of a run is where all records are.
		await cell(page, 2).getByRole("link", { name: "The record of this run" }).click();
		await page.locator(".verdict .badge").getByText("ok", { exact: true }).waitFor();
		await page.goBack();
		await says(page, 2, "42");
		// The list has it, and can pause it, let it go on and end it.
		await page.getByRole("link", { name: "Sessions" }).click();
		const row = page.getByRole("row").filter({ hasText: id });
		await row.getByRole("button", { name: `Pause ${id}` }).click();
		await row.getByRole("button", { name: `Resume ${id}` }).click();
		await row.getByText("ready").waitFor();
		const told = await (await page.request.get(`${setting.url}/v1/sessions/${id}`)).json();
		const left = await row.locator("td[data-title='Time left']").textContent();
		check(/^\d+ (s|min|h)/.test(left) || !told.ends, `the time that is left: ${left}`);
		await picture(page, "sessions");
		await row.getByRole("button", { name: `End ${id}` }).click();
		await row.getByText("End it?").click();
		await row.getByText("ended").waitFor();
	},
);

test("sessions.joined", "a session that was begun elsewhere is gone on with", async ({ open }) => {
	const page = await open("/");
	const begun = await page.request.post(`${setting.url}/v1/sessions`, { data: {} });
	const { id } = await begun.json();
	await page.goto(`${setting.url}/#/sessions/${id}`);
	await cell(page, 1).waitFor();
	await type(page, 1, "x = 6");
	await page.keyboard.press("Shift+Enter");
	await isOver(page, 1);
	await runCell(page, 2, "x * 7"); // in the context that the first has made
	await says(page, 2, "42");
	const { contexts } = await (await page.request.get(`${setting.url}/v1/sessions/${id}`)).json();
	const asked = { code: "y = x + 1", context: contexts[0].id };
	await page.request.post(`${setting.url}/v1/sessions/${id}/runs`, { data: asked });
	await runCell(page, 2, "y");
	await says(page, 2, "7");
	await end(page);
});

test(
	"sessions.order",
	"runs in a context wait for each other, and an error drops those that wait",
	async ({ open }) => {
		const { page } = await open1(open);
		await type(page, 1, "steps = ['a']");
		await page.getByRole("button", { name: "Add a cell" }).click();
		await type(page, 2, "steps.append('b')\nsteps.append('c')");
		await page.getByRole("button", { name: "Add a cell" }).click();
		await type(page, 3, "''.join(steps)");
		await page.getByRole("button", { name: "Run all" }).click();
		await says(page, 3, "abc");
		await isOver(page, 3);
		await type(page, 2, "import missing_module");
		await page.getByRole("button", { name: "Clear the output" }).click();
		await page.getByRole("button", { name: "Run all" }).click();
		await isOver(page, 2, "error");
		await until(
			async () => (await cell(page, 3).locator(".cell-count").textContent()) === "[ ]",
			"the third cell let be",
		);
		equal(await log(page, 3).count(), 0, "output of the third cell");
		await end(page);
		check(await page.getByRole("button", { name: "Run cell 1" }).isDisabled(), "a cell of an ended session can be run");
	},
);

test("sessions.contexts", "contexts keep their state apart, are restarted and closed", async ({ open, skip }) => {
	if (!(await isInstalled(open, "javascript"))) skip("javascript is not installed");
	const { page } = await open1(open, "javascript");
	await runCell(page, 1, "const x = 6; x * 7");
	await says(page, 1, "42");
	await choose(page, "New context in", "bash");
	await page.getByRole("button", { name: "Start a context" }).click();
	await until(
		async () => (await page.getByLabel("Context", { exact: true }).locator("option").count()) === 2,
		"two contexts",
	);
	const chosen = () => page.getByLabel("Context", { exact: true }).evaluate((node) => node.selectedOptions[0].label);
	await until(async () => !(await chosen()).startsWith("javascript"), "the new context chosen");
	await page.getByRole("button", { name: "Add a cell" }).click();
	await runCell(page, 2, 'y=mine; echo "shell $y ${x:-none}"');
	await says(page, 2, "shell mine none");
	const contexts = page.getByRole("group", { name: "Contexts" });
	await contexts.getByRole("button", { name: "Restart" }).click();
	await contexts.getByRole("button", { name: "Forget its state?" }).click();
	await contexts.getByRole("button", { name: "Restart" }).waitFor();
	await runCell(page, 2, 'echo "after ${y:-nothing}"');
	await says(page, 2, "after nothing");
	await contexts.getByRole("button", { name: "Close" }).click();
	await contexts.getByRole("button", { name: "Close it?" }).click();
	await until(
		async () => (await page.getByLabel("Context", { exact: true }).locator("option").count()) === 1,
		"one context",
	);
	await runCell(page, 1, "x + 1");
	await says(page, 1, "7");
	await end(page);
});

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const RICH = `import base64
class Shown:
    def __init__(self, **forms): self.forms = forms
    def _repr_mimebundle_(self, *a, **k): return self.forms
display(Shown(**{"image/png": "${PNG}", "text/plain": "a figure"}))
display(Shown(**{"image/svg+xml": '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="30" height="20" fill="red"/></svg>'}))
display(Shown(**{"text/html": '<style>td { color: red }</style><table border="1" class="dataframe"><thead><tr style="text-align: right;"><th></th><th>city</th><th>people</th></tr></thead><tbody><tr><th>0</th><td>Bern</td><td>134591</td></tr><tr><th>1</th><td>Ulm</td><td>126949</td></tr></tbody></table><p>2 rows</p>', "text/plain": "plain table"}))
display(Shown(**{"application/json": {"a": [1, 2]}}))
display(Shown(**{"text/html": '<h3 style="color: red">A <em>title</em></h3><ul><li>first</li></ul><img alt="dot" src="data:image/png;base64,${PNG}">'}))
"the last"
`;

const isDrawn = (locator) =>
	until(() => locator.evaluate((node) => node.complete && node.naturalWidth > 0), "a picture drawn");

test("sessions.rich", "figures, tables, JSON and HTML are shown as what they are", async ({ open }) => {
	const { page } = await open1(open);
	await runCell(page, 1, RICH);
	await isDrawn(page.getByRole("img", { name: /Result 1 of cell 1 as png: a figure/ }));
	await isDrawn(page.getByRole("img", { name: /Result 2 of cell 1 as svg/ }));
	const table = page.getByRole("table", { name: "Result 3 of cell 1 as html" });
	equal(await table.getByRole("row").count(), 3, "rows of the table");
	await table.getByRole("cell", { name: "134591" }).waitFor();
	await page.getByText("2 rows", { exact: true }).waitFor();
	await says(page, 1, '"a": [');
	const frame = page.frameLocator("iframe[title='Result 5 of cell 1 as html']");
	await frame.getByText("title").waitFor();
	await isDrawn(frame.getByRole("img", { name: "dot" }));
	await says(page, 1, "the last");
	await page.getByRole("group", { name: "Forms of result 3 of cell 1" }).getByRole("button", { name: "text" }).click();
	await says(page, 1, "plain table");
	await page.getByRole("group", { name: "Forms of result 3 of cell 1" }).getByRole("button", { name: "html" }).click();
	await page.getByRole("img", { name: /Result 1/ }).scrollIntoViewIfNeeded();
	await picture(page, "session-rich");
	await end(page);
});

// ---- hostile results ----

// Counts who asks it for anything.  /page has the attacks, as an ordinary page; but one leaves it, and is a page of its own.
async function recorder() {
	const hits = [];
	const server = createServer((request, response) => {
		hits.push(request.url);
		response.setHeader("Content-Type", "text/html");
		const { refresh, ...others } = attacks("");
		const pages = { "/page": Object.values(others).join(""), "/page-refresh": refresh };
		response.end(pages[request.url] ? `<!doctype html>${pages[request.url]}` : "");
	});
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	return { hits, url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() };
}

// Each of these would be seen: by a request, a variable, a dialog, another address.
const attacks = (url) => ({
	script: `<script>top.hacked = 1; fetch("${url}/script")</script>`,
	handler: `<img src="x:" onerror="top.hacked = 2; fetch('${url}/handler')"><body onload="top.hacked = 2">`,
	picture: `<img src="${url}/picture"><img srcset="${url}/srcset 1x"><video poster="${url}/poster"></video>`,
	style: `<style>@import "${url}/import"; body { background: url(${url}/background) }</style><p style="background: url(${url}/attribute)">x</p><link rel="stylesheet" href="${url}/link"><link rel="prefetch" href="${url}/prefetch">`,
	frame: `<iframe src="${url}/frame"></iframe><iframe srcdoc="<script>top.hacked = 3</script>"></iframe><object data="${url}/object"></object><embed src="${url}/embed">`,
	refresh: `<meta http-equiv="refresh" content="0; url=${url}/refresh"><base href="${url}/base/"><img src="based">`,
	link: `<a id="lead" href="${url}/link" target="_top">lead away</a><a id="code" href="javascript:top.hacked = 4" target="_top">code</a>`,
	form: `<form id="form" action="${url}/form" target="_top"><input name="a"><button id="send">send</button></form>`,
	vector: `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="top.hacked = 5"><script>top.hacked = 5</script><image href="${url}/vector" width="9" height="9"/></svg>`,
});

const guest = (html, svg) => `class Bad:
    def _repr_mimebundle_(self, *a, **k): return ${JSON.stringify(html ? { "text/html": html } : { "image/svg+xml": svg })}
display(Bad())
`;

async function nothingHappened(page, address, { hits }) {
	equal(await page.evaluate(() => window.hacked), undefined, "what an attack set");
	equal(page.url(), address, "where the page is");
	equal(hits.join(" "), "", "what was asked of the attacker");
}

// Where nothing holds them, the attacks do what they are for: else these cases would prove nothing.
const WORKS = [
	"/script",
	"/handler",
	"/picture",
	"/srcset",
	"/poster",
	"/import",
	"/attribute",
	"/link",
	"/frame",
	"/vector",
];

test("sessions.attack-control", "in an ordinary page the attacks work", async ({ open }) => {
	const attacker = await recorder();
	try {
		await open("/page", { base: attacker.url, expected: [/./] });
		await until(() => WORKS.every((path) => attacker.hits.includes(path)), `requests of ${WORKS}`);
		await open("/page-refresh", { base: attacker.url });
		await until(() => attacker.hits.includes("/refresh"), "the page that leads elsewhere");
	} finally {
		attacker.stop();
	}
});

test("sessions.attack", "HTML and SVG of a guest run nothing, load nothing and lead nowhere", async ({ open }) => {
	const attacker = await recorder();
	try {
		const { page } = await open1(open);
		const address = page.url();
		const all = attacks(attacker.url);
		const whole = Object.values(all).join("\n");
		await runCell(page, 1, guest(`${whole}<p>shown all the same</p>`) + guest("", all.vector));
		await page.frameLocator("iframe").getByText("shown all the same").waitFor();
		equal(await page.locator("iframe").getAttribute("sandbox"), "", "the sandbox of the frame");
		await isDrawn(page.getByRole("img", { name: /Result 2/ }));
		await page.frameLocator("iframe").getByText("lead away").click();
		await nothingHappened(page, address, attacker);
		// A table's cells are text.
		await runCell(
			page,
			1,
			guest(`<table><tr><td>one ${all.script}</td><td onclick="top.hacked = 6">two</td></tr></table>`),
		);
		await page.getByRole("cell", { name: "two" }).click();
		await nothingHappened(page, address, attacker);
		equal(await page.locator("iframe").count(), 0, "frames for a table");
		await end(page);
		await nothingHappened(page, address, attacker);
	} finally {
		attacker.stop();
	}
});

// What the page takes out of the HTML is for a quiet log: the frame holds without it.
test("sessions.attack-frame", "the frame holds an attack that nobody has tidied", async ({ open }) => {
	const attacker = await recorder();
	try {
		const page = await open("/", { expected: [/Content Security Policy|sandbox|Blocked|Unsafe attempt|ERR_/i] });
		await begin(page);
		const address = page.url();
		await runCell(page, 1, guest("<p>mine</p>"));
		await page.frameLocator("iframe").getByText("mine").waitFor();
		for (const [name, html] of Object.entries(attacks(attacker.url))) {
			await page.evaluate(
				(text) =>
					new Promise((resolve) => {
						const frame = document.querySelector("iframe");
						frame.addEventListener("load", resolve, { once: true });
						frame.srcdoc = text;
					}),
				`<!doctype html><body>${html}<p id="end">end of ${name}</p>`,
			);
			for (const id of ["lead", "code", "send"]) {
				const found = page.frameLocator("iframe").locator(`#${id}`);
				if (await found.count()) await found.click({ noWaitAfter: true });
			}
			await nothingHappened(page, address, attacker);
		}
	} finally {
		attacker.stop();
	}
});

// ---- files, processes, ports ----

test("sessions.files", "files are put there, seen in a tree, shown, saved, removed", async ({ open }) => {
	const { page } = await open1(open);
	await runCell(
		page,
		1,
		`import os, base64\nos.makedirs("out/deep")\nopen("out/deep/a.txt", "w").write("from the cell")\nopen("dot.png", "wb").write(base64.b64decode("${PNG}")) and None`,
	);
	await tab(page, "Files").click();
	await page.getByRole("button", { name: "Folder out", exact: true }).click();
	await page.getByRole("button", { name: "Folder out/deep", exact: true }).click();
	await page.getByRole("button", { name: "Show out/deep/a.txt" }).click();
	await page.getByText("from the cell").waitFor();
	await page.getByRole("button", { name: "Show dot.png" }).click();
	await isDrawn(page.getByRole("img", { name: /dot.png/ }));
	await picture(page, "session-files");
	await page.getByLabel("Folder", { exact: true }).fill("given");
	await page
		.getByLabel("Upload files")
		.setInputFiles([{ name: "in.txt", mimeType: "text/plain", buffer: Buffer.from("42\n") }]);
	await page.getByText("1 file put into given").waitFor();
	await page.getByRole("button", { name: "Folder given", exact: true }).click();
	const saved = page.waitForEvent("download");
	await page.getByRole("button", { name: "Save given/in.txt" }).click();
	equal((await saved).suggestedFilename(), "in.txt", "the name of what is saved");
	await tab(page, "Notebook").click();
	await runCell(page, 1, 'int(open("given/in.txt").read()) + 1');
	await says(page, 1, "43");
	await tab(page, "Files").click();
	await page.getByRole("button", { name: "Remove out", exact: true }).click();
	await page.getByRole("button", { name: "Remove out", exact: true }).getByText("Remove all of it?").click();
	await page.getByRole("button", { name: "Folder out", exact: true }).waitFor({ state: "detached" });
	await end(page);
});

test(
	"sessions.processes",
	"a command is started, watched, written to and sent a signal; ports have links",
	async ({ open }) => {
		const { page, id } = await open1(open);
		await tab(page, "Processes").click();
		await page.getByRole("textbox", { name: "Command" }).fill('while read line; do echo "got $line"; done; echo over');
		await page.getByLabel("Its input stays open").check();
		await page.getByRole("button", { name: "Start", exact: true }).click();
		await page.getByLabel(/^A line for process/).fill("hello");
		await page.keyboard.press("Enter");
		const output = page.getByRole("log", { name: "Output of the program" });
		await output.getByText("got hello").waitFor();
		await page.getByRole("button", { name: "End of input" }).click();
		await output.getByText("over").waitFor();
		await page.getByRole("textbox", { name: "Command" }).fill("echo begun; sleep 1000");
		await page.getByLabel("Its input stays open").uncheck();
		await page.getByRole("button", { name: "Start", exact: true }).click();
		const entry = page.getByRole("listitem").filter({ hasText: "sleep 1000" });
		await entry.getByText("begun", { exact: true }).waitFor();
		await picture(page, "session-processes");
		await entry.getByLabel(/^Signal for process/).selectOption("SIGKILL");
		await entry.getByRole("button", { name: /^Send the signal/ }).click();
		await entry.locator(".badge").getByText("running").waitFor({ state: "detached" });
		await tab(page, "Ports").click();
		await page.getByLabel("Port", { exact: true }).fill("8123");
		await page.keyboard.press("Enter");
		const link = page.getByRole("link", { name: "Look at port 8123" });
		equal(await link.getAttribute("href"), `/v1/sessions/${id}/ports/8123/`, "where the link leads");
		await end(page);
	},
);

const SERVER = `import http.server
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"""<p>written by hand</p><script>
            document.body.append("written by a script");
            localStorage.x = 1;
            if (opener) opener.hacked = 1;
        </script>""")
server = http.server.HTTPServer(("127.0.0.1", 8123), Page)
print("listens", flush=True)
server.serve_forever()
`;

async function opened(page, link) {
	const [other] = await Promise.all([
		page.context().waitForEvent("page"),
		page.getByRole("link", { name: link }).click(),
	]);
	await other.getByText("written by hand").waitFor();
	return other;
}

test(
	"sessions.ports",
	"a server in a session is looked at without its scripts, and opened by its own name",
	async ({ open }) => {
		const { page, id } = await open1(open, "python");
		await tab(page, "Processes").click();
		await page.request.put(`${setting.url}/v1/sessions/${id}/files/server.py`, {
			headers: { "Content-Type": "application/octet-stream" },
			data: Buffer.from(SERVER),
		});
		await page.getByRole("textbox", { name: "Command" }).fill("exec python3 server.py");
		await page.getByRole("button", { name: "Start", exact: true }).click();
		await page.getByRole("log", { name: "Output of the program" }).getByText("listens").waitFor();
		await tab(page, "Ports").click();
		await page.getByLabel("Port", { exact: true }).fill("8123");
		await page.keyboard.press("Enter");
		// Below the service's own address its page is no page of the service.
		const inside = await opened(page, "Look at port 8123");
		check(
			!(await inside.locator("body").innerText()).includes("by a script"),
			"a script of a guest ran on the own address",
		);
		await page.getByRole("button", { name: "Make a link to port 8123" }).click();
		const outside = await opened(page, "Open port 8123");
		await outside.getByText("written by a script").waitFor();
		check(new URL(outside.url()).hostname.startsWith(`8123-${id}.`), `where it is opened: ${outside.url()}`);
		equal(await page.evaluate(() => [window.hacked, localStorage.x].join()), ",", "what it left in the console");
		await end(page);
	},
);

test(
	"sessions.token",
	"with a token a session is its own, and ports are opened by links only",
	async ({ open, skip }) => {
		if (!setting.token) skip("no server with tokens");
		const page = await open(`/#token=${setting.token}`, { base: setting.authUrl });
		await begin(page, "typescript");
		await runCell(page, 1, "const answer: number = 6 * 7; answer");
		await says(page, 1, "42");
		await tab(page, "Ports").click();
		await page.getByRole("button", { name: "Make a link to port 3000" }).click();
		await page.getByRole("link", { name: "Open port 3000" }).waitFor();
		equal(await page.getByRole("link", { name: "Look at port 3000" }).count(), 0, "links that would need the token");
		await end(page);
	},
);

// ---- the rest ----

test("sessions.findings", "findings stand at their lines, and what is blocked says why", async ({ open }) => {
	const { page } = await open1(open);
	await type(page, 1, 'import subprocess\nsubprocess.run(["cat", "/etc/shadow"])\n');
	await cell(page, 1)
		.getByText(/finding.*would be blocked/)
		.click();
	await cell(page, 1)
		.getByRole("button", { name: /Go to line 2/ })
		.first()
		.click();
	await page.locator(".editor.is-cell .cm-lint-marker").first().waitFor();
	await cell(page, 1).getByRole("button", { name: "Run cell 1" }).click();
	await isOver(page, 1, "blocked");
	await end(page);
});

test(
	"sessions.kept",
	"cells and their output are there again after a reload; what is left with the page has ended",
	async ({ open }) => {
		const { page, id } = await open1(open);
		await runCell(page, 1, 'kept = "across"\nprint("kept " + kept)');
		await page.reload();
		await says(page, 1, "kept across");
		check((await code(page, 1).textContent()).includes("kept = "), "the code after a reload");
		await cell(page, 1).getByRole("button", { name: "Run cell 1" }).click();
		await until(async () => (await cell(page, 1).locator(".cell-count").textContent()) === "[2]", "the second run");
		await type(page, 1, ENDLESS);
		await page.keyboard.press("Control+Enter");
		await says(page, 1, "first line");
		await page.reload();
		await cell(page, 1).getByText("The page was left while this was under way.").waitFor();
		// What the service does not know any more is not kept either.
		await page.evaluate(() => sessionStorage.setItem("brig.notebook.gone", "{}"));
		await page.getByRole("link", { name: "Sessions" }).click();
		await page.getByRole("row").filter({ hasText: id }).waitFor();
		await until(() => page.evaluate(() => !sessionStorage.getItem("brig.notebook.gone")), "the notebook forgotten");
		check(await page.evaluate((one) => sessionStorage.getItem(`brig.notebook.${one}`), id), "this one is kept");
		await page.goBack();
		await end(page);
	},
);

test("sessions.nobody", "a session that there is not is said to be none", async ({ open }) => {
	const page = await open("/#/sessions/aaaaaaaaaaaaaaaa", { expected: [/status of 404/] });
	await page.getByRole("alert").getByText("there is no").waitFor();
});

test(
	"history.doors",
	"the history tells which door something came through, and can be asked for one",
	async ({ open }) => {
		const page = await open("/");
		const asked = { language: "python", version: "*", files: [{ content: "print(1)" }] };
		const answer = await page.request.post(`${setting.url}/api/v2/execute`, { data: asked });
		equal(answer.status(), 200, "what the door answers");
		await page.getByRole("link", { name: "History" }).click();
		await choose(page, "Door", "piston");
		await page.waitForURL(/door=piston/);
		const table = page.getByRole("table", { name: "Executions" });
		const doors = () => table.locator("td[data-title=Door]").allTextContents();
		await until(
			async () => (await doors()).length > 0 && (await doors()).every((door) => door === "piston"),
			"only piston's",
		);
		await picture(page, "history-doors");
		await table.getByRole("link").first().click();
		await tab(page, "Details").click();
		await page.getByText("Through").locator("..").getByText("piston").waitFor();
		await page.goBack();
		await choose(page, "Door", "dify");
		await page.getByText("No execution matches.").waitFor();
	},
);

for (const [name, options] of Object.entries({
	phone: { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
	narrow: { viewport: { width: 320, height: 640 } },
})) {
	test(`sessions.look-${name}`, "a session fits, and each control has a name", async ({ open }) => {
		const page = await open("/", options);
		await page.getByRole("button", { name: "Menu" }).click();
		await begin(page);
		await runCell(page, 1, RICH);
		equal(await overflow(page), "", "the notebook");
		await picture(page, `${name}-session`);
		for (const title of ["Notebook", "Files", "Processes", "Ports"]) {
			await tab(page, title).click();
			await page.getByRole("tabpanel", { name: title }).waitFor();
			equal(await overflow(page), "", `the tab ${title}`);
			equal((await nameless(page)).bad.join(", "), "", `roles without a name in the tab ${title}`);
			equal(await structure(page), "", `the structure of the tab ${title}`);
		}
		await end(page);
	});
}
