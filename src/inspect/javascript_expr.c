/* SPDX-License-Identifier: Apache-2.0 */
/* Operators, literals and patterns: the value of a node from the values of its children. */
#include "inspect/javascript.h"

#include <math.h>
#include <string.h>

uint32_t js_kid_count(const struct js *js, const struct js_frame *f)
{
	return js->n_kids - f->kids;
}

const struct js_kid *js_kid_at(const struct js *js, const struct js_frame *f, uint32_t i)
{
	return i < js_kid_count(js, f) ? &js->kids[f->kids + i] : NULL;
}

const struct js_kid *js_kid(const struct js *js, const struct js_frame *f, enum js_field field)
{
	for (uint32_t i = f->kids; i < js->n_kids; i++)
		if (js->kids[i].field == field)
			return &js->kids[i];
	return NULL;
}

/* Mentions, and so judges, the child values that are not followed any further. */
void js_mention_kids(struct js *js, const struct js_frame *f)
{
	for (uint32_t i = f->kids; i < js->n_kids; i++)
		if (js->kids[i].value.flags & JS_PENDING)
			js_mention(js, &js->kids[i].value, (struct span){ js->kids[i].start, js->kids[i].end });
}

struct js_value js_collect(struct js *js, const struct js_frame *f, enum js_kind kind)
{
	uint32_t n = js_kid_count(js, f);
	struct js_value list;

	if (!js_list_new(js, kind, n, &list))
		return list;
	for (uint32_t i = 0; i < n; i++) {
		const struct js_kid *kid = js_kid_at(js, f, i);

		if (kid)
			list.v[i] = kid->value;
	}
	return list;
}

/* A literal of the source; one that contains escapes counts as JS_BUILT. */
struct js_value js_written(struct js *js, uint32_t start, uint32_t end)
{
	struct js_value v = js_literal(js, start, end);

	if (memchr(js->text + start, '\\', end - start))
		v.flags |= JS_BUILT;
	return v;
}

struct js_value js_property_key(struct js *js, const struct js_kid *key)
{
	if (!key)
		return js_simple(JS_UNKNOWN);
	if (key->node == NODE_PROPERTY_NAME || key->node == NODE_SHORTHAND || key->node == NODE_SHORTHAND_PATTERN ||
	    key->node == NODE_IDENTIFIER)
		return js_written(js, key->start, key->end);
	return key->value;
}

struct js_value js_number_literal(struct js *js, const struct js_frame *f)
{
	char copy[64];
	size_t n = 0;
	struct js_value text;
	double d;

	for (uint32_t i = f->start; i < f->end && n + 1 < sizeof(copy); i++)
		if (js->text[i] != '_' && js->text[i] != 'n')
			copy[n++] = js->text[i];
	copy[n] = '\0';
	text = js_text(copy);
	return js_to_number(js, &text, &d) ? js_number(d) : js_simple(JS_UNKNOWN);
}

/* --- operators ---------------------------------------- */

static bool is_operator(const struct js *js, const struct js_kid *k, const char *text)
{
	size_t len = strlen(text);

	return k && k->end - k->start == len && memcmp(js->text + k->start, text, len) == 0;
}

/* Keeps the known beginning of a string whose rest is unknown. */
static struct js_value beginning(const struct js_value *a)
{
	struct js_value v = js_simple(JS_UNKNOWN);

	if (a->n && (a->kind == JS_STRING || a->kind == JS_UNKNOWN)) {
		v.s = a->s;
		v.n = a->n;
	}
	return v;
}

static struct js_value add_one(struct js *js, const struct js_value *a, const struct js_value *b)
{
	struct js_value left, right;
	double x, y;
	bool texts = a->kind == JS_STRING || b->kind == JS_STRING || a->kind == JS_ARRAY || b->kind == JS_ARRAY ||
		     a->kind >= JS_REGEX || b->kind >= JS_REGEX;

	if (!texts && js_to_number(js, a, &x) && js_to_number(js, b, &y))
		return js_number(x + y);
	if (js_to_string(js, a, &left) && js_to_string(js, b, &right))
		return js_concat(js, &left, &right);
	return beginning(a);
}

static struct js_value add(struct js *js, const struct js_value *a, const struct js_value *b)
{
	const struct js_value *left, *right;
	size_t n = js_alternatives(a, &left), m = js_alternatives(b, &right);
	struct js_value all = js_simple(JS_UNKNOWN);

	if (n * m > JS_ONE_OF_MAX) {
		all.flags = (uint8_t)(js_origin(a) | js_origin(b) | JS_BUILT);
		return all;
	}
	for (size_t i = 0; i < n * m; i++) {
		struct js_value one = add_one(js, &left[i / m], &right[i % m]);

		all = i ? js_join(js, all, one) : one;
	}
	all.flags |= (a->flags | b->flags) & JS_MAYBE;
	all.flags |= (uint8_t)(js_origin(a) | js_origin(b) | JS_BUILT);
	return all;
}

static double shifted(double x, double y, bool left)
{
	int64_t a = fabs(x) < 9e15 ? (int64_t)x : 0;
	unsigned by = fabs(y) < 9e15 ? (unsigned)(int64_t)y & 31 : 0;

	return left ? (double)(int32_t)((uint32_t)a << by) : (double)((int32_t)(uint32_t)a >> by);
}

static bool arithmetic(char op, double x, double y, double *ret)
{
	int64_t a = fabs(x) < 9e15 ? (int64_t)x : 0, b = fabs(y) < 9e15 ? (int64_t)y : 0;

	switch (op) {
	case '-':
		*ret = x - y;
		return true;
	case '*':
		*ret = x * y;
		return true;
	case '/':
		*ret = x / y;
		return true;
	case '%':
		if (b == 0 || x != (double)a || y != (double)b)
			return false; /* a name computed with fractions counts as unknown */
		*ret = (double)(a % b);
		return true;
	case '^':
		*ret = (double)((int32_t)(uint32_t)a ^ (int32_t)(uint32_t)b);
		return true;
	case '|':
		*ret = (double)((int32_t)(uint32_t)a | (int32_t)(uint32_t)b);
		return true;
	case '&':
		*ret = (double)((int32_t)(uint32_t)a & (int32_t)(uint32_t)b);
		return true;
	case '<':
	case '>':
		*ret = shifted(x, y, op == '<');
		return true;
	default:
		return false;
	}
}

static struct js_value binary(struct js *js, const struct js_frame *f)
{
	const struct js_kid *left = js_kid(js, f, FIELD_LEFT), *op = js_kid(js, f, FIELD_OPERATOR);
	const struct js_kid *right = js_kid(js, f, FIELD_RIGHT);
	uint32_t len;
	double x, y, z;
	char c;

	if (!left || !right || !op)
		return js_simple(JS_UNKNOWN);
	if (is_operator(js, op, "+"))
		return add(js, &left->value, &right->value);
	if (is_operator(js, op, "||") || is_operator(js, op, "&&") || is_operator(js, op, "??"))
		return js_join(js, left->value, right->value);
	len = op->end - op->start;
	c = js->text[op->start];
	if ((len == 1 && c != '<' && c != '>') || is_operator(js, op, "<<") || is_operator(js, op, ">>"))
		if (js_to_number(js, &left->value, &x) && js_to_number(js, &right->value, &y) &&
		    arithmetic(c, x, y, &z))
			return js_number(z);
	return js_simple(JS_UNKNOWN); /* comparing a function is no use of it */
}

static struct js_value truth(const struct js_value *v)
{
	bool yes = true;

	switch (v->kind) {
	case JS_UNDEFINED:
	case JS_NULL:
		yes = false;
		break;
	case JS_BOOL:
		yes = v->n != 0;
		break;
	case JS_NUMBER:
		yes = v->number != 0 && !isnan(v->number);
		break;
	case JS_STRING:
		yes = v->n != 0;
		break;
	case JS_ARRAY:
	case JS_OBJECT:
	case JS_FUNCTION:
	case JS_REGEX:
		break;
	default:
		return js_simple(JS_UNKNOWN);
	}
	return (struct js_value){ .kind = JS_BOOL, .n = yes };
}

static struct js_value unary(struct js *js, const struct js_frame *f)
{
	const struct js_kid *op = js_kid_at(js, f, 0), *operand = js_kid_at(js, f, js_kid_count(js, f) - 1);
	struct js_value v;
	double d;

	if (!op || !operand || op == operand)
		return js_simple(JS_UNKNOWN);
	switch (js->text[op->start]) {
	case '!':
		v = truth(&operand->value);
		if (v.kind == JS_BOOL)
			v.n = !v.n;
		return v;
	case '+':
		return js_to_number(js, &operand->value, &d) ? js_number(d) : js_simple(JS_UNKNOWN);
	case '-':
		return js_to_number(js, &operand->value, &d) ? js_number(-d) : js_simple(JS_UNKNOWN);
	case '~':
		return js_to_number(js, &operand->value, &d) && fabs(d) < 2e9 ? js_number(~(int32_t)d)
									      : js_simple(JS_UNKNOWN);
	case 'v':
		return js_simple(JS_UNDEFINED);
	default:
		return js_simple(JS_UNKNOWN);
	}
}

struct js_value js_operator(struct js *js, const struct js_frame *f)
{
	const struct js_kid *one, *two;

	switch (f->node) {
	case NODE_BINARY:
		return binary(js, f);
	case NODE_UNARY:
		return unary(js, f);
	case NODE_TERNARY:
		one = js_kid(js, f, FIELD_CONSEQUENCE);
		two = js_kid(js, f, FIELD_ALTERNATIVE);
		return one && two ? js_join(js, one->value, two->value) : js_simple(JS_UNKNOWN);
	default:
		return js_simple(JS_UNKNOWN);
	}
}

/* left op= right */
struct js_value js_augmented(struct js *js, const struct js_frame *f, struct js_value left, struct js_value right)
{
	const struct js_kid *op = js_kid(js, f, FIELD_OPERATOR);

	if (is_operator(js, op, "+="))
		return add(js, &left, &right);
	if (is_operator(js, op, "||=") || is_operator(js, op, "&&=") ||
	    is_operator(js, op,
			"?"
			"?="))
		return js_join(js, left, right);
	return js_simple(JS_UNKNOWN);
}

/* --- templates ---------------------------------------- */

/* Reads the text between substitutions from the source; the fragment nodes are not visited. */
struct js_value js_template(struct js *js, const struct js_frame *f)
{
	struct js_value all = js_text("");
	uint32_t at = f->start + 1;
	unsigned origin = 0, parts = 0;

	for (uint32_t i = 0; i < js_kid_count(js, f); i++) {
		const struct js_kid *k = js_kid_at(js, f, i);

		if (k->node == NODE_SUBSTITUTION) {
			origin |= js_origin(&k->value);
			parts++;
		}
	}
	for (uint32_t i = 0; i <= js_kid_count(js, f); i++) {
		const struct js_kid *k = js_kid_at(js, f, i);
		struct js_value text;

		if (k && k->node != NODE_SUBSTITUTION)
			continue;
		text = js_literal(js, at, k ? k->start : f->end > at ? f->end - 1 : at);
		all = add(js, &all, &text);
		if (!k || all.kind == JS_UNKNOWN)
			break;
		/* not an addition: the value is converted to a string */
		if (k->value.kind == JS_NUMBER || k->value.kind == JS_BOOL) {
			if (!js_to_string(js, &k->value, &text))
				break;
			all = add(js, &all, &text);
		} else {
			all = add(js, &all, &k->value);
		}
		at = k->end;
	}
	if (parts)
		all.flags |= (uint8_t)(origin | JS_BUILT);
	else if (!memchr(js->text + f->start, '\\', f->end - f->start))
		all.flags &= (uint8_t)~JS_BUILT;
	return all;
}
