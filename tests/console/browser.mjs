// SPDX-License-Identifier: Apache-2.0
// What the cases of the console share: the browser, a page that is watched for complaints, and the report.
import { mkdirSync } from "node:fs";
import { inspect } from "node:util";
import { chromium } from "playwright-core";

export const setting = JSON.parse(process.env.CONSOLE_TEST);
export const PATIENCE = Number(setting.patience) || 90_000; // milliseconds after which something counts as missing; decides no case that works

const cases = [];
let browser = null;

// name: "group.what"; run({ open, skip }).
export const test = (name, title, run) => cases.push({ name, title, run });

class Skipped extends Error {}

// An unprivileged user may be forbidden to make user namespaces: then the browser goes without its own sandbox.
async function launch() {
	const options = { executablePath: setting.browser, args: ["--disable-gpu"], chromiumSandbox: true };
	try {
		return await chromium.launch(options);
	} catch {
		return chromium.launch({ ...options, chromiumSandbox: false });
	}
}

// What a page says of itself that nobody asked for: errors, refused loads, violations of the security policy.
function watch(page, complaints, expected) {
	const take = (text) => expected.some((pattern) => pattern.test(text)) || complaints.push(text);
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && take(`console: ${message.text()}`));
	page.on("pageerror", (error) => take(`error: ${error.message}`));
	page.on("dialog", (dialog) => {
		complaints.push(`dialog: ${dialog.message()}`);
		dialog.dismiss();
	});
}

// open(path, options): a page in a profile of its own; options: those of a browser context, and expected: patterns of
// complaints that belong to the case, and base: another server.
function opener(contexts, complaints) {
	return async (path = "/", { expected = [], base = setting.url, ...options } = {}) => {
		const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
		contexts.push(context);
		context.setDefaultTimeout(PATIENCE);
		const page = await context.newPage();
		watch(page, complaints, expected);
		await page.goto(base + path);
		return page;
	};
}

// A page that hangs answers nobody: then only the clock ends the case.
function late(milliseconds) {
	return new Promise((_, reject) =>
		setTimeout(() => reject(new Error(`not done after ${milliseconds / 1000} s`)), milliseconds).unref(),
	);
}

async function runCase({ run }) {
	const contexts = [];
	const complaints = [];
	try {
		const done = run({
			open: opener(contexts, complaints),
			skip: (why) => {
				throw new Skipped(why);
			},
		});
		await Promise.race([done, late(3 * PATIENCE)]);
		if (complaints.length > 0) throw new Error("all went well but for this");
	} catch (error) {
		if (complaints.length > 0) error.message += `; the browser complained: ${complaints.join("; ")}`;
		throw error;
	} finally {
		for (const context of contexts) await Promise.race([context.close(), late(PATIENCE)]).catch(() => {});
	}
}

export async function runAll() {
	browser = await launch();
	const counts = { passed: 0, failed: 0, skipped: 0 };
	const chosen = cases.filter(({ name }) => setting.cases.length === 0 || setting.cases.includes(name));
	for (const [at, one] of chosen.entries()) {
		const begun = Date.now();
		const line = `${at + 1} - ${one.name}: ${one.title}`;
		try {
			await runCase(one);
			counts.passed++;
			console.log(`ok ${line} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
		} catch (error) {
			if (error instanceof Skipped) {
				counts.skipped++;
				console.log(`ok ${line} # SKIP ${error.message}`);
				continue;
			}
			counts.failed++;
			console.log(`not ok ${line}`);
			console.log(
				inspect(error, { depth: 3 })
					.split("\n")
					.slice(0, 30)
					.map((text) => `#   ${text}`)
					.join("\n"),
			);
		}
	}
	await browser.close();
	console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
	process.exitCode = counts.failed > 0 ? 1 : 0;
}

export async function picture(page, name) {
	mkdirSync(setting.pictures, { recursive: true });
	await page.screenshot({ path: `${setting.pictures}/console-${name}.png` });
}

// Waits until probe() gives something true, and returns it.
export async function until(probe, what) {
	const end = Date.now() + PATIENCE;
	for (;;) {
		const found = await probe();
		if (found) return found;
		if (Date.now() > end) throw new Error(`never: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 50));
	}
}

// ---- the console's parts, by what a screen reader calls them ----

export const editor = (page) => page.getByRole("textbox", { name: "Code", exact: true });
export const runButton = (page) => page.getByRole("button", { name: "Run", exact: true });
export const verdict = (page) => page.locator(".verdict .badge");
export const output = (page) => page.getByRole("log", { name: "Output of the program" });
export const tab = (page, name) => page.getByRole("tab", { name: new RegExp(`^${name}`) });

export async function write(page, code) {
	await editor(page).click();
	await page.keyboard.press("Control+a");
	await page.keyboard.press("Delete");
	await page.keyboard.insertText(code);
}

export async function choose(page, label, value) {
	const select = page.getByLabel(label, { exact: true });
	await until(
		() => select.evaluate((node, wanted) => [...node.options].some((option) => option.value === wanted), value),
		`${value} in ${label}`,
	);
	await select.selectOption(value);
}

export async function hasVerdict(page, word) {
	const busy = ["running", "waiting"];
	const seen = await until(async () => {
		const [failure] = await page.locator(".verdict .failure").allTextContents();
		if (failure) throw new Error(`instead of a verdict: ${failure}`);
		const [text] = await verdict(page).allTextContents();
		return text && (text === word || !busy.includes(text)) ? text : "";
	}, `verdict ${word}`);
	if (seen !== word)
		throw new Error(`verdict ${seen} instead of ${word}: ${await page.locator(".verdict").textContent()}`);
}

export async function run(page, language, code, word = "ok") {
	await choose(page, "Language", language);
	await write(page, code);
	await runButton(page).click();
	await hasVerdict(page, word);
}

export async function wrote(page, text) {
	await until(async () => (await output(page).textContent()).includes(text), `output with ${JSON.stringify(text)}`);
}

export async function openSettings(page) {
	await page.getByText("Input, files and limits").click();
}

export async function executionId(page) {
	return page.locator(".outcome a[href^='#/executions/']").textContent();
}

export function equal(got, want, what) {
	if (got !== want) throw new Error(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(want)}`);
}

export function check(condition, what) {
	if (!condition) throw new Error(what);
}
