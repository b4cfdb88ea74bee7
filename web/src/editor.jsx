// SPDX-License-Identifier: Apache-2.0
// The editor.  CodeMirror brings its styles along: into a document it would write a <style> element, which the page's
// content security policy forbids; into a shadow root it puts a constructed style sheet, which is allowed.
import { Compartment, EditorState, Prec } from "@codemirror/state";
import {
	EditorView,
	drawSelection,
	highlightActiveLine,
	highlightSpecialChars,
	keymap,
	lineNumbers,
} from "@codemirror/view";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { HighlightStyle, bracketMatching, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import { modeOf } from "./languages.js";

const highlight = HighlightStyle.define([
	{ tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
	{ tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
	{ tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
	{ tag: [tags.comment, tags.meta], color: "var(--code-comment)", fontStyle: "italic" },
	{ tag: [tags.definition(tags.variableName), tags.function(tags.variableName)], color: "var(--code-name)" },
	{ tag: [tags.typeName, tags.className, tags.standard(tags.variableName)], color: "var(--code-type)" },
]);

const look = EditorView.theme({
	"&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "0.875rem" },
	"&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
	".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", overflow: "auto" },
	".cm-content": { caretColor: "var(--text)" },
	".cm-cursor": { borderLeftColor: "var(--text)" },
	".cm-gutters": { backgroundColor: "var(--sunken)", color: "var(--muted)", border: "none" },
	".cm-activeLine": { backgroundColor: "var(--line)" },
	"&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
		backgroundColor: "var(--selection)",
	},
	".cm-tooltip": {
		backgroundColor: "var(--surface)",
		color: "var(--text)",
		border: "1px solid var(--border)",
		borderRadius: "4px",
		maxWidth: "min(34rem, 85vw)",
		fontFamily: "var(--sans)",
	},
	".cm-diagnostic": { padding: "0.4rem 0.6rem", whiteSpace: "pre-wrap" },
	".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
	".cm-diagnostic-warning": { borderLeftColor: "var(--warn)" },
	".cm-diagnostic-info": { borderLeftColor: "var(--accent)" },
	".cm-lintRange-error": {
		backgroundImage: "none",
		textDecoration: "underline wavy var(--bad)",
		textUnderlineOffset: "3px",
	},
	".cm-lintRange-warning": {
		backgroundImage: "none",
		textDecoration: "underline wavy var(--warn)",
		textUnderlineOffset: "3px",
	},
	".cm-lintRange-info": {
		backgroundImage: "none",
		textDecoration: "underline dotted var(--accent)",
		textUnderlineOffset: "3px",
	},
	".cm-lint-marker": { width: "0.7em", height: "0.7em", marginTop: "0.35em" },
	".cm-lint-marker-error": { content: "none", backgroundColor: "var(--bad)" },
	".cm-lint-marker-warning": { content: "none", backgroundColor: "var(--warn)", borderRadius: "50%" },
	".cm-lint-marker-info": { content: "none", backgroundColor: "var(--accent)", borderRadius: "50%" },
	".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
});

const SEVERITY = { CRITICAL: "error", HIGH: "warning", MEDIUM: "warning", LOW: "info" };

// Columns count characters from 1; the editor counts UTF-16 units.
function offsetOf(doc, line, column) {
	if (line < 1) return 0;
	if (line > doc.lines) return doc.length;
	const row = doc.line(line);
	let at = 0;
	for (const letter of row.text) {
		if (--column < 1) break;
		at += letter.length;
	}
	return row.from + at;
}

function diagnosticsOf(doc, findings) {
	return findings
		.map((finding) => {
			const from = offsetOf(doc, finding.line, finding.column);
			const to = Math.max(from, offsetOf(doc, finding.end_line, finding.end_column));
			return {
				from,
				to,
				severity: SEVERITY[finding.severity] || "info",
				source: `${finding.severity} ${finding.rule}`,
				message: finding.remedy ? `${finding.message}\n${finding.remedy}` : finding.message,
			};
		})
		.sort((a, b) => a.from - b.from);
}

// Left to the browser, a letter that replaces several lines would be written with a style attribute, to look like what it
// replaces; the security policy refuses that and the browser's log complains.
const replaceSelected = EditorView.domEventHandlers({
	beforeinput(event, view) {
		if (event.inputType !== "insertText" || !event.data || view.composing || view.state.selection.main.empty)
			return false;
		event.preventDefault();
		view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
		return true;
	},
});

const named = (label) => EditorView.contentAttributes.of({ "aria-label": label });

// Tab indents where the editor has been told so; Escape and then Tab leaves it, as CodeMirror documents it.
const keys = [...lintKeymap, ...historyKeymap, ...defaultKeymap, { key: "Tab", run: indentMore, shift: indentLess }];

// edition: changes whenever value is another text than the one that was typed.
// onRunOn: what Shift+Enter does, if it is not a new line.  focus: another number than 0 or the one before takes the focus.
// handle.current gets { show(line), focus() } for whoever wants to lead to a place.
export function Editor({
	label,
	value,
	edition,
	language,
	findings,
	onChange,
	onRun,
	onRunOn,
	handle,
	focus = 0,
	class: extra = "",
}) {
	const host = useRef(null);
	const view = useRef(null);
	const live = useRef({});
	live.current = { onChange, onRun, onRunOn };
	const mode = useRef(new Compartment());
	const name = useRef(new Compartment());

	useEffect(() => {
		const root = host.current.shadowRoot || host.current.attachShadow({ mode: "open" });
		const state = EditorState.create({
			doc: value,
			extensions: [
				Prec.highest(
					keymap.of([
						{ key: "Mod-Enter", run: () => (live.current.onRun(), true) },
						{ key: "Shift-Enter", run: () => !!live.current.onRunOn && (live.current.onRunOn(), true) },
					]),
				),
				lineNumbers(),
				lintGutter(),
				history(),
				drawSelection(),
				highlightSpecialChars(),
				highlightActiveLine(),
				bracketMatching(),
				indentUnit.of("    "),
				keymap.of(keys),
				syntaxHighlighting(highlight),
				look,
				replaceSelected,
				mode.current.of(modeOf(language)),
				name.current.of(named(label)),
				EditorView.updateListener.of(
					(update) => update.docChanged && live.current.onChange(update.state.doc.toString()),
				),
			],
		});
		view.current = new EditorView({ state, root, parent: root });
		if (handle)
			handle.current = { show: (line, column) => show(view.current, line, column), focus: () => view.current.focus() };
		return () => view.current.destroy();
	}, []);
	useEffect(() => view.current.dispatch({ effects: mode.current.reconfigure(modeOf(language)) }), [language]);
	useEffect(() => view.current.dispatch({ effects: name.current.reconfigure(named(label)) }), [label]);
	useEffect(() => {
		if (focus) view.current.focus();
	}, [focus]);
	// Only a text from elsewhere is put in.  What was typed comes back as value too, later than the next key perhaps:
	// writing that would undo the key.
	useEffect(() => {
		const { doc } = view.current.state;
		if (doc.toString() !== value) view.current.dispatch({ changes: { from: 0, to: doc.length, insert: value } });
	}, [edition]);
	useEffect(
		() => view.current.dispatch(setDiagnostics(view.current.state, diagnosticsOf(view.current.state.doc, findings))),
		[findings],
	);
	return <div class={`editor ${extra}`} ref={host} />;
}

// Code to be read: lines, colours, and letters that would hide something made visible, as in the editor.
export function CodeView({ label, value, language }) {
	const host = useRef(null);
	useEffect(() => {
		const root = host.current.shadowRoot || host.current.attachShadow({ mode: "open" });
		const state = EditorState.create({
			doc: value,
			extensions: [
				lineNumbers(),
				highlightSpecialChars(),
				syntaxHighlighting(highlight),
				look,
				modeOf(language),
				EditorState.readOnly.of(true),
				EditorView.editable.of(false),
				EditorView.contentAttributes.of({ "aria-label": label, "aria-readonly": "true", tabindex: "0" }),
			],
		});
		const view = new EditorView({ state, root, parent: root });
		return () => view.destroy();
	}, [value, language]);
	return <div class="editor is-cell" ref={host} />;
}

function show(view, line, column) {
	const at = offsetOf(view.state.doc, line, column || 1);
	view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
	view.focus();
}
