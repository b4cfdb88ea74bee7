/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps the grammars' numbers to the inspector's, and provides one walk over a tree for all passes.  The walk keeps its
 * own stack of frames on the heap: 200 000 levels of nesting cost memory, never the C stack.
 */
#include "inspect/javascript.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"

const TSLanguage *tree_sitter_javascript(void);
const TSLanguage *tree_sitter_typescript(void);
const TSLanguage *tree_sitter_tsx(void);

#define SKIPPED  TRAIT_SKIPPED
#define SCOPE    TRAIT_SCOPE
#define FUNCTION TRAIT_FUNCTION
#define PATTERN  TRAIT_PATTERN
const uint8_t js_traits[NODE_COUNT] = {
#define SYMBOL(id, name, traits) [NODE_##id] = (traits),
#include "inspect/javascript.def"
};
#undef SKIPPED
#undef SCOPE
#undef FUNCTION
#undef PATTERN

static const char *const node_names[NODE_COUNT] = {
#define SYMBOL(id, name, traits) [NODE_##id] = name,
#include "inspect/javascript.def"
};

static const char *const field_names[FIELD_COUNT] = {
#define FIELD_NAME(id, name) [FIELD_##id] = name,
#include "inspect/javascript.def"
};

enum { GRAMMAR_JAVASCRIPT, GRAMMAR_TYPESCRIPT, GRAMMAR_TSX, GRAMMAR_COUNT };
static struct js_grammar grammars[GRAMMAR_COUNT];
static const TSLanguage *(*const grammar_language[GRAMMAR_COUNT])(void) = {
	tree_sitter_javascript,
	tree_sitter_typescript,
	tree_sitter_tsx,
};

/* Index in a sorted list whose first entry is unused; 0: not found. */
static uint8_t find_name(const char *const *names, size_t n, const char *name)
{
	size_t low = 1, high = n;

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = strcmp(name, names[mid]);

		if (order == 0)
			return (uint8_t)mid;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return 0;
}

static void learn_grammar(struct js_grammar *g, const TSLanguage *language)
{
	uint32_t nodes = ts_language_symbol_count(language), fields = ts_language_field_count(language) + 1;

	g->node = calloc(nodes, 1);
	g->field = calloc(fields, 1);
	if (!g->node || !g->field)
		return;
	for (uint32_t i = 0; i < nodes; i++) {
		const char *name = ts_language_symbol_name(language, (TSSymbol)i);

		if (name)
			g->node[i] = find_name(node_names, NODE_COUNT, name);
	}
	for (uint32_t i = 1; i < fields; i++)
		g->field[i] =
			find_name(field_names, FIELD_COUNT, ts_language_field_name_for_id(language, (TSFieldId)i));
	g->n_nodes = (uint16_t)nodes;
	g->n_fields = (uint16_t)fields;
	g->language = language;
}

#define LEARN(which)                                                        \
	static void learn_##which(void)                                     \
	{                                                                   \
		learn_grammar(&grammars[which], grammar_language[which]()); \
	}
LEARN(GRAMMAR_JAVASCRIPT)
LEARN(GRAMMAR_TYPESCRIPT)
LEARN(GRAMMAR_TSX)

const struct js_grammar *js_grammar(enum inspect_kind kind)
{
	static pthread_once_t once[GRAMMAR_COUNT] = { PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT, PTHREAD_ONCE_INIT };
	static void (*const learn[GRAMMAR_COUNT])(void) = {
		learn_GRAMMAR_JAVASCRIPT,
		learn_GRAMMAR_TYPESCRIPT,
		learn_GRAMMAR_TSX,
	};
	int which = kind == INSPECT_TYPESCRIPT ? GRAMMAR_TYPESCRIPT
		    : kind == INSPECT_TSX      ? GRAMMAR_TSX
					       : GRAMMAR_JAVASCRIPT;

	(void)pthread_once(&once[which], learn[which]);
	return grammars[which].language ? &grammars[which] : NULL;
}

struct js_frame *js_parent(struct js *js, unsigned up)
{
	return js->n_frames > up ? &js->frames[js->n_frames - 1 - up] : NULL;
}

/* How identifiers directly below a node are bound, derived from the position of the node. */
static uint8_t bind_of(const struct js_frame *f, const struct js_frame *p, const struct js_frame *pp)
{
	switch (p->node) {
	case NODE_DECLARATOR:
		if (f->field != FIELD_NAME || !pp)
			return JS_BIND_NONE;
		return pp->node == NODE_VARIABLES ? JS_BIND_VAR : JS_BIND_LET;
	case NODE_ARRAY_PATTERN:
	case NODE_OBJECT_PATTERN:
	case NODE_REST:
	case NODE_PARAMETERS:
		return p->bind;
	case NODE_PAIR_PATTERN:
		return f->field == FIELD_VALUE ? p->bind : JS_BIND_NONE;
	case NODE_ASSIGNMENT_PATTERN:
	case NODE_OBJECT_DEFAULT:
		return f->field == FIELD_LEFT ? p->bind : JS_BIND_NONE;
	case NODE_REQUIRED_PARAMETER:
	case NODE_OPTIONAL_PARAMETER:
		return f->field == FIELD_PATTERN ? p->bind : JS_BIND_NONE;
	case NODE_ARROW:
		return f->field == FIELD_PARAMETER || f->node == NODE_PARAMETERS ? JS_BIND_PARAM : JS_BIND_NONE;
	case NODE_CATCH:
		return f->field == FIELD_PARAMETER ? JS_BIND_LET : JS_BIND_NONE;
	case NODE_FOR_IN:
		return f->field == FIELD_LEFT ? p->declares : JS_BIND_NONE;
	case NODE_ASSIGNMENT:
	case NODE_AUGMENTED:
		return f->field == FIELD_LEFT ? JS_BIND_ASSIGN : JS_BIND_NONE;
	case NODE_UPDATE:
		return JS_BIND_NONE;
	case NODE_PARENTHESES: /* (x) = 1 */
		return p->bind == JS_BIND_ASSIGN && f->node == NODE_IDENTIFIER ? JS_BIND_ASSIGN : JS_BIND_NONE;
	case NODE_IMPORT_CLAUSE:
	case NODE_IMPORT_SPECIFIER:
	case NODE_NAMESPACE_IMPORT:
	case NODE_IMPORT_REQUIRE:
		return JS_BIND_IMPORT;
	case NODE_IMPORT_ALIAS:
		return p->child <= 1 ? JS_BIND_IMPORT : JS_BIND_NONE;
	default:
		return f->node == NODE_PARAMETERS ? JS_BIND_PARAM : JS_BIND_NONE;
	}
}

/* Keywords that change what their parent means. */
static void note_keyword(struct js_frame *parent, uint8_t node)
{
	switch (node) {
	case NODE_TYPE:
		parent->type_only = true;
		break;
	case NODE_VAR:
		parent->declares = JS_BIND_VAR;
		break;
	case NODE_LET:
	case NODE_CONST:
		parent->declares = JS_BIND_LET;
		break;
	case NODE_OF:
		parent->of = true;
		break;
	default:
		break;
	}
}

static bool push_frame(struct js *js, TSTreeCursor *cursor)
{
	TSNode node = ts_tree_cursor_current_node(cursor);
	TSSymbol symbol = ts_node_symbol(node);
	TSFieldId field = ts_tree_cursor_current_field_id(cursor);
	struct js_frame *f, *p;

	if (!js_grow(js, &js->frames, js->n_frames, &js->cap_frames, sizeof(*js->frames)))
		return false;
	f = &js->frames[js->n_frames++];
	*f = (struct js_frame){
		.node = symbol < js->grammar->n_nodes ? js->grammar->node[symbol] : NODE_OTHER,
		.field = js->grammar->field[field],
		.declares = JS_BIND_ASSIGN,
		.named = ts_node_is_named(node),
		.start = ts_node_start_byte(node),
		.end = ts_node_end_byte(node),
		.kids = js->n_kids,
	};
	p = js_parent(js, 1);
	if (!p)
		return true;
	if (f->named) {
		if (!(js_traits[f->node] & TRAIT_SKIPPED) && p->child < UINT16_MAX)
			p->child++;
		f->bind = bind_of(f, p, js_parent(js, 2));
	} else {
		note_keyword(p, f->node);
		/* "type", "module" and the like are also names of nodes */
		if (f->node != NODE_LESS && f->node != NODE_STAR)
			f->node = NODE_OTHER;
	}
	return true;
}

static bool out_of_budget(struct js *js)
{
	if (js->judge->steps_left == 0) {
		js->exhausted = true;
		return true;
	}
	js->judge->steps_left--;
	if ((js->judge->steps_left & 0xfff) == 0 && clock_now_ns() > js->judge->deadline_ns)
		js->exhausted = true;
	return js->exhausted;
}

static void leave_top(struct js *js, const struct js_visit *visit)
{
	visit->leave(js, &js->frames[js->n_frames - 1]);
	js->n_frames--;
}

bool js_walk(struct js *js, TSNode root, const struct js_visit *visit)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	bool more = push_frame(js, &cursor);

	while (more && !out_of_budget(js)) {
		struct js_frame *f = &js->frames[js->n_frames - 1];

		if (visit->enter(js, f) && ts_tree_cursor_goto_first_child(&cursor)) {
			more = push_frame(js, &cursor);
			continue;
		}
		leave_top(js, visit);
		while (js->n_frames && !ts_tree_cursor_goto_next_sibling(&cursor)) {
			(void)ts_tree_cursor_goto_parent(&cursor);
			leave_top(js, visit);
		}
		more = js->n_frames && push_frame(js, &cursor);
	}
	ts_tree_cursor_delete(&cursor);
	js->n_frames = 0;
	return !js->exhausted;
}
