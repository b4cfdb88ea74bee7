// SPDX-License-Identifier: Apache-2.0
// The console as somebody uses it.  Programs that must be seen while they run do not end by themselves: no case depends on
// being quick enough.
import {
	check,
	choose,
	editor,
	equal,
	executionId,
	hasVerdict,
	openSettings,
	output,
	picture,
	run,
	runAll,
	runButton,
	setting,
	tab,
	test,
	until,
	verdict,
	write,
	wrote,
} from "./browser.mjs";
import "./cluster.mjs";
import "./look.mjs";
import "./ports.mjs";
import "./sessions.mjs";

const ENDLESS = 'import time\nprint("first line", flush=True)\nwhile True:\n    time.sleep(0.05)\n';
const SECRETS = 'import subprocess\nsubprocess.run(["cat", "/etc/shadow"])\n';

const HELLO = {
	python: 'print("hello from", "python")',
	javascript: 'console.log("hello from", "javascript")',
	typescript: 'const name: string = "typescript";\nconsole.log(`hello from ${name}`)',
	go: 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hello from", "go")\n}\n',
	shell: "echo hello from shell",
};

for (const [language, code] of Object.entries(HELLO)) {
	test(`run.${language}`, `a program in ${language} runs and its output is shown`, async ({ open, skip }) => {
		const page = await open();
		await until(
			() =>
				page
					.getByLabel("Language", { exact: true })
					.locator("option")
					.count()
					.then((n) => n > 5),
			"the languages",
		);
		const isMissing = (node, name) => [...node.options].find((option) => option.value === name)?.disabled;
		if (await page.getByLabel("Language", { exact: true }).evaluate(isMissing, language))
			skip(`${language} is not installed`);
		await run(page, language, code);
		await wrote(page, `hello from ${language}`);
		check((await editor(page).locator("span[class]").count()) > 0, "nothing is highlighted");
	});
}

test("run.stream", "output and charts come while the program runs; Cancel ends it", async ({ open }) => {
	const page = await open();
	await choose(page, "Language", "python");
	await write(page, ENDLESS);
	await runButton(page).click();
	await wrote(page, "first line");
	equal(await verdict(page).textContent(), "running", "the verdict while it runs");
	await until(async () => (await page.locator(".charts canvas").count()) === 3, "three charts");
	for (const name of ["CPU", "Memory", "Processes"])
		check((await page.getByRole("img", { name: new RegExp(`^${name} over`) }).count()) === 1, `no chart of ${name}`);
	check(await runButton(page).isDisabled(), "Run is not disabled while it runs");
	await picture(page, "running");
	await page.getByRole("button", { name: "Cancel", exact: true }).click();
	await hasVerdict(page, "cancelled");
	await page.getByRole("img", { name: /^Memory over .*: peak / }).waitFor();
	check(await runButton(page).isEnabled(), "Run is disabled after the end");
});

test("run.streams", "stdout and stderr are told apart", async ({ open }) => {
	const page = await open();
	await run(
		page,
		"python",
		'import sys\nprint("to the one")\nprint("to the other", file=sys.stderr)\nsys.exit(3)\n',
		"error",
	);
	await wrote(page, "to the other");
	equal((await output(page).locator(".stderr").textContent()).trim(), "to the other", "stderr");
	await page.getByRole("button", { name: "stdout", exact: true }).click();
	equal((await output(page).textContent()).trim(), "to the one", "only stdout");
	check((await page.locator(".verdict").textContent()).includes("exit code 3"), "the exit code is not told");
});

test("run.much", "much output is shown as far as the page can bear, and said so", async ({ open }) => {
	const page = await open();
	await run(page, "python", 'for i in range(30000):\n    print("line", i, "x" * 40)\nprint("the end")\n');
	await wrote(page, "the end");
	const isBounded = async (where) => (await output(where).textContent()).length < 600_000;
	check(await isBounded(page), "more is in the page than its ceiling");
	const shared = await open(`/#/executions/${await executionId(page)}`);
	await wrote(shared, "the end");
	check(await isBounded(shared), "more is in the shared page than its ceiling");
	check((await page.getByText(/are not shown here/).count()) === 1, "it is not said that something is not shown");
});

test("run.timeout", "a limit that is set in the console ends the program", async ({ open }) => {
	const page = await open();
	await openSettings(page);
	await page.getByLabel("Timeout", { exact: true }).fill("1");
	await run(page, "python", ENDLESS, "timeout");
	await wrote(page, "first line");
});

test(
	"run.input",
	"standard input, arguments and files reach the program; changed files have a difference",
	async ({ open }) => {
		const page = await open();
		await openSettings(page);
		await page.getByLabel("Standard input", { exact: true }).fill("from the input\n");
		await page.getByLabel("Arguments", { exact: true }).fill('one "two words" three\\ more');
		await page
			.getByLabel("Files", { exact: true })
			.setInputFiles({ name: "data.txt", mimeType: "text/plain", buffer: Buffer.from("keep\nold line\nend\n") });
		await page.getByText("data.txt", { exact: true }).waitFor();
		const code =
			'import sys\nprint(sys.stdin.read().strip(), sys.argv[1:])\ntext = open("data.txt").read()\nopen("data.txt", "w").write(text.replace("old", "new"))\n';
		await run(page, "python", code);
		await wrote(page, "from the input ['one', 'two words', 'three more']");
		await tab(page, "Files").click();
		await page.getByRole("button", { name: "Difference of data.txt" }).click();
		await page.locator(".diff-old").waitFor();
		equal((await page.locator(".diff-old").textContent()).trim(), "- old line", "what was taken away");
		equal((await page.locator(".diff-new").textContent()).trim(), "+ new line", "what was added");
		check((await page.locator(".diff-same").count()) === 2, "the lines around it are missing");
		const [saved] = await Promise.all([
			page.waitForEvent("download"),
			page.getByRole("button", { name: "Save as a patch" }).click(),
		]);
		check(/^[a-z2-7]{16}\.diff$/.test(saved.suggestedFilename()), `the patch is called ${saved.suggestedFilename()}`);
		const shared = await open(`/#/executions/${await executionId(page)}`);
		await tab(shared, "Files").click();
		await shared.getByRole("button", { name: "Difference of data.txt" }).click();
		equal((await shared.locator(".diff-new").textContent()).trim(), "+ new line", "what others see");
	},
);

test("result.changes", "changed files are told apart: added, deleted, binary, odd names, no newline", async ({ open }) => {
	const page = await open();
	await openSettings(page);
	await page.getByLabel("Files", { exact: true }).setInputFiles([
		{ name: "gone.txt", mimeType: "text/plain", buffer: Buffer.from("<b>was here</b>\n") },
		{ name: "raw.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 1, 2]) },
	]);
	await page.getByText("raw.bin", { exact: true }).waitFor();
	const code = `import os\nos.remove("gone.txt")\nopen("raw.bin", "ab").write(b"x")\nopen("a \\"b\\" \u00fc.txt", "w").write("no end")\n`;
	await run(page, "python", code);
	await tab(page, "Files").click();
	const shown = async (name) => {
		await page.getByRole("button", { name: `Difference of ${name}` }).click();
		return (await page.getByLabel(`Changes of ${name}`).textContent()).trim().split("\n");
	};
	equal((await shown("gone.txt")).pop(), "- <b>was here</b>", "a file that was deleted");
	check((await shown("raw.bin")).join(" ").includes("Binary files"), "a binary file is not told");
	const odd = await shown('a "b" \u00fc.txt');
	equal(odd.slice(-2).join("|"), "+ no end| No newline at end of file", "a name in quotes, and no newline");
	await picture(page, "changes");
});

test("inspect.line", "a finding is at its line while one types, with what to do", async ({ open }) => {
	const page = await open();
	await choose(page, "Language", "python");
	await write(page, SECRETS);
	const mark = page.locator(".cm-lintRange-error").first();
	await mark.waitFor();
	const line = page.locator(".cm-line").nth(1);
	check((await line.locator(".cm-lintRange-error").count()) > 0, "the mark is not on line 2");
	await page.locator(".cm-lint-marker-error").first().waitFor();
	await page.getByText(/would be blocked/).click();
	const row = page.getByRole("row").filter({ hasText: "sh-read-private" });
	check((await row.textContent()).includes("pass what is needed in"), "the remedy is not told");
	await row.getByRole("button", { name: /^Go to line 2/ }).click();
	await until(
		() =>
			page.evaluate(() => document.querySelector(".editor").shadowRoot.activeElement?.classList.contains("cm-content")),
		"the focus in the editor",
	);
	await mark.hover();
	await page.locator(".cm-tooltip .cm-diagnostic").first().waitFor();
	await picture(page, "findings");
	await write(page, 'print("harmless")\n');
	await page.getByText("The inspection finds nothing.").waitFor();
	equal(await page.locator(".cm-lintRange-error").count(), 0, "marks of harmless code");
});

test("inspect.blocked", "a program that is blocked says why, and nothing ran", async ({ open }) => {
	const page = await open();
	await run(page, "python", SECRETS, "blocked");
	check((await page.locator(".reason").textContent()).includes("line 2"), "the reason does not name the line");
	await tab(page, "Findings").click();
	await page.getByRole("cell", { name: /opens a file of the system pass what/ }).waitFor();
	await tab(page, "Evidence").click();
	await page.getByText("Nothing ran, so there is nothing to prove.").waitFor();
});

test("result.evidence", "what was declared, enforced and kept is shown", async ({ open }) => {
	const page = await open();
	await run(page, "python", 'print("x")\n');
	await tab(page, "Evidence").click();
	const table = page.getByRole("table", { name: "Evidence" });
	for (const title of ["Promise", "Declared", "Enforced", "Kept", "Read from"])
		await table.getByRole("columnheader", { name: title }).waitFor();
	const rows = await table.getByRole("row").count();
	check(rows > 15, `only ${rows} rows`);
	check((await table.getByText("not kept").count()) === 0, "a promise was not kept");
	await table.getByRole("cell", { name: "no new privs" }).waitFor();
	await table.getByRole("row", { name: /^memory limit/ }).getByText(/^\d+ MiB$/).first().waitFor();
	await picture(page, "evidence");
});

test("result.tried", "what the program was refused is shown", async ({ open }) => {
	const page = await open();
	await choose(page, "Trust", "trusted");
	await run(
		page,
		"python",
		"import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.unshare(0x10000000))\n",
	);
	await tab(page, "What it tried").click();
	await page.getByRole("heading", { name: "Refused" }).waitFor();
	await page
		.getByRole("cell", { name: /unshare/ })
		.first()
		.waitFor();
});

const PNG = `import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(path, w, h, level):
    rows = b"".join(b"\\0" + bytes((x * 255 // w, y * 255 // h, 128)[c] for x in range(w) for c in range(3)) for y in range(h))
    head = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    open(path, "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, level)) + chunk(b"IEND", b""))
`;

async function pictureWidth(page, name) {
	const image = page.getByRole("img", { name: `Picture that the program made: ${name}` });
	await image.waitFor();
	return until(() => image.evaluate((node) => node.complete && node.naturalWidth), `the picture ${name}`);
}

test("result.pictures", "pictures that the program made are shown; a script in one does not run", async ({ open }) => {
	const page = await open();
	const svg = `<svg xmlns='http://www.w3.org/2000/svg' width='120' height='60'><script>parent.hacked = 1; window.hacked = 1</script><rect width='120' height='60' fill='teal'/></svg>`;
	await run(page, "python", `${PNG}png("plot.png", 160, 90, 9)\nopen("drawing.svg", "w").write("""${svg}""")\n`);
	await tab(page, "Files").click();
	equal(await pictureWidth(page, "plot.png"), 160, "the width of plot.png");
	equal(await pictureWidth(page, "drawing.svg"), 120, "the width of drawing.svg");
	equal(await page.evaluate(() => window.hacked), undefined, "what the script in the picture set");
	await picture(page, "artifacts");
});

test(
	"result.artifact",
	"a picture of more than a megabyte is shown, can be saved, and has an address",
	async ({ open }) => {
		const page = await open();
		await run(page, "python", `${PNG}png("big one.png", 800, 600, 0)\n`);
		await tab(page, "Files").click();
		equal(await pictureWidth(page, "big one.png"), 800, "the width");
		const [saved] = await Promise.all([
			page.waitForEvent("download"),
			page.getByRole("button", { name: "Save big one.png" }).click(),
		]);
		equal(saved.suggestedFilename(), "big one.png", "the name of the saved file");
		const answer = await page.request.get(
			`${setting.url}/v1/executions/${await executionId(page)}/artifacts/big%20one.png`,
		);
		equal((await answer.body()).subarray(1, 4).toString(), "PNG", "what is at its address");
		check(
			/^attachment/.test(answer.headers()["content-disposition"]) &&
				answer.headers()["x-content-type-options"] === "nosniff",
			"it could be taken for a page",
		);
	},
);

test("hostile.output", "what programs write is text, in output, names of files and errors", async ({ open }) => {
	const page = await open();
	const bad = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>";
	const code = `import sys\nbad = """${bad}"""\nprint(bad)\nprint(bad, file=sys.stderr)\nopen("<img src=x onerror=hacked=1>.txt", "w").write(bad)\nprint("\\x1b[31mred\\x1b[0m \\u202e tfel")\n`;
	await run(page, "python", code);
	await wrote(page, bad);
	equal(await output(page).locator("img, script").count(), 0, "elements made of output");
	await tab(page, "Files").click();
	const name = "<img src=x onerror=hacked=1>.txt";
	await page.getByRole("button", { name: `Show ${name}` }).click();
	await until(async () => (await page.locator(".entries pre").textContent()).includes(bad), "the text of the file");
	equal(await page.locator("main img, main script").count(), 0, "elements made of files");
	equal(await page.evaluate(() => window.hacked), undefined, "what the output set");
	const id = await executionId(page);
	const shared = await open(`/#/executions/${id}`);
	await wrote(shared, bad);
	equal(await shared.locator("main img, main script").count(), 0, "elements in the shared page");
	equal(await shared.evaluate(() => window.hacked), undefined, "what the shared page set");
});

test("share.address", "an execution has an address; whoever opens it sees the same", async ({ open }) => {
	const page = await open();
	await run(page, "python", 'print("to be shared")\n');
	const id = await executionId(page);
	check(/^[a-z2-7]{16}$/.test(id), `the id ${id}`);
	const other = await open(`/#/executions/${id}`);
	await hasVerdict(other, "ok");
	await wrote(other, "to be shared");
	await tab(other, "Evidence").click();
	await other.getByRole("cell", { name: "no new privs" }).waitFor();
	await tab(other, "Code").click();
	const code = editor(other);
	await until(async () => (await code.textContent()).includes("to be shared"), "the code");
	equal(await code.getAttribute("contenteditable"), "false", "it is for reading");
	check((await code.locator("span").count()) > 1, "the code has colours");
	await picture(other, "execution");
	await other.getByRole("button", { name: "Open in the editor" }).click();
	await until(async () => (await editor(other).textContent()).includes("to be shared"), "the code in the editor");
});

test("share.running", "an execution that runs can be watched and cancelled from its address", async ({ open }) => {
	const page = await open();
	await choose(page, "Language", "python");
	await write(page, ENDLESS);
	await runButton(page).click();
	await wrote(page, "first line");
	const other = await open("/#/activity");
	const table = other.getByRole("table", { name: "Running and waiting" });
	await table.getByRole("link").first().click();
	await wrote(other, "first line");
	equal(await verdict(other).textContent(), "running", "the verdict on its page");
	await other.getByRole("button", { name: "Cancel", exact: true }).click();
	await hasVerdict(other, "cancelled");
	await hasVerdict(page, "cancelled");
});

test("share.past", "an execution that only the history knows has its page as well", async ({ open, skip }) => {
	if (!setting.past) skip("only with servers of the suite's own");
	const page = await open(`/#/executions/${setting.past}`);
	await hasVerdict(page, "ok");
	await wrote(page, "of the past");
	await tab(page, "Evidence").click();
	await page.getByRole("cell", { name: "no new privs" }).waitFor();
	await tab(page, "Code").click();
	await editor(page).getByText("of the past").waitFor();
});

test("share.unknown", "an address of no execution says so", async ({ open }) => {
	const page = await open("/#/executions/aaaaaaaaaaaaaaaa", { expected: [/status of 404/] });
	await page.getByRole("alert").waitFor();
});

test("activity.cancel", "what runs is listed, and can be cancelled there", async ({ open }) => {
	const page = await open();
	await choose(page, "Language", "python");
	await write(page, ENDLESS);
	await runButton(page).click();
	await wrote(page, "first line");
	await page.getByRole("link", { name: "Activity" }).click();
	await picture(page, "activity");
	await page
		.getByRole("table", { name: "Running and waiting" })
		.getByRole("button", { name: /^Cancel / })
		.click();
	await page.getByText("Nothing is running or waiting.").waitFor();
	await page.getByRole("link", { name: "Run", exact: true }).click();
	await hasVerdict(page, "cancelled");
});

test("activity.waiting", "an execution that waits says its place, is listed, and can be cancelled", async ({ open }) => {
	const busy = [];
	for (let i = 0; i < setting.jobs; i++) {
		const page = await open();
		await choose(page, "Language", "python");
		await write(page, ENDLESS);
		await runButton(page).click();
		await wrote(page, "first line");
		busy.push(page);
	}
	const page = await open();
	await write(page, 'print("never")\n');
	await runButton(page).click();
	await page.getByText("place 1 in the queue").waitFor();
	equal(await verdict(page).textContent(), "waiting", "the state of the one that waits");
	await page.getByRole("link", { name: "Activity" }).click();
	const table = page.getByRole("table", { name: "Running and waiting" });
	await until(async () => (await table.getByRole("row").count()) === setting.jobs + 2, "all of them in the list");
	await picture(page, "waiting");
	await table.getByRole("row").filter({ hasText: "queued" }).getByRole("button").click();
	await page.getByRole("link", { name: "Run", exact: true }).click();
	await hasVerdict(page, "cancelled");
	for (const one of busy) await one.getByRole("button", { name: "Cancel", exact: true }).click();
	for (const one of busy) await hasVerdict(one, "cancelled");
});

test("activity.pools", "cells that are kept ready are listed by kind, with who found one", async ({ open }) => {
	const page = await open("/#/activity");
	// Without artifacts, which a cell that was there before could not be asked for.
	const made = await page.request.post(`${setting.url}/v1/executions`, { data: { language: "python", code: "print(1)" } });
	equal(made.status(), 200, "a run");
	const row = page.getByRole("table", { name: "Cells that are kept ready" }).getByRole("row").filter({ hasText: "python" });
	await row.first().waitFor();
	await until(async () => /\d+ of \d+/.test((await row.first().textContent()) || ""), "how many are ready, and hits");
	for (const title of ["Language", "Step", "Environment", "Trust", "Ready", "In use", "Made", "Hits"])
		await page.getByRole("columnheader", { name: title, exact: true }).first().waitFor();
	await picture(page, "pools");
});

test("environments.made", "an environment is made, seen, used and removed", async ({ open }) => {
	const page = await open("/#/environments", { expected: [/status of 422/] });
	const form = page.getByRole("form", { name: "Create an environment" });
	await form.getByLabel("Name", { exact: true }).fill("Not A Name");
	await form.getByLabel("Preloaded modules", { exact: true }).fill("json, decimal");
	const refused = page.getByRole("alert");
	await form.getByRole("button", { name: "Create" }).click();
	await refused.getByText(/no name for an environment/).waitFor();
	await form.getByLabel("Name", { exact: true }).fill("tools");
	await form.getByRole("button", { name: "Create" }).click();
	const row = page.getByRole("table", { name: "Environments" }).getByRole("row").filter({ hasText: "tools" });
	await row.getByText("ready").waitFor();
	check((await row.textContent()).includes("json, decimal"), "what it loads is not shown");
	await picture(page, "environments");
	await page.getByRole("link", { name: "Run", exact: true }).click();
	await choose(page, "Environment", "tools");
	await run(page, "python", 'import sys\nprint("json" in sys.modules or "no")\n');
	await choose(page, "Environment", "");
	await page.goto(`${setting.url}/#/environments`);
	await row.getByRole("button", { name: "Remove tools" }).click();
	await row.getByRole("button", { name: "Remove tools" }).click(); // it asks once
	await row.waitFor({ state: "detached" });
});

test("history.filters", "the history lists executions and filters them", async ({ open }) => {
	const page = await open();
	await run(page, "python", 'print("of the history")\n');
	const good = await executionId(page);
	await run(page, "python", "raise SystemExit(4)\n", "error");
	const bad = await until(async () => {
		const id = await executionId(page);
		return id !== good && id;
	}, "the id of the second run");
	await page.getByRole("link", { name: "History" }).click();
	const link = (id) => page.getByRole("link", { name: id });
	await link(good).waitFor();
	await link(bad).waitFor();
	await page.getByRole("columnheader", { name: "Token" }).waitFor();
	await picture(page, "history");
	await choose(page, "Verdict", "error");
	await link(good).waitFor({ state: "detached" });
	await link(bad).waitFor();
	check(page.url().includes("verdict=error"), "the filter is not part of the address");
	await choose(page, "Language", "go");
	await link(bad).waitFor({ state: "detached" });
	await choose(page, "Language", "python");
	await choose(page, "Since", "1h");
	await link(bad).click();
	await hasVerdict(page, "error");
});

test("statistics.shown", "statistics over time are drawn and told as numbers", async ({ open }) => {
	const page = await open();
	await run(page, "python", 'print("counted")\n');
	await page.getByRole("link", { name: "Statistics" }).click();
	await page.getByRole("img", { name: /^Executions over the last day: [1-9]/ }).waitFor();
	await page.getByText("Show as a table").click();
	check(
		(await page.getByRole("table", { name: "Executions over time" }).getByRole("row").count()) > 1,
		"no row of numbers",
	);
	await page
		.getByRole("table", { name: "Executions by verdict" })
		.getByRole("cell", { name: "ok", exact: true })
		.waitFor();
	await picture(page, "statistics");
});

test("policy.origin", "each setting is shown with its value and origin, for each trust level", async ({ open }) => {
	const page = await open("/#/policy");
	const row = page.getByRole("row").filter({ has: page.getByText("execution_timeout_ms", { exact: true }) });
	const value = () => row.getByRole("cell").nth(1).textContent();
	await row.waitFor();
	equal(await row.getByRole("cell").nth(2).textContent(), "presetpreset standard", "who set it");
	const before = await value();
	await choose(page, "Trust", "trusted");
	await until(
		async () => (await row.count()) === 1 && (await value()) !== before,
		"another timeout for trusted programs",
	);
	await page.getByLabel("Find", { exact: true }).fill("mem_limit");
	await until(async () => (await page.getByRole("row").count()) < 8, "fewer rows");
});

test("host.doctor", "the host's capabilities are shown", async ({ open }) => {
	const page = await open("/#/doctor");
	await page.getByRole("heading", { name: "namespaces" }).waitFor();
	check((await page.getByRole("row").count()) > 20, "too few rows");
	await picture(page, "host");
});

test("keyboard.run", "a program is written, run and its result read with the keyboard alone", async ({ open }) => {
	const page = await open();
	await page.keyboard.press("Tab");
	equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content", "the first stop");
	await page.keyboard.press("Enter");
	for (let i = 0; i < 12; i++) {
		await page.keyboard.press("Tab");
		if (await page.evaluate(() => document.activeElement.classList.contains("editor"))) break;
	}
	await page.keyboard.press("Control+a");
	await page.keyboard.type('print("typed " + "by hand")');
	await page.keyboard.press("Control+Enter");
	await hasVerdict(page, "ok");
	await wrote(page, "typed by hand");
	// Escape, then Tab leaves the editor, where Tab alone indents.
	await page.keyboard.press("Escape");
	for (let i = 0; i < 15; i++) {
		await page.keyboard.press("Tab");
		if (await page.evaluate(() => document.activeElement.getAttribute("role") === "tab")) break;
	}
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("ArrowRight");
	equal(
		await page.evaluate(() => document.activeElement.textContent.replace(/\d+/, "")),
		"Evidence",
		"the tab after two arrows",
	);
	await page.getByRole("table", { name: "Evidence" }).waitFor();
});

test("token.dialog", "a server with tokens is asked with one; it is kept for the tab only", async ({ open, skip }) => {
	if (!setting.token) skip("no server with tokens");
	const page = await open("/", { base: setting.authUrl, expected: [/status of 401/] });
	const dialog = page.getByRole("dialog");
	await dialog.waitFor();
	await dialog.getByLabel("Token").fill("brig_wrong");
	await page.keyboard.press("Enter");
	await dialog.getByRole("alert").waitFor();
	await dialog.getByLabel("Token").fill(setting.token);
	await page.keyboard.press("Enter");
	await dialog.waitFor({ state: "hidden" });
	await run(page, "python", 'print("with a token")\n');
	await wrote(page, "with a token");
	equal(
		await page.evaluate(() => JSON.stringify(localStorage).includes("brig_")),
		false,
		"the token in what outlives the tab",
	);
	await page.getByRole("button", { name: "Sign out" }).click();
	await dialog.waitFor();
});

test("token.address", "a token in the address is taken and removed from it", async ({ open, skip }) => {
	if (!setting.token) skip("no server with tokens");
	const page = await open(`/#token=${setting.token}`, { base: setting.authUrl });
	await run(page, "python", 'print("from the address")\n');
	await wrote(page, "from the address");
	check(!page.url().includes("brig_"), `the token is still in ${page.url()}`);
	await page.goBack().catch(() => {});
	check(!page.url().includes("brig_"), "the token is in the browser's history");
});

test("token.limited", "what a token may not is not offered, and nothing is asked for that it may not see", async ({
	open,
	skip,
}) => {
	if (!setting.limited) skip("only with servers of the suite's own");
	const page = await open(`/#token=${setting.limited}`, { base: setting.authUrl }); // no 403 is expected in the log
	const option = (label, name) => page.getByLabel(label, { exact: true }).locator("option", { hasText: name });
	await until(async () => (await option("Language", /^go \(not permitted\)$/).count()) === 1, "a language that it may not use");
	check(await option("Language", /^go /).isDisabled(), "go can be chosen");
	check(!(await option("Language", /^c$/).isDisabled()), "c cannot be chosen");
	check(await option("Trust", /^trusted$/).isDisabled(), "trust can be chosen");
	await run(page, "python", 'print("as it may")\n');
	await wrote(page, "as it may");
	await page.getByRole("link", { name: "Activity" }).click();
	await page.getByRole("table", { name: "Recent executions" }).waitFor();
	await page.getByRole("link", { name: "Sessions" }).click();
	await page.getByText("Your token may use python, c only.").waitFor();
	equal(await page.getByRole("button", { name: "Start", exact: true }).count(), 0, "a session can be started");
});

test("token.pasted", "an address with a token, opened in a page that is there already, is taken as well", async ({
	open,
	skip,
}) => {
	if (!setting.token) skip("no server with tokens");
	const page = await open("/", { base: setting.authUrl, expected: [/status of 401/] });
	await page.getByRole("dialog").waitFor();
	await page.goto(`${setting.authUrl}/#token=${setting.token}`);
	await page.getByRole("dialog").waitFor({ state: "hidden" });
	check(!page.url().includes("brig_"), `the token is still in ${page.url()}`);
	await run(page, "python", 'print("pasted")\n');
});

test("server.gone", "when the server does not answer, the console says so", async ({ open }) => {
	const page = await open("/", { expected: [/ERR_INTERNET_DISCONNECTED|ERR_FAILED/] });
	await until(
		() =>
			page
				.getByLabel("Language", { exact: true })
				.locator("option")
				.count()
				.then((n) => n > 5),
		"the languages",
	);
	await page.context().setOffline(true);
	await runButton(page).click();
	await page
		.locator(".outcome")
		.getByText(/cannot be reached/)
		.waitFor();
});

await runAll();
