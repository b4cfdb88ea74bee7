/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go: code that hides which program it starts.  A string that came out of a decoder, was computed from numbers, or was
 * assembled within a word cannot be read by a human reviewer, and no honest program needs that.  Such values are marked
 * `hidden` where they are created and keep the mark as they move: through variables, conversions, readers, and
 * functions of the program, which are known to decode once their body was walked.  A finding is reported where such a
 * value becomes a program or the input of a shell.
 */
#include "inspect/go.h"

#include <ctype.h>
#include <string.h>

static bool begins(const struct go_value *v, const char *prefix)
{
	size_t n = strlen(prefix);

	return v->len >= n && memcmp(v->text, prefix, n) == 0;
}

static bool mentions(const struct go_value *v, const char *word)
{
	return memmem(v->text, v->len, word, strlen(word)) != NULL;
}

/* ---- sources of hidden values --------------------------------------------------------------------------- */

static bool is_decoder(const struct go_value *function)
{
	static const char *const encodings[] = { "encoding/base64.", "encoding/base32.", "encoding/hex.",
						 "encoding/ascii85." };
	static const char *const others[] = { "strings.Map",           "bytes.Map",
					      "strconv.Unquote",       "html.UnescapeString",
					      "net/url.QueryUnescape", "net/url.PathUnescape" };

	for (size_t i = 0; i < ARRAY_LEN(encodings); i++)
		if (begins(function, encodings[i]))
			return mentions(function, "Decode");
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (go_is(function, others[i]))
			return true;
	return begins(function, "compress/") && mentions(function, ".NewReader");
}

/*
 * True for functions that assemble a string from parts and so can split a word; only if the parts are known to be
 * split.
 */
static bool cuts_words(const struct go_value *function, const struct go_value *arguments)
{
	const struct go_value *a = arguments->items;

	if (arguments->len < 2 || a[arguments->len - 1].kind == GO_UNKNOWN)
		return false;
	if (go_is(function, "strings.Join"))
		return a[0].kind == GO_LIST && a[0].len > 1 && a[1].kind == GO_STRING && a[1].len == 0;
	if (go_is(function, "fmt.Sprintf"))
		return a[0].kind == GO_STRING &&
		       (mentions(&a[0], "%s%s") || mentions(&a[0], "%c%c") || mentions(&a[0], "%v%v"));
	return a[0].kind == GO_STRING && (go_is(function, "strings.Replace") || go_is(function, "strings.ReplaceAll"));
}

bool go_splits_word(const struct go_value *a, const struct go_value *b)
{
	return a->kind == GO_STRING && b->kind == GO_STRING && a->len && b->len &&
	       isalpha((unsigned char)a->text[a->len - 1]) && isalpha((unsigned char)b->text[0]);
}

void go_note_decoding(struct go *g, uint32_t at)
{
	g->decoded_at = at;
}

/* Marks the result of a call: hidden if the function decodes, or if an argument is hidden. */
void go_mark_result(struct go *g, const struct go_value *function, const struct go_value *arguments, struct go_value *v)
{
	bool decodes = function->kind == GO_MEMBER && is_decoder(function);

	if (decodes)
		go_note_decoding(g, function->start);
	v->hidden = v->hidden || decodes || function->hidden ||
		    (function->kind == GO_MEMBER && cuts_words(function, arguments)) ||
		    (function->kind == GO_METHOD && function->receiver->hidden);
	for (uint32_t i = 0; i < arguments->len && !v->hidden; i++)
		v->hidden = arguments->items[i].hidden;
	if (function->symbol == GO_identifier && function->binding >= 0 && function->kind == GO_UNKNOWN)
		v->maker = function->binding + 1;
}

/* data[i] ^= key, out[i] = in[i] ^ key, r[i], r[j] = r[j], r[i]: the program rebuilds the bytes of a variable. */
static void mark_indexed(struct go *g, const struct go_value *element)
{
	const char *name = g->text + element->start;
	const char *bracket = memchr(name, '[', element->end - element->start);
	int32_t at = bracket ? go_lookup(g, name, (uint32_t)(bracket - name)) : -1;

	go_note_decoding(g, element->start);
	if (at < 0)
		return;
	g->binding[at].value.hidden = true;
	if (g->binding[at].value.kind != GO_PACKAGE)
		g->binding[at].value.kind = GO_UNKNOWN;
}

void go_mark_elements(struct go *g, char op, const struct go_value *left, const struct go_value *right)
{
	bool swaps = left->len == 2 && right->kind == GO_LIST && right->len == 2 &&
		     right->items[0].symbol == GO_index_expression && right->items[1].symbol == GO_index_expression;

	for (uint32_t i = 0; i < left->len; i++) {
		const struct go_value *value = right->kind == GO_LIST && i < right->len ? &right->items[i] : NULL;

		if (left->items[i].symbol == GO_index_expression && (op == '^' || swaps || (value && value->hidden)))
			mark_indexed(g, &left->items[i]);
	}
}

/* Marks a function of the program, whose body was just walked, as hidden if something in the body decodes. */
void go_mark_function(struct go *g, const struct go_frame *f, const struct go_value *name)
{
	int32_t at;

	if (g->decoded_at < f->start)
		return;
	at = go_lookup(g, g->text + name->start, name->end - name->start);
	if (at >= 0 && g->binding[at].value.kind == GO_UNKNOWN)
		g->binding[at].value.hidden = true;
}

/* ---- uses of hidden values ------------------------------------------------------------------------------ */

static void judge_hidden(struct go *g, struct span where)
{
	(void)judge_check(g->j, "hidden-program", where, "%s", "");
}

void go_judge_hidden(struct go *g, const struct go_value *v)
{
	struct span where = { v->start, v->end };

	if (v->hidden)
		judge_hidden(g, where);
	else if (v->maker && v->maker <= g->package_bindings && g->n_pending < ARRAY_LEN(g->pending))
		g->pending[g->n_pending++] = (struct go_pending){ v->maker, where };
}

void go_judge_pending(struct go *g)
{
	for (unsigned i = 0; i < g->n_pending; i++)
		if (g->binding[g->pending[i].maker - 1].value.hidden)
			judge_hidden(g, g->pending[i].where);
	if (g->wrote_hidden && g->own_file.end)
		judge_hidden(g, g->own_file);
}

static bool starts_programs(const struct go_value *v)
{
	return v->kind == GO_MEMBER && (go_is(v, "os/exec.Command") || go_is(v, "os/exec.CommandContext"));
}

/*
 * Reports a variable that holds a function that starts programs, unless its name suggests that.  Tests commonly replace
 * such a function through a variable with such a name.
 */
void go_judge_alias(struct go *g, const struct go_value *name, const struct go_value *value)
{
	static const char *const telling[] = {
		"exec", "com", "cmd", "run", "start", "launch", "spawn", "proc", "shell"
	};
	char lower[64];
	size_t len = name->end - name->start;

	if (!g->judging || !starts_programs(value) || len >= sizeof(lower))
		return;
	for (size_t i = 0; i < len; i++)
		lower[i] = (char)tolower((unsigned char)g->text[name->start + i]);
	for (size_t i = 0; i < ARRAY_LEN(telling); i++)
		if (memmem(lower, len, telling[i], strlen(telling[i])))
			return;
	judge_hidden(g, (struct span){ name->start, name->end });
}

/* reflect.ValueOf(exec.Command): the function can be called without its name at the call. */
void go_judge_reflected(struct go *g, const struct go_value *function, const struct go_value *arguments)
{
	if (go_is(function, "reflect.ValueOf") && arguments->len == 1 && starts_programs(&arguments->items[0]))
		judge_hidden(g, (struct span){ function->start, function->end });
}

/* ---- memory --------------------------------------------------------------------------------------------- */

/* True for *(*func())(unsafe.Pointer(p)): looks for a conversion around this call whose text begins with the type. */
static bool becomes_function(const struct go *g, struct span where)
{
	static const char type[] = "(*func(";

	for (size_t i = g->n_frames, near = 4; i-- > 0 && near-- > 0;) {
		uint32_t at = g->frame[i].start;

		while (at < where.start && g->text[at] == '*')
			at++;
		if (where.start - at >= sizeof(type) && memcmp(g->text + at, type, sizeof(type) - 1) == 0)
			return true;
	}
	return false;
}

static bool is_number(const struct go *g, const struct go_value *v)
{
	static const char type[] = "uintptr(";
	size_t n = sizeof(type) - 1;
	const char *s = g->text + v->start;

	return v->end - v->start > n && memcmp(s, type, n) == 0 && isdigit((unsigned char)s[n]);
}

void go_judge_pointer(struct go *g, const struct go_value *function, const struct go_value *arguments,
		      struct span where)
{
	if (go_is(function, "unsafe.Pointer") && arguments->len == 1 &&
	    (is_number(g, &arguments->items[0]) || becomes_function(g, where)))
		(void)judge_check(g->j, "forged-pointer", where, "%s", "");
}
