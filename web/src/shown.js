// SPDX-License-Identifier: Apache-2.0
// Results of a context, which are a stranger's, as what the page can show.
//
// Nothing of them becomes part of the page's own document but text.  Pictures are sources of <img>, which runs nothing and
// loads nothing from elsewhere, SVG included.  HTML that is one table is read into rows of text; other HTML is shown in a
// frame with an empty `sandbox`: no scripts, an origin of nobody, no forms, no windows, no way to lead the page elsewhere.
// The frame is about:srcdoc, so that the page's Content-Security-Policy is its own as well, and it has one more that lets
// pictures in that are part of it and nothing else.  What is taken out of the HTML before (tidied) would be refused anyway;
// it only spares the browser's log the complaints.
import { toBase64 } from "./format.js";

const HTML_MAX = 2 * 1024 * 1024; // characters; longer ones can be saved
const CELLS_MAX = 4000; // of a table
const BESIDE_MAX = 300; // characters that a table may have around it: how many rows there are

export const FRAME_POLICY = "default-src 'none'; img-src data:";

const utf8 = (text) => new TextEncoder().encode(text);
const isBase64 = (text) => /^[A-Za-z0-9+/\s]+={0,2}\s*$/.test(text);

// In the order in which one would rather see them.
const FORMS = ["png", "jpeg", "svg", "html", "json", "markdown", "latex", "javascript", "pdf", "text"];
export const formsOf = (forms) => FORMS.filter((name) => typeof forms[name] === "string" && forms[name] !== "");

// The address of a picture, or "" if it is none.
export function pictureAddress(name, value) {
	if (name === "svg") return `data:image/svg+xml;base64,${toBase64(utf8(value))}`;
	return isBase64(value) ? `data:image/${name};base64,${value.replace(/\s/g, "")}` : "";
}

// Colours of a terminal are of no use here.
export const withoutEscapes = (text) => text.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "");

export function prettyJson(text) {
	try {
		return JSON.stringify(JSON.parse(text), null, 2);
	} catch {
		return text;
	}
}

// ---- HTML ----

// A parser complains of handlers and styles of what it only reads, though nothing of it runs: here they have other names.
const quieted = (html) =>
	html
		.replace(/<[a-z][^>]*>/gi, (tag) => tag.replace(/([\s"'/])(style|on[a-z]+)(\s*=)/gi, "$1data-$2$3"))
		.replace(/<(\/?)(style|script)\b/gi, "<$1x-$2")
		.replace(/<base\b/gi, "<wbr");

// A document that is in no window: nothing of it loads or runs.
const parsed = (html) => new DOMParser().parseFromString(quieted(html), "text/html");

const REMOVED =
	"x-script, x-style, script, style, link, meta, base, iframe, frame, frameset, object, embed, portal, form, input, button, select, textarea, audio, video, noscript, template";
const ADDRESSES = [
	"href",
	"src",
	"srcset",
	"action",
	"formaction",
	"poster",
	"background",
	"xlink:href",
	"ping",
	"target",
];

function tidied(doc) {
	for (const node of doc.querySelectorAll(REMOVED)) node.remove();
	for (const node of doc.querySelectorAll("*")) {
		const href = node.localName === "a" ? node.getAttribute("href") : null;
		for (const { name, value } of [...node.attributes]) {
			const isAddress = ADDRESSES.includes(name.toLowerCase());
			if (/^(on|style$|data-)/i.test(name) || (isAddress && !/^(data:image\/|#)/i.test(value)))
				node.removeAttribute(name);
		}
		if (href) node.setAttribute("title", href); // a link leads nowhere in there, but one can see where it would
	}
	return doc.body;
}

// The document for the frame.  Its looks are attributes, for no style sheet can be in it.
export function frameDocument(html, theme) {
	const head = `<meta http-equiv="Content-Security-Policy" content="${FRAME_POLICY}"><meta name="color-scheme" content="${theme}">`;
	const body = tidied(parsed(html)).innerHTML;
	return `<!doctype html><html><head>${head}</head><body><font face="system-ui, sans-serif" size="2">${body}</font></body></html>`;
}

const flat = (node) => node.textContent.replace(/\s+/g, " ").trim();
const span = (text) => Math.min(Math.max(Number.parseInt(text, 10) || 1, 1), 100);
const cellOf = (node) => ({
	text: flat(node),
	isHead: node.localName === "th",
	columns: span(node.getAttribute("colspan")),
	rows: span(node.getAttribute("rowspan")),
});

// { rows, caption, beside, cut } if the HTML is one table of text and little else, or null.
export function tableOf(html) {
	if (html.length > HTML_MAX) return null;
	const doc = parsed(html);
	for (const node of doc.querySelectorAll("x-script, x-style, script, style")) node.remove();
	const [table, ...others] = doc.querySelectorAll("table");
	if (!table || others.length > 0 || doc.querySelector("img, svg, canvas, iframe, object, video, form, input"))
		return null;
	const rows = [];
	let count = 0;
	for (const row of table.rows) {
		if (count > CELLS_MAX) break;
		count += row.cells.length;
		rows.push({ cells: [...row.cells].map(cellOf), isHead: row.parentNode.localName === "thead" });
	}
	const cut = rows.length < table.rows.length;
	const caption = table.caption ? flat(table.caption) : "";
	table.remove();
	const beside = flat(doc.body);
	return rows.length > 0 && beside.length <= BESIDE_MAX ? { rows, caption, beside, cut } : null;
}

export const isTooLong = (html) => html.length > HTML_MAX;
