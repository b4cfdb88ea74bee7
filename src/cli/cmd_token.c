/* SPDX-License-Identifier: Apache-2.0 */
/* `brig token create`, `list`, `revoke`: tokens of the service and their permissions (server/tokens.h). */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/when.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/request.h"
#include "cli/rows.h"
#include "server/doors.h"

struct token_values {
	const char *state, *max_trust, *expires, *concurrent, *runs_per_minute, *cpu_seconds, *memory;
	struct words languages, backends, environments, doors;
	bool admin, make_environments, json, no_color;
};

#define AT(member) offsetof(struct token_values, member)

static const struct option_row create_options[] = {
	{ "max-trust", 't', OPTION_TEXT, "LEVEL", AT(max_trust), NULL,
	  "the highest trust that it may run with: untrusted, unknown (without this option) or trusted" },
	{ "language", 'l', OPTION_LIST, "LANGUAGE", AT(languages), NULL,
	  "a language that it may use, and then no other, and no commands; may be repeated: python,go" },
	{ "backend", 0, OPTION_LIST, "BACKEND", AT(backends), NULL,
	  "a backend that it may use, and then no other: native, docker, kubernetes or direct; the first one is what "
	  "it gets "
	  "unasked" },
	{ "environment", 0, OPTION_LIST, "NAME", AT(environments), NULL,
	  "an environment that it may use, and then no other, and no packages of its own" },
	{ "door", 0, OPTION_LIST, "DOOR", AT(doors), NULL,
	  "a door that it opens, and then no other and not the API; 'api' is that; without this option the API alone" },
	{ "expires", 0, OPTION_TEXT, "WHEN", AT(expires), NULL,
	  "until when it is good: 30d, 12h, 2027-01-31, 2027-01-31T08:30:00Z; without this option until it is "
	  "revoked" },
	{ "concurrent", 0, OPTION_TEXT, "N", AT(concurrent), NULL,
	  "so many executions at one time; more of them wait" },
	{ "runs-per-minute", 0, OPTION_TEXT, "N", AT(runs_per_minute), NULL,
	  "so many executions a minute; more of them are refused" },
	{ "cpu-seconds-per-hour", 0, OPTION_TEXT, "N", AT(cpu_seconds), NULL,
	  "so many seconds of processor time an hour, of executions that ended; then further ones are refused" },
	{ "memory", 'm', OPTION_TEXT, "SIZE", AT(memory), NULL,
	  "the sum of the memory limits of what runs at one time: 512m, 4g; more of it waits" },
	{ "make-environments", 0, OPTION_FLAG, NULL, AT(make_environments), NULL,
	  "it may make and remove the environments that --environment names" },
	{ "admin", 0, OPTION_FLAG, NULL, AT(admin), NULL, "it sees what others run and ran, and may cancel it" },
	ROW_STATE,
	ROW_JSON,
};
static const struct option_row list_options[] = { ROW_STATE, ROW_JSON, ROW_NO_COLOR };
static const struct option_row revoke_options[] = { ROW_STATE, ROW_JSON };

static int64_t now_s(void)
{
	return (int64_t)(clock_wall_ns() / NS_PER_SEC);
}

/* Exactly one operand, the name. */
static bool take_name(const struct command *self, const struct operands *ops, struct brig_error *err)
{
	if (ops->words.n == 1 && ops->rest.n == 0)
		return true;
	(void)err_set(err, BRIG_E_USAGE, 0, "'brig %s' takes the name of one token", self->name);
	return false;
}

/* ---- create: the description ------------------------------------------------------------------- */

/* A token, with the memory of its lists. */
struct description {
	struct token token;
	char *text[4];
	json_t *languages; /* the library's document: owns their names */
};

static void description_release(struct description *d)
{
	free(d->token.languages.item);
	free(d->token.backends.item);
	free(d->token.environments.item);
	free(d->token.doors.item);
	for (size_t i = 0; i < ARRAY_LEN(d->text); i++)
		free(d->text[i]);
	json_decref(d->languages);
}

/* "30d" counts from now into the future, unlike elsewhere. */
static bool is_span(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits > 0 && text[digits] && strchr("smhdw", text[digits]) && !text[digits + 1];
}

static int read_expiry(const char *text, int64_t now, int64_t *ret, struct brig_error *err)
{
	const uint64_t far_ns = (uint64_t)1 << 62; /* later than any span of up to 146 years */
	bool span = is_span(text);
	uint64_t ns = 0;

	if (!when_parse(text, span ? far_ns : (uint64_t)now * NS_PER_SEC, &ns))
		return err_set(err, BRIG_E_USAGE, 0,
			       "--expires '%.60s' is no moment: write 30d, 12h, 2027-01-31 or 2027-01-31T08:30:00Z",
			       text);
	if (span && ns == 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "--expires '%.60s' is too long: leave it out for a token without end", text);
	*ret = span ? now + (int64_t)((far_ns - ns) / NS_PER_SEC) : (int64_t)(ns / NS_PER_SEC);
	return *ret > now ? 0 : err_set(err, BRIG_E_USAGE, 0, "--expires '%.60s' is not in the future", text);
}

static int read_numbers(const struct token_values *v, struct quota *q, struct brig_error *err)
{
	uint64_t concurrent = 0, runs = 0;
	const struct {
		const char *option, *text, *form;
		bool (*read)(const char *s, uint64_t *ret);
		uint64_t max, *value;
	} rows[] = {
		{ "concurrent", v->concurrent, "a number", str_to_u64, QUOTA_CONCURRENT_MAX, &concurrent },
		{ "runs-per-minute", v->runs_per_minute, "a number", str_to_u64, QUOTA_RUNS_MAX, &runs },
		{ "cpu-seconds-per-hour", v->cpu_seconds, "a number", str_to_u64, QUOTA_CPU_SECONDS_MAX,
		  &q->cpu_seconds_per_hour },
		{ "memory", v->memory, "a size such as 512m", str_to_bytes, QUOTA_MEMORY_MAX, &q->memory },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].text &&
		    (!rows[i].read(rows[i].text, rows[i].value) || !*rows[i].value || *rows[i].value > rows[i].max))
			return err_set(err, BRIG_E_USAGE, 0, "--%s '%.60s' must be %s between 1 and %llu",
				       rows[i].option, rows[i].text, rows[i].form, (unsigned long long)rows[i].max);
	q->concurrent = (uint32_t)concurrent;
	q->runs_per_minute = (uint32_t)runs;
	return 0;
}

/*
 * An option with an empty value, as from an empty variable, must not mean the same as no option, which permits
 * everything.
 */
static int read_list(const struct words *words, const char *option, struct token_list *list, char **text,
		     struct brig_error *err)
{
	if (words->n == 0)
		return 0;
	if (!request_split(words, text, &list->item, &list->n))
		return err_nomem(err);
	for (size_t i = 0; i < list->n; i++)
		if (!*list->item[i])
			list->n = 0;
	return list->n ? 0
		       : err_set(err, BRIG_E_USAGE, 0, "--%s names nothing: leave it out to allow everything", option);
}

/* Whether word is the language's name or an alias. */
static bool language_is(const json_t *row, const char *word)
{
	const json_t *others = json_object_get(row, "aliases");

	if (str_eq(json_string_value(json_object_get(row, "name")) ?: "", word))
		return true;
	for (size_t i = 0; i < json_array_size(others); i++)
		if (str_eq(json_string_value(json_array_get(others, i)) ?: "", word))
			return true;
	return false;
}

static int find_language(const json_t *all, const char **word, struct brig_error *err)
{
	const char *names[64], *near;
	const json_t *row;
	size_t i, n = 0;

	json_array_foreach(all, i, row)
	{
		const char *name = json_string_value(json_object_get(row, "name"));

		if (name && language_is(row, *word)) {
			*word = name;
			return 0;
		}
		if (name && n < ARRAY_LEN(names))
			names[n++] = name;
	}
	near = str_nearest(*word, names, n);
	if (near)
		return err_set(err, BRIG_E_USAGE, 0, "--language '%.60s' is none that brig knows; did you mean '%s'?",
			       *word, near);
	return err_set(err, BRIG_E_USAGE, 0, "--language '%.60s' is none that brig knows: 'brig languages' lists them",
		       *word);
}

/* Stores canonical names, with which requests are compared. */
static int name_languages(const struct token_values *v, struct description *d, struct brig_error *err)
{
	const struct brig_open_opts opts = { .size = sizeof(opts), .policy_file = "", .state_dir = v->state };
	struct brig *b = NULL;
	AUTO_TEXT json = NULL;
	int rc;

	if (d->token.languages.n == 0)
		return 0;
	rc = brig_open(&opts, &b, err);
	if (rc == 0)
		rc = brig_languages_json(b, &json, err);
	brig_close(b);
	if (rc < 0)
		return rc;
	d->languages = json_loads(json, 0, NULL);
	for (size_t i = 0; rc == 0 && i < d->token.languages.n; i++)
		rc = find_language(json_object_get(d->languages, "languages"), &d->token.languages.item[i], err);
	return rc;
}

static int check_backends(const struct token_list *list, struct brig_error *err)
{
	static const char *const known[] = { "native", "docker", "kubernetes", "direct" };

	for (size_t i = 0; i < list->n; i++) {
		bool found = false;

		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			found = found || str_eq(list->item[i], known[k]);
		if (!found)
			return err_set(err, BRIG_E_USAGE, 0,
				       "--backend '%.60s' is none: they are native, docker, kubernetes and direct",
				       list->item[i]);
	}
	return 0;
}

static int check_doors(const struct token_list *list, struct brig_error *err)
{
	for (size_t i = 0; i < list->n; i++)
		if (door_find(list->item[i]) == DOOR_COUNT)
			return err_set(
				err, BRIG_E_USAGE, 0,
				"--door '%.60s' is none: docs/DOORS.md lists them, and 'api' is the service's own API",
				list->item[i]);
	return 0;
}

static int describe(const struct token_values *v, const char *name, struct description *d, struct brig_error *err)
{
	struct token *t = &d->token;
	int rc = 0;

	t->max_trust = TOKEN_UNKNOWN;
	t->admin = v->admin;
	t->makes_environments = v->make_environments;
	t->created = now_s();
	if (!str_copy(t->name, sizeof(t->name), name))
		return err_set(err, BRIG_E_USAGE, 0, "the name of a token has at most %d bytes", TOKEN_NAME_MAX);
	if (v->max_trust && !token_trust_parse(v->max_trust, &t->max_trust))
		return err_set(err, BRIG_E_USAGE, 0, "--max-trust '%.60s' must be untrusted, unknown or trusted",
			       v->max_trust);
	if (v->expires)
		rc = read_expiry(v->expires, t->created, &t->expires, err);
	if (rc == 0)
		rc = read_numbers(v, &t->quota, err);
	if (rc == 0)
		rc = read_list(&v->languages, "language", &t->languages, &d->text[0], err);
	if (rc == 0)
		rc = read_list(&v->backends, "backend", &t->backends, &d->text[1], err);
	if (rc == 0)
		rc = read_list(&v->environments, "environment", &t->environments, &d->text[2], err);
	if (rc == 0)
		rc = check_backends(&t->backends, err);
	if (rc == 0 && t->makes_environments && t->environments.n == 0)
		rc = err_set(err, BRIG_E_USAGE, 0,
			     "--make-environments is for those that --environment names, and it names none: add it");
	if (rc == 0)
		rc = read_list(&v->doors, "door", &t->doors, &d->text[3], err);
	if (rc == 0)
		rc = check_doors(&t->doors, err);
	return rc == 0 ? name_languages(v, d, err) : rc;
}

/* ---- create ------------------------------------------------------------------------------------ */

/* Prints only the secret on standard output, for TOKEN=$(brig token create ci). */
static int print_secret(const struct token *t, const char *secret)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	buf_addf(&text, "%s\n", secret);
	ui_say("token '%s' is made: this is its secret, which is shown now and never again", t->name);
	return ui_finish(&text, EXIT_SUCCESS);
}

static int print_made(const struct token *t, const char *secret)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FREE char *json = NULL, *whole = NULL;
	json_t *doc;

	if (token_json(t, t->created, &json, &err) < 0)
		return ui_fail(&err);
	doc = document_read(json);
	if (doc && json_object_set_new(doc, "secret", json_string(secret)) == 0)
		whole = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return whole ? document_print(whole, EXIT_SUCCESS) : EXIT_FAILED;
}

static int create(const struct command *self, const struct token_values *v, const char *name)
{
	CLEANUP(description_release)
	struct description d = { 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	char secret[TOKEN_SECRET_SIZE];
	struct tokens *t = NULL;
	int rc = describe(v, name, &d, &err);

	if (rc == 0)
		rc = tokens_open(v->state, &t, &err);
	if (rc == 0)
		rc = tokens_create(t, &d.token, secret, &err);
	tokens_close(t);
	if (rc == -BRIG_E_USAGE)
		return ui_usage(self->name, &err);
	if (rc < 0)
		return ui_fail(&err);
	return v->json ? print_made(&d.token, secret) : print_secret(&d.token, secret);
}

/* ---- list -------------------------------------------------------------------------------------- */

static void add_piece(struct buf *out, const char *before, const char *text, const char *after)
{
	if (*text)
		buf_addf(out, "%s%s%s%s", out->len ? "; " : "", before, text, after);
}

static const char *may_use(const json_t *row, struct buf *out)
{
	char text[512];

	add_piece(out, "", document_text(row, "languages", text, sizeof(text)), "");
	add_piece(out, "on ", document_text(row, "backends", text, sizeof(text)), "");
	add_piece(out, "with ", document_text(row, "environments", text, sizeof(text)), "");
	add_piece(out, "through ", document_text(row, "doors", text, sizeof(text)), "");
	return out->len ? buf_str(out) : "everything";
}

static const char *quotas(const json_t *row, struct buf *out)
{
	json_int_t memory = json_integer_value(json_object_get(row, "memory_max"));
	char text[64];

	add_piece(out, "", document_text(row, "concurrent", text, sizeof(text)), " at once");
	add_piece(out, "", document_text(row, "runs_per_minute", text, sizeof(text)), " a minute");
	add_piece(out, "", document_text(row, "cpu_seconds_per_hour", text, sizeof(text)), " cpu s an hour");
	if (memory > 0)
		add_piece(out, "", str_bytes(text, sizeof(text), (uint64_t)memory), "");
	return buf_str(out);
}

static const char *moment(const json_t *row, const char *name, char *dst, size_t size)
{
	char text[64];
	uint64_t ns;

	(void)document_text(row, name, text, sizeof(text));
	if (!when_parse(text, 0, &ns))
		return "never";
	return when_local(dst, size, ns);
}

static void add_token(struct ui_table *table, const json_t *row)
{
	AUTO_BUF uses = BUF_INIT(4 * KiB), bounds = BUF_INIT(4 * KiB);
	char text[256];
	bool active;

	ui_table_add(table, document_text(row, "name", text, sizeof(text)), UI_BOLD);
	active = str_eq(document_text(row, "state", text, sizeof(text)), "active");
	ui_table_add(table, text, active ? UI_GREEN : UI_DIM);
	ui_table_add(table, document_text(row, "max_trust", text, sizeof(text)), UI_PLAIN);
	ui_table_add(table, document_true(row, "admin") ? "admin" : "", UI_YELLOW);
	ui_table_add(table, moment(row, "expires", text, sizeof(text)), UI_DIM);
	ui_table_add(table, may_use(row, &uses), UI_PLAIN);
	ui_table_add(table, quotas(row, &bounds), UI_PLAIN);
}

static int list_text(const json_t *doc, const void *values, int status)
{
	static const char *const titles[] = { "NAME", "STATE", "TRUST", "", "EXPIRES", "MAY USE", "QUOTAS" };
	static const struct document_table table = { titles, ARRAY_LEN(titles), add_token };
	const struct token_values *v = values;
	const json_t *rows = json_object_get(doc, "tokens");
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);

	document_table(&table, rows, /* empty_too= */ false, v->no_color, &text);
	if (json_array_size(rows) == 0)
		buf_adds(&text, "no tokens: brig token create makes one\n");
	return ui_finish(&text, status);
}

static int list(const struct token_values *v)
{
	const struct document_view view = { .show = list_text, .values = v, .json = v->json };
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = NULL;
	AUTO_FREE char *json = NULL;
	int rc = tokens_open(v->state, &t, &err);

	if (rc == 0)
		rc = tokens_json(t, now_s(), &json, &err);
	tokens_close(t);
	return rc < 0 ? ui_fail(&err) : document_show(&view, json, EXIT_SUCCESS);
}

/* ---- revoke ------------------------------------------------------------------------------------ */

static int revoked_text(const json_t *doc, const void *values UNUSED, int status)
{
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char name[TOKEN_NAME_MAX + 1];

	buf_addf(&text, "token %s is revoked; a service that runs knows it from the next request on\n",
		 document_text(doc, "name", name, sizeof(name)));
	return ui_finish(&text, status);
}

static int take_back(const struct command *self, const struct token_values *v, const char *name)
{
	const struct document_view view = { .show = revoked_text, .values = v, .json = v->json };
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = NULL;
	AUTO_FREE char *json = NULL;
	int rc = tokens_open(v->state, &t, &err);

	if (rc == 0)
		rc = tokens_revoke(t, name, now_s(), &err);
	if (rc == 0)
		rc = token_json(tokens_named(t, name), now_s(), &json, &err);
	tokens_close(t);
	if (rc == -BRIG_E_USAGE)
		return ui_usage(self->name, &err);
	return rc < 0 ? ui_fail(&err) : document_show(&view, json, EXIT_SUCCESS);
}

/* ---- commands ---------------------------------------------------------------------------------- */

static int one_main(const struct command *self, int argc, char **argv,
		    int (*run)(const struct command *self, const struct token_values *v, const char *name))
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct token_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status))
		status = take_name(self, &ops, &err) ? run(self, &v, ops.words.item[0]) : ui_usage(self->name, &err);
	options_release(self, &v, &ops);
	return status;
}

static int create_main(const struct command *self, int argc, char **argv)
{
	return one_main(self, argc, argv, create);
}

static int revoke_main(const struct command *self, int argc, char **argv)
{
	return one_main(self, argc, argv, take_back);
}

static int list_main(const struct command *self, int argc, char **argv)
{
	struct token_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && command_no_operands(self, &ops))
		status = list(&v);
	options_release(self, &v, &ops);
	return status;
}

const struct command command_token_create = {
	.name = "token create",
	.synopsis = "[OPTIONS] NAME",
	.summary = "make a token for the service and show its secret, once",
	.examples = "  TOKEN=$(brig token create ci --expires 90d)\n"
		    "  brig token create class --max-trust untrusted --language python --runs-per-minute 60\n",
	.details = "The secret goes to stdout and is kept nowhere; STATE/serve/tokens has a hash of it.  A service\n"
		   "that runs knows the token from the next request on.  What is not bounded here is bounded by\n"
		   "the policy alone. The name of a revoked token may be used again; its executions of before then\n"
		   "count as the new one's.\n",
	.options = create_options,
	.n_options = ARRAY_LEN(create_options),
	.run = create_main,
};

const struct command command_token_list = {
	.name = "token list",
	.synopsis = "[OPTIONS]",
	.summary = "list the tokens of the service and what they allow",
	.examples = "  brig token list\n",
	.options = list_options,
	.n_options = ARRAY_LEN(list_options),
	.run = list_main,
};

const struct command command_token_revoke = {
	.name = "token revoke",
	.synopsis = "[OPTIONS] NAME",
	.summary = "take a token back: its secret opens nothing from now on",
	.examples = "  brig token revoke ci\n",
	.options = revoke_options,
	.n_options = ARRAY_LEN(revoke_options),
	.run = revoke_main,
};
