/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - paths and query parameters
 *
 * Paths are compared segment by segment, each decoded separately: an escaped slash does not split a segment, and
 * nothing is normalised.  "..", "." and empty segments match nothing.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "server/front/front.h"

#define SEGMENT_MAX 1025
#define NUMBER_MAX  1000000
#define MOMENT_MAX  100000000000 /* seconds since 1970 */
#define VALUE_MAX   4097

/* ---- paths ------------------------------------------------------------------------------------------ */

/* Decodes the next segment and returns its end; NULL: invalid. */
static const char *next_segment(const char *at, const char *end, char segment[SEGMENT_MAX], const char **ret_why)
{
	const char *slash = memchr(at, '/', (size_t)(end - at));
	size_t len;

	if (!slash)
		slash = end;
	if (!http1_decode(at, (size_t)(slash - at), segment, SEGMENT_MAX, &len)) {
		*ret_why = "a part of the path is too long or has an escape that stands for nothing";
		return NULL;
	}
	if (strchr(segment, '/') || str_eq(segment, "..") || str_eq(segment, ".")) {
		*ret_why = "a part of the path is '.', '..' or has a slash in it";
		return NULL;
	}
	if (!str_is_utf8(segment, len)) {
		*ret_why = "a part of the path is not UTF-8";
		return NULL;
	}
	return slash;
}

/* The rest of the path, for {path}. */
static bool take_rest(const char *at, const char *end, struct route_match *m)
{
	char segment[SEGMENT_MAX];
	size_t len = 0;

	m->path[0] = '\0';
	for (;;) {
		const char *stop = next_segment(at, end, segment, &m->why);

		if (!stop || segment[0] == '\0' || len + strlen(segment) + 2 > sizeof(m->path))
			return false;
		len += (size_t)snprintf(m->path + len, sizeof(m->path) - len, "%s%s", len ? "/" : "", segment);
		if (stop == end)
			return true;
		at = stop + 1;
	}
}

/* Whether a path matches a pattern; both start with a slash. */
static bool fits(const char *pattern, const char *at, const char *end, struct route_match *m)
{
	char segment[SEGMENT_MAX];

	m->id[0] = m->path[0] = '\0';
	m->item = 0;
	for (pattern++, at++;;) {
		size_t len = strcspn(pattern, "/");
		const char *stop;

		if (str_eq(pattern, "{path}"))
			return take_rest(at, end, m);
		stop = next_segment(at, end, segment, &m->why);
		if (!stop)
			return false;
		if (len == 4 && memcmp(pattern, "{id}", 4) == 0) {
			if (segment[0] == '\0' || !str_copy(m->id, sizeof(m->id), segment))
				return false;
		} else if (len == 6 && memcmp(pattern, "{item}", 6) == 0) {
			if (!str_to_u64(segment, &m->item) || m->item == 0)
				return false;
		} else if (strlen(segment) != len || memcmp(segment, pattern, len) != 0) {
			return false;
		}
		if (pattern[len] == '\0' || stop == end)
			return pattern[len] == '\0' && stop == end;
		pattern += len + 1;
		at = stop + 1;
	}
}

static bool method_is(const char *method, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(method, word, len) == 0;
}

static void allow(struct route_match *m, const char *method)
{
	size_t len = strlen(m->allow);

	(void)snprintf(m->allow + len, sizeof(m->allow) - len, "%s%s", len ? ", " : "", method);
	if (str_eq(method, "GET"))
		allow(m, "HEAD");
}

bool route_fits(const char *pattern, const char *path, const char *end, struct route_match *ret)
{
	return fits(pattern, path, end, ret);
}

void route_find(const char *method, size_t method_len, const char *path, size_t len, struct route_match *ret)
{
	const char *wanted = method_is(method, method_len, "HEAD") ? "GET" : NULL;
	struct route_match m = { .route = ROUTE_COUNT };

	*ret = m;
	if (len == 0 || path[0] != '/')
		return;
	for (enum route r = 0; r < ROUTE_COUNT; r++) {
		if (!fits(route_rows[r].path, path, path + len, &m))
			continue;
		allow(ret, route_rows[r].method);
		if (wanted ? str_eq(wanted, route_rows[r].method)
			   : method_is(method, method_len, route_rows[r].method)) {
			m.route = r;
			*ret = m;
			return;
		}
		ret->route = r;
		ret->is_wrong_method = true;
	}
	ret->why = ret->is_wrong_method ? NULL : m.why;
}

bool route_is_events(enum route route)
{
	return route == ROUTE_execution_events || route == ROUTE_process_events || route == ROUTE_session_watch;
}

/* ---- parameters --------------------------------------------------------------------------------------------- */

static const struct query_row {
	enum route route;
	const char *name;
	enum field field;
	bool is_number;
	uint64_t least, most; /* range of a number */
	const char *words;    /* separated by blanks; NULL: any */
} queries[] = {
#define QUERY_TEXT                             false, 0, 0
#define QUERY_NUMBER                           true, 1, NUMBER_MAX
#define QUERY_COUNT                            true, 0, NUMBER_MAX
#define QUERY_MOMENT                           true, 1, MOMENT_MAX
#define QUERY(route, name, field, kind, words) { ROUTE_##route, name, FIELD_##field, QUERY_##kind, words },
#include "server/front/query.def"
#undef QUERY
};

static int complain_unknown(enum route route, const char *name, struct brig_error *err)
{
	const char *names[ARRAY_LEN(queries)], *near;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(queries); i++)
		if (queries[i].route == route)
			names[n++] = queries[i].name;
	near = str_nearest(name, names, n);
	return err_set(err, BRIG_E_USAGE, 0, "unknown parameter '%.60s'%s%s%s", name, near ? "; did you mean '" : "",
		       near ? near : "",
		       near ? "'?"
		       : n  ? ""
			    : ": there are none here");
}

static bool is_among(const char *words, const char *word)
{
	for (size_t len; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		if (strlen(word) == len && memcmp(words, word, len) == 0)
			return true;
	}
	return false;
}

static int put_parameter(const struct query_row *row, const char *value, struct buf *fields, struct brig_error *err)
{
	uint64_t n;

	if (row->words && !is_among(row->words, value))
		return err_set(err, BRIG_E_USAGE, 0, "parameter '%s' must be one of: %s", row->name, row->words);
	if (!row->is_number) {
		if (strlen(value) > message_max_bytes(row->field))
			return err_set(err, BRIG_E_USAGE, 0, "parameter '%s' is too long: it may have %zu bytes",
				       row->name, message_max_bytes(row->field));
		message_put_text(fields, row->field, value);
		return 0;
	}
	if (!str_to_u64(value, &n) || n < row->least || n > row->most)
		return err_set(err, BRIG_E_USAGE, 0, "parameter '%s' must be a number from %llu to %llu", row->name,
			       (unsigned long long)row->least, (unsigned long long)row->most);
	message_put_number(fields, row->field, n);
	return 0;
}

/* "name=value"; *seen has a bit for each row that occurred. */
static int read_parameter(enum route route, const char *raw, size_t len, uint32_t *seen, struct buf *fields,
			  struct brig_error *err)
{
	const char *equals = memchr(raw, '=', len);
	char name[128], value[VALUE_MAX], spaced[VALUE_MAX];
	size_t name_len = equals ? (size_t)(equals - raw) : len, value_len = equals ? len - name_len - 1 : 0, i, n;

	if (value_len >= sizeof(spaced) || !http1_decode(raw, name_len, name, sizeof(name), &n))
		return err_set(err, BRIG_E_USAGE, 0, "a parameter of the query is too long or has a bad escape");
	for (i = 0; i < value_len; i++) /* encoded like forms */
		spaced[i] = equals[1 + i] == '+' ? ' ' : equals[1 + i];
	if (!http1_decode(spaced, value_len, value, sizeof(value), &n) || !str_is_utf8(value, n))
		return err_set(err, BRIG_E_USAGE, 0, "the value of parameter '%.60s' has a bad escape or is not UTF-8",
			       name);
	for (i = 0; i < ARRAY_LEN(queries); i++)
		if (queries[i].route == route && str_eq(queries[i].name, name))
			break;
	if (i == ARRAY_LEN(queries))
		return complain_unknown(route, name, err);
	if (*seen & 1u << i)
		return err_set(err, BRIG_E_USAGE, 0, "parameter '%s' is there twice", name);
	*seen |= 1u << i;
	return put_parameter(&queries[i], value, fields, err);
}

int route_query(enum route route, const char *query, size_t len, struct buf *fields, struct brig_error *err)
{
	const char *at = query, *end = query + len;
	uint32_t seen = 0;

	_Static_assert(ARRAY_LEN(queries) <= 32, "one bit each");
	while (at < end) {
		const char *stop = memchr(at, '&', (size_t)(end - at));

		if (!stop)
			stop = end;
		if (stop > at && read_parameter(route, at, (size_t)(stop - at), &seen, fields, err) < 0)
			return -err->code;
		at = stop + 1;
	}
	return 0;
}
