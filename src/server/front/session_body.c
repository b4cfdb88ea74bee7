/* SPDX-License-Identifier: Apache-2.0 */
/* session_body.c - documents about sessions to fields: each route accepts some of the members */
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "server/front/body.h"

#define SECONDS_MAX  1e6
#define SIGNALS      64
#define TERMINAL_MAX 10000

struct wanted {
	const char *language, *trust, *environment, *snapshot, *name, *cwd, *path, *to, *operation, *place;
	struct bytes code, input;
	struct json_strings args, env;
	struct json_settings settings;
	bool async, pty, interactive, close, recursive;
	uint64_t timeout_ms, context, signal, rows, columns, port; /* 0: absent */
};

/* ---- values --------------------------------------------------------------------------------------------- */

static int read_seconds(struct json_reader *r, json_t *value, void *into)
{
	double seconds = json_is_number(value) ? json_number_value(value) : 0;

	if (!(seconds >= 0.001 && seconds <= SECONDS_MAX))
		return json_complain(r, "must be a number of seconds above 0");
	*(uint64_t *)into = (uint64_t)(seconds * 1000 + 0.5);
	return 0;
}

static int read_count(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return json_complain(r, "must be a number from 1 on");
	*(uint64_t *)into = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_size(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > TERMINAL_MAX)
		return json_complain(r, "must be a number from 1 to 10000");
	*(uint64_t *)into = (uint64_t)json_integer_value(value);
	return 0;
}

static int read_place(struct json_reader *r, json_t *value, void *into)
{
	const char *text = json_string_value(value);

	if (!text || (!str_eq(text, "here") && !str_eq(text, "worker")))
		return json_complain(r, "must be \"here\" or \"worker\"");
	return json_read_string(r, value, into);
}

/* 15, "TERM" or "SIGTERM". */
static int read_signal(struct json_reader *r, json_t *value, void *into)
{
	const char *name = json_string_value(value);
	json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;

	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; name && n == 0 && i < SIGRTMIN; i++) {
		const char *known = sigabbrev_np(i);

		if (known && str_eq(known, name))
			n = i;
	}
	if (n < 1 || n > SIGNALS)
		return json_complain(r, "must be a signal: its number, or its name such as \"SIGINT\"");
	*(uint64_t *)into = (uint64_t)n;
	return 0;
}

/* ---- documents -------------------------------------------------------------------------------------------- */

#define AT(member) offsetof(struct wanted, member)
static const struct json_member members[] = {
	{ "language", json_read_string, AT(language) },
	{ "trust", json_read_string, AT(trust) },
	{ "environment", json_read_string, AT(environment) },
	{ "snapshot", json_read_string, AT(snapshot) },
	{ "name", json_read_string, AT(name) },
	{ "options", json_read_settings, AT(settings) },
	{ "env", json_read_env, AT(env) },
	{ "timeout", read_seconds, AT(timeout_ms) },
	{ "cwd", json_read_string, AT(cwd) },
	{ "code", json_read_bytes, AT(code) },
	{ "context", read_count, AT(context) },
	{ "args", json_read_strings, AT(args) },
	{ "stdin", json_read_bytes, AT(input) },
	{ "interactive", json_read_bool, AT(interactive) },
	{ "pty", json_read_bool, AT(pty) },
	{ "rows", read_size, AT(rows) },
	{ "columns", read_size, AT(columns) },
	{ "async", json_read_bool, AT(async) },
	{ "data", json_read_bytes, AT(input) },
	{ "close", json_read_bool, AT(close) },
	{ "signal", read_signal, AT(signal) },
	{ "path", json_read_string, AT(path) },
	{ "recursive", json_read_bool, AT(recursive) },
	{ "to", json_read_string, AT(to) },
	{ "operation", json_read_string, AT(operation) },
	{ "place", read_place, AT(place) },
	{ "port", read_count, AT(port) },
	{ "seconds", read_seconds, AT(timeout_ms) },
};
#undef AT

static struct known {
	enum route route;
	const char *names;                            /* accepted members, with blanks around each */
	const char *needed;                           /* required member; NULL: none */
	struct json_member table[ARRAY_LEN(members)]; /* the members with these names: filled in by its first request */
	size_t n_table;
} routes[] = {
	{ ROUTE_session_make, " trust environment snapshot options env timeout place ", NULL },
	{ ROUTE_session_fork, " timeout ", NULL },
	{ ROUTE_snapshot_make, " name ", NULL },
	{ ROUTE_session_timeout, " timeout ", "timeout" },
	{ ROUTE_context_make, " language cwd ", NULL },
	{ ROUTE_session_run, " code context language env timeout ", "code" },
	{ ROUTE_process_start, " args env cwd stdin interactive pty rows columns async timeout ", "args" },
	{ ROUTE_process_input, " data close ", NULL },
	{ ROUTE_process_signal, " signal ", "signal" },
	{ ROUTE_process_resize, " rows columns ", NULL },
	{ ROUTE_session_folder, " path ", "path" },
	{ ROUTE_session_watch_make, " path recursive ", NULL },
	{ ROUTE_session_move, " path to ", "to" },
	{ ROUTE_session_link, " path port operation seconds ", NULL },
};

static bool is_among(const char *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = names; (at = strstr(at, name)); at++)
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

static void fill_table(struct known *known)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (is_among(known->names, members[i].name))
			known->table[known->n_table++] = members[i];
}

static const struct known *find_known(enum route route)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		if (routes[i].route == route) {
			if (routes[i].n_table == 0)
				fill_table(&routes[i]);
			return &routes[i];
		}
	return NULL;
}

static void put_numbers(struct buf *fields, const struct wanted *w)
{
	const struct {
		enum field field;
		uint64_t n;
	} rows[] = { { FIELD_timeout_ms, w->timeout_ms },
		     { FIELD_context, w->context },
		     { FIELD_signal, w->signal },
		     { FIELD_item, w->port },
		     { FIELD_rows, w->rows },
		     { FIELD_columns, w->columns },
		     { FIELD_async, w->async },
		     { FIELD_pty, w->pty },
		     { FIELD_interactive, w->interactive },
		     { FIELD_recursive, w->recursive },
		     { FIELD_close, w->close } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].n)
			message_put_number(fields, rows[i].field, rows[i].n);
}

int session_read(struct json_reader *r, enum route route, json_t *doc, struct buf *fields)
{
	const struct known *known = find_known(route);
	struct wanted w = { 0 };

	if (!known)
		return err_set(r->err, BRIG_E_INTERNAL, 0, "a body for a route that has none");
	if (json_read_members(r, doc, known->table, known->n_table, &w) < 0)
		return -r->err->code;
	if (known->needed && !json_object_get(doc, known->needed))
		return err_set(r->err, BRIG_E_USAGE, 0, "\"%s\" is missing", known->needed);
	put_numbers(fields, &w);
	if (body_put_text(fields, FIELD_language, "language", w.language, r->err) < 0 ||
	    body_put_text(fields, FIELD_trust, "trust", w.trust, r->err) < 0 ||
	    body_put_text(fields, FIELD_environment, "environment", w.environment, r->err) < 0 ||
	    body_put_text(fields, FIELD_snapshot, "snapshot", w.snapshot, r->err) < 0 ||
	    body_put_text(fields, FIELD_name, "name", w.name, r->err) < 0 ||
	    body_put_text(fields, FIELD_cwd, "cwd", w.cwd, r->err) < 0 ||
	    body_put_text(fields, FIELD_path, "path", w.path, r->err) < 0 ||
	    body_put_text(fields, FIELD_to, "to", w.to, r->err) < 0 ||
	    body_put_text(fields, FIELD_operation, "operation", w.operation, r->err) < 0 ||
	    body_put_text(fields, FIELD_place, "place", w.place, r->err) < 0 ||
	    body_put_bytes(fields, FIELD_code, "code", &w.code, r->err) < 0 ||
	    body_put_bytes(fields, FIELD_input, "stdin", &w.input, r->err) < 0 ||
	    body_put_texts(fields, FIELD_arg, "args", &w.args, r->err) < 0 ||
	    body_put_texts(fields, FIELD_variable, "env", &w.env, r->err) < 0)
		return -r->err->code;
	return body_put_settings(fields, &w.settings, r->err);
}
