/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - SandboxFusion's /submit: judges a model's answer
 *
 * Problems come with the request (config.provided_data); brig has no database of them. Two kinds of datasets are
 * judged, as in the original:
 *
 *	CommonOJDataset  each test is a run with an input and an expected output; together they are a batch of the runner.
 *	                 Results are judged in the order of the tests; the first failure cancels the rest unless all are
 *	                 wanted
 *	AutoEvalDataset  code with its test appended or inserted: one run, which must succeed
 *
 * A failure of the service is no judgement: it is answered with an HTTP error, so the client retries.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "server/doors/fusion/fusion.h"

#define TESTS_MAX      1000
#define BYTES_MAX      (128 * MiB) /* of all results */
#define SHOWN_MAX      1000        /* bytes of a test to show in a response */
#define SECONDS_OJ     10.0
#define SECONDS_SCRIPT 20.0
#define INSERT         "#<INSERT>"

struct submission {
	json_t *doc, *row; /* the request; the problem */
	const struct fusion_language *language;
	json_t *tests;           /* of the batch, as received */
	json_t **result;         /* one per test; NULL: not finished */
	size_t n_tests, judged;  /* judged: number of tests judged so far */
	char *code, *full;       /* the extracted code; the code with its test */
	json_t *outcomes;        /* for the response */
	bool is_wrong, runs_all; /* is_wrong: a test failed; runs_all: run the other tests all the same */
	char batch[65];
	uint64_t bytes; /* of results so far */
};

static void submission_free(void *p)
{
	struct submission *s = p;

	for (size_t i = 0; s->result && i < s->n_tests; i++)
		json_decref(s->result[i]);
	free(s->result);
	json_decref(s->doc);
	json_decref(s->row);
	json_decref(s->tests);
	json_decref(s->outcomes);
	free(s->code);
	free(s->full);
	free(s);
}

static struct submission *submission_of(struct client *c)
{
	return c->req->call->state;
}

static json_t *config_of(const struct submission *s)
{
	return json_object_get(s->doc, "config");
}

static bool wants(const struct submission *s, const char *name)
{
	return json_is_true(json_object_get(json_object_get(config_of(s), "extra"), name));
}

static void answer(struct client *c)
{
	struct submission *s = submission_of(c);

	door_reply(c, 200,
		   json_pack("{s:O, s:b, s:s, s:s?, s:n, s:O, s:n, s:o}", "id", json_object_get(s->doc, "id"),
			     "accepted", !s->is_wrong, "extracted_code", s->code, "full_code", s->full, "test_code",
			     "tests", s->outcomes, "extracted_type", "extra", s->full ? json_object() : json_null()));
}

/* ---- comparison of outputs ------------------------------------------------------------------------------------- */

struct text {
	const char *at;
	size_t len;
};

static struct text stripped(const char *at, size_t len)
{
	while (len > 0 && isspace((unsigned char)*at))
		at++, len--;
	while (len > 0 && isspace((unsigned char)at[len - 1]))
		len--;
	return (struct text){ at, len };
}

/* As Python's float() parses it, except for underscores. */
static bool read_number(struct text t, double *ret)
{
	char copy[128], *end;

	if (t.len == 0 || t.len >= sizeof(copy) || memchr(t.at, 'x', t.len) || memchr(t.at, 'X', t.len))
		return false;
	memcpy(copy, t.at, t.len);
	copy[t.len] = '\0';
	*ret = strtod(copy, &end);
	return *end == '\0' && end != copy;
}

static bool is_same_line(struct text have, struct text want)
{
	double a, b;
	size_t i = 0;

	have = stripped(have.at, have.len);
	want = stripped(want.at, want.len);
	while (have.len == want.len && i < have.len &&
	       tolower((unsigned char)have.at[i]) == tolower((unsigned char)want.at[i]))
		i++;
	if (have.len == want.len && i == have.len)
		return true;
	return read_number(have, &a) && read_number(want, &b) &&
	       fabs(a - b) < 1e-5 * (fabs(b) > 1e-10 ? fabs(b) : 1e-10);
}

static struct text next_line(struct text *rest)
{
	const char *end = memchr(rest->at, '\n', rest->len);
	struct text line = { rest->at, end ? (size_t)(end - rest->at) : rest->len };

	rest->at += line.len + (end != NULL);
	rest->len -= line.len + (end != NULL);
	return line;
}

/* Compares line by line, ignoring case and blanks around each line; numbers may differ slightly. */
static bool is_expected(const json_t *have, const char *want)
{
	struct text a = stripped(json_string_value(have), json_string_length(have)), b = stripped(want, strlen(want));

	while (a.len > 0 && b.len > 0) {
		bool has_a = memchr(a.at, '\n', a.len) != NULL, has_b = memchr(b.at, '\n', b.len) != NULL;

		if (!is_same_line(next_line(&a), next_line(&b)) || has_a != has_b)
			return false;
	}
	return a.len == 0 && b.len == 0;
}

/* ---- tests with input and output ------------------------------------------------------------------------------- */

/* Shortens a long text to its beginning and end. */
static json_t *shown(const char *text, bool is_whole)
{
	size_t len = strlen(text), half = (SHOWN_MAX - 3) / 2;
	AUTO_BUF out = BUF_INIT(2 * SHOWN_MAX);
	const char *tail;

	if (is_whole || len <= SHOWN_MAX)
		return json_string(text);
	for (tail = text + len - half; (*tail & 0xc0) == 0x80; tail++)
		;
	(void)buf_add(&out, text, str_utf8_prefix(text, half));
	(void)buf_adds(&out, "...");
	(void)buf_adds(&out, tail);
	return json_string(buf_str(&out));
}

static json_t *shown_files(json_t *files, bool is_whole)
{
	json_t *copy = json_object(), *content;
	const char *name;

	json_object_foreach(files, name, content)(void)
		json_object_set_new(copy, name, shown(json_string_value(content), is_whole));
	return copy;
}

/* False: the service failed, and the request was answered. */
static bool judge(struct client *c, size_t i)
{
	struct submission *s = submission_of(c);
	const json_t *test = json_array_get(s->tests, i);
	json_t *input = json_object_get(test, "input"), *output = json_object_get(test, "output");
	json_t *info = fusion_response(s->language, NULL, s->result[i]);
	bool is_good = str_eq(fusion_text(info, "status"), "Success") &&
		       is_expected(json_object_get(json_object_get(info, "run_result"), "stdout"),
				   fusion_text(output, "stdout"));
	bool is_whole = !is_good || wants(s, "return_full_case");
	AUTO_BUF why = BUF_INIT(2 * KiB);

	if (fusion_is_ours(info)) {
		(void)buf_addf(&why, "Failed to check stdio test case: %s", fusion_text(info, "message"));
		door_give_up(c);
		fusion_error(c, 500, buf_str(&why));
		json_decref(info);
		return false;
	}
	s->is_wrong |= !is_good;
	(void)json_array_append_new(s->outcomes, json_pack("{s:b, s:o, s:{s:o, s:o}}", "passed", is_good, "exec_info",
							   info, "test_info", "input", shown_files(input, is_whole),
							   "output", shown_files(output, is_whole)));
	return true;
}

static void on_cancelled(struct client *c, unsigned status UNUSED, const struct message *m UNUSED)
{
	answer(c);
}

/* Judges all available results in order. True: the request was answered, or its last runner request was sent. */
static bool judge_more(struct client *c)
{
	struct submission *s = submission_of(c);

	while (s->judged < s->n_tests && s->result[s->judged]) {
		if (!judge(c, s->judged++))
			return true;
		if (s->is_wrong && !s->runs_all)
			break;
	}
	if (s->judged == s->n_tests) {
		door_give_up(c); /* no more events are needed */
		answer(c);
		return true;
	}
	if (!s->is_wrong || s->runs_all)
		return false;
	door_give_up(c);
	message_put_text(door_fields(c), FIELD_id, s->batch);
	door_ask(c, ROUTE_batch_cancel, FD_NONE, FD_NONE, on_cancelled);
	return true;
}

static void on_event(struct client *c, enum event_kind kind, const char *text, size_t len)
{
	struct submission *s = submission_of(c);
	json_t *event = kind == EVENT_result ? json_loadb(text, len, JSON_ALLOW_NUL, NULL) : NULL;
	uint64_t number;

	s->bytes += len;
	if (s->bytes > BYTES_MAX) {
		json_decref(event);
		door_give_up(c);
		fusion_error(c, 500, "Failed to check stdio test case: the tests wrote too many bytes");
		return;
	}
	if (event && str_to_u64(fusion_text(event, "job"), &number) && number < s->n_tests && !s->result[number]) {
		s->result[number] = json_incref(event);
		if (number == s->judged && judge_more(c)) {
			json_decref(event);
			return;
		}
	}
	json_decref(event);
}

/* The stream ended before all results came. */
static void on_over(struct client *c, unsigned status, const struct message *m)
{
	json_t *doc = door_answer_json(m);

	fusion_error(c, status == 200 ? 500 : status,
		     status == 200 ? "Failed to check stdio test case: the results are not whole"
				   : door_answer_message(doc));
	json_decref(doc);
}

static void on_batch(struct client *c, unsigned status, const struct message *m)
{
	struct submission *s = submission_of(c);
	json_t *doc = door_answer_json(m);
	const char *id = fusion_text(doc, "id");
	struct buf *fields;

	if (status == 202 && str_copy(s->batch, sizeof(s->batch), id)) {
		fields = door_fields(c);
		message_put_text(fields, FIELD_id, s->batch);
		message_put_number(fields, FIELD_stream, 1);
		c->req->call->on_event = on_event;
		door_ask(c, ROUTE_batch_results, FD_NONE, FD_NONE, on_over);
	} else {
		fusion_error(c, status == 422 || status == 403 || status == 202 ? 500 : status,
			     door_answer_message(doc));
	}
	json_decref(doc);
}

static void put_program(const struct submission *s, const char *code, double usual, struct buf *fields)
{
	const json_t *time = json_object_get(config_of(s), "run_timeout");

	message_put_number(fields, FIELD_kind, BRIG_KIND_CODE);
	message_put_text(fields, FIELD_language, s->language->ours);
	fusion_put_code(fields, s->language, code, strlen(code));
	fusion_put_limits(fields, json_number_value(time) > 0 ? time : NULL, usual, NULL);
}

static void run_tests(struct client *c)
{
	struct submission *s = submission_of(c);
	struct buf *fields = door_fields(c);

	for (size_t i = 0; i < s->n_tests; i++) {
		AUTO_BUF one = BUF_INIT(MESSAGE_MAX);
		const char *input = fusion_text(json_object_get(json_array_get(s->tests, i), "input"), "stdin");
		char name[24];

		(void)snprintf(name, sizeof(name), "%zu", i);
		message_put_text(&one, FIELD_job_id, name);
		message_put_number(&one, FIELD_door, DOOR_fusion);
		put_program(s, s->code, s->language->compiles ? SECONDS_OJ : SECONDS_SCRIPT, &one);
		message_put_bytes(&one, FIELD_input, input, strlen(input));
		message_put_bytes(fields, FIELD_job, buf_str(&one), one.len);
	}
	door_ask(c, ROUTE_batch, FD_NONE, FD_NONE, on_batch);
}

/* A member that is a document, or a string that contains one; a new reference, NULL: neither. */
static json_t *document_of(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);
	struct brig_error err = BRIG_ERROR_INIT;

	return json_is_string(value) ? door_parse(json_string_value(value), json_string_length(value), &err)
				     : json_incref(value);
}

static bool is_stdio(const json_t *test)
{
	json_t *input = json_object_get(test, "input"), *output = json_object_get(test, "output"), *text;
	const char *name;

	json_object_foreach(input, name, text) if (!json_is_string(text)) return false;
	json_object_foreach(output, name, text) if (!json_is_string(text)) return false;
	return json_is_string(json_object_get(input, "stdin")) && json_is_string(json_object_get(output, "stdout"));
}

/* NULL: the tests are valid. */
static const char *read_tests(struct submission *s)
{
	json_t *test;
	size_t i;

	s->tests = document_of(s->row, "test");
	s->n_tests = json_array_size(s->tests);
	if (!json_is_array(s->tests) || s->n_tests == 0 || s->n_tests > TESTS_MAX)
		return "provided_data.test must be a list of 1 to 1000 tests";
	json_array_foreach(s->tests, i, test) if (!is_stdio(test)) return "each of provided_data.test needs texts "
									  "input.stdin and output.stdout";
	s->result = calloc(s->n_tests, sizeof(json_t *));
	return s->result ? NULL : "there is no memory";
}

static void judge_stdio(struct client *c)
{
	struct submission *s = submission_of(c);
	const char *name = fusion_text(config_of(s), "language"), *why = NULL;

	s->language = *name ? fusion_language_of(name) : NULL;
	if (!*name)
		why = "config.language field must exist for CommonOJDataset, got None";
	else if (!s->language || !s->language->ours)
		why = "config.language is none that this sandbox has";
	else
		why = read_tests(s);
	s->code = why ? NULL : fusion_extract(fusion_text(s->doc, "completion"), name);
	s->runs_all = wants(s, "run_all_cases");
	if (why)
		fusion_error(c, 400, why);
	else if (!s->code || strlen(s->code) > message_max_bytes(FIELD_code))
		fusion_error(c, 400, "completion is too long");
	else
		run_tests(c);
}

/* ---- code with an appended test -------------------------------------------------------------------------------- */

static void on_result(struct client *c, unsigned status, const struct message *m)
{
	struct submission *s = submission_of(c);
	json_t *result = door_answer_json(m), *info = NULL;

	if (status != 200) {
		fusion_error(c, status == 422 || status == 403 ? 500 : status, door_answer_message(result));
	} else {
		info = fusion_response(s->language, NULL, result);
		s->is_wrong = !str_eq(fusion_text(info, "status"), "Success");
		if (fusion_is_ours(info)) {
			fusion_error(c, 500, fusion_text(info, "message"));
		} else {
			(void)json_array_append_new(s->outcomes, json_pack("{s:b, s:O, s:n}", "passed", !s->is_wrong,
									   "exec_info", info, "test_info"));
			answer(c);
		}
	}
	json_decref(info);
	json_decref(result);
}

/* Cuts off what models add to run their code as a script. */
static void cut_entry(char *code, const char *language)
{
	static const struct {
		const char *language, *begin; /* NULL: all languages */
	} rows[] = {
		{ "python", "if __name__ == \"__main__\":" },
		{ "cpp", "int main()" },
		{ NULL, "# Example usage" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *at = !rows[i].language || str_eq(rows[i].language, language) ? strstr(code, rows[i].begin) : NULL;
		struct text left;

		if (!at)
			continue;
		left = stripped(code, (size_t)(at - code));
		memmove(code, left.at, left.len);
		code[left.len] = '\0';
	}
}

/* Inserts the code where the test marks it, or else puts the code before the test. */
static char *join_test(const char *code, const char *test)
{
	const char *place = strstr(test, INSERT), *end = place ? strstr(place + strlen(INSERT), INSERT) : NULL;
	const char *entry = place ? NULL : strstr(code, "if __name__ ==");
	AUTO_BUF out = BUF_INIT(MESSAGE_MAX);

	if (place) {
		(void)buf_add(&out, test, (size_t)(place - test));
		(void)buf_adds(&out, code);
		place += strlen(INSERT);
		(void)buf_add(&out, place, end ? (size_t)(end - place) : strlen(place));
	} else {
		(void)buf_add(&out, code, entry ? (size_t)(entry - code) : strlen(code));
		(void)buf_adds(&out, "\n");
		(void)buf_adds(&out, test);
	}
	return out.full || out.no_memory ? NULL : buf_take(&out);
}

/* NULL: the problem can be run. */
static const char *read_auto(struct submission *s, json_t *labels, json_t *test)
{
	const char *written = fusion_text(labels, "programming_language");
	const char *run =
		*fusion_text(labels, "execution_language") ? fusion_text(labels, "execution_language") : written;
	static const char *const unlike[] = { "java", "go", "html" };

	if (!json_is_object(labels) || !*written || !json_is_string(json_object_get(test, "code")))
		return "provided_data needs labels.programming_language and test.code";
	for (size_t i = 0; i < ARRAY_LEN(unlike); i++)
		if (str_eq(written, unlike[i]))
			return "programs in this language are not judged by AutoEvalDataset here: use CommonOJDataset";
	s->language = fusion_language_of(run);
	if (!s->language || !s->language->ours)
		return "labels.execution_language is none that this sandbox has";
	s->code = fusion_extract(fusion_text(s->doc, "completion"), written);
	if (s->code)
		cut_entry(s->code, written);
	s->full = s->code ? join_test(s->code, fusion_text(test, "code")) : NULL;
	return s->full && strlen(s->full) <= message_max_bytes(FIELD_code) ? NULL : "completion is too long";
}

static void judge_auto(struct client *c)
{
	struct submission *s = submission_of(c);
	json_t *labels = document_of(s->row, "labels"), *test = document_of(s->row, "test");
	json_t *assets = document_of(test, "asset");
	const char *why = read_auto(s, labels, test);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD files = FD_NONE;
	struct buf *fields;

	if (!why && assets && !json_is_null(assets))
		why = fusion_is_files(assets) && fusion_files(assets, &files, &err) < 0 ? err.msg : NULL;
	if (why) {
		fusion_error(c, 400, why);
	} else {
		fields = door_fields(c);
		put_program(s, s->full, SECONDS_SCRIPT, fields);
		door_ask(c, ROUTE_execute, files, FD_NONE, on_result);
	}
	json_decref(labels);
	json_decref(test);
	json_decref(assets);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static bool is_id(const json_t *v)
{
	return json_is_integer(v) || json_is_string(v);
}

/* The supported datasets and how they are judged. */
static const struct dataset {
	const char *name;
	void (*judge)(struct client *c);
} datasets[] = {
	{ "CommonOJDataset", judge_stdio },  { "AutoEvalDataset", judge_auto },   { "AutoEvalV4Dataset", judge_auto },
	{ "AutoEvalV5Dataset", judge_auto }, { "AutoEvalV6Dataset", judge_auto }, { "code_contests", judge_stdio },
};

/* By the dataset's own name if that is known, else by its type. */
static const struct dataset *find_dataset(const struct submission *s)
{
	const char *names[] = { fusion_text(s->doc, "dataset"), fusion_text(config_of(s), "dataset_type") };

	for (size_t k = 0; k < ARRAY_LEN(names); k++)
		for (size_t i = 0; i < ARRAY_LEN(datasets); i++)
			if (str_eq(datasets[i].name, names[k]))
				return &datasets[i];
	return NULL;
}

static void begin(struct client *c)
{
	struct submission *s = submission_of(c);
	const struct dataset *d = find_dataset(s);
	const json_t *logic = json_object_get(config_of(s), "custom_extract_logic");

	s->row = json_incref(json_object_get(config_of(s), "provided_data"));
	s->outcomes = json_array();
	if (!d)
		fusion_error(c, 400,
			     "no eval class found for this dataset: config.dataset_type must be CommonOJDataset or "
			     "AutoEvalDataset, the others are not judged here");
	else if (!json_is_object(s->row))
		fusion_error(
			c, 400,
			"config.provided_data should be the problem, a dict: there is no database of problems here");
	else if (logic && !json_is_null(logic))
		fusion_error(c, 400, "config.custom_extract_logic is code for the service itself, which is not run");
	else
		d->judge(c);
}

void fusion_submit(struct client *c)
{
	static const struct fusion_member members[] = {
		{ "dataset", true, fusion_is_text, "string_type", "Input should be a valid string" },
		{ "id", true, is_id, "int_type", "Input should be a valid integer or string" },
		{ "completion", true, fusion_is_text, "string_type", "Input should be a valid string" },
		{ "config", true, fusion_is_object, "model_type", "Input should be a valid dictionary" },
	};
	static const struct fusion_member settings[] = {
		{ "dataset_type", false, fusion_is_maybe_text, "string_type", "Input should be a valid string" },
		{ "language", false, fusion_is_maybe_text, "string_type", "Input should be a valid string" },
		{ "compile_timeout", false, fusion_is_maybe_number, "float_type", "Input should be a valid number" },
		{ "run_timeout", false, fusion_is_maybe_number, "float_type", "Input should be a valid number" },
		{ "extra", false, fusion_is_object, "dict_type", "Input should be a valid dictionary" },
	};
	struct submission *s = calloc(1, sizeof(*s));
	struct brig_error err = BRIG_ERROR_INIT;

	if (!s) {
		fusion_error(c, 503, "there is no memory");
		return;
	}
	c->req->call->state = s;
	c->req->call->release = submission_free;
	s->doc = door_json(c, &err);
	if (!s->doc)
		fusion_refuse_body(c, err.msg);
	else if (fusion_check(c, s->doc, members, ARRAY_LEN(members)) &&
		 fusion_check(c, config_of(s), settings, ARRAY_LEN(settings)))
		begin(c);
}
