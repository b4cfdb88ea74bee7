/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates string methods and library functions on constants: tables of names and their functions. */
#include "inspect/python.h"

#include <ctype.h>
#include <strings.h>

/* ---- methods of str and bytes --------------------------------------------------------------------------- */

/* The object (one alternative), the arguments, the result. */
struct fold {
	struct py *p;
	const struct py_args *args;
	struct py_atom self;
	struct buf out;
	bool part;              /* the result is known in part */
	bool decoded;           /* a part of it was decoded */
	enum py_atom_kind kind; /* kind of the result */
};

static const struct py_atom *arg_text(const struct fold *f, unsigned i)
{
	const struct py_atom *a = py_only(f->p, py_arg_value(f->p, f->args, i), PY_STR);

	return a ? a : py_only(f->p, py_arg_value(f->p, f->args, i), PY_BYTES);
}

static bool each_character(struct fold *f, int (*change)(int))
{
	for (uint32_t i = 0; i < f->self.len; i++) {
		unsigned char c = (unsigned char)f->self.text[i];
		char to = (char)(c < 0x80 ? change(c) : c);

		buf_add(&f->out, &to, 1);
	}
	return true;
}

static int swap_case(int c)
{
	return islower(c) ? toupper(c) : tolower(c);
}

static bool fold_lower(struct fold *f)
{
	return each_character(f, tolower);
}

static bool fold_upper(struct fold *f)
{
	return each_character(f, toupper);
}

static bool fold_swapcase(struct fold *f)
{
	return each_character(f, swap_case);
}

static bool fold_capitalize(struct fold *f)
{
	for (uint32_t i = 0; i < f->self.len; i++) {
		char c = (char)(i ? tolower((unsigned char)f->self.text[i]) : toupper((unsigned char)f->self.text[i]));

		buf_add(&f->out, &c, 1);
	}
	return true;
}

static bool strip(struct fold *f, bool left, bool right)
{
	const struct py_atom *set = arg_text(f, 0);
	uint32_t start = 0, end = f->self.len;
	const char *s = f->self.text;

	if (f->args->n > 0 && !set)
		return false;
	while (left && start < end &&
	       (set ? memchr(set->text, s[start], set->len) != NULL : isspace((unsigned char)s[start])))
		start++;
	while (right && end > start &&
	       (set ? memchr(set->text, s[end - 1], set->len) != NULL : isspace((unsigned char)s[end - 1])))
		end--;
	buf_add(&f->out, s + start, end - start);
	return true;
}

static bool fold_strip(struct fold *f)
{
	return strip(f, true, true);
}

static bool fold_lstrip(struct fold *f)
{
	return strip(f, true, false);
}

static bool fold_rstrip(struct fold *f)
{
	return strip(f, false, true);
}

static bool fold_replace(struct fold *f)
{
	const struct py_atom *from = arg_text(f, 0), *to = arg_text(f, 1);
	const char *at = f->self.text, *end = at + f->self.len;

	if (!from || !to || from->len == 0)
		return false;
	while (at < end && !f->out.full) {
		const char *hit = memmem(at, (size_t)(end - at), from->text, from->len);

		if (!hit)
			break;
		buf_add(&f->out, at, (size_t)(hit - at));
		buf_add(&f->out, to->text, to->len);
		at = hit + from->len;
	}
	buf_add(&f->out, at, (size_t)(end - at));
	return true;
}

/* Joins the elements of a list, or the characters of a string, with the separator. */
static bool fold_join(struct fold *f)
{
	uint32_t set = py_arg_value(f->p, f->args, 0);
	const struct py_atom *list = py_only(f->p, set, PY_LIST), *text = arg_text(f, 0);

	for (uint32_t i = 0; text && i < text->len; i++) {
		if (i)
			buf_add(&f->out, f->self.text, f->self.len);
		buf_add(&f->out, text->text + i, 1);
	}
	if (text)
		return true;
	if (!list)
		return false;
	f->decoded |= list->decoded;
	for (uint32_t i = 0; i < list->len; i++) {
		const struct py_atom *a = py_only(f->p, list->item[i], f->self.kind);

		if (i)
			buf_add(&f->out, f->self.text, f->self.len);
		f->decoded |= a && a->decoded;
		if (a)
			buf_add(&f->out, a->text, a->len);
		else {
			buf_adds(&f->out, "*");
			f->part = true;
		}
	}
	return true;
}

static bool fold_encode(struct fold *f)
{
	buf_add(&f->out, f->self.text, f->self.len);
	f->kind = PY_BYTES;
	return true;
}

static bool fold_decode(struct fold *f)
{
	const struct py_atom *codec = arg_text(f, 0);

	if (f->args->n > 0 && !codec)
		return false;
	f->kind = PY_STR;
	return py_decode_text(codec ? codec->text : "utf-8", codec ? codec->len : 5, &f->self, &f->out);
}

static bool fold_format(struct fold *f)
{
	return py_format(f->p, f->args, &f->self, &f->out, &f->part);
}

static bool fold_removeprefix(struct fold *f)
{
	const struct py_atom *a = arg_text(f, 0);
	uint32_t cut = a && a->len <= f->self.len && memcmp(f->self.text, a->text, a->len) == 0 ? a->len : 0;

	buf_add(&f->out, f->self.text + cut, f->self.len - cut);
	return a != NULL;
}

static bool fold_removesuffix(struct fold *f)
{
	const struct py_atom *a = arg_text(f, 0);
	uint32_t len = f->self.len;

	if (a && a->len <= len && memcmp(f->self.text + len - a->len, a->text, a->len) == 0)
		len -= a->len;
	buf_add(&f->out, f->self.text, len);
	return a != NULL;
}

static bool fold_hex(struct fold *f)
{
	for (uint32_t i = 0; i < f->self.len; i++)
		buf_addf(&f->out, "%02x", (unsigned char)f->self.text[i]);
	f->kind = PY_STR;
	return f->self.kind == PY_BYTES;
}

struct method {
	const char *name;
	bool (*fold)(struct fold *f);
};

static const struct method methods[] = {
	{ "lower", fold_lower },
	{ "upper", fold_upper },
	{ "casefold", fold_lower },
	{ "swapcase", fold_swapcase },
	{ "capitalize", fold_capitalize },
	{ "title", fold_capitalize },
	{ "strip", fold_strip },
	{ "lstrip", fold_lstrip },
	{ "rstrip", fold_rstrip },
	{ "replace", fold_replace },
	{ "join", fold_join },
	{ "encode", fold_encode },
	{ "decode", fold_decode },
	{ "format", fold_format },
	{ "removeprefix", fold_removeprefix },
	{ "removesuffix", fold_removesuffix },
	{ "hex", fold_hex },
};

static const struct method *find_method(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strlen(methods[i].name) == len && memcmp(methods[i].name, name, len) == 0)
			return &methods[i];
	return NULL;
}

static uint32_t apply(struct py *p, const struct py_args *a, const struct py_atom *self, const struct method *m)
{
	struct fold f = { .p = p, .args = a, .self = *self, .out = BUF_INIT(PY_STRING_MAX), .kind = self->kind };
	uint32_t atom = PY_NONE;

	if (py_steps(p, self->len) && m->fold(&f) && !f.out.full && !f.out.no_memory)
		atom = py_text_atom(p, f.part ? PY_PART : f.kind, buf_str(&f.out), f.out.len);
	if (atom != PY_NONE && (self->decoded || f.decoded))
		p->atom[atom].decoded = true;
	buf_release(&f.out);
	return atom;
}

/* "a b".split(): a list of strings. */
static uint32_t split(struct py *p, const struct py_args *a, const struct py_atom *self)
{
	const struct py_atom *only = py_only(p, py_arg_value(p, a, 0), self->kind);
	struct py_atom copy = only ? *only : (struct py_atom){ 0 }; /* making atoms moves them */
	const struct py_atom *sep = only ? &copy : NULL;
	const char *at = self->text, *end = at + self->len;
	uint32_t item[PY_UNROLL_MAX], n = 0;

	if ((a->n > 0 && !sep) || (sep && sep->len == 0))
		return PY_NONE;
	while (at <= end && n < PY_UNROLL_MAX) {
		const char *stop = at;

		while (stop < end && (sep ? (size_t)(end - stop) < sep->len || memcmp(stop, sep->text, sep->len) != 0
					  : !isspace((unsigned char)*stop)))
			stop++;
		if (sep || stop > at)
			item[n++] = py_set_text(p, self->kind, at, (size_t)(stop - at));
		at = stop + (sep ? sep->len : 1);
	}
	return n == PY_UNROLL_MAX ? PY_NONE : py_list_atom(p, item, n);
}

/* (29551).to_bytes(2, "big") */
static uint32_t to_bytes(struct py *p, const struct py_args *a, int64_t number)
{
	const struct py_atom *len = py_only(p, py_arg_value(p, a, 0), PY_INT),
			     *order = py_only(p, py_arg_value(p, a, 1), PY_STR);
	char bytes[8];
	unsigned n;

	if (!len || len->number < 1 || len->number > 8 || number < 0)
		return PY_NONE;
	n = (unsigned)len->number;
	for (unsigned i = 0; i < n; i++)
		bytes[order && order->text[0] == 'l' ? i : n - 1 - i] = (char)((uint64_t)number >> (8 * i));
	return py_text_atom(p, PY_BYTES, bytes, n);
}

uint32_t py_fold_method(struct py *p, const struct py_args *a, uint32_t object, const char *name, size_t len)
{
	const struct method *m = find_method(name, len);
	bool splits = len == 5 && memcmp(name, "split", 5) == 0, to = len == 8 && memcmp(name, "to_bytes", 8) == 0;
	struct py_set s = p->set[object];
	uint32_t result = PY_NOTHING;

	if ((!m && !splits && !to) || !s.n)
		return PY_UNKNOWN;
	for (unsigned i = 0; i < s.n && py_steps(p, 1); i++) {
		struct py_atom self = p->atom[s.atom[i]];
		uint32_t atom = PY_NONE;

		if (self.kind == PY_INT && to)
			atom = to_bytes(p, a, self.number);
		else if (self.kind == PY_STR || self.kind == PY_BYTES)
			atom = splits ? split(p, a, &self) : m ? apply(p, a, &self, m) : PY_NONE;
		result = py_set_add(p, result, atom);
	}
	return s.open ? py_set_open(p, result) : result;
}

/* ---- functions ------------------------------------------------------------------------------------------ */

static uint32_t fold_chr(struct py *p, const struct py_args *a)
{
	const struct py_atom *n = py_only(p, py_arg_value(p, a, 0), PY_INT);
	AUTO_BUF b = BUF_INIT(8);

	if (!n || n->number < 0 || n->number >= 0x110000)
		return PY_UNKNOWN;
	py_put_code(&b, (uint32_t)n->number, false);
	return py_mark_decoded(p, py_set_text(p, PY_STR, buf_str(&b), b.len));
}

static uint32_t fold_ord(struct py *p, const struct py_args *a)
{
	const struct py_atom *s = py_only(p, py_arg_value(p, a, 0), PY_STR);

	return s && s->len == 1 ? py_set_number(p, (unsigned char)s->text[0]) : PY_UNKNOWN;
}

/* str(), bytes(), bytearray(): from a string or a list of numbers. */
static uint32_t convert(struct py *p, const struct py_args *a, enum py_atom_kind kind)
{
	uint32_t set = py_arg_value(p, a, 0);
	const struct py_atom *list = py_only(p, set, PY_LIST), *s = py_only(p, set, PY_STR),
			     *b = py_only(p, set, PY_BYTES);
	const struct py_atom *n = py_only(p, set, PY_INT);
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);

	if (s || (b && (kind == PY_BYTES || a->n > 1)))
		return py_set_text(p, kind, s ? s->text : b->text, s ? s->len : b->len);
	if (kind == PY_STR && n && buf_addf(&out, "%lld", (long long)n->number))
		return py_set_text(p, kind, buf_str(&out), out.len);
	if (kind != PY_BYTES || !list)
		return PY_UNKNOWN;
	for (uint32_t i = 0; i < list->len; i++) {
		const struct py_atom *byte = py_only(p, list->item[i], PY_INT);

		if (!byte || byte->number < 0 || byte->number > 255)
			return PY_UNKNOWN;
		py_put_code(&out, (uint32_t)byte->number, true);
	}
	return py_mark_decoded(p, py_set_text(p, PY_BYTES, buf_str(&out), out.len));
}

static uint32_t fold_str(struct py *p, const struct py_args *a)
{
	return convert(p, a, PY_STR);
}

static uint32_t fold_bytes(struct py *p, const struct py_args *a)
{
	return convert(p, a, PY_BYTES);
}

static uint32_t fold_int(struct py *p, const struct py_args *a)
{
	const struct py_atom *s = py_only(p, py_arg_value(p, a, 0), PY_STR),
			     *base = py_only(p, py_arg_value(p, a, 1), PY_INT);
	char digits[32], *end;
	long long v;

	if (!s || s->len == 0 || s->len >= sizeof(digits) || (base && (base->number < 2 || base->number > 36)))
		return py_only(p, py_arg_value(p, a, 0), PY_INT) ? py_arg_value(p, a, 0) : PY_UNKNOWN;
	memcpy(digits, s->text, s->len);
	digits[s->len] = '\0';
	v = strtoll(digits, &end, base ? (int)base->number : 10);
	return *end ? PY_UNKNOWN : py_set_number(p, v);
}

/* list(), tuple(), iter(), sorted() of a list: the list; reversed(). */
static uint32_t sequence(struct py *p, const struct py_args *a, bool backwards)
{
	uint32_t set = py_arg_value(p, a, 0), item[PY_UNROLL_MAX];
	const struct py_atom *list = py_only(p, set, PY_LIST), *text = py_only(p, set, PY_STR);
	uint32_t n = list ? list->len : text ? text->len : UINT32_MAX;
	struct py_atom from;

	if (n > PY_UNROLL_MAX)
		return PY_UNKNOWN;
	from = list ? *list : *text;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = backwards ? n - 1 - i : i;

		item[i] = list ? from.item[k] : py_set_text(p, PY_STR, from.text + k, 1);
	}
	return backwards ? py_mark_decoded(p, py_set_of(p, py_list_atom(p, item, n)))
			 : py_set_of(p, py_list_atom(p, item, n));
}

static uint32_t fold_list(struct py *p, const struct py_args *a)
{
	return sequence(p, a, false);
}

static uint32_t fold_reversed(struct py *p, const struct py_args *a)
{
	return sequence(p, a, true);
}

/* map(chr, numbers) */
static uint32_t fold_map(struct py *p, const struct py_args *a)
{
	const struct py_atom *f = py_only(p, py_arg_value(p, a, 0), PY_PATH),
			     *list = py_only(p, py_arg_value(p, a, 1), PY_LIST);
	uint32_t item[PY_UNROLL_MAX], n;
	const uint32_t *from;

	if (!f || !list || list->len > PY_UNROLL_MAX || !py_atom_is(f, PY_PATH, "builtins.chr"))
		return PY_UNKNOWN;
	n = list->len;
	from = list->item;
	for (uint32_t i = 0; i < n; i++) {
		const struct py_atom *code = py_only(p, from[i], PY_INT);
		AUTO_BUF b = BUF_INIT(8);

		if (!code || code->number < 0 || code->number >= 0x110000)
			return PY_UNKNOWN;
		py_put_code(&b, (uint32_t)code->number, false);
		item[i] = py_mark_decoded(p, py_set_text(p, PY_STR, buf_str(&b), b.len));
	}
	return py_set_of(p, py_list_atom(p, item, n));
}

static uint32_t fold_codecs_decode(struct py *p, const struct py_args *a)
{
	const struct py_atom *s = py_only(p, py_arg_value(p, a, 0), PY_STR),
			     *codec = py_only(p, py_arg_value(p, a, 1), PY_STR);
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);

	if (!s)
		s = py_only(p, py_arg_value(p, a, 0), PY_BYTES);
	if (!s || !codec || !py_decode_text(codec->text, codec->len, s, &out))
		return PY_UNKNOWN;
	return py_mark_decoded(p, py_set_text(p, PY_STR, buf_str(&out), out.len));
}

/* Joins like os.path.join(): an absolute part starts again, an unknown one is '*'. */
static uint32_t fold_path_join(struct py *p, const struct py_args *a)
{
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);
	bool part = a->spread;

	for (unsigned i = 0; i < a->n; i++) {
		const struct py_set *s = &p->set[py_arg_value(p, a, i)];
		const struct py_atom *piece = s->n ? &p->atom[s->atom[0]] : NULL;
		bool known = piece && (piece->kind == PY_STR || piece->kind == PY_PART);

		part |= !known || piece->kind == PY_PART || s->n > 1 || s->open;
		if (known && piece->len && piece->text[0] == '/')
			out.len = 0;
		else if (out.len && out.data[out.len - 1] != '/')
			buf_adds(&out, "/");
		if (known)
			buf_add(&out, piece->text, piece->len);
		else
			buf_adds(&out, "*");
	}
	if (out.full || out.no_memory || (out.len && out.data[0] == '*'))
		return PY_UNKNOWN;
	return py_set_text(p, part ? PY_PART : PY_STR, buf_str(&out), out.len);
}

/* Functions that return their argument, as far as paths are concerned. */
static uint32_t fold_same(struct py *p, const struct py_args *a)
{
	return py_arg_value(p, a, 0);
}

struct function {
	const char *path;
	uint32_t (*fold)(struct py *p, const struct py_args *a);
	const char *codec; /* if fold is NULL: the codec that decodes its argument */
};

/* Sorted with strcmp(). */
static const struct function functions[] = {
	{ "base64.b16decode", NULL, "hex" },
	{ "base64.b32decode", NULL, "base32" },
	{ "base64.b64decode", NULL, "base64" },
	{ "base64.decodebytes", NULL, "base64" },
	{ "base64.decodestring", NULL, "base64" },
	{ "base64.standard_b64decode", NULL, "base64" },
	{ "base64.urlsafe_b64decode", NULL, "base64" },
	{ "binascii.a2b_base64", NULL, "base64" },
	{ "binascii.a2b_hex", NULL, "hex" },
	{ "binascii.unhexlify", NULL, "hex" },
	{ "builtins.bytearray", fold_bytes, NULL },
	{ "builtins.bytearray.fromhex", NULL, "hex" },
	{ "builtins.bytes", fold_bytes, NULL },
	{ "builtins.bytes.fromhex", NULL, "hex" },
	{ "builtins.chr", fold_chr, NULL },
	{ "builtins.int", fold_int, NULL },
	{ "builtins.iter", fold_list, NULL },
	{ "builtins.list", fold_list, NULL },
	{ "builtins.map", fold_map, NULL },
	{ "builtins.ord", fold_ord, NULL },
	{ "builtins.reversed", fold_reversed, NULL },
	{ "builtins.str", fold_str, NULL },
	{ "builtins.tuple", fold_list, NULL },
	{ "codecs.decode", fold_codecs_decode, NULL },
	{ "codecs.encode", fold_codecs_decode, NULL }, /* rot13 is its own inverse; other codecs do not matter */
	{ "os.fsdecode", fold_same, NULL },
	{ "os.fspath", fold_same, NULL },
	{ "os.path.abspath", fold_same, NULL },
	{ "os.path.expanduser", fold_same, NULL },
	{ "os.path.expandvars", fold_same, NULL },
	{ "os.path.join", fold_path_join, NULL },
	{ "os.path.normpath", fold_same, NULL },
	{ "os.path.realpath", fold_same, NULL },
	{ "pathlib.Path", fold_path_join, NULL },
	{ "pathlib.PosixPath", fold_path_join, NULL },
	{ "pathlib.PurePath", fold_path_join, NULL },
	{ "pathlib.PurePosixPath", fold_path_join, NULL },
	{ "urllib.parse.unquote", NULL, "percent" },
	{ "urllib.parse.unquote_plus", NULL, "percent" },
};

static uint32_t decode_argument(struct py *p, const struct py_args *a, const char *codec)
{
	const struct py_atom *s = py_only(p, py_arg_value(p, a, 0), PY_STR);
	AUTO_BUF out = BUF_INIT(PY_STRING_MAX);

	if (!s)
		s = py_only(p, py_arg_value(p, a, 0), PY_BYTES);
	if (!s || !py_decode_text(codec, strlen(codec), s, &out))
		return PY_UNKNOWN;
	if (strcmp(codec, "percent") == 0)
		return py_set_text(p, PY_STR, buf_str(&out), out.len);
	return py_mark_decoded(p, py_set_text(p, PY_BYTES, buf_str(&out), out.len));
}

static int compare_path(const struct py_atom *a, const char *path)
{
	size_t n = strlen(path);
	int c = memcmp(a->text, path, a->len < n ? a->len : n);

	return c ? c : a->len < n ? -1 : a->len > n;
}

uint32_t py_fold_function(struct py *p, const struct py_args *a, const struct py_atom *function)
{
	size_t low = 0, high = ARRAY_LEN(functions);

	while (low < high) {
		size_t mid = (low + high) / 2;
		int c = compare_path(function, functions[mid].path);

		if (c == 0)
			return functions[mid].codec ? decode_argument(p, a, functions[mid].codec)
						    : functions[mid].fold(p, a);
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return PY_UNKNOWN;
}
