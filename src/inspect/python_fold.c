/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constant folding: literals with their escapes, f-strings, operators, subscripts and slices.  Operators work on sets:
 * every alternative of the left side with every one of the right side, up to the size of a set.
 */
#include "inspect/python.h"

#include <strings.h>

/* ---- literals ------------------------------------------------------------------------------------------- */

struct named_character {
	const char *name;
	char character;
};

/* \N{...}: letters and digits are computed; these are the other characters of names and paths. */
static const struct named_character named[] = {
	{ "LOW LINE", '_' },
	{ "FULL STOP", '.' },
	{ "SOLIDUS", '/' },
	{ "HYPHEN-MINUS", '-' },
	{ "COLON", ':' },
	{ "TILDE", '~' },
	{ "SPACE", ' ' },
	{ "QUOTATION MARK", '"' },
	{ "APOSTROPHE", '\'' },
	{ "ASTERISK", '*' },
	{ "REVERSE SOLIDUS", '\\' },
	{ "LEFT PARENTHESIS", '(' },
	{ "RIGHT PARENTHESIS", ')' },
};

static const char *const digits[] = { "ZERO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE" };

static bool same_word(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(s, word, len) == 0;
}

static int character_by_name(const char *s, size_t len)
{
	static const char small[] = "LATIN SMALL LETTER ", capital[] = "LATIN CAPITAL LETTER ", digit[] = "DIGIT ";

	if (len == sizeof(small) && strncasecmp(s, small, sizeof(small) - 1) == 0)
		return s[len - 1] | 0x20;
	if (len == sizeof(capital) && strncasecmp(s, capital, sizeof(capital) - 1) == 0)
		return s[len - 1] & ~0x20;
	if (len > sizeof(digit) - 1 && strncasecmp(s, digit, sizeof(digit) - 1) == 0)
		for (size_t i = 0; i < ARRAY_LEN(digits); i++)
			if (same_word(s + sizeof(digit) - 1, len - sizeof(digit) + 1, digits[i]))
				return '0' + (int)i;
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (same_word(s, len, named[i].name))
			return named[i].character;
	return -1;
}

void py_put_code(struct buf *out, uint32_t code, bool bytes)
{
	char u[4];
	size_t n = 0;

	if (bytes || code < 0x80) {
		u[n++] = (char)code;
	} else if (code < 0x800) {
		u[n++] = (char)(0xc0 | code >> 6);
		u[n++] = (char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		u[n++] = (char)(0xe0 | code >> 12);
		u[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		u[n++] = (char)(0x80 | (code & 0x3f));
	} else {
		u[n++] = (char)(0xf0 | (code >> 18 & 7));
		u[n++] = (char)(0x80 | (code >> 12 & 0x3f));
		u[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		u[n++] = (char)(0x80 | (code & 0x3f));
	}
	buf_add(out, u, n);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a number of up to `most` digits; returns the number of digits. */
static size_t read_number(const char *s, size_t len, int base, size_t most, uint32_t *ret)
{
	size_t n = 0;

	*ret = 0;
	while (n < len && n < most) {
		int v = hex_value(s[n]);

		if (v < 0 || v >= base)
			break;
		*ret = *ret * (uint32_t)base + (uint32_t)v;
		n++;
	}
	return n;
}

struct simple_escape {
	char letter, value;
};
static const struct simple_escape simple[] = { { 'n', '\n' },  { 't', '\t' }, { 'r', '\r' }, { '\\', '\\' },
					       { '\'', '\'' }, { '"', '"' },  { 'a', '\a' }, { 'b', '\b' },
					       { 'f', '\f' },  { 'v', '\v' } };

/* Decodes one escape after its backslash; returns the bytes used, 0: unknown escape. */
static size_t read_escape(const char *s, size_t len, bool bytes, struct buf *out)
{
	static const struct {
		char letter;
		size_t digits;
	} wide[] = { { 'x', 2 }, { 'u', 4 }, { 'U', 8 } };
	uint32_t code;
	size_t n;

	if (s[0] == '\n')
		return 1;
	for (size_t i = 0; i < ARRAY_LEN(simple); i++)
		if (s[0] == simple[i].letter) {
			buf_add(out, &simple[i].value, 1);
			return 1;
		}
	for (size_t i = 0; i < ARRAY_LEN(wide); i++)
		if (s[0] == wide[i].letter && (i == 0 || !bytes)) {
			n = read_number(s + 1, len - 1, 16, wide[i].digits, &code);
			py_put_code(out, code, bytes);
			return n == wide[i].digits ? n + 1 : 0;
		}
	n = read_number(s, len, 8, 3, &code);
	if (n) {
		py_put_code(out, code, bytes);
		return n;
	}
	if (s[0] == 'N' && !bytes && len > 2 && s[1] == '{') {
		const char *close = memchr(s, '}', len);
		int c = close ? character_by_name(s + 2, (size_t)(close - s) - 2) : -1;

		if (c < 0)
			return 0;
		py_put_code(out, (uint32_t)c, false);
		return (size_t)(close - s) + 1;
	}
	buf_add(out, "\\", 1); /* an unknown escape stands for itself */
	buf_add(out, s, 1);
	return 1;
}

struct prefix {
	bool raw, bytes, format;
};

static struct prefix read_prefix(const struct py *p, uint32_t node)
{
	struct prefix f = { 0 };
	uint32_t start = p->node[node].child;

	if (start == PY_NONE)
		return f;
	for (uint32_t at = p->node[start].start; at < p->node[start].end; at++)
		switch (p->text[at] | 0x20) {
		case 'r':
			f.raw = true;
			break;
		case 'b':
			f.bytes = true;
			break;
		case 'f':
			f.format = true;
			break;
		}
	return f;
}

/* The text of one part of a literal; false: unknown escape. */
static bool read_content(const struct py *p, uint32_t node, struct prefix f, struct buf *out)
{
	const char *s = p->text + p->node[node].start;
	size_t len = p->node[node].end - p->node[node].start;

	for (size_t i = 0; i < len && !out->full;) {
		size_t plain = i, used;

		while (plain < len && s[plain] != '\\' && s[plain] != '{' && s[plain] != '}')
			plain++;
		buf_add(out, s + i, plain - i);
		i = plain;
		if (i == len)
			break;
		if (f.format && s[i] != '\\' && i + 1 < len && s[i + 1] == s[i]) { /* {{ */
			buf_add(out, s + i, 1);
			i += 2;
		} else if (s[i] != '\\' || f.raw || i + 1 == len) {
			buf_add(out, s + i, 1);
			i++;
		} else {
			used = read_escape(s + i + 1, len - i - 1, f.bytes, out);
			if (!used)
				return false;
			i += used + 1;
		}
	}
	return !out->full && !out->no_memory;
}

/* The text that {x} inserts into an f-string. */
static uint32_t interpolated(struct py *p, uint32_t node)
{
	uint32_t value = p->node[node].value, text = PY_NOTHING;
	struct py_set s = p->set[value];

	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next)
		if (c != p->node[node].child)
			return PY_UNKNOWN; /* a conversion or a format */
	for (unsigned i = 0; i < s.n; i++) {
		AUTO_BUF b = BUF_INIT(PY_STRING_MAX);

		if (py_atom_text(&p->atom[s.atom[i]], &b))
			text = py_join(p, text, py_set_text(p, PY_STR, buf_str(&b), b.len));
		else
			s.open = true;
	}
	return s.open || !s.n ? py_set_open(p, text) : text;
}

static uint32_t fold_one(struct py *p, uint32_t node)
{
	struct prefix f = read_prefix(p, node);
	enum py_atom_kind kind = f.bytes ? PY_BYTES : PY_STR;
	uint32_t value = py_set_text(p, kind, "", 0);

	for (uint32_t c = p->node[node].child; c != PY_NONE && py_steps(p, 1); c = p->node[c].next) {
		uint32_t piece = PY_NOTHING;

		if (p->node[c].sym == PY_STRING_CONTENT) {
			AUTO_BUF b = BUF_INIT(PY_STRING_MAX);

			piece = read_content(p, c, f, &b) ? py_set_text(p, kind, buf_str(&b), b.len) : PY_UNKNOWN;
		} else if (p->node[c].sym == PY_INTERPOLATION) {
			piece = interpolated(p, c);
		}
		if (piece != PY_NOTHING)
			value = py_fold_operator(p, PY_OP_ADD, value, piece);
	}
	return value;
}

uint32_t py_fold_string(struct py *p, uint32_t node)
{
	uint32_t value = PY_NOTHING;

	if (p->node[node].sym == PY_STRING)
		return fold_one(p, node);
	for (uint32_t c = p->node[node].child; c != PY_NONE; c = p->node[c].next)
		if (p->node[c].sym == PY_STRING)
			value = value == PY_NOTHING ? p->node[c].value
						    : py_fold_operator(p, PY_OP_ADD, value, p->node[c].value);
	return value;
}

/* ---- operators ------------------------------------------------------------------------------------------ */

static bool is_string(const struct py_atom *a)
{
	return a->kind == PY_STR || a->kind == PY_BYTES || a->kind == PY_PART;
}

static uint32_t concatenate(struct py *p, const struct py_atom *a, const struct py_atom *b, const char *between)
{
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);
	bool part = a->kind == PY_PART || b->kind == PY_PART;

	buf_add(&out, a->text, a->len);
	buf_adds(&out, between);
	buf_add(&out, b->text, b->len);
	if (out.full || out.no_memory)
		return PY_NONE;
	return py_text_atom(p, part ? PY_PART : a->kind, buf_str(&out), out.len);
}

static uint32_t repeat(struct py *p, const struct py_atom *a, int64_t times)
{
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);

	if (times > 4096)
		return PY_NONE;
	for (int64_t i = 0; i < times && !out.full; i++)
		buf_add(&out, a->text, a->len);
	return out.full || out.no_memory ? PY_NONE : py_text_atom(p, a->kind, buf_str(&out), out.len);
}

static uint32_t join_lists(struct py *p, const struct py_atom *a, const struct py_atom *b)
{
	uint32_t item[PY_UNROLL_MAX];

	if (a->len + b->len > PY_UNROLL_MAX)
		return PY_NONE;
	if (a->len)
		memcpy(item, a->item, a->len * sizeof(*item));
	if (b->len)
		memcpy(item + a->len, b->item, b->len * sizeof(*item));
	return py_list_atom(p, item, a->len + b->len);
}

static uint32_t calculate(struct py *p, enum py_symbol op, int64_t a, int64_t b)
{
	int64_t r = 0;
	bool bad = false;

	switch (op) {
	case PY_OP_ADD:
		bad = __builtin_add_overflow(a, b, &r);
		break;
	case PY_OP_SUB:
		bad = __builtin_sub_overflow(a, b, &r);
		break;
	case PY_OP_MUL:
		bad = __builtin_mul_overflow(a, b, &r);
		break;
	case PY_OP_XOR:
		r = a ^ b;
		break;
	case PY_OP_OR_BITS:
		r = a | b;
		break;
	case PY_OP_FLOOR:
	case PY_OP_MOD:
		bad = b <= 0 || a < 0;
		r = bad ? 0 : op == PY_OP_MOD ? a % b : a / b;
		break;
	case PY_OP_SHL:
	case PY_OP_SHR:
		bad = a < 0 || b < 0 || b > 30 || a > INT32_MAX;
		r = bad ? 0 : op == PY_OP_SHL ? a << b : a >> b;
		break;
	default:
		bad = true;
	}
	return bad ? PY_NONE : py_number_atom(p, PY_INT, r);
}

static uint32_t percent(struct py *p, const struct py_atom *format, uint32_t right)
{
	bool part = false;
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);

	if (!py_percent(p, format, right, &out, &part))
		return PY_NONE;
	return py_text_atom(p, part ? PY_PART : format->kind, buf_str(&out), out.len);
}

static uint32_t fold_pair(struct py *p, enum py_symbol op, struct py_atom a, struct py_atom b, uint32_t right)
{
	if (is_string(&a) && op == PY_OP_MOD)
		return percent(p, &a, right);
	if (is_string(&a) && is_string(&b) && op == PY_OP_ADD) {
		uint32_t sum = concatenate(p, &a, &b, "");

		if (sum != PY_NONE && (a.decoded || b.decoded))
			p->atom[sum].decoded = true;
		return sum;
	}
	/* Strings cannot be divided, so these are paths of pathlib. */
	if (is_string(&a) && is_string(&b) && op == PY_OP_DIV)
		return b.len && b.text[0] == '/' ? py_text_atom(p, b.kind, b.text, b.len) : concatenate(p, &a, &b, "/");
	if (op == PY_OP_MUL && is_string(&a) && b.kind == PY_INT)
		return repeat(p, &a, b.number);
	if (op == PY_OP_MUL && is_string(&b) && a.kind == PY_INT)
		return repeat(p, &b, a.number);
	if (op == PY_OP_ADD && a.kind == PY_LIST && b.kind == PY_LIST)
		return join_lists(p, &a, &b);
	if (a.kind == PY_INT && b.kind == PY_INT)
		return calculate(p, op, a.number, b.number);
	return PY_NONE;
}

/* A string joined with an unknown value is known in part. */
static uint32_t fold_beginning(struct py *p, uint32_t result, const struct py_set *left, const char *between)
{
	for (unsigned i = 0; i < left->n; i++) {
		struct py_atom a = p->atom[left->atom[i]], star = { PY_PART, 1, 0, .text = "*" };

		if (is_string(&a) && a.len > 0)
			result = py_set_add(p, result, concatenate(p, &a, &star, between));
	}
	return py_set_open(p, result);
}

uint32_t py_fold_operator(struct py *p, enum py_symbol op, uint32_t left, uint32_t right)
{
	struct py_set a = p->set[left], b = p->set[right];
	uint32_t result = PY_NOTHING;

	if (!a.n)
		return PY_UNKNOWN;
	for (unsigned i = 0; i < a.n && py_steps(p, 1); i++)
		for (unsigned k = 0; k < b.n; k++)
			result = py_set_add(p, result, fold_pair(p, op, p->atom[a.atom[i]], p->atom[b.atom[k]], right));
	if (!b.n && op == PY_OP_MOD)
		for (unsigned i = 0; i < a.n; i++)
			result = py_set_add(p, result,
					    fold_pair(p, op, p->atom[a.atom[i]], (struct py_atom){ 0 }, right));
	if ((b.open || !b.n) && (op == PY_OP_ADD || op == PY_OP_DIV))
		return fold_beginning(p, result, &a, op == PY_OP_DIV ? "/" : "");
	return a.open || b.open || !b.n ? py_set_open(p, result) : result;
}

uint32_t py_fold_binary(struct py *p, uint32_t node)
{
	uint32_t left = py_field(p, node, PY_F_LEFT), right = py_field(p, node, PY_F_RIGHT);
	uint32_t op = py_field(p, node, PY_F_OPERATOR);

	if (left == PY_NONE || right == PY_NONE || op == PY_NONE)
		return PY_UNKNOWN;
	return py_fold_operator(p, p->node[op].sym, p->node[left].value, p->node[right].value);
}

uint32_t py_fold_unary(struct py *p, uint32_t node)
{
	uint32_t argument = py_field(p, node, PY_F_ARGUMENT), op = py_field(p, node, PY_F_OPERATOR);
	const struct py_atom *a = argument == PY_NONE ? NULL : py_only(p, p->node[argument].value, PY_INT);

	if (!a || op == PY_NONE || a->number == INT64_MIN)
		return PY_UNKNOWN;
	switch (p->node[op].sym) {
	case PY_OP_SUB:
		return py_set_number(p, -a->number);
	case PY_OP_INVERT:
		return py_set_number(p, ~a->number);
	default:
		return p->node[argument].value;
	}
}

/* ---- subscripts ----------------------------------------------------------------------------------------- */

/* The numbers of a slice by position between the colons; false: one is not constant. */
static bool read_slice(const struct py *p, uint32_t node, int64_t part[3], bool given[3])
{
	const char *text = p->text;
	unsigned at = 0;
	uint32_t from = p->node[node].start;

	for (uint32_t c = p->node[node].child;; c = p->node[c].next) {
		uint32_t until = c == PY_NONE ? p->node[node].end : p->node[c].start;
		const struct py_atom *a;

		for (uint32_t i = from; i < until; i++)
			at += text[i] == ':';
		if (c == PY_NONE || at > 2)
			return at <= 2;
		if (p->node[c].sym != PY_NONE_) {
			a = py_only(p, p->node[c].value, PY_INT);
			if (!a)
				return false;
			part[at] = a->number;
			given[at] = true;
		}
		from = p->node[c].end;
	}
}

static int64_t clamp(int64_t v, int64_t len, int64_t low, int64_t high)
{
	if (v < 0)
		v += len;
	return v < low ? low : v > high ? high : v;
}

/* Calls pick(k) for each index of the slice. */
static uint32_t cut(struct py *p, const struct py_atom *a, const int64_t part[3], const bool given[3])
{
	int64_t len = a->len, step = given[2] ? part[2] : 1, i, end;
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);
	uint32_t item[PY_UNROLL_MAX], n = 0, atom;
	bool decoded = a->decoded; /* making atoms moves them */

	if (step == 0 || step > PY_STRING_MAX || step < -PY_STRING_MAX)
		return PY_NONE;
	i = given[0] ? clamp(part[0], len, step > 0 ? 0 : -1, step > 0 ? len : len - 1) : step > 0 ? 0 : len - 1;
	end = given[1] ? clamp(part[1], len, step > 0 ? 0 : -1, step > 0 ? len : len - 1) : step > 0 ? len : -1;
	for (; step > 0 ? i < end : i > end; i += step) {
		if (a->kind != PY_LIST)
			buf_add(&out, a->text + i, 1);
		else if (n < PY_UNROLL_MAX)
			item[n++] = a->item[i];
	}
	if (a->kind == PY_LIST)
		return py_list_atom(p, item, n);
	atom = py_text_atom(p, a->kind, buf_str(&out), out.len);
	if (atom != PY_NONE)
		p->atom[atom].decoded |= step < 0 || decoded;
	return atom;
}

static bool is_ascii(const struct py_atom *a)
{
	for (uint32_t i = 0; i < a->len; i++)
		if ((unsigned char)a->text[i] >= 0x80)
			return false;
	return true;
}

static uint32_t slice_of(struct py *p, uint32_t set, uint32_t slice)
{
	int64_t part[3] = { 0 };
	bool given[3] = { false };
	uint32_t result = PY_NOTHING;
	struct py_set s = p->set[set];

	if (!read_slice(p, slice, part, given))
		return PY_UNKNOWN;
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]];

		if (a.kind == PY_LIST || a.kind == PY_BYTES || (a.kind == PY_STR && is_ascii(&a)))
			result = py_set_add(p, result, cut(p, &a, part, given));
		else
			s.open = true;
	}
	return s.open || !s.n ? py_set_open(p, result) : result;
}

/* x[k] for one atom: a set. */
static uint32_t item_of(struct py *p, const struct py_atom *a, const struct py_atom *index, const struct py_atom *key)
{
	int64_t i = index ? index->number : 0;

	if (a->kind == PY_SPACE && key)
		return a->len ? py_attribute_of(p, py_set_text(p, PY_PATH, a->text, a->len), key->text, key->len)
		       : py_atom_is(key, PY_STR, "__builtins__") ? py_set_text(p, PY_PATH, "builtins", 8)
								 : PY_UNKNOWN;
	/* sys.modules is a dictionary of the interpreter's modules; builtins may also be a dictionary. */
	if (a->kind == PY_PATH && key && py_atom_is(a, PY_PATH, "sys.modules"))
		return py_set_text(p, PY_PATH, key->text, key->len);
	if (a->kind == PY_PATH && key && py_atom_is(a, PY_PATH, "builtins"))
		return py_attribute_of(p, py_set_text(p, PY_PATH, a->text, a->len), key->text, key->len);
	if (!index)
		return PY_UNKNOWN;
	i += i < 0 ? a->len : 0;
	if (i < 0 || i >= a->len)
		return PY_UNKNOWN;
	if (a->kind == PY_LIST)
		return a->item[i];
	if (a->kind == PY_BYTES)
		return py_set_number(p, (unsigned char)a->text[i]);
	return a->kind == PY_STR && is_ascii(a) ? py_set_text(p, PY_STR, a->text + i, 1) : PY_UNKNOWN;
}

uint32_t py_fold_subscript(struct py *p, uint32_t node)
{
	uint32_t object = py_unwrap(p, py_field(p, node, PY_F_VALUE)), sub = py_field(p, node, PY_F_SUBSCRIPT);
	uint32_t result = PY_NOTHING;
	struct py_set s;

	if (object == PY_NONE || sub == PY_NONE)
		return PY_UNKNOWN;
	if (p->node[sub].sym == PY_SLICE)
		return slice_of(p, p->node[object].value, sub);
	s = p->set[p->node[object].value];
	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]], key = { 0 };
		const struct py_atom *index = py_only(p, p->node[sub].value, PY_INT),
				     *only = py_only(p, p->node[sub].value, PY_STR);
		uint32_t item;

		if (only)
			key = *only; /* making atoms moves them */
		item = item_of(p, &a, index, only ? &key : NULL);

		if (item == PY_UNKNOWN && a.kind == PY_LIST && !index)
			item = py_element_of(p, py_set_of(p, s.atom[i]));
		result = py_join(p, result, item);
	}
	return s.open || !s.n ? py_set_open(p, result) : result;
}
