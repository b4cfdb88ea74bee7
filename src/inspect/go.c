/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go.  One walk over the tree, with a cursor and a stack of frames instead of recursion, does everything:
 *
 *	on the way down	 a node that opens a scope records the number of bound names
 *	on the way up	 a node pops the values of its children from the stack of values and pushes its own: a folded
 *			 string, the package of a name, the member of a selector, or nothing
 *
 * References are judged: a selector on a package that no local name shadows counts, whatever the program does with it.
 * Local declarations bind when they are complete, as in the language, so in `os := os.Args` the right side still sees
 * the package.
 *
 * Before that walk, the imports and the values of package-level constants and variables are collected, because
 * functions may use them before their declaration.  A variable keeps the value that the text assigns last: good enough
 * to see through attempts to hide a name, but no proof.
 *
 * Comments are read as well (go_text.c): some of them are toolchain directives.
 */
#include "inspect/go.h"

#include <string.h>

#include "base/clock.h"
#include "inspect/parse.h"

#define ERRORS_MAX 3 /* reported parse errors; further ones add no information */

static const struct go_value unknown = { .kind = GO_UNKNOWN, .binding = -1 };

static const char *const symbol_name[GO_SYMBOL_COUNT] = {
	[GO_OTHER] = "",
#define GO_SYMBOL(name) [GO_##name] = #name,
#include "inspect/go_symbols.def"
};

static void learn_symbols(struct go *g, const TSLanguage *language)
{
	uint32_t n = ts_language_symbol_count(language);

	for (uint32_t s = 0; s < n && s < ARRAY_LEN(g->symbol_of); s++) {
		const char *name = ts_language_symbol_name(language, (TSSymbol)s);
		size_t lo = 1, hi = GO_SYMBOL_COUNT;

		if (!name || ts_language_symbol_type(language, (TSSymbol)s) != TSSymbolTypeRegular)
			continue;
		while (lo < hi) {
			size_t mid = (lo + hi) / 2;
			int order = strcmp(name, symbol_name[mid]);

			if (order == 0)
				g->symbol_of[s] = (uint8_t)mid;
			if (order == 0)
				break;
			if (order < 0)
				hi = mid;
			else
				lo = mid + 1;
		}
	}
	g->field_start = ts_language_field_id_for_name(language, "start", 5);
	g->field_end = ts_language_field_id_for_name(language, "end", 3);
	g->field_capacity = ts_language_field_id_for_name(language, "capacity", 8);
}

static bool opens_scope(enum go_symbol s)
{
	switch (s) {
	case GO_block:
	case GO_communication_case:
	case GO_default_case:
	case GO_expression_case:
	case GO_expression_switch_statement:
	case GO_for_statement:
	case GO_func_literal:
	case GO_function_declaration:
	case GO_function_type:
	case GO_if_statement:
	case GO_method_declaration:
	case GO_method_elem:
	case GO_select_statement:
	case GO_type_case:
	case GO_type_switch_statement:
		return true;
	default:
		return false;
	}
}

/* ---- names ---------------------------------------------------------------------------------------------- */

static void bind_value(struct go *g, const struct go_value *name, const struct go_value *value)
{
	struct go_value kept = *value;

	go_judge_alias(g, name, value);
	/* collect() has bound it already; binding it again here would hide the imports */
	if (g->judging && g->scopes == 0)
		return;
	kept.fresh = false;
	go_bind(g, g->text + name->start, name->end - name->start, &kept);
}

/* Binds every child of one kind of node without a value: parameters, type parameters. */
static void bind_children(struct go *g, const struct go_value *children, size_t n, enum go_symbol symbol)
{
	for (size_t i = 0; i < n; i++)
		if (children[i].symbol == symbol)
			bind_value(g, &children[i], &unknown);
}

/* The value for the i-th of several names; for a call with several results, the first name gets the first result. */
static const struct go_value *value_for(const struct go_value *values, size_t names, size_t i)
{
	if (!values || values->kind != GO_LIST || (values->len != names && i > 0) || i >= values->len)
		return &unknown;
	return &values->items[i];
}

static void bind_list(struct go *g, const struct go_value *names, const struct go_value *values)
{
	if (names->kind != GO_LIST)
		return;
	for (uint32_t i = 0; i < names->len; i++)
		if (names->items[i].symbol == GO_identifier)
			bind_value(g, &names->items[i], value_for(values, names->len, i));
}

/* The initial value of a variable of this type: strings, and types that build strings, are empty. */
static struct go_value zero_value(const struct go *g, const struct go_value *type)
{
	bool word = type->symbol == GO_type_identifier && type->kind == GO_UNKNOWN && type->end - type->start == 6 &&
		    memcmp(g->text + type->start, "string", 6) == 0;
	bool builder = type->kind == GO_MEMBER && (go_is(type, "strings.Builder") || go_is(type, "bytes.Buffer"));

	return word || builder ? (struct go_value){ .kind = GO_STRING, .binding = -1, .text = "" } : unknown;
}

/* var and const: names, optionally a type, optionally a list of values. */
static void bind_spec(struct go *g, const struct go_value *children, size_t n)
{
	const struct go_value *values = n && children[n - 1].symbol == GO_expression_list ? &children[n - 1] : NULL;
	size_t names = 0;

	while (names < n && (children[names].symbol == GO_identifier || children[names].symbol == GO_blank_identifier))
		names++;
	for (size_t i = 0; i < names; i++) {
		struct go_value zero = !values && names < n ? zero_value(g, &children[names]) : unknown;

		bind_value(g, &children[i], values ? value_for(values, names, i) : &zero);
	}
}

static void assign(struct go *g, const struct go_frame *f, const struct go_value *left, const struct go_value *right)
{
	char op = g->text[f->token];

	if (left->kind != GO_LIST)
		return;
	go_mark_elements(g, op, left, right);
	for (uint32_t i = 0; i < left->len; i++) {
		int32_t at = left->items[i].binding;
		struct go_value value = *value_for(right, left->len, i);

		go_intent_input(g, &left->items[i], &value);
		if (at < 0 || (size_t)at >= g->n_bindings || g->binding[at].value.kind == GO_PACKAGE)
			continue;
		if (op == '+')
			value = go_concat(g, &g->binding[at].value, &value);
		else if (op != '=')
			value = unknown;
		if (op != '=')
			value.hidden |= g->binding[at].value.hidden || value_for(right, left->len, i)->hidden;
		value.fresh = false;
		g->binding[at].value = value;
	}
}

/* ---- values --------------------------------------------------------------------------------------------- */

static struct go_value member(struct go *g, const struct go_value *owner, const char *name, uint32_t len)
{
	struct go_value v = unknown;
	size_t total = (size_t)owner->len + 1 + len;
	char *text;

	if (total > 512 || !(text = go_alloc(g, total)))
		return unknown;
	memcpy(text, owner->text, owner->len);
	text[owner->len] = '.';
	memcpy(text + owner->len + 1, name, len);
	v.kind = GO_MEMBER;
	v.text = text;
	v.len = (uint32_t)total;
	return v;
}

static struct go_value method(struct go *g, const struct go_value *receiver, const char *name, uint32_t len)
{
	struct go_value v = { .kind = GO_METHOD, .text = name, .len = len, .binding = receiver->binding };
	struct go_value *copy = go_alloc(g, sizeof(*copy));

	if (!copy)
		return unknown;
	*copy = *receiver;
	v.receiver = copy;
	return v;
}

static struct go_value dot_imported(struct go *g, const char *name, uint32_t len, struct span where)
{
	for (unsigned i = 0; i < g->n_dots; i++) {
		struct go_value package = { .kind = GO_PACKAGE, .text = g->dot_path[i], .len = g->dot_len[i] };
		struct go_value v = member(g, &package, name, len);

		if (v.kind == GO_MEMBER &&
		    (i + 1 == g->n_dots || rules_find(g->j->rules, RULE_GO, RULE_MEMBER, v.text, v.len))) {
			if (g->judging)
				(void)judge_member(g->j, v.text, v.len, where);
			return v;
		}
	}
	return unknown;
}

static struct go_value reference(struct go *g, const struct go_frame *f)
{
	const char *name = g->text + f->start;
	uint32_t len = f->end - f->start;
	int32_t at = go_lookup(g, name, len);
	struct go_value v;

	if (at < 0)
		return len && g->n_dots && name[0] >= 'A' && name[0] <= 'Z'
			       ? dot_imported(g, name, len, (struct span){ f->start, f->end })
			       : unknown;
	v = g->binding[at].value;
	v.binding = at;
	v.fresh = false;
	return v;
}

static struct go_value selector(struct go *g, const struct go_frame *f, const struct go_value *c, size_t n)
{
	const char *name = g->text + c[n - 1].start;
	uint32_t len = c[n - 1].end - c[n - 1].start;
	struct span where = { f->start, f->end };
	struct go_value v = unknown, package = c[0];

	if (f->symbol == GO_qualified_type) {
		int32_t at = go_lookup(g, g->text + c[0].start, c[0].end - c[0].start);

		package = at < 0 ? unknown : g->binding[at].value;
	}
	if (package.kind == GO_PACKAGE || package.kind == GO_MEMBER)
		v = member(g, &package, name, len);
	else if (package.kind == GO_STRING || package.kind == GO_LIST || package.hidden)
		v = method(g, &package, name, len);
	v.outside = v.kind == GO_UNKNOWN && g->unpacks && len == 4 && memcmp(name, "Name", 4) == 0;
	if (!g->judging)
		return v;
	if (package.kind == GO_PACKAGE && v.kind == GO_MEMBER)
		(void)judge_member(g->j, v.text, v.len, where);
	else if (g->reflects)
		(void)judge_attribute(g->j, name, len, (struct span){ c[n - 1].start, c[n - 1].end });
	return v;
}

static struct go_value integer(const char *s, size_t len)
{
	struct go_value v = unknown;
	int base = 10;
	size_t i = 0;

	if (len > 1 && s[0] == '0') {
		char c = (char)(s[1] | 0x20);

		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		i = c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
	}
	v.kind = GO_INT;
	for (; i < len; i++) {
		int digit = s[i] <= '9' ? s[i] - '0' : (s[i] | 0x20) - 'a' + 10;

		if (s[i] == '_')
			continue;
		if (digit < 0 || digit >= base || v.number > INT64_MAX / 32)
			return unknown;
		v.number = v.number * base + digit;
	}
	return v;
}

static struct go_value rune_value(struct go *g, const struct go_frame *f)
{
	struct go_value text = go_literal(g, f->start, f->end), v = unknown;
	const unsigned char *s = (const unsigned char *)text.text;

	if (text.kind != GO_STRING || text.len == 0 || text.len > 3)
		return unknown;
	v.kind = GO_INT;
	v.number = text.len == 1   ? s[0]
		   : text.len == 2 ? (s[0] & 0x1f) << 6 | (s[1] & 0x3f)
				   : (s[0] & 0x0f) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f);
	return v;
}

static struct go_value arithmetic(char op, int64_t a, int64_t b)
{
	struct go_value v = unknown;

	v.kind = GO_INT;
	if (a > INT32_MAX || a < INT32_MIN || b > INT32_MAX || b < INT32_MIN)
		return unknown;
	switch (op) {
	case '+':
		v.number = a + b;
		return v;
	case '-':
		v.number = a - b;
		return v;
	case '*':
		v.number = a * b;
		return v;
	case '|':
		v.number = a | b;
		return v;
	case '^':
		v.number = a ^ b;
		return v;
	default:
		return unknown;
	}
}

static void judge_fresh_strings(struct go *g, const struct go_value *c, size_t n)
{
	for (size_t i = 0; g->judging && i < n; i++)
		if (c[i].kind == GO_STRING && c[i].fresh)
			go_judge_string(g, &c[i]);
}

static struct go_value binary(struct go *g, const struct go_frame *f, const struct go_value *c, size_t n)
{
	struct go_value v = unknown;

	if (n != 2)
		return unknown;
	if (g->text[f->token] == '+' && c[0].kind == GO_STRING)
		v = go_concat(g, &c[0], &c[1]);
	else if (c[0].kind == GO_INT && c[1].kind == GO_INT && f->token + 1 < g->len &&
		 g->text[f->token + 1] != g->text[f->token])
		v = arithmetic(g->text[f->token], c[0].number, c[1].number);
	if (v.kind == GO_UNKNOWN)
		judge_fresh_strings(g, c, n);
	v.outside = v.kind == GO_UNKNOWN && (c[0].outside || c[1].outside);
	v.hidden |= c[0].hidden || c[1].hidden;
	if (v.kind == GO_UNKNOWN && g->text[f->token] == '^' && f->token + 1 < g->len && g->text[f->token + 1] != '=') {
		v.hidden = true;
		go_note_decoding(g, f->start);
	}
	return v;
}

static bool is_word(const struct go *g, const struct go_value *v, const char *word)
{
	size_t n = strlen(word);

	return v->end - v->start == n && memcmp(g->text + v->start, word, n) == 0;
}

/* string(x), []byte(x), rune(x) and the like. */
static struct go_value convert(struct go *g, const struct go_value *type, const struct go_value *operand)
{
	if (operand->kind == GO_MEMBER &&
	    (go_is(operand, "os.PathSeparator") || go_is(operand, "path/filepath.Separator")))
		return go_string(g, "/", 1);
	if (is_word(g, type, "string") && (operand->kind == GO_LIST || operand->kind == GO_INT))
		return go_fold_bytes(g, operand, true);
	if (is_word(g, type, "string") || is_word(g, type, "[]byte") || is_word(g, type, "[]rune") ||
	    is_word(g, type, "byte") || is_word(g, type, "rune") || is_word(g, type, "int"))
		return *operand;
	return unknown;
}

static struct go_value call(struct go *g, const struct go_frame *f, const struct go_value *c, size_t n)
{
	const struct go_value *arguments = &c[n - 1];
	struct go_value v;

	if (arguments->kind != GO_LIST)
		return unknown;
	if (g->judging)
		go_judge_call(g, &c[0], arguments, (struct span){ f->start, f->end });
	if (c[0].symbol == GO_identifier && c[0].binding < 0 && arguments->len == 1)
		v = convert(g, &c[0], &arguments->items[0]);
	else if (c[0].kind == GO_METHOD)
		v = go_fold_method(g, &c[0], arguments);
	else
		v = go_fold_call(g, &c[0], arguments);
	v.fresh = true;
	v.outside = v.kind == GO_UNKNOWN && go_asks_outside(g, &c[0], arguments);
	go_mark_result(g, &c[0], arguments, &v);
	return v;
}

/* []byte{47, 101} and []string{"a", "b"}; other composite literals are not evaluated. */
static struct go_value composite(struct go *g, const struct go_value *c, size_t n)
{
	struct go_value bytes;

	if (n == 2 && c[0].symbol == GO_qualified_type) {
		if (g->judging && c[0].kind == GO_MEMBER && go_is(&c[0], "net/http.Server"))
			go_intent_server(g, &c[1]);
		return zero_value(g, &c[0]);
	}
	if (n != 2 || c[1].kind != GO_LIST ||
	    (c[0].symbol != GO_slice_type && c[0].symbol != GO_array_type &&
	     c[0].symbol != GO_implicit_length_array_type))
		return unknown;
	if (c[1].len == 0 || c[1].items[0].kind != GO_INT)
		return c[1];
	bytes = go_fold_bytes(g, &c[1], !memmem(g->text + c[0].start, c[0].end - c[0].start, "byte", 4));
	bytes.hidden = true;
	return bytes.kind == GO_STRING ? bytes : c[1];
}

static struct go_value list(struct go *g, const struct go_frame *f, const struct go_value *c, size_t n)
{
	const struct go_frame *parent = g->n_frames ? &g->frame[g->n_frames - 1] : NULL;
	bool routes = f->symbol == GO_argument_list && parent && parent->symbol == GO_call_expression &&
		      parent->values < f->values && go_takes_routes(g, &g->value[parent->values]);

	if (!routes)
		judge_fresh_strings(g, c, n);
	return go_list(g, c, n);
}

/* Expressions: the value of a node from those of its children; c is NULL only if n is 0. */
static struct go_value expression(struct go *g, const struct go_frame *f, const struct go_value *c, size_t n)
{
	struct go_value v;

	switch (f->symbol) {
	case GO_interpreted_string_literal:
	case GO_raw_string_literal:
		v = go_literal(g, f->start, f->end);
		v.fresh = true;
		return v;
	case GO_rune_literal:
		return rune_value(g, f);
	case GO_int_literal:
		return integer(g->text + f->start, f->end - f->start);
	case GO_identifier:
	case GO_type_identifier:
		return reference(g, f);
	case GO_selector_expression:
	case GO_qualified_type:
		return n >= 2 ? selector(g, f, c, n) : unknown;
	case GO_binary_expression:
		return binary(g, f, c, n);
	case GO_call_expression:
		return n >= 2 ? call(g, f, c, n) : unknown;
	case GO_type_conversion_expression:
		return n == 2 ? convert(g, &c[0], &c[1]) : unknown;
	case GO_index_expression:
		return n == 2 ? go_fold_index(&c[0], &c[1]) : unknown;
	case GO_slice_expression:
		return n ? go_fold_slice(g, c, n) : unknown;
	case GO_composite_literal:
		return composite(g, c, n);
	case GO_argument_list:
	case GO_expression_list:
	case GO_literal_value:
		return list(g, f, c, n);
	case GO_keyed_element:
		if (n == 2)
			judge_fresh_strings(g, c, 1);
		return n ? c[n - 1] : unknown;
	case GO_unary_expression:
		return n && g->text[f->start] == '&' ? c[n - 1] : unknown;
	case GO_func_literal:
		v = unknown;
		v.hidden = g->decoded_at > f->start;
		return v;
	case GO_literal_element:
	case GO_parenthesized_expression:
	case GO_variadic_argument:
		return n ? c[n - 1] : unknown;
	case GO_field_declaration: /* a struct tag is not a value */
	case GO_import_spec:
		return unknown;
	default:
		judge_fresh_strings(g, c, n);
		return unknown;
	}
}

/* ---- statements ----------------------------------------------------------------------------------------- */

/* Tells ":=" from "=" in a clause that may contain either. */
static bool declares(const struct go *g, const struct go_frame *f)
{
	return f->token && g->text[f->token] == ':';
}

static void declaration(struct go *g, const struct go_frame *f, const struct go_value *c, size_t n)
{
	switch (f->symbol) {
	case GO_import_spec:
		go_import(g, c, n);
		break;
	case GO_short_var_declaration:
		if (n == 2)
			bind_list(g, &c[0], &c[1]);
		break;
	case GO_var_spec:
	case GO_const_spec:
		bind_spec(g, c, n);
		break;
	case GO_assignment_statement:
		if (n == 2)
			assign(g, f, &c[0], &c[1]);
		break;
	case GO_range_clause:
	case GO_receive_statement:
		if (n == 2 && declares(g, f))
			bind_list(g, &c[0], NULL);
		break;
	case GO_parameter_declaration:
	case GO_variadic_parameter_declaration:
	case GO_type_parameter_declaration:
		bind_children(g, c, n, GO_identifier);
		break;
	case GO_type_spec:
	case GO_type_alias:
		/* An alias of a package's type still refers to that type. */
		if (n)
			bind_value(g, &c[0], f->symbol == GO_type_alias && n > 1 ? &c[n - 1] : &unknown);
		break;
	case GO_function_declaration:
		if (g->judging && n)
			go_mark_function(g, f, &c[0]);
		if (g->judging && n && g->text[f->end - 1] != '}')
			(void)judge_check(g->j, "no-body", (struct span){ f->start, f->end }, "%.*s",
					  (int)min_u64(c[0].end - c[0].start, 80), g->text + c[0].start);
		break;
	default:
		break;
	}
}

/* ---- the walk ------------------------------------------------------------------------------------------- */

static uint8_t field_of(const struct go *g, const TSTreeCursor *cursor)
{
	TSFieldId field = ts_tree_cursor_current_field_id(cursor);

	return field == 0                   ? GO_FIELD_NONE
	       : field == g->field_start    ? GO_FIELD_START
	       : field == g->field_end      ? GO_FIELD_END
	       : field == g->field_capacity ? GO_FIELD_CAPACITY
					    : GO_FIELD_NONE;
}

static void report_error(struct go *g, const struct go_frame *f)
{
	if (g->judging && g->errors_reported++ < ERRORS_MAX)
		(void)judge_check(g->j, "parse-error", (struct span){ f->start, f->end }, "%s", "");
}

/* False: the children of the node need no visit. */
static bool enter(struct go *g, const TSTreeCursor *cursor, TSNode node)
{
	TSSymbol symbol = ts_node_symbol(node);
	struct go_frame f = {
		.start = ts_node_start_byte(node),
		.end = ts_node_end_byte(node),
		.values = (uint32_t)g->n_values,
		.bindings = (uint32_t)g->n_bindings,
		.symbol = symbol < ARRAY_LEN(g->symbol_of) ? g->symbol_of[symbol] : GO_OTHER,
	};

	if (ts_node_is_error(node) || ts_node_is_missing(node))
		report_error(g, &f);
	if (!ts_node_is_named(node) && !ts_node_child_count(node)) {
		if (g->n_frames && g->frame[g->n_frames - 1].token == 0)
			g->frame[g->n_frames - 1].token = f.start;
		return false;
	}
	if (f.symbol == GO_comment) {
		if (g->judging)
			go_comment(g, f.start, f.end);
		return false;
	}
	if (g->n_frames && g->frame[g->n_frames - 1].symbol == GO_slice_expression)
		f.field = field_of(g, cursor);
	f.scope = opens_scope((enum go_symbol)f.symbol);
	g->scopes += f.scope;
	return go_push_frame(g, &f);
}

static void leave(struct go *g)
{
	struct go_frame f = g->frame[--g->n_frames];
	size_t n = g->n_values - f.values;
	const struct go_value *children = n ? g->value + f.values : NULL;
	struct go_value v = expression(g, &f, children, n);

	declaration(g, &f, children, n);
	if (f.scope) {
		go_unbind(g, f.bindings);
		g->scopes--;
	}
	v.start = f.start;
	v.end = f.end;
	v.symbol = (uint8_t)f.symbol;
	v.field = f.field;
	if (f.symbol != GO_identifier && v.kind != GO_METHOD)
		v.binding = -1;
	/* The name in `switch x := y.(type)` is visible in the cases, which follow. */
	if (f.symbol == GO_expression_list && g->n_frames &&
	    g->frame[g->n_frames - 1].symbol == GO_type_switch_statement)
		bind_list(g, &v, NULL);
	g->n_values = f.values;
	(void)go_push_value(g, &v);
}

/* The parts of a string literal need no visit. */
static bool is_literal(const struct go *g)
{
	uint16_t symbol = g->frame[g->n_frames - 1].symbol;

	return symbol == GO_interpreted_string_literal || symbol == GO_raw_string_literal;
}

static bool may_go_on(struct go *g)
{
	struct judge *j = g->j;

	if (g->stop || j->out_of_memory)
		return false;
	if (j->steps_left == 0 || ((--j->steps_left & 1023) == 0 && clock_now_ns() > j->deadline_ns)) {
		go_give_up(g, (struct span){ 0, g->len }, "it takes too long");
		return false;
	}
	return true;
}

static void walk(struct go *g, TSNode root)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	size_t depth = 0, frames = g->n_frames;

	while (may_go_on(g)) {
		TSNode node = ts_tree_cursor_current_node(&cursor);
		bool entered = enter(g, &cursor, node);

		if (entered && !is_literal(g) && ts_tree_cursor_goto_first_child(&cursor)) {
			depth++;
			continue;
		}
		if (entered)
			leave(g);
		while (depth > 0 && !ts_tree_cursor_goto_next_sibling(&cursor)) {
			(void)ts_tree_cursor_goto_parent(&cursor);
			depth--;
			leave(g);
		}
		if (depth == 0)
			break;
	}
	g->n_frames = frames;
	ts_tree_cursor_delete(&cursor);
}

/* Binds imports or package-level names with their values; functions are bound by name only. */
static void collect(struct go *g, TSNode root, bool imports)
{
	TSTreeCursor cursor = ts_tree_cursor_new(root);
	bool more = ts_tree_cursor_goto_first_child(&cursor);

	for (; more && !g->stop; more = ts_tree_cursor_goto_next_sibling(&cursor)) {
		TSNode node = ts_tree_cursor_current_node(&cursor);
		TSSymbol symbol = ts_node_symbol(node);
		uint8_t s = symbol < ARRAY_LEN(g->symbol_of) ? g->symbol_of[symbol] : GO_OTHER;

		if (imports ? s == GO_import_declaration
			    : s == GO_const_declaration || s == GO_var_declaration || s == GO_type_declaration)
			walk(g, node);
		if (!imports && s == GO_function_declaration) {
			TSNode name = ts_node_child_by_field_name(node, "name", 4);

			if (!ts_node_is_null(name))
				go_bind(g, g->text + ts_node_start_byte(name),
					ts_node_end_byte(name) - ts_node_start_byte(name), &unknown);
		}
		g->n_values = 0;
	}
	ts_tree_cursor_delete(&cursor);
}

void inspect_go(struct judge *j, const char *text, size_t len)
{
	struct go g = { .j = j, .text = text, .len = (uint32_t)len };
	TSTree *tree = inspect_parse(j, tree_sitter_go(), text, len);
	TSNode root;

	if (!tree)
		return;
	memset(g.bucket, 0xff, sizeof(g.bucket));
	learn_symbols(&g, tree_sitter_go());
	go_generate_lines(&g);
	root = ts_tree_root_node(tree);
	/* Imports are also collected last, so that a package-level name cannot hide them. */
	collect(&g, root, true);
	collect(&g, root, false);
	collect(&g, root, false);
	collect(&g, root, true);
	g.judging = true;
	g.decoded_at = 0; /* collect() set it from declarations further below */
	g.package_bindings = (int32_t)g.n_bindings;
	walk(&g, root);
	go_judge_pending(&g);
	go_intent_finish(&g);
	go_release(&g);
	ts_tree_delete(tree);
}
