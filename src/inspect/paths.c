/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a path in every way that a careless receiver might read it.
 *
 * It is unknown how often the receiver of a path decodes it, so every reading is judged: the bytes as they are, then
 * with look-alikes folded (backslashes, fullwidth and overlong forms, invisible characters), then once more after each
 * round of percent-decoding, until a round changes nothing.  One reading beyond the boundary is enough: a name that is
 * harmless when decoded may still escape when it is not ("a%2fb/../../x").
 *
 * A reading is resolved lexically (".", "..", "~", "$HOME") against the workspace into an absolute path, compared with
 * the globs of the rules (kind: path), and then with the boundary: the workspace and a few places that every program
 * may use.  A relative path that climbs out of the workspace is also compared as if it had reached the root, because
 * the depth at which it is used is unknown.  Symbolic links cannot be judged here: at run time openat2 enforces the
 * same boundary.
 *
 * Globs: "*" and "?" stop at a slash, case is ignored, a leading "!" makes an exception.
 *	name		the last component		dir/		a component, and all below it
 *	a/b		the last components		/a/b  /a/	from the root
 *	~/a  ~/a/	below any user's home folder
 */
#include "inspect/judge.h"

#include <stdio.h>
#include <string.h>

#include "inspect/paths.h"

#define DECODE_ROUNDS_MAX 6

/* Places outside the workspace that programs may use, including everything below them. */
static const char *const open_places[] = {
	"/workspace",  "/tmp",        "/mnt/data",   "/var/tmp",     "/dev/null",
	"/dev/zero",   "/dev/full",   "/dev/random", "/dev/urandom", "/dev/stdin",
	"/dev/stdout", "/dev/stderr", "/dev/tty",    "/dev/fd",      "/dev/shm",
};

/* Not tolower(): this runs for every rule and must not look up the locale. */
static inline char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Matches one component (or any text without slashes) against one glob without slashes; linear in time times stars. */
static bool glob_component(const char *glob, size_t glob_len, const char *text, size_t len)
{
	size_t g = 0, t = 0, star = SIZE_MAX, mark = 0;

	while (t < len) {
		if (g < glob_len && glob[g] == '*') {
			star = g++;
			mark = t;
		} else if (g < glob_len && (glob[g] == '?' || lower(glob[g]) == lower(text[t]))) {
			g++;
			t++;
		} else if (star != SIZE_MAX) {
			g = star + 1;
			t = ++mark;
		} else {
			return false;
		}
	}
	while (g < glob_len && glob[g] == '*')
		g++;
	return g == glob_len;
}

static size_t component_len(const char *s, size_t len)
{
	const char *slash = memchr(s, '/', len);

	return slash ? (size_t)(slash - s) : len;
}

/*
 * Matches component by component from the left.  Returns the number of bytes of text that the glob covers, or SIZE_MAX.
 */
static size_t glob_front(const char *glob, size_t glob_len, const char *text, size_t len)
{
	size_t at = 0;

	for (;;) {
		size_t g = component_len(glob, glob_len), t = component_len(text + at, len - at);

		if (!glob_component(glob, g, text + at, t))
			return SIZE_MAX;
		at += t;
		if (g == glob_len)
			return at;
		if (at == len)
			return SIZE_MAX;
		at++;
		glob += g + 1;
		glob_len -= g + 1;
	}
}

static bool glob_at(const char *glob, size_t glob_len, bool below, const char *text, size_t len)
{
	size_t covered = glob_front(glob, glob_len, text, len);

	return covered != SIZE_MAX && (covered == len || below);
}

/* Returns "rest" of "/home/u/rest", "/root/rest" or "/Users/u/rest"; NULL: the path is not below a home folder. */
static const char *below_home(const char *path, size_t len)
{
	static const char *const homes[] = { "/root", "/home/*", "/Users/*", "/var/root" };

	for (size_t i = 0; i < ARRAY_LEN(homes); i++) {
		size_t covered = glob_front(homes[i] + 1, strlen(homes[i]) - 1, path + 1, len - 1);

		if (covered != SIZE_MAX && covered + 1 < len)
			return path + 1 + covered + 1;
	}
	return NULL;
}

/* Quick test: most globs fail at their first character.  path is not empty after its slashes, except for "/" itself. */
static bool first_fits(const char *glob, char c)
{
	return glob[0] == '*' || glob[0] == '?' || lower(glob[0]) == lower(c);
}

bool path_glob_matches(const char *glob, const char *path, size_t len)
{
	size_t glob_len = strlen(glob);
	bool below = glob_len && glob[glob_len - 1] == '/';

	glob_len -= below;
	if (len == 0 || path[0] != '/')
		return false;
	if (glob[0] == '/')
		return glob_at(glob + 1, glob_len ? glob_len - 1 : 0, below, path + 1, len - 1);
	if (glob[0] == '~' && glob[1] == '/') {
		const char *rest = below_home(path, len);

		return rest &&
		       (glob_len < 3 || glob_at(glob + 2, glob_len - 2, below, rest, len - (size_t)(rest - path)));
	}
	for (const char *at = path; at; at = memchr(at + 1, '/', len - (size_t)(at + 1 - path)))
		if (first_fits(glob, at[1]) && glob_at(glob, glob_len, below, at + 1, len - (size_t)(at + 1 - path)))
			return true;
	return false;
}

static bool rule_covers(const struct rule *rule, const char *path, size_t len)
{
	bool covered = false;

	for (size_t i = 0; i < rule->n_names; i++) {
		bool exception = rule->names[i][0] == '!';

		if (!path_glob_matches(rule->names[i] + exception, path, len))
			continue;
		if (exception)
			return false;
		covered = true;
	}
	return covered;
}

/*
 * The first rule that covers the path.  A rule that was set to allow by name counts: it decides, and later rules do not
 * apply.
 */
static const struct rule *sensitive(const struct judge *j, const char *path, size_t len)
{
	const struct rule *rule;
	size_t at = 0;

	while ((rule = rules_next(j->rules, RULE_PATH, RULE_PATH_DENY, &at)))
		if ((rule->settled || rule->severity[j->level] != SEVERITY_NONE) && rule_covers(rule, path, len))
			return rule;
	return NULL;
}

static bool is_within(const char *path, size_t len, const char *place)
{
	size_t n = strlen(place);

	return len >= n && memcmp(path, place, n) == 0 && (len == n || path[n] == '/' || n == 1);
}

static bool is_open_place(const char *workspace, const char *path, size_t len)
{
	if (is_within(path, len, workspace))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(open_places); i++)
		if (is_within(path, len, open_places[i]))
			return true;
	return false;
}

struct verdict {
	char workspace[PATH_READING_MAX];
	const struct rule *rule;     /* the rule that matched */
	char name[PATH_READING_MAX]; /* the reading that led to the finding */
	bool outside;
	bool climbs;
	bool within; /* the path that matched `rule` is inside the workspace */
};

/* The caller's name of the workspace as an absolute, normalized path; never empty. */
static void resolve_workspace(const struct judge *j, char *dst, size_t size)
{
	const char *name = j->workspace && j->workspace[0] ? j->workspace : "/workspace";

	(void)path_resolve("/", name, strlen(name), dst, size, &(bool){ false });
}

static void judge_reading(const struct judge *j, const char *reading, size_t len, struct verdict *v)
{
	char path[2 * PATH_READING_MAX];
	bool climbs = false;
	size_t n = path_resolve(v->workspace, reading, len, path, sizeof(path), &climbs);
	const struct rule *rule = sensitive(j, path, n);
	bool outside = !is_open_place(v->workspace, path, n);

	if (!rule && climbs) {
		char from_root[2 * PATH_READING_MAX];
		size_t m = path_resolve("/", reading, len, from_root, sizeof(from_root), &(bool){ false });

		rule = sensitive(j, from_root, m);
	}
	if ((rule && !v->rule) || (outside && !v->outside && !v->rule))
		(void)snprintf(v->name, sizeof(v->name), "%.*s", (int)n, path);
	if (!v->rule) {
		v->rule = rule;
		v->within = !climbs && is_within(path, n, v->workspace);
	}
	v->outside |= outside;
	v->climbs |= climbs && outside;
}

/* Judges all readings of the text; false: decoding did not end. */
static bool judge_readings(const struct judge *j, const char *text, size_t len, struct verdict *v)
{
	char reading[PATH_READING_MAX];
	size_t n;

	judge_reading(j, text, len, v);
	n = path_fold(text, len, reading, sizeof(reading));
	if (n != len || memcmp(reading, text, n) != 0)
		judge_reading(j, reading, n, v);
	for (int round = 0; round < DECODE_ROUNDS_MAX; round++) {
		char decoded[PATH_READING_MAX];
		size_t m = path_percent_decode(reading, n, decoded);

		if (m == n)
			return true;
		n = path_fold(decoded, m, reading, sizeof(reading));
		judge_reading(j, reading, n, v);
		if (memchr(reading, '\0', n))
			return true;
	}
	return false;
}

static bool has_nul(const char *text, size_t len)
{
	char decoded[PATH_READING_MAX];

	if (memchr(text, '\0', len))
		return true;
	for (int round = 0; round < DECODE_ROUNDS_MAX && memchr(text, '%', len); round++) {
		size_t n = path_percent_decode(text, len, decoded);

		if (memchr(decoded, '\0', n))
			return true;
		if (n == len)
			break;
		text = decoded;
		len = n;
	}
	return false;
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return true;
	return false;
}

/*
 * In code a path is one string among many, and the functions that open it are judged as well: other checks apply, with
 * other severities.
 */
void judge_path(struct judge *j, const char *text, size_t len, struct span where)
{
	bool alone = j->language == RULE_PATH;
	struct verdict v;

	if (len == 0)
		return;
	if (len >= PATH_READING_MAX) {
		if (alone)
			(void)judge_check(j, "path-too-long", where, "%zu bytes", len);
		return;
	}
	if (has_nul(text, len)) {
		(void)judge_check(j, "path-nul", where, "%.*s", (int)strnlen(text, len), text);
		return;
	}
	if (alone && has_control(text, len))
		(void)judge_check(j, "path-control", where, "the path");
	v.rule = NULL;
	v.name[0] = '\0';
	v.outside = v.climbs = v.within = false;
	resolve_workspace(j, v.workspace, sizeof(v.workspace));
	if (!judge_readings(j, text, len, &v))
		(void)judge_check(j, "path-encoding", where, "the path");
	/* Inside its own workspace, code gets the check with the rule's id, if there is one, in place of the rule. */
	if (v.rule && v.within && rules_find(j->rules, j->language, RULE_CHECK, v.rule->id, strlen(v.rule->id)))
		(void)judge_check(j, v.rule->id, where, "%s", v.name);
	else if (v.rule)
		(void)judge_report(j, v.rule, v.name, where);
	else if (v.climbs)
		(void)judge_check(j, "path-traversal", where, "%s", v.name);
	else if (v.outside)
		(void)judge_check(j, "path-outside", where, "%s", v.name);
}
