/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two levels of the same matcher: characters within a component, where '*' is wild, and components within a path, where
 * "**" is.  At each level it is enough to backtrack to the last wildcard: what came before it has been matched by the
 * shortest possible stretch, and a longer one could not do better.  So there is no recursion and no exponential time.
 */
#include "files/glob.h"

#include <string.h>

#include "files/beneath.h"

struct span {
	const char *p, *end;
};

/* The length of the character at p: what continues a UTF-8 sequence belongs to it, anything else is one byte. */
static size_t char_len(struct span s)
{
	size_t n = 1;

	if ((unsigned char)*s.p >= 0xc0)
		while (n < 4 && s.p + n < s.end && ((unsigned char)s.p[n] & 0xc0) == 0x80)
			n++;
	return n;
}

/* "[a-z]" at pattern.p: sets *ret to behind it and says whether c is in it; without "]" it is a plain '['. */
static bool in_class(struct span pattern, unsigned char c, const char **ret)
{
	const char *p = pattern.p + 1;
	bool negated = p < pattern.end && (*p == '!' || *p == '^');
	bool found = false;
	const char *first;

	p += negated;
	first = p;
	for (; p < pattern.end && (*p != ']' || p == first); p++) {
		unsigned char low = (unsigned char)*p, high = low;

		if (p + 2 < pattern.end && p[1] == '-' && p[2] != ']') {
			high = (unsigned char)p[2];
			p += 2;
		}
		found |= c >= low && c <= high;
	}
	if (p >= pattern.end) {
		*ret = pattern.p + 1;
		return c == '[';
	}
	*ret = p + 1;
	return found != negated;
}

/* One character of text against one element of pattern that is not '*'; both move on if it fits. */
static bool one_fits(struct span *pattern, struct span *text)
{
	const char *next = pattern->p + 1;
	size_t n = 1;
	bool fits;

	if (*pattern->p == '?') {
		n = char_len(*text);
		fits = true;
	} else if (*pattern->p == '[') {
		n = char_len(*text);
		fits = in_class(*pattern, (unsigned char)*text->p, &next);
	} else if (*pattern->p == '\\' && next < pattern->end) {
		fits = *next == *text->p;
		next++;
	} else {
		fits = *pattern->p == *text->p;
	}
	if (fits) {
		pattern->p = next;
		text->p += n;
	}
	return fits;
}

static bool name_matches(struct span pattern, struct span text)
{
	struct span star = { NULL, NULL }, from = text;

	while (text.p < text.end) {
		if (pattern.p < pattern.end && *pattern.p == '*') {
			pattern.p++;
			star = pattern;
			from = text;
		} else if (pattern.p < pattern.end && one_fits(&pattern, &text)) {
			continue;
		} else if (star.p) { /* the last star takes one character more */
			from.p++;
			text = from;
			pattern = star;
		} else {
			return false;
		}
	}
	while (pattern.p < pattern.end && *pattern.p == '*')
		pattern.p++;
	return pattern.p == pattern.end;
}

/* The first component of s, which moves behind it and its slash. */
static struct span next_component(struct span *s)
{
	const char *slash = memchr(s->p, '/', (size_t)(s->end - s->p));
	struct span one = { s->p, slash ? slash : s->end };

	s->p = slash ? slash + 1 : s->end;
	return one;
}

static bool is_any_depth(struct span component)
{
	return component.end - component.p == 2 && component.p[0] == '*' && component.p[1] == '*';
}

/* prefix: it is enough that the pattern matches a folder on the way. */
static bool path_matches(struct span pattern, struct span path, bool prefix)
{
	struct span after = { NULL, NULL }, from = path;

	while (path.p < path.end) {
		struct span pattern_rest = pattern, path_rest = path, component;

		if (prefix && pattern.p == pattern.end)
			return true;
		component = next_component(&pattern_rest);
		if (pattern.p < pattern.end && is_any_depth(component)) {
			pattern = after = pattern_rest;
			from = path;
			if (pattern.p == pattern.end)
				return true; /* everything below */
		} else if (pattern.p < pattern.end && name_matches(component, next_component(&path_rest))) {
			pattern = pattern_rest;
			path = path_rest;
		} else if (after.p) {
			(void)next_component(&from);
			path = from;
			pattern = after;
		} else {
			return false;
		}
	}
	return pattern.p == pattern.end;
}

/* Anywhere: any component of the path, or only the last one. */
static bool name_anywhere(struct span pattern, struct span path, bool for_dir, bool is_dir)
{
	while (path.p < path.end) {
		struct span component = next_component(&path);
		bool last = path.p == path.end;

		if ((last ? !for_dir || is_dir : for_dir) && name_matches(pattern, component))
			return true;
	}
	return false;
}

bool glob_matches(const char *pattern, const char *path, bool is_dir)
{
	struct span what = { pattern, pattern + strlen(pattern) }, where = { path, path + strlen(path) };
	bool for_dir = what.end > what.p && what.end[-1] == '/';
	bool anchored;

	if (for_dir)
		what.end--;
	anchored = memchr(what.p, '/', (size_t)(what.end - what.p)) != NULL;
	if (what.p < what.end && *what.p == '/')
		what.p++;
	if (what.p == what.end)
		return false;
	if (!anchored)
		return name_anywhere(what, where, for_dir, is_dir);
	if (for_dir && !is_dir) { /* then one of the folders it is in */
		const char *slash = memrchr(where.p, '/', (size_t)(where.end - where.p));

		where.end = slash ? slash : where.p;
	}
	return path_matches(what, where, for_dir);
}

bool glob_is_pattern(const char *pattern)
{
	size_t len = strlen(pattern), lead = *pattern == '/';

	len -= lead;
	if (len > 0 && pattern[lead + len - 1] == '/')
		len--;
	return beneath_is_path(pattern + lead, len);
}
