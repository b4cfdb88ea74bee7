// SPDX-License-Identifier: Apache-2.0
// How the console looks and whom it can be used by: colours, widths, names of controls; and what the browser forbids it.
import { check, equal, picture, run, setting, tab, test, until, wrote } from "./browser.mjs";

const VIEWS = ["run", "sessions", "activity", "history", "environments", "statistics", "policy", "doctor"];
const READY = {
	run: ".cm-content",
	sessions: "form",
	activity: "h2",
	history: "[role=status]",
	environments: "form",
	statistics: ".tiles",
	policy: "table",
	doctor: "table",
};

async function visit(page, view) {
	await page.evaluate((name) => {
		location.hash = `#/${name}`;
	}, view);
	await page.locator(`main.view-${view} ${READY[view]}`).first().waitFor();
}

const PROGRAM =
	'import sys, time\nfor i in range(4):\n    print("step", i, flush=True)\n    sum(n * n for n in range(300_000))\n    time.sleep(0.15)\nprint("a word that is " + "very" * 60 + " long")\nprint("done", file=sys.stderr)\n';

export async function overflow(page) {
	return page.evaluate(() => {
		const { clientWidth, scrollWidth } = document.documentElement;
		if (scrollWidth <= clientWidth) return "";
		const wide = [...document.querySelectorAll("main *, header *")].filter(
			(node) => node.getBoundingClientRect().right > clientWidth + 1,
		);
		return `${scrollWidth} > ${clientWidth}: ${wide
			.slice(0, 5)
			.map((node) => node.outerHTML.slice(0, 80))
			.join(" | ")}`;
	});
}

for (const [name, options] of Object.entries({
	phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
	"phone-dark": { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
	narrow: { viewport: { width: 320, height: 640 } },
	tablet: { viewport: { width: 768, height: 1024 } },
	small: { viewport: { width: 1100, height: 700 } },
	laptop: { viewport: { width: 1250, height: 720 } },
	dark: { colorScheme: "dark" },
	light: {},
})) {
	test(`look.${name}`, "every view fits without scrolling sideways", async ({ open }) => {
		const page = await open("/", options);
		await run(page, "python", PROGRAM);
		await wrote(page, "done");
		equal(await overflow(page), "", "the view run");
		await picture(page, name);
		for (const title of ["Findings", "Evidence", "What it tried", "Files", "Details"]) {
			await tab(page, title).click();
			equal(await overflow(page), "", `the tab ${title}`);
			if (title === "Evidence") await picture(page, `${name}-evidence`);
		}
		for (const view of VIEWS.slice(1)) {
			await visit(page, view);
			equal(await overflow(page), "", `the view ${view}`);
			await picture(page, `${name}-${view}`);
		}
	});
}

const TOUR = `import random, time

inside = total = 0
samples = []
for step in range(1, 13):
    for _ in range(40_000):
        x, y = random.random(), random.random()
        inside += x * x + y * y < 1
    total += 40_000
    samples.append(bytearray(1_500_000))
    print(f"{total:7} points: pi is about {4 * inside / total:.4f}", flush=True)
    time.sleep(0.1)
open("pi.txt", "w").write(f"{4 * inside / total}\\n")
`;

// Two pictures of what a visitor sees first.
test("look.tour", "a program with output, charts, findings and evidence", async ({ open }) => {
	const light = await open("/", { viewport: { width: 1280, height: 720 } });
	await run(light, "python", TOUR);
	await wrote(light, "480000 points");
	await light.getByText("1 finding").waitFor();
	await light.mouse.move(640, 700);
	await until(() => light.evaluate(() => document.getAnimations().length === 0), "the end of transitions");
	await picture(light, "tour-run");
	const dark = await open("/", { viewport: { width: 1280, height: 720 }, colorScheme: "dark" });
	await run(dark, "python", TOUR);
	await wrote(dark, "480000 points");
	await tab(dark, "Evidence").click();
	await dark.getByRole("table", { name: "Evidence" }).waitFor();
	await dark.mouse.move(640, 700);
	await until(() => dark.evaluate(() => document.getAnimations().length === 0), "the end of transitions");
	await picture(dark, "tour-evidence");
});

test("look.theme", "the colours follow the system until somebody chooses, and the choice stays", async ({ open }) => {
	const page = await open("/", { colorScheme: "dark" });
	const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	const dark = await background();
	await page.emulateMedia({ colorScheme: "light" });
	await until(async () => (await background()) !== dark, "light colours");
	await page.getByRole("button", { name: "Use dark colours" }).click();
	equal(await background(), dark, "the background after choosing dark");
	await page.reload();
	await page.getByRole("button", { name: "Use light colours" }).waitFor();
	equal(await background(), dark, "the background after loading anew");
});

// Relative luminance and contrast as WCAG 2 defines them.
function contrast(one, other) {
	const luminance = (hex) => {
		const [r, g, b] = [1, 3, 5]
			.map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
			.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
	return (high + 0.05) / (low + 0.05);
}

const PAIRS = [
	["text", "background"],
	["text", "surface"],
	["text", "sunken"],
	["muted", "background"],
	["muted", "surface"],
	["muted", "sunken"],
	["muted", "quiet-back"],
	["accent", "surface"],
	["accent", "background"],
	["accent", "busy-back"],
	["on-accent", "accent"],
	["good", "good-back"],
	["warn", "warn-back"],
	["bad", "bad-back"],
	["bad", "sunken"],
	["text", "bad-back"],
	["text", "warn-back"],
	["text", "selection"],
	["code-keyword", "surface"],
	["code-string", "surface"],
	["code-number", "surface"],
	["code-comment", "surface"],
	["code-name", "surface"],
	["code-type", "surface"],
];

test("access.contrast", "text stands out from its background in both themes", async ({ open }) => {
	for (const colorScheme of ["light", "dark"]) {
		const page = await open("/", { colorScheme });
		const value = await page.evaluate(
			(names) => {
				const style = getComputedStyle(document.documentElement);
				return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
			},
			[...new Set(PAIRS.flat())],
		);
		for (const [front, back] of PAIRS) {
			const ratio = contrast(value[front], value[back]);
			check(ratio >= 4.5, `${colorScheme}: ${front} on ${back} has a contrast of ${ratio.toFixed(2)}, less than 4.5`);
		}
	}
});

const NAMED = new Set([
	"button",
	"link",
	"textbox",
	"searchbox",
	"combobox",
	"checkbox",
	"tab",
	"img",
	"image",
	"table",
	"dialog",
	"log",
	"meter",
	"tablist",
	"navigation",
	"tabpanel",
]);

// What a screen reader is told, shadow roots included.
export async function nameless(page) {
	const client = await page.context().newCDPSession(page);
	const { nodes } = await client.send("Accessibility.getFullAXTree");
	const bad = nodes.filter((node) => !node.ignored && NAMED.has(node.role?.value) && !node.name?.value?.trim());
	const seen = nodes.filter((node) => !node.ignored && NAMED.has(node.role?.value)).length;
	return { seen, bad: bad.map((node) => node.role.value) };
}

export async function structure(page) {
	return page.evaluate(() => {
		const found = [];
		const headings = document.querySelectorAll("h1").length;
		if (headings !== 1) found.push(`${headings} first headings`);
		const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
		if (new Set(ids).size !== ids.length) found.push("an id that comes twice");
		if (!document.documentElement.lang) found.push("no language");
		if (!document.querySelector("main") || !document.querySelector("nav")) found.push("no landmarks");
		return found.join(", ");
	});
}

test("access.names", "every control of every view has a name", async ({ open }) => {
	const page = await open();
	await run(page, "python", PROGRAM);
	await page.getByText("Input, files and limits").click();
	let seen = 0;
	for (const view of VIEWS) {
		await visit(page, view);
		const found = await nameless(page);
		equal(found.bad.join(", "), "", `roles without a name in the view ${view}`);
		equal(await structure(page), "", `the structure of the view ${view}`);
		seen += found.seen;
	}
	check(seen > 80, `only ${seen} controls were looked at`);
	await visit(page, "run");
	for (const title of ["Findings", "Evidence", "What it tried", "Files", "Details"]) {
		await tab(page, title).click();
		equal((await nameless(page)).bad.join(", "), "", `roles without a name in the tab ${title}`);
	}
});

test("access.told", "the verdict is announced, and a new view begins at its heading", async ({ open }) => {
	const page = await open();
	await run(page, "python", 'print("x")\n');
	const region = page.locator(".verdict [role=status]");
	equal(await region.getAttribute("aria-live"), "polite", "how the verdict is announced");
	check((await region.textContent()).startsWith("Verdict: ok"), "what is announced");
	await page.getByRole("link", { name: "History" }).click();
	await until(
		() =>
			page.evaluate(() => document.activeElement.tagName === "H1" && document.activeElement.textContent === "History"),
		"the focus on the heading",
	);
	check((await page.title()).startsWith("History"), "the title of the page");
});

test("policy.csp", "the page has the strict policy, and it is in force", async ({ open }) => {
	const page = await open("/", { expected: [/Content Security Policy/] });
	const answer = await page.request.get(setting.url + "/", { headers: { Accept: "text/html" } });
	const policy = answer.headers()["content-security-policy"] || "";
	for (const part of [
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self'",
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	]) {
		check(policy.includes(part), `${part} is not in ${JSON.stringify(policy)}`);
	}
	check(!policy.includes("unsafe"), `unsafe in ${policy}`);
	const refused = await page.evaluate(
		() =>
			new Promise((resolve) => {
				document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
				const script = document.createElement("script");
				script.textContent = "window.hacked = 1";
				document.body.append(script);
			}),
	);
	check(refused.startsWith("script-src"), `what was refused: ${refused}`);
	equal(await page.evaluate(() => window.hacked), undefined, "what an inline script set");
});

test("page.licences", "the licences of what the console is made with are there", async ({ open }) => {
	const page = await open();
	await page.getByRole("link", { name: "Licences" }).click();
	await page.waitForURL(/licences/);
	const text = await page.locator("body").textContent();
	for (const name of ["preact", "uplot", "@codemirror/view"]) check(text.includes(`${name} `), `no licence of ${name}`);
});

test("policy.own", "the console loads nothing from anybody else", async ({ open }) => {
	const page = await open();
	const foreign = [];
	page.on(
		"request",
		(request) =>
			new URL(request.url()).origin !== new URL(setting.url).origin &&
			!/^(blob|data):/.test(request.url()) &&
			foreign.push(request.url()),
	);
	await page.reload();
	await run(page, "python", 'print("x")\n');
	for (const view of VIEWS) await visit(page, view);
	equal(foreign.join(", "), "", "requests to others");
});
