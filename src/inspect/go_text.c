/* SPDX-License-Identifier: Apache-2.0 */
/* Go: literals with their escapes decoded, import declarations, and comments that the toolchain interprets. */
#include "inspect/go.h"

#include <string.h>

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static size_t put_rune(char *dst, uint32_t c)
{
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n == 1) {
		dst[0] = (char)c;
		return 1;
	}
	for (size_t i = n - 1; i > 0; i--) {
		dst[i] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	dst[0] = (char)(lead[n] | c);
	return n;
}

/*
 * Decodes one escape after its backslash.  Returns the number of bytes read (0: not an escape); *n more bytes are in
 * dst.
 */
static size_t take_escape(const char *s, size_t len, char *dst, size_t *n)
{
	static const char letters[] = "abfnrtv\\'\"", meaning[] = "\a\b\f\n\r\t\v\\'\"";
	size_t digits, skip = 1;
	uint32_t value = 0;
	int base = 16;
	const char *letter = len ? memchr(letters, s[0], sizeof(letters) - 1) : NULL;

	if (!len)
		return 0;
	if (letter) {
		dst[(*n)++] = meaning[letter - letters];
		return 1;
	}
	switch (s[0]) {
	case 'x':
		digits = 2;
		break;
	case 'u':
		digits = 4;
		break;
	case 'U':
		digits = 8;
		break;
	default:
		digits = 3;
		skip = 0;
		base = 8;
	}
	if (len < skip + digits)
		return 0;
	for (size_t i = 0; i < digits; i++) {
		int digit = digit_value(s[skip + i]);

		if (digit >= base)
			return 0;
		value = value * (uint32_t)base + (uint32_t)digit;
	}
	if (s[0] == 'u' || s[0] == 'U')
		*n += put_rune(dst + *n, value > 0x10ffff ? 0xfffd : value);
	else
		dst[(*n)++] = (char)value;
	return skip + digits;
}

/* An escape is never shorter than the character that it encodes, so len bytes suffice. */
static struct go_value decode(struct go *g, const char *s, size_t len)
{
	struct go_value v = { .kind = GO_UNKNOWN };
	char *dst = go_alloc(g, len + 1);
	size_t n = 0;

	if (!dst)
		return v;
	for (size_t i = 0; i < len;) {
		size_t used = s[i] == '\\' ? take_escape(s + i + 1, len - i - 1, dst, &n) : 0;

		if (used)
			i += 1 + used;
		else
			dst[n++] = s[i++];
	}
	return (struct go_value){ .kind = GO_STRING, .text = dst, .len = (uint32_t)n };
}

/* The compiler drops carriage returns from raw strings; the bytes pass has turned them into line feeds. */
static struct go_value decode_raw(struct go *g, uint32_t start, size_t len)
{
	const struct judge *j = g->j;
	const char *original = !j->nested && j->len == g->len ? j->text + start : NULL;
	struct go_value v = { .kind = GO_STRING, .text = g->text + start, .len = (uint32_t)len };
	char *dst;
	size_t n = 0;

	if (!original || !memchr(original, '\r', len))
		return v;
	dst = go_alloc(g, len + 1);
	if (!dst)
		return (struct go_value){ .kind = GO_UNKNOWN };
	for (size_t i = 0; i < len; i++)
		if (original[i] != '\r')
			dst[n++] = original[i];
	v.text = dst;
	v.len = (uint32_t)n;
	return v;
}

/* Decodes an interpreted string or a rune, given with its quotes; it need not lie in g->text. */
struct go_value go_unquote(struct go *g, const char *s, size_t len)
{
	if (len < 2 || s[len - 1] != s[0])
		return (struct go_value){ .kind = GO_UNKNOWN };
	if (s[0] != '`' && memchr(s, '\\', len))
		return decode(g, s + 1, len - 2);
	return (struct go_value){ .kind = GO_STRING, .text = s + 1, .len = (uint32_t)(len - 2) };
}

struct go_value go_literal(struct go *g, uint32_t start, uint32_t end)
{
	if (end - start >= 2 && g->text[start] == '`' && g->text[end - 1] == '`')
		return decode_raw(g, start + 1, end - start - 2);
	return go_unquote(g, g->text + start, end - start);
}

/* The name of a package if the import gives none: "gopkg.in/yaml.v3" is yaml, ".../lib/v2" is lib. */
static struct go_value package_name(const char *path, size_t len)
{
	size_t start, end = len;

	for (;;) {
		start = end;
		while (start > 0 && path[start - 1] != '/')
			start--;
		if (start == 0 || end - start < 2 || path[start] != 'v' || digit_value(path[start + 1]) > 9)
			break;
		end = start - 1;
	}
	for (size_t i = start + 1; i < end; i++)
		if (path[i] == '.')
			end = i;
	if (end - start > 3 && memcmp(path + start, "go-", 3) == 0)
		start += 3;
	return (struct go_value){ .text = path + start, .len = (uint32_t)(end - start) };
}

static bool begins(const struct go_value *v, const char *prefix)
{
	size_t n = strlen(prefix);

	return v->len >= n && memcmp(v->text, prefix, n) == 0;
}

/*
 * True for packages with functions that take a path, whatever their severity: with such an import, strings that look
 * like paths are judged.
 */
static bool opens_paths(const struct go_value *path)
{
	static const char *const names[] = {
		"os",       "io/ioutil", "io/fs",         "path/filepath", "syscall", "net", "plugin", "embed",
		"archive/", "database/", "text/template", "html/template", "debug/",  "go/", "C"
	};
	const char *first_dot = memchr(path->text, '.', path->len);

	if (first_dot)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (begins(path, names[i]) && (path->len == n || names[i][n - 1] == '/' || path->text[n] == '/'))
			return true;
	}
	return false;
}

static void judge_import(struct go *g, const struct go_value *path)
{
	struct span where = { path->start, path->end };

	if (path->len && (path->text[0] == '.' || path->text[0] == '/'))
		(void)judge_check(g->j, "relative-import", where, "%.*s", (int)path->len, path->text);
	else
		(void)judge_module(g->j, path->text, path->len, where);
}

static bool is_name(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* Judges one name that the C code before import "C" calls as if Go called it. */
static void judge_c_call(struct go *g, const char *name, size_t len, struct span where)
{
	char member[64] = "C.";

	if (len > sizeof(member) - 2)
		return;
	memcpy(member + 2, name, len);
	if (rules_find(g->j->rules, RULE_GO, RULE_MEMBER, member, len + 2))
		(void)judge_member(g->j, member, len + 2, where);
}

/* The comments directly before import "C" are a C program, and nothing in the Go code shows its calls. */
static void judge_preamble(struct go *g, uint32_t import)
{
	uint32_t from = g->comment_start, to = g->comment_end, gap = to;

	while (gap < import && (g->text[gap] == ' ' || g->text[gap] == '\t' || g->text[gap] == '\n'))
		gap++;
	if (from == to || (gap != import && memcmp(g->text + gap, "import", min_u64(6, import - gap)) != 0))
		return;
	while (from < to) {
		uint32_t start = from, after;

		while (from < to && is_name(g->text[from]))
			from++;
		for (after = from; after < to && g->text[after] == ' ';)
			after++;
		if (from > start && after < to && g->text[after] == '(')
			judge_c_call(g, g->text + start, from - start, (struct span){ start, from });
		from += from == start;
	}
}

void go_import(struct go *g, const struct go_value *children, size_t n)
{
	const struct go_value *path = n ? &children[n - 1] : NULL;
	struct go_value name, package;

	if (!path || path->kind != GO_STRING)
		return;
	if (g->judging) {
		judge_import(g, path);
		if (go_is(path, "C"))
			judge_preamble(g, path->start);
		if (go_hides_import(g, children, n))
			(void)judge_check(g->j, "hidden-import", (struct span){ path->start, path->end }, "%.*s",
					  (int)path->len, path->text);
		return;
	}
	g->touches_files |= opens_paths(path);
	g->reflects |= go_is(path, "reflect");
	g->cgo |= go_is(path, "C");
	g->unpacks |= go_is(path, "archive/zip") || go_is(path, "archive/tar");
	g->serves |= go_is(path, "net/http/httptest");
	package = *path;
	package.kind = GO_PACKAGE;
	package.fresh = false;
	if (n > 1 && children[0].symbol == GO_dot) {
		if (g->n_dots < ARRAY_LEN(g->dot_path)) {
			g->dot_path[g->n_dots] = path->text;
			g->dot_len[g->n_dots++] = path->len;
		}
		return;
	}
	name = package_name(path->text, path->len);
	if (n > 1) {
		name.text = g->text + children[0].start;
		name.len = children[0].end - children[0].start;
	}
	go_bind(g, name.text, name.len, &package);
}

static bool starts_with(const char *s, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(s, prefix, n) == 0;
}

/*
 * Judges one pattern of //go:embed.  Dot files are embedded only if a pattern names them or has "all:", so that is
 * deliberate.
 */
static void judge_embed(struct go *g, const char *s, size_t len, struct span where)
{
	bool hidden = false;

	if (len > 1 && (s[0] == '"' || s[0] == '`') && s[len - 1] == s[0]) {
		struct go_value v = go_literal(g, (uint32_t)(s - g->text), (uint32_t)(s - g->text + (ptrdiff_t)len));

		if (v.kind != GO_STRING)
			return;
		s = v.text;
		len = v.len;
	}
	if (starts_with(s, len, "all:")) {
		hidden = true;
		s += 4;
		len -= 4;
	}
	for (size_t i = 0; i + 1 < len; i++)
		hidden |= s[i] == '.' && (i == 0 || s[i - 1] == '/') && s[i + 1] != '/';
	if (hidden || (len && s[0] == '/'))
		(void)judge_check(g->j, "embed-hidden", where, "%.*s", (int)min_u64(len, 100), s);
	judge_path(g->j, s, len, where);
}

static void judge_embed_patterns(struct go *g, const char *s, size_t len, struct span where)
{
	size_t at = 0;

	while (at < len && !g->stop) {
		size_t start;
		char quote;

		while (at < len && (s[at] == ' ' || s[at] == '\t'))
			at++;
		start = at;
		quote = at < len && (s[at] == '"' || s[at] == '`') ? s[at++] : '\0';
		while (at < len && (quote ? s[at] != quote : s[at] != ' ' && s[at] != '\t'))
			at += quote == '"' && s[at] == '\\' && at + 1 < len ? 2 : 1;
		if (quote && at < len)
			at++;
		if (at > start)
			judge_embed(g, s + start, at - start, where);
	}
}

static void judge_go_directive(struct go *g, const char *s, size_t len, struct span where)
{
	size_t n = 0;

	while (n < len && s[n] != ' ' && s[n] != '\t' && s[n] != '\n')
		n++;
	if (starts_with(s, n, "go:cgo_"))
		(void)judge_directive(g->j, "go:cgo_*", 8, where);
	else
		(void)judge_directive(g->j, s, n, where);
	if (n == 8 && starts_with(s, n, "go:embed"))
		judge_embed_patterns(g, s + n, len - n, where);
}

/*
 * True for one harmless word of "#cgo LDFLAGS: -lm": a system library, or an option that only changes how C is
 * compiled.
 */
static bool is_plain_flag(const char *word, size_t len)
{
	static const char *const exact[] = {
		"-lm", "-lpthread", "-lrt", "-lz", "-lsqlite3", "-pthread", "-I.", "-I./"
	};
	static const char *const heads[] = { "-O", "-std=", "-W", "-D", "-g" };

	if (word[0] != '-') /* a label such as LDFLAGS:, or a platform */
		return word[len - 1] == ':' ? !starts_with(word, len, "pkg-config") : true;
	for (size_t i = 0; i < ARRAY_LEN(exact); i++)
		if (strlen(exact[i]) == len && memcmp(exact[i], word, len) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(heads); i++)
		if (starts_with(word, len, heads[i]))
			return !memchr(word, ',', len); /* -Wl,... passes options to the linker */
	return false;
}

/* True if all lines of a comment that begin with #cgo have only harmless flags. */
static bool has_plain_flags(const char *s, size_t len)
{
	const char *end = s + len, *at = s;

	while ((at = memmem(at, (size_t)(end - at), "#cgo", 4))) {
		for (at += 4; at < end && *at != '\n';) {
			const char *word = at;

			while (at < end && *at != ' ' && *at != '\t' && *at != '\n')
				at++;
			if (at > word && !is_plain_flag(word, (size_t)(at - word)))
				return false;
			while (at < end && (*at == ' ' || *at == '\t'))
				at++;
		}
	}
	return true;
}

/* Comments with only white space between them count as one. */
static void note_comment(struct go *g, uint32_t start, uint32_t end)
{
	uint32_t at = g->comment_end;

	while (at < start && (g->text[at] == ' ' || g->text[at] == '\t' || g->text[at] == '\n'))
		at++;
	if (at != start || g->comment_end == 0)
		g->comment_start = start;
	g->comment_end = end;
}

void go_comment(struct go *g, uint32_t start, uint32_t end)
{
	const char *s = g->text + start;
	size_t len = end - start;
	struct span where = { start, end };

	note_comment(g, start, end);
	if (starts_with(s, len, "//go:") && !starts_with(s, len, "//go:generate"))
		judge_go_directive(g, s + 2, len - 2, where);
	else if (starts_with(s, len, "//line ") || starts_with(s, len, "/*line "))
		(void)judge_directive(g->j, "line", 4, where);
	else if (starts_with(s, len, "//extern "))
		(void)judge_directive(g->j, "extern", 6, where);
	if (g->cgo && memmem(s, len, "#cgo", 4) && (g->j->level == INSPECTION_STRICT || !has_plain_flags(s, len)))
		(void)judge_directive(g->j, "#cgo", 4, where);
}

/* `go generate` does not parse the file: it executes such lines, even inside comments and strings. */
void go_generate_lines(struct go *g)
{
	static const char mark[] = "//go:generate";
	const char *end = g->text + g->len, *line = g->text;

	while (line && line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		size_t len = (size_t)((stop ? stop : end) - line), n = sizeof(mark) - 1;
		uint32_t start = (uint32_t)(line - g->text);

		if (len > n && memcmp(line, mark, n) == 0 && (line[n] == ' ' || line[n] == '\t')) {
			struct span where = { start, start + (uint32_t)len };

			(void)judge_directive(g->j, "go:generate", 11, where);
			judge_command(g->j, line + n + 1, len - n - 1, where);
			if (starts_with(line + n + 1, len - n - 1, "sh ") ||
			    starts_with(line + n + 1, len - n - 1, "bash "))
				(void)judge_check(g->j, "generate-shell", where, "%s", "");
		}
		line = stop ? stop + 1 : NULL;
	}
}
