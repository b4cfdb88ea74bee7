/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes pass.  Parser and engine must see the same lines and characters; otherwise code can hide behind a tree
 * without errors:
 *
 *	a lone CR ends a comment in Python and JavaScript, but not for the parser	-> LF
 *	a coding cookie makes Python read other text than an editor shows		-> judged
 *	a hashbang line ends where JavaScript lines end, not only at LF			-> spaces up to there
 *	a NUL ends the text for some readers						-> judged, not parsed
 *
 * In Go a CR is white space, so it becomes a space; in the shell it is an ordinary character and stays.  No byte is
 * added or removed: offsets in the text to parse are offsets in the original text.
 */
#include "inspect/judge.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

#define LEN_MAX (2 * MiB) /* the most that parsers and walks can process before the deadline */

/* ---- bytes that a parser must not see ------------------------------------------------------------------- */

static struct span span_at(size_t at, size_t len)
{
	return (struct span){ (uint32_t)at, (uint32_t)(at + len) };
}

static bool is_too_large(struct judge *j, size_t len)
{
	if (len <= LEN_MAX)
		return false;
	(void)judge_check(j, "too-large", span_at(0, 0), "%zu KB, and %zu KB are the most", len >> 10,
			  (size_t)LEN_MAX >> 10);
	return true;
}

static bool has_nul(struct judge *j, const char *text, size_t len)
{
	const char *nul = len ? memchr(text, '\0', len) : NULL;

	if (!nul)
		return false;
	(void)judge_check(j, "nul-byte", span_at((size_t)(nul - text), 1), "%s", "");
	return true;
}

static void check_utf8(struct judge *j, const char *text, size_t len)
{
	size_t good = str_utf8_prefix(text, len);

	if (good < len)
		(void)judge_check(j, "bad-utf8", span_at(good, 1), "byte 0x%02x", (unsigned char)text[good]);
}

/* ---- invisible characters ------------------------------------------------------------------------------- */

struct hidden {
	uint32_t first, last;
	const char *check;
	const char *name;
};
static const struct hidden hidden[] = {
	{ 0x00, 0x08, "hidden-character", "a control character" },
	{ 0x0e, 0x1a, "hidden-character", "a control character" },
	{ 0x1b, 0x1b, "hidden-character", "a terminal escape" },
	{ 0x1c, 0x1f, "hidden-character", "a control character" },
	{ 0x7f, 0x9f, "hidden-character", "a control character" },
	{ 0xad, 0xad, "hidden-character", "a soft hyphen" },
	{ 0x061c, 0x061c, "hidden-character", "a direction mark" },
	{ 0x115f, 0x1160, "hidden-character", "a letter without shape" },
	{ 0x200b, 0x200b, "hidden-character", "a space without width" },
	{ 0x200e, 0x200f, "hidden-character", "a direction mark" },
	{ 0x202a, 0x202e, "bidi-control", "a change of direction" },
	{ 0x2060, 0x2064, "hidden-character", "an invisible operator" },
	{ 0x2066, 0x2069, "bidi-control", "an isolated direction" },
	{ 0x3164, 0x3164, "hidden-character", "a letter without shape" },
	{ 0xfeff, 0xfeff, "hidden-character", "a byte order mark amid the text" },
	{ 0xffa0, 0xffa0, "hidden-character", "a letter without shape" },
	{ 0xe0000, 0xe007f, "hidden-character", "an invisible tag" },
};

/* Decodes the character at s, which is valid UTF-8 or a stray byte; *ret_len: its length in bytes. */
static uint32_t decode(const unsigned char *s, size_t left, size_t *ret_len)
{
	size_t n = s[0] < 0xc0 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

	*ret_len = 1;
	if (n > left || (n == 1 && s[0] >= 0x80))
		return 0xfffd;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0xfffd;
		c = c << 6 | (s[i] & 0x3f);
	}
	*ret_len = n;
	return c;
}

static const struct hidden *find_hidden(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (c >= hidden[i].first && c <= hidden[i].last)
			return &hidden[i];
	return NULL;
}

/* Reports the first hidden character of each kind, which is enough for a reader to look for more. */
static void check_hidden(struct judge *j, const char *text, size_t len)
{
	const char *told[2] = { NULL, NULL };
	size_t n_told = 0, n;

	for (size_t i = 0; i < len && n_told < ARRAY_LEN(told); i += n) {
		unsigned char c = (unsigned char)text[i];
		const struct hidden *h;
		uint32_t code;

		n = 1;
		if ((c >= 0x20 && c < 0x7f) || (c >= '\t' && c <= '\r'))
			continue;
		code = decode((const unsigned char *)text + i, len - i, &n);
		h = find_hidden(code);
		if (!h || (code == 0xfeff && i == 0) || (n_told && str_eq(told[0], h->check)))
			continue;
		(void)judge_check(j, h->check, span_at(i, n), "%s, U+%04X", h->name, code);
		told[n_told++] = h->check;
	}
}

/* ---- Python: the coding cookie -------------------------------------------------------------------------- */

static bool is_codec_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
	       c == '.';
}

/* Encodings that map every byte below 0x80 as UTF-8 does and that decode by table only. */
static bool is_plain_codec(const char *name, size_t len)
{
	static const char *const plain[] = {
		"utf-8",     "utf8",       "ascii",     "us-ascii",     "latin-1",
		"latin1",    "iso-8859-1", "iso8859-1", "iso-8859-15",  "iso-latin-1",
		"utf-8-sig", "utf-8-unix", "utf-8-dos", "latin-1-unix", "iso-8859-1-unix"
	};
	char word[24];

	if (len >= sizeof(word))
		return false;
	for (size_t i = 0; i < len; i++)
		word[i] = name[i] == '_' ? '-' : name[i];
	word[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		if (strcasecmp(word, plain[i]) == 0)
			return true;
	return false;
}

/* Judges every "coding:" and "coding=" between start and end, which are inside a comment. */
static void check_cookie(struct judge *j, const char *text, size_t start, size_t end)
{
	static const char word[] = "coding";
	const size_t word_len = sizeof(word) - 1;

	for (size_t i = start; i + word_len < end; i++) {
		size_t name = i + word_len + 1, last;

		if (memcmp(text + i, word, word_len) != 0 || (text[name - 1] != ':' && text[name - 1] != '='))
			continue;
		while (name < end && (text[name] == ' ' || text[name] == '\t'))
			name++;
		for (last = name; last < end && is_codec_char(text[last]);)
			last++;
		if (last == name || is_plain_codec(text + name, last - name))
			continue;
		(void)judge_check(j, "coding-cookie", span_at(i, last - i), "%.*s",
				  (int)(last - name > 40 ? 40 : last - name), text + name);
	}
}

/*
 * Python reads a coding cookie in the first two lines.  Which lines those are depends on whether a lone CR ends a line.
 * So this cuts lines at LF only, and examines everything after the first '#' of a line if that '#' is at the start of
 * the line or of a part of it after a CR.
 */
static void check_cookies(struct judge *j, const char *text, size_t len)
{
	size_t i = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	for (int line = 0; line < 2 && i < len; line++) {
		const char *lf = memchr(text + i, '\n', len - i);
		size_t end = lf ? (size_t)(lf - text) : len;

		while (i < end) {
			const char *cr = memchr(text + i, '\r', end - i);

			while (i < end && (text[i] == ' ' || text[i] == '\t' || text[i] == '\f'))
				i++;
			if (i < end && text[i] == '#') {
				check_cookie(j, text, i, end);
				break;
			}
			i = cr ? (size_t)(cr - text) + 1 : end;
		}
		i = end + 1;
	}
}

/* ---- line ends ------------------------------------------------------------------------------------------ */

/*
 * "\" CR LF continues a line, "\" SPACE LF does not: the last backslash of an odd run moves to the position of the CR.
 */
static void blank_cr_before_lf(char *text, size_t at)
{
	size_t run = 0;

	while (run < at && text[at - 1 - run] == '\\')
		run++;
	text[at] = ' ';
	if (run % 2 == 1) {
		text[at] = '\\';
		text[at - run] = ' ';
	}
}

static void turn_line_ends(char *text, size_t len, char lone_cr)
{
	char *end = text + len;

	for (char *cr = text; (cr = memchr(cr, '\r', (size_t)(end - cr))); cr++) {
		if (cr + 1 < end && cr[1] == '\n')
			blank_cr_before_lf(text, (size_t)(cr - text));
		else
			*cr = lone_cr;
	}
}

/* Reports a comment that a lone CR ends: most editors show the code after the CR as part of the comment. */
static void check_lone_returns(struct judge *j, const char *text, size_t len)
{
	const char *at = len ? memchr(text, '\r', len) : NULL, *end = text + len;

	for (; at; at = at + 1 < end ? memchr(at + 1, '\r', (size_t)(end - at - 1)) : NULL) {
		const char *line = at;

		if (at + 1 >= end || at[1] == '\n')
			continue;
		while (line > text && line[-1] != '\n' && line[-1] != '\r')
			line--;
		if (memchr(line, '#', (size_t)(at - line))) {
			(void)judge_check(j, "lone-return", span_at((size_t)(at - text), 1), "%s", "");
			return;
		}
	}
}

/* Length of the line that JavaScript ignores: up to LF, CR, U+2028 or U+2029. */
static size_t hashbang_length(const char *text, size_t len)
{
	size_t n = 0;

	if (len < 2 || text[0] != '#' || text[1] != '!')
		return 0;
	while (n < len && text[n] != '\n' && text[n] != '\r' &&
	       !(n + 2 < len && memcmp(text + n, "\xe2\x80", 2) == 0 && ((unsigned char)text[n + 2] & 0xfe) == 0xa8))
		n++;
	return n;
}

static void clean(const struct judge *j, char *text, size_t len)
{
	size_t bom = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;

	switch (j->language) {
	case RULE_JAVASCRIPT:
	case RULE_TYPESCRIPT:
		memset(text, ' ', bom);
		memset(text + bom, ' ', hashbang_length(text + bom, len - bom));
		turn_line_ends(text, len, '\n');
		break;
	case RULE_PYTHON: /* the parser skips a BOM itself; spaces in its place would indent the first line */
		turn_line_ends(text, len, '\n');
		break;
	case RULE_GO:
		memset(text, ' ', bom);
		turn_line_ends(text, len, ' ');
		break;
	default:
		break;
	}
}

char *inspect_bytes(struct judge *j, const char *text, size_t len)
{
	char *copy;

	if (is_too_large(j, len) || has_nul(j, text, len))
		return NULL;
	check_utf8(j, text, len);
	check_hidden(j, text, len);
	if (j->language == RULE_PYTHON) {
		check_cookies(j, text, len);
		check_lone_returns(j, text, len);
	}
	copy = malloc(len + 1);
	if (!copy) {
		j->out_of_memory = true;
		return NULL;
	}
	memcpy(copy, text, len);
	copy[len] = '\0';
	clean(j, copy, len);
	return copy;
}
