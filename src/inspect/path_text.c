/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts text to paths: decoding, folding of look-alikes, lexical resolution, and whether a string is a path at all.
 */
#include "inspect/paths.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "inspect/judge.h"

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_number(const char *s, size_t n, uint32_t *ret)
{
	uint32_t value = 0;

	for (size_t i = 0; i < n; i++) {
		int digit = hex_value(s[i]);

		if (digit < 0)
			return false;
		value = value * 16 + (uint32_t)digit;
	}
	*ret = value;
	return true;
}

static size_t put_utf8(char *dst, uint32_t c)
{
	if (c < 0x80) {
		dst[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		dst[0] = (char)(0xc0 | c >> 6);
		dst[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	dst[0] = (char)(0xe0 | c >> 12);
	dst[1] = (char)(0x80 | (c >> 6 & 0x3f));
	dst[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

size_t path_percent_decode(const char *text, size_t len, char *dst)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		uint32_t c;

		if (text[i] == '%' && len - i >= 3 && hex_number(text + i + 1, 2, &c)) {
			dst[n++] = (char)c;
			i += 3;
		} else if (text[i] == '%' && len - i >= 6 && (text[i + 1] | 0x20) == 'u' &&
			   hex_number(text + i + 2, 4, &c)) {
			n += put_utf8(dst + n, c);
			i += 6;
		} else {
			dst[n++] = text[i++];
		}
	}
	return n;
}

/* Decodes one character of *used bytes; accepts overlong forms on purpose.  An invalid byte stands for itself. */
static uint32_t take_character(const char *s, size_t len, size_t *used)
{
	unsigned char lead = (unsigned char)s[0];
	size_t n = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf8 ? 4 : 1;
	uint32_t c = n == 1 ? lead : lead & (0x7fu >> n);

	*used = 1;
	if (n > len)
		return lead;
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return lead;
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	}
	*used = n;
	return c;
}

/* The ASCII text that a character looks like; "" for an invisible one. */
static const struct look_alike {
	uint32_t first, last;
	const char *ascii;
} look_alikes[] = {
	{ '\\', '\\', "/" },      { 0x00ad, 0x00ad, "" },    { 0x200b, 0x200f, "" },  { 0x2024, 0x2024, "." },
	{ 0x2025, 0x2025, ".." }, { 0x2026, 0x2026, "..." }, { 0x202a, 0x202e, "" },  { 0x2044, 0x2044, "/" },
	{ 0x2060, 0x2064, "" },   { 0x2066, 0x2069, "" },    { 0x2215, 0x2216, "/" }, { 0x29f5, 0x29f5, "/" },
	{ 0x29f8, 0x29f9, "/" },  { 0x3002, 0x3002, "." },   { 0xfe00, 0xfe0f, "" },  { 0xfe52, 0xfe52, "." },
	{ 0xfe68, 0xfe68, "/" },  { 0xfeff, 0xfeff, "" },    { 0xff0f, 0xff0f, "/" }, { 0xff3c, 0xff3c, "/" },
	{ 0xff61, 0xff61, "." },
};

static const char *looks_like(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(look_alikes); i++)
		if (c >= look_alikes[i].first && c <= look_alikes[i].last)
			return look_alikes[i].ascii;
	return NULL;
}

static size_t fold_character(const char *s, size_t len, char *dst, size_t *used)
{
	uint32_t c = take_character(s, len, used);
	const char *ascii = looks_like(c);

	if (ascii) {
		memcpy(dst, ascii, strlen(ascii));
		return strlen(ascii);
	}
	if (c >= 0xff01 && c <= 0xff5e)
		c -= 0xff01 - '!';
	if (c < 0x80 && *used > 0) {
		dst[0] = (char)c;
		return 1;
	}
	memcpy(dst, s, *used);
	return *used;
}

/* Some servers read ".. " and "..;a=b" as "..". */
static size_t trim_component(const char *s, size_t len)
{
	size_t n = len;

	if (len > 2 && memcmp(s, "..;", 3) == 0)
		return 2;
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	return n > 0 && strspn(s, ".") >= n ? n : len;
}

size_t path_fold(const char *text, size_t len, char *dst, size_t size)
{
	size_t n = 0, kept = 0;

	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	for (size_t i = 0, used; i < len && n + 4 < size; i += used)
		n += fold_character(text + i, len - i, dst + n, &used);
	dst[n] = '\0';
	for (size_t i = 0; i < n;) {
		const char *slash = memchr(dst + i, '/', n - i);
		size_t piece = slash ? (size_t)(slash - dst) - i : n - i, trimmed = trim_component(dst + i, piece);

		memmove(dst + kept, dst + i, trimmed);
		kept += trimmed;
		i += piece;
		if (slash) {
			dst[kept++] = '/';
			i++;
		}
	}
	return kept;
}

struct output {
	char *dst;
	size_t n, size;
	size_t floor; /* a ".." at or below this length leaves the base */
	bool climbed;
};

static void add_component(struct output *o, const char *s, size_t len)
{
	if (len == 0 || (len == 1 && s[0] == '.'))
		return;
	if (len == 2 && s[0] == '.' && s[1] == '.') {
		if (o->n <= o->floor) {
			o->climbed = true;
			o->floor = 0;
		}
		while (o->n > 0 && o->dst[--o->n] != '/')
			;
		return;
	}
	if (o->n + 1 + len >= o->size)
		return;
	o->dst[o->n++] = '/';
	memcpy(o->dst + o->n, s, len);
	o->n += len;
}

static void add_components(struct output *o, const char *s, size_t len)
{
	while (len) {
		const char *slash = memchr(s, '/', len);
		size_t n = slash ? (size_t)(slash - s) : len;

		add_component(o, s, n);
		s += n + (slash != NULL);
		len -= n + (slash != NULL);
	}
}

/* Prefixes of a path that stand for a folder. */
static const struct prefix {
	const char *text, *folder; /* NULL: the base */
} prefixes[] = {
	{ "${HOME}", HOME_READING },
	{ "$HOME", HOME_READING },
	{ "$(pwd)", NULL },
	{ "${PWD}", NULL },
	{ "$PWD", NULL },
	{ "%USERPROFILE%", HOME_READING },
	{ "%HOME%", HOME_READING },
	{ "${TMPDIR}", "/tmp" },
	{ "$TMPDIR", "/tmp" },
	{ "$env:USERPROFILE", HOME_READING },
	{ "$env:HOME", HOME_READING },
	{ "~+", NULL },
	{ "${XDG_CONFIG_HOME}", HOME_READING "/.config" },
	{ "$XDG_CONFIG_HOME", HOME_READING "/.config" },
};

static bool has_prefix(const char *text, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && strncasecmp(text, prefix, n) == 0;
}

static const struct prefix *find_prefix(const char *text, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t n = strlen(prefixes[i].text);

		if (has_prefix(text, len, prefixes[i].text) && (len == n || text[n] == '/'))
			return &prefixes[i];
	}
	return NULL;
}

/* "file:///x", "file://host/x", "file:/x": returns the length of the part before the absolute path. */
static size_t url_prefix(const char *text, size_t len)
{
	static const char *const schemes[] = { "file:", "view-source:file:", "jar:file:", "url:file:", "local_file:" };

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i]), host;

		if (!has_prefix(text, len, schemes[i]))
			continue;
		if (len - n < 2 || text[n] != '/' || text[n + 1] != '/')
			return n;
		host = n + 2;
		while (host < len && text[host] != '/')
			host++;
		return host;
	}
	return 0;
}

size_t path_resolve(const char *base, const char *text, size_t len, char *dst, size_t size, bool *climbs)
{
	struct output o = { .dst = dst, .size = size };
	size_t skip = url_prefix(text, len);
	const struct prefix *prefix;

	text += skip;
	len -= skip;
	prefix = find_prefix(text, len);
	if (prefix) {
		text += strlen(prefix->text);
		len -= strlen(prefix->text);
		add_components(&o, prefix->folder ? prefix->folder : base,
			       strlen(prefix->folder ? prefix->folder : base));
		o.floor = prefix->folder ? 0 : o.n;
	} else if (len && text[0] == '~') {
		const char *slash = memchr(text, '/', len);
		size_t n = slash ? (size_t)(slash - text) : len;

		add_components(&o, "/home", 5);
		add_component(&o, n > 1 ? text + 1 : "user", n > 1 ? n - 1 : 4);
		text += n;
		len -= n;
	} else if (len > 2 && isalpha((unsigned char)text[0]) && text[1] == ':' && text[2] == '/') {
		add_component(&o, text, 2);
	} else if (skip == 0 && (len == 0 || text[0] != '/')) {
		add_components(&o, base, strlen(base));
		o.floor = o.n;
	}
	add_components(&o, text, len);
	*climbs = o.climbed && o.floor == 0;
	if (o.n == 0)
		dst[o.n++] = '/';
	dst[o.n] = '\0';
	return o.n;
}

/* A string that names something below one of these is a path; routes like "/api/users" and "/dev" are not. */
static const char *const root_folders[] = {
	"etc",   "proc", "sys", "dev",  "root", "home",  "var",  "boot",   "run",    "usr",       "opt", "mnt",
	"media", "srv",  "bin", "sbin", "lib",  "Users", "host", "hostfs", "rootfs", "workspace", "tmp",
};

/* Names of secrets, in any folder. */
static const char *const telling_names[] = {
	".env",          ".env.*",          ".ssh/",
	".aws/",         ".gnupg/",         ".kube/",
	".netrc",        ".pgpass",         ".git-credentials",
	".pypirc",       ".npmrc",          ".htpasswd",
	"id_rsa",        "id_dsa",          "id_ecdsa",
	"id_ed25519",    "authorized_keys", ".docker/config.json",
	".bash_history", ".zsh_history",    ".vault-token",
	".git/config",
};

static bool in_root_folder(const char *text, size_t len)
{
	while (len && (*text == '/' || *text == '\\')) {
		text++;
		len--;
	}
	for (size_t i = 0; i < ARRAY_LEN(root_folders); i++) {
		size_t n = strlen(root_folders[i]);

		if (len > n && memcmp(text, root_folders[i], n) == 0 && text[n] == '/')
			return true;
	}
	return false;
}

/*
 * "/home/<name>", "/run/:id", "/media?size=2": routes of a web server.  File names do not look like that in these
 * folders.
 */
static bool is_route(const char *text, size_t len)
{
	static const char *const never[] = { "/etc/", "/proc/", "/sys/", "/root/", "/dev/" };

	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		if (has_prefix(text, len, never[i]))
			return false;
	for (size_t i = 0; i < len; i++)
		if (strchr("<>{}?&=()", text[i]) || (i && text[i] == ':' && text[i - 1] == '/'))
			return true;
	return false;
}

static bool has_dot_dot(const char *text, size_t len)
{
	for (size_t i = 0; i + 2 < len; i++)
		if (text[i] == '.' && text[i + 1] == '.' && (text[i + 2] == '/' || text[i + 2] == '\\') &&
		    (i == 0 || text[i - 1] == '/' || text[i - 1] == '\\'))
			return true;
	return false;
}

static bool has_telling_name(const char *text, size_t len)
{
	char path[PATH_READING_MAX];
	size_t n = path_resolve("/", text, len, path, sizeof(path), &(bool){ false });

	for (size_t i = 0; i < ARRAY_LEN(telling_names); i++)
		if (path_glob_matches(telling_names[i], path, n))
			return true;
	return false;
}

/* True for a word without white space that contains a character typical of paths worth judging. */
static bool may_be_path(const char *text, size_t len)
{
	bool telling = false;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c <= ' ')
			return false;
		telling |= c >= 0x80 || strchr("/\\.~$%_:", c);
	}
	return telling;
}

bool judge_looks_like_path(const char *text, size_t len)
{
	char reading[PATH_READING_MAX], decoded[PATH_READING_MAX];
	size_t n;

	if (len < 2 || len >= PATH_READING_MAX / 4 || !may_be_path(text, len))
		return false;
	n = path_percent_decode(text, len, decoded);
	n = path_fold(decoded, n, reading, sizeof(reading));
	if (n < 2)
		return false;
	if (has_prefix(reading, n, "file:") || (reading[0] == '~' && memchr(reading, '/', n)))
		return true;
	if (reading[0] == '/' || find_prefix(reading, n))
		return reading[0] != '/' || (in_root_folder(reading, n) && !is_route(reading, n)) ||
		       has_dot_dot(reading, n) || has_telling_name(reading, n);
	return has_dot_dot(reading, n) || has_telling_name(reading, n);
}
