/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - documents to fields
 *
 * An execution is described like a job of a batch (docs/BATCH.md) without the members that judge it: same members, same
 * parser.  Before the document is parsed, its depth and number of values are checked: a body of a few megabytes could
 * otherwise need gigabytes as a tree.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/front/body.h"

#define DEPTH_MAX   32
#define VALUES_MAX  200000
#define RULES_BYTES 65536

/* ---- the document ---------------------------------------------------------------------------------- */

/* Counts brackets and separators outside of strings; other errors are found by the parser. */
static int check_shape(const char *text, size_t len, struct brig_error *err)
{
	size_t depth = 0, values = 1;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			i += text[i] == '\\';
			in_string = i < len && text[i] != '"';
		} else if (text[i] == '"') {
			in_string = true;
		} else if (text[i] == '[' || text[i] == '{') {
			if (++depth > DEPTH_MAX)
				return err_set(err, BRIG_E_USAGE, 0, "byte %zu: the document is deeper than %d levels",
					       i + 1, DEPTH_MAX);
			values++;
		} else if ((text[i] == ']' || text[i] == '}') && depth > 0) {
			depth--;
		} else if (text[i] == ',' || text[i] == ':') {
			values++;
		}
		if (values > VALUES_MAX)
			return err_set(err, BRIG_E_USAGE, 0, "byte %zu: the document has more than %d values", i + 1,
				       VALUES_MAX);
	}
	return 0;
}

/* Accepts the option names of the command line as aliases of settings. */
const char *body_setting_of(const char *name)
{
	static const struct {
		const char *alias, *setting;
	} rows[] = {
		{ "memory", "mem_limit" },
		{ "cpus", "cpu_count" },
		{ "pids", "pids_limit" },
		{ "disk", "disk_limit" },
		{ "output-limit", "output_limit" },
		{ "inspect", "inspection" },
		{ "rule", "rules" },
		{ "allow-degraded", "allow_degraded" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(rows[i].alias, name))
			return rows[i].setting;
	return name;
}

static int read_priority(struct json_reader *r, json_t *value, void *into)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 9)
		return json_complain(r, "must be a number from 0 to 9");
	*(int *)into = (int)json_integer_value(value);
	return 0;
}

/* ---- members as fields -------------------------------------------------------------------------------- */

static int complain_length(const char *member, size_t max, struct brig_error *err)
{
	return err_set(err, BRIG_E_USAGE, 0, "%s is too long: it may have %zu bytes", member, max);
}

/* text NULL: nothing is written. */
int body_put_text(struct buf *fields, enum field f, const char *member, const char *text, struct brig_error *err)
{
	if (text && strlen(text) > message_max_bytes(f))
		return complain_length(member, message_max_bytes(f), err);
	if (text && !message_takes(f, text))
		return err_set(err, BRIG_E_USAGE, 0, "%s is empty, or has a character in it that cannot be printed",
			       member);
	message_put_text(fields, f, text);
	return 0;
}

int body_put_bytes(struct buf *fields, enum field f, const char *member, const struct bytes *bytes,
		   struct brig_error *err)
{
	if (bytes->len > message_max_bytes(f))
		return complain_length(member, message_max_bytes(f), err);
	if (bytes->data)
		message_put_bytes(fields, f, bytes->data, bytes->len);
	return 0;
}

int body_put_texts(struct buf *fields, enum field f, const char *member, const struct json_strings *s,
		   struct brig_error *err)
{
	char name[80];

	if (s->n > message_max_count(f))
		return err_set(err, BRIG_E_USAGE, 0, "%s has %zu items: it may have %zu", member, s->n,
			       message_max_count(f));
	for (size_t i = 0; i < s->n; i++) {
		(void)snprintf(name, sizeof(name), "%.40s[%zu]", member, i);
		if (body_put_text(fields, f, name, s->item[i], err) < 0)
			return -err->code;
	}
	return 0;
}

int body_put_settings(struct buf *fields, const struct json_settings *s, struct brig_error *err)
{
	char name[80];

	if (s->n > message_max_count(FIELD_option))
		return err_set(err, BRIG_E_USAGE, 0, "options has %zu settings: it may have %zu", s->n,
			       message_max_count(FIELD_option));
	for (size_t i = 0; i < s->n; i++) {
		AUTO_BUF text = BUF_INIT(message_max_bytes(FIELD_option));

		(void)snprintf(name, sizeof(name), "options.%.60s", s->item[i].key);
		if (!buf_addf(&text, "%s=%s", s->item[i].key, s->item[i].value))
			return text.no_memory ? err_nomem(err) : complain_length(name, text.max, err);
		message_put_text(fields, FIELD_option, buf_str(&text));
	}
	return 0;
}

/* ---- executions ---------------------------------------------------------------------------------------- */

struct job {
	const char *kind, *language, *file_name, *trust, *environment, *test_path, *inline_artifacts, *workspace;
	struct bytes code, input;
	struct json_strings args, env, packages, artifacts;
	struct json_settings settings;
	bool async, receipt, keep, never_again;
	int priority; /* -1: absent */
	int files;
};

#define JOB(member) offsetof(struct job, member)
static const struct json_member job_members[] = {
	{ "kind", json_read_string, JOB(kind) },
	{ "language", json_read_string, JOB(language) },
	{ "file_name", json_read_string, JOB(file_name) },
	{ "code", json_read_bytes, JOB(code) },
	{ "args", json_read_strings, JOB(args) },
	{ "env", json_read_env, JOB(env) },
	{ "stdin", json_read_bytes, JOB(input) },
	{ "trust", json_read_string, JOB(trust) },
	{ "options", json_read_settings, JOB(settings) },
	{ "packages", json_read_strings, JOB(packages) },
	{ "files", json_read_files, JOB(files) },
	{ "path", json_read_string, JOB(test_path) },
	{ "artifacts", json_read_strings, JOB(artifacts) },
	{ "inline_artifacts", json_read_string, JOB(inline_artifacts) },
	{ "environment", json_read_string, JOB(environment) },
	{ "workspace", json_read_string, JOB(workspace) },
	{ "keep", json_read_bool, JOB(keep) },
	{ "async", json_read_bool, JOB(async) },
	{ "receipt", json_read_bool, JOB(receipt) },
	{ "priority", read_priority, JOB(priority) },
	{ "retry", json_read_retry, JOB(never_again) },
};
_Static_assert(ARRAY_LEN(job_members) <= JSON_MEMBERS_MAX, "no room for all names in a complaint");

/* The kind named in the job, or implied by the route. */
static int kind_of(enum route route, const struct job *job, struct brig_error *err)
{
	static const char *const kinds[] = {
		[BRIG_KIND_CODE] = "code",
		[BRIG_KIND_COMMAND] = "command",
		[BRIG_KIND_SHELL] = "shell",
		[BRIG_KIND_TESTS] = "tests",
	};
	int kind = route == ROUTE_tests     ? BRIG_KIND_TESTS
		   : route != ROUTE_command ? BRIG_KIND_CODE
		   : job->code.data         ? BRIG_KIND_SHELL
					    : BRIG_KIND_COMMAND;
	bool is_other = false;

	for (int i = 0; job->kind && i < (int)ARRAY_LEN(kinds); i++)
		if (str_eq(job->kind, kinds[i])) {
			is_other = route != ROUTE_execute && i != kind;
			kind = i;
			break;
		} else if (i + 1 == (int)ARRAY_LEN(kinds)) {
			return err_set(err, BRIG_E_USAGE, 0, "kind '%.40s' is none of code, command, shell and tests",
				       job->kind);
		}
	if (is_other)
		return err_set(err, BRIG_E_USAGE, 0, "kind '%s' is for POST /v1/executions, or leave it out",
			       job->kind);
	return kind;
}

static int put_job(enum route route, const struct job *job, struct buf *fields, struct brig_error *err)
{
	int kind = kind_of(route, job, err);
	uint64_t bytes;

	if (kind < 0)
		return kind;
	message_put_number(fields, FIELD_kind, (uint64_t)kind);
	if (job->inline_artifacts) {
		if (!str_to_bytes(job->inline_artifacts, &bytes))
			return err_set(err, BRIG_E_USAGE, 0, "inline_artifacts '%.40s' is no size: give one such as 1m",
				       job->inline_artifacts);
		message_put_number(fields, FIELD_inline_artifacts, bytes);
	}
	message_put_text(fields, FIELD_workspace, job->workspace);
	if (job->keep)
		message_put_number(fields, FIELD_keep, 1);
	message_put_number(fields, FIELD_diff, 1); /* also for files in a form */
	if (job->async)
		message_put_number(fields, FIELD_async, 1);
	if (job->never_again)
		message_put_number(fields, FIELD_retry_never, 1);
	if (job->receipt)
		message_put_number(fields, FIELD_receipt, 1);
	if (job->priority >= 0)
		message_put_number(fields, FIELD_priority, (uint64_t)job->priority);
	if (body_put_text(fields, FIELD_language, "language", job->language, err) < 0 ||
	    body_put_text(fields, FIELD_file_name, "file_name", job->file_name, err) < 0 ||
	    body_put_text(fields, FIELD_trust, "trust", job->trust, err) < 0 ||
	    body_put_text(fields, FIELD_environment, "environment", job->environment, err) < 0 ||
	    body_put_text(fields, FIELD_test_path, "path", job->test_path, err) < 0 ||
	    body_put_bytes(fields, FIELD_code, "code", &job->code, err) < 0 ||
	    body_put_bytes(fields, FIELD_input, "stdin", &job->input, err) < 0 ||
	    body_put_texts(fields, FIELD_arg, "args", &job->args, err) < 0 ||
	    body_put_texts(fields, FIELD_variable, "env", &job->env, err) < 0 ||
	    body_put_texts(fields, FIELD_package, "packages", &job->packages, err) < 0 ||
	    body_put_texts(fields, FIELD_artifact, "artifacts", &job->artifacts, err) < 0)
		return -err->code;
	return body_put_settings(fields, &job->settings, err);
}

/* A value may be a part of the form or a member of the document, not both. */
static int take_part(struct bytes *member, const struct bytes *part, const char *name, struct brig_error *err)
{
	if (part->data && member->data)
		return err_set(err, BRIG_E_USAGE, 0,
			       "'%s' is a part of the form and a member of the job: give one of them", name);
	if (part->data)
		*member = *part;
	return 0;
}

int body_read_job(struct json_reader *r, enum route route, json_t *doc, const struct body_parts *parts,
		  struct buf *fields, int *ret_files)
{
	struct job job = { .priority = -1, .files = FD_NONE };
	int rc = json_read_members(r, doc, job_members, ARRAY_LEN(job_members), &job);

	if (rc == 0)
		rc = take_part(&job.code, &parts->code, "code", r->err);
	if (rc == 0)
		rc = take_part(&job.input, &parts->input, "stdin", r->err);
	if (rc == 0)
		rc = put_job(route, &job, fields, r->err);
	if (rc == 0)
		*ret_files = fd_move(&job.files);
	fd_closep(&job.files);
	return rc;
}

/* ---- environments -------------------------------------------------------------------------------------------- */

struct wanted_environment {
	const char *name, *language, *trust;
	struct json_strings packages, warm;
	struct json_settings settings;
};

static int read_environment(struct json_reader *r, json_t *doc, struct buf *fields)
{
	static const struct json_member members[] = {
		{ "name", json_read_string, offsetof(struct wanted_environment, name) },
		{ "language", json_read_string, offsetof(struct wanted_environment, language) },
		{ "packages", json_read_strings, offsetof(struct wanted_environment, packages) },
		{ "warm", json_read_strings, offsetof(struct wanted_environment, warm) },
		{ "trust", json_read_string, offsetof(struct wanted_environment, trust) },
		{ "options", json_read_settings, offsetof(struct wanted_environment, settings) },
	};
	struct wanted_environment env = { 0 };

	if (json_read_members(r, doc, members, ARRAY_LEN(members), &env) < 0)
		return -r->err->code;
	if (!env.name)
		return err_set(r->err, BRIG_E_USAGE, 0, "\"name\" is missing");
	if (body_put_text(fields, FIELD_environment, "name", env.name, r->err) < 0 ||
	    body_put_text(fields, FIELD_language, "language", env.language, r->err) < 0 ||
	    body_put_text(fields, FIELD_trust, "trust", env.trust, r->err) < 0 ||
	    body_put_texts(fields, FIELD_package, "packages", &env.packages, r->err) < 0 ||
	    body_put_texts(fields, FIELD_warm, "warm", &env.warm, r->err) < 0)
		return -r->err->code;
	return body_put_settings(fields, &env.settings, r->err);
}

/* ---- inspections ------------------------------------------------------------------------------------------- */

struct inspection {
	struct bytes code, command, path;
	const char *language, *file_name, *trust, *level, *rules;
	bool strict;
};

/* A string "ID=ACTION,ID=ACTION", or an object. */
static int read_rules(struct json_reader *r, json_t *value, void *into)
{
	AUTO_BUF text = BUF_INIT(RULES_BYTES);
	struct json_settings rules = { 0 };
	char *kept;

	if (json_is_string(value))
		return json_read_string(r, value, into);
	if (json_read_settings(r, value, &rules) < 0)
		return -r->err->code;
	for (size_t i = 0; i < rules.n; i++)
		if (!buf_addf(&text, "%s%s=%s", i ? "," : "", rules.item[i].key, rules.item[i].value))
			return json_complain(r, "is too long");
	kept = json_blocks_alloc(r->blocks, text.len + 1, 1);
	if (!kept)
		return err_nomem(r->err);
	memcpy(kept, buf_str(&text), text.len);
	*(const char **)into = kept;
	return 0;
}

static int read_inspection(struct json_reader *r, json_t *doc, struct buf *fields)
{
#define AT(member) offsetof(struct inspection, member)
	static const struct json_member members[] = {
		{ "code", json_read_bytes, AT(code) },
		{ "command", json_read_bytes, AT(command) },
		{ "path", json_read_bytes, AT(path) },
		{ "language", json_read_string, AT(language) },
		{ "file_name", json_read_string, AT(file_name) },
		{ "trust", json_read_string, AT(trust) },
		{ "level", json_read_string, AT(level) },
		{ "rules", read_rules, AT(rules) },
		{ "strict", json_read_bool, AT(strict) },
	};
	struct inspection in = { 0 };
	const struct bytes *text;

	r->setting_of = NULL; /* rules have no aliases */
	if (json_read_members(r, doc, members, ARRAY_LEN(members), &in) < 0)
		return -r->err->code;
	if (!!in.code.data + !!in.command.data + !!in.path.data != 1)
		return err_set(r->err, BRIG_E_USAGE, 0, "give one of \"code\", \"command\" and \"path\"");
	text = in.code.data ? &in.code : in.command.data ? &in.command : &in.path;
	if (!in.code.data)
		message_put_text(fields, FIELD_check_kind, in.command.data ? "command" : "path");
	if (in.strict)
		message_put_number(fields, FIELD_strict, 1);
	if (body_put_bytes(fields, FIELD_text,
			   in.code.data      ? "code"
			   : in.command.data ? "command"
					     : "path",
			   text, r->err) < 0 ||
	    body_put_text(fields, FIELD_language, "language", in.language, r->err) < 0 ||
	    body_put_text(fields, FIELD_file_name, "file_name", in.file_name, r->err) < 0 ||
	    body_put_text(fields, FIELD_trust, "trust", in.trust, r->err) < 0 ||
	    body_put_text(fields, FIELD_level, "level", in.level, r->err) < 0 ||
	    body_put_text(fields, FIELD_rules, "rules", in.rules, r->err) < 0)
		return -r->err->code;
	return 0;
}

/* ---- receipts ------------------------------------------------------------------------------------------------ */

struct receipt {
	struct bytes text;
	const char *public_key;
};

/* A string with its text, or the document itself, with members in order. */
static int read_receipt_text(struct json_reader *r, json_t *value, void *into)
{
	struct bytes *ret = into;
	AUTO_FREE char *text = NULL;
	char *kept;

	if (json_is_string(value))
		return json_read_bytes(r, value, into);
	if (!json_is_object(value))
		return json_complain(r, "must be the receipt: an object, or its text as a string");
	text = json_dumps(value, JSON_COMPACT);
	kept = text ? json_blocks_alloc(r->blocks, strlen(text) + 1, 1) : NULL;
	if (!kept)
		return err_nomem(r->err);
	memcpy(kept, text, strlen(text));
	*ret = (struct bytes){ kept, strlen(text) };
	return 0;
}

static int read_receipt(struct json_reader *r, json_t *doc, struct buf *fields)
{
	static const struct json_member members[] = {
		{ "receipt", read_receipt_text, offsetof(struct receipt, text) },
		{ "public_key", json_read_string, offsetof(struct receipt, public_key) },
	};
	struct receipt receipt = { 0 };

	/* the body is the receipt itself, as written by 'brig run --receipt' */
	if (json_object_get(doc, "statement")) {
		if (read_receipt_text(r, doc, &receipt.text) < 0)
			return -r->err->code;
	} else if (json_read_members(r, doc, members, ARRAY_LEN(members), &receipt) < 0) {
		return -r->err->code;
	}
	if (!receipt.text.data)
		return err_set(r->err, BRIG_E_USAGE, 0, "\"receipt\" is missing");
	if (body_put_bytes(fields, FIELD_text, "receipt", &receipt.text, r->err) < 0)
		return -r->err->code;
	return body_put_text(fields, FIELD_public_key, "public_key", receipt.public_key, r->err);
}

/* ---- all documents ----------------------------------------------------------------------------------------------- */

static int read_doc(struct json_reader *r, enum route route, json_t *doc, const struct body_parts *parts,
		    struct buf *fields, int *ret_files)
{
	switch (route_rows[route].body) {
	case BODY_JOB:
		return body_read_job(r, route, doc, parts, fields, ret_files);
	case BODY_BATCH:
		return batch_read(r, doc, fields);
	case BODY_ENVIRONMENT:
		return read_environment(r, doc, fields);
	case BODY_INSPECTION:
		return read_inspection(r, doc, fields);
	case BODY_RECEIPT:
		return read_receipt(r, doc, fields);
	case BODY_SESSION:
	case BODY_PIECE:
		return session_read(r, route, doc, fields);
	case BODY_FILE:
	case BODY_TAR:
	case BODY_NONE:
		break;
	}
	return err_set(r->err, BRIG_E_INTERNAL, 0, "a body for a route that has none");
}

json_t *body_parse(const char *text, size_t len, struct brig_error *err)
{
	return check_shape(text, len, err) == 0 ? json_read_text(text, len, JSON_ALLOW_NUL, err) : NULL;
}

int body_to_fields(enum route route, const struct bytes *text, const struct body_parts *parts, struct buf *fields,
		   int *ret_files, struct brig_error *err)
{
	struct json_block *blocks = NULL;
	struct json_reader r = { .err = err, .blocks = &blocks, .whole = "the body", .setting_of = body_setting_of };
	json_t *doc = body_parse(text->data, text->len, err);
	int rc;

	*ret_files = FD_NONE;
	rc = doc ? read_doc(&r, route, doc, parts, fields, ret_files) : -err->code;
	json_decref(doc);
	json_blocks_free(&blocks);
	if (rc < 0)
		json_read_mend(err);
	return rc;
}
