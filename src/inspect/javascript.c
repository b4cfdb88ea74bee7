/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JavaScript and TypeScript inspector.
 *
 * Three walks over one tree, none of them recursive: the first finds scopes and declarations (javascript_scope.c), the
 * second computes values from the leaves up so that variables are known wherever they are used, the third does the same
 * and reports findings (javascript_eval.c).  The second is repeated if it passes something from the network to
 * functions that it has already walked.  The tree is tree-sitter's; three things that engines read differently are
 * looked for explicitly: variables called await or yield, the text after such a word, and HTML-like comments.
 *
 *	RULE J1  A name counts as the engine's only if no scope around it declares it.
 *	RULE J2  A reference is judged where the inspector stops following it; calling it is not needed.
 *	RULE J3  What cannot be computed is unknown, and an unknown module, or an unknown member of the global object,
 *	         is a finding of its own.
 */
#include "inspect/javascript.h"

#include "inspect/parse.h"

#define LEARNING_MAX 3         /* maximum number of walks without judging: each follows callbacks one level deeper */
#define FOLD_MAX     (8 * MiB) /* maximum total length of folded strings */

/* The first place where the parser had to recover from an error. */
static struct span first_error(TSNode root)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	TSNode node = root;
	struct span span;
	bool deeper = true;

	while (deeper) {
		node = ts_tree_cursor_current_node(&cursor);
		if (ts_node_is_error(node) || ts_node_is_missing(node))
			break;
		deeper = ts_tree_cursor_goto_first_child(&cursor);
		while (deeper && !ts_node_has_error(ts_tree_cursor_current_node(&cursor)))
			if (!ts_tree_cursor_goto_next_sibling(&cursor))
				deeper = false;
	}
	ts_tree_cursor_delete(&cursor);
	span.start = ts_node_start_byte(node);
	span.end = ts_node_end_byte(node);
	if (span.end > span.start + 40)
		span.end = span.start + 40;
	return span;
}

static void walk(struct js *js, TSNode root)
{
	if (ts_node_has_error(root))
		(void)judge_check(js->judge, "parse-error", first_error(root), "%s", "");
	if (!js_walk_scopes(js, root))
		return;
	for (unsigned i = 0; i == 0 || (js->learned && i < LEARNING_MAX); i++) {
		js->learned = false;
		if (!js_walk_values(js, root))
			return;
	}
	js->judging = true;
	(void)js_walk_values(js, root);
}

void inspect_javascript(struct judge *j, enum inspect_kind kind, const char *text, size_t len)
{
	struct js js = { .judge = j,
			 .grammar = js_grammar(kind),
			 .source = kind,
			 .text = text,
			 .len = (uint32_t)len,
			 .fold_left = FOLD_MAX };
	struct span whole = { 0, (uint32_t)len };
	TSTree *tree;

	if (!js.grammar) {
		(void)judge_check(j, "not-analysable", whole, "the parser for it is not usable");
		return;
	}
	tree = inspect_parse(j, js.grammar->language, text, len);
	if (!tree)
		return;
	walk(&js, ts_tree_root_node(tree));
	if (js.exhausted)
		(void)judge_check(j, "not-analysable", whole, "it is too intricate");
	ts_tree_delete(tree);
	js_arena_release(&js);
	free(js.atoms);
	free(js.atom_slots);
	free(js.vars);
	free(js.scopes);
	free(js.frames);
	free(js.kids);
}
