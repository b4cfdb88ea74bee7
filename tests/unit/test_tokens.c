/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of the service: their file, who is known by which secret, and what a token allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/str.h"
#include "server/token_lines.h"
#include "server/tokens.h"
#include "temp_folder.h"

#define NOW 1800000000

struct bed {
	char base[128], state[160], folder[192], file[224];
};

static int set_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	if (!b || temp_folder_make(b->base, sizeof(b->base), "tokens") < 0)
		return -1;
	(void)snprintf(b->state, sizeof(b->state), "%s/state", b->base);
	(void)snprintf(b->folder, sizeof(b->folder), "%s/serve", b->state);
	(void)snprintf(b->file, sizeof(b->file), "%s/tokens", b->folder);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *b = *state;
	int rc = temp_folder_remove(b->base);

	free(b);
	return rc;
}

static struct tokens *opened(const struct bed *b)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = NULL;

	if (tokens_open(b->state, &t, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

static void make(struct tokens *t, const struct token *what, char secret[TOKEN_SECRET_SIZE])
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (tokens_create(t, what, secret, &err) < 0)
		fail_msg("%s", err.msg);
}

static void make_plain(struct tokens *t, const char *name, char secret[TOKEN_SECRET_SIZE])
{
	struct token what = { .max_trust = TOKEN_UNKNOWN, .created = NOW };

	assert_true(str_copy(what.name, sizeof(what.name), name));
	make(t, &what, secret);
}

static enum token_why why(const struct tokens *t, const char *secret, int64_t now_s)
{
	enum token_why answer = TOKEN_KNOWN;
	const struct token *found = tokens_find(t, secret, now_s, &answer);

	assert_int_equal(found != NULL, answer == TOKEN_KNOWN);
	return answer;
}

static void write_file(const struct bed *b, const char *text, size_t len)
{
	FILE *f = fopen(b->file, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(b->file, 0600), 0);
}

static size_t read_file(const struct bed *b, char *dst, size_t size)
{
	FILE *f = fopen(b->file, "r");
	size_t n;

	assert_non_null(f);
	n = fread(dst, 1, size - 1, f);
	dst[n] = '\0';
	assert_int_equal(fclose(f), 0);
	return n;
}

static void assert_says(const struct brig_error *err, const char *part)
{
	if (!strstr(err->msg, part))
		fail_msg("'%s' does not say '%s'", err->msg, part);
}

/* ---- life of a token --------------------------------------------------------------------------- */

static void a_token_is_made_and_found(void **state)
{
	const struct bed *b = *state;
	struct tokens *t = opened(b);
	char secret[TOKEN_SECRET_SIZE], other[TOKEN_SECRET_SIZE], text[4096];
	struct stat st;

	assert_int_equal(tokens_count(t), 0);
	make_plain(t, "ci", secret);
	make_plain(t, "web", other);
	assert_int_equal(strlen(secret), 5 + 32);
	assert_memory_equal(secret, "brig_", 5);
	assert_int_equal(strspn(secret + 5, "abcdefghijklmnopqrstuvwxyz234567"), 32);
	assert_string_not_equal(secret, other);
	assert_int_equal(tokens_count(t), 2);
	assert_string_equal(tokens_find(t, secret, NOW, NULL)->name, "ci");
	assert_string_equal(tokens_find(t, other, NOW, NULL)->name, "web");
	assert_string_equal(tokens_named(t, "web")->name, "web");
	assert_null(tokens_named(t, "we"));
	assert_int_equal(stat(b->file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(b->folder, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	(void)read_file(b, text, sizeof(text));
	assert_null(strstr(text, secret));
	assert_null(strstr(text, secret + 5));
	tokens_close(t);
	t = opened(b);
	assert_string_equal(tokens_find(t, secret, NOW, NULL)->name, "ci");
	tokens_close(t);
}

static void other_secrets_are_nobody(void **state)
{
	struct tokens *t = opened(*state);
	char secret[TOKEN_SECRET_SIZE], bent[TOKEN_SECRET_SIZE + 1], *large = calloc(1, MiB);

	assert_non_null(large);
	assert_int_equal(why(t, "brig_", NOW), TOKEN_WRONG);
	make_plain(t, "ci", secret);
	assert_int_equal(why(t, "", NOW), TOKEN_WRONG);
	assert_int_equal(why(t, secret + 5, NOW), TOKEN_WRONG);
	for (size_t i = 0; i < TOKEN_SECRET_SIZE - 1; i++) {
		memcpy(bent, secret, TOKEN_SECRET_SIZE);
		bent[i] ^= 1;
		assert_int_equal(why(t, bent, NOW), TOKEN_WRONG);
	}
	(void)snprintf(bent, sizeof(bent), "%sa", secret);
	assert_int_equal(why(t, bent, NOW), TOKEN_WRONG);
	bent[TOKEN_SECRET_SIZE - 2] = '\0';
	assert_int_equal(why(t, bent, NOW), TOKEN_WRONG);
	memset(large, 'a', MiB - 1);
	assert_int_equal(why(t, large, NOW), TOKEN_WRONG);
	assert_int_equal(why(t, secret, NOW), TOKEN_KNOWN);
	free(large);
	tokens_close(t);
}

static void tokens_expire(void **state)
{
	struct tokens *t = opened(*state);
	char secret[TOKEN_SECRET_SIZE];

	make(t, &(struct token){ .name = "short", .created = NOW, .expires = NOW + 60 }, secret);
	assert_int_equal(why(t, secret, NOW), TOKEN_KNOWN);
	assert_int_equal(why(t, secret, NOW + 59), TOKEN_KNOWN);
	assert_int_equal(why(t, secret, NOW + 60), TOKEN_EXPIRED);
	assert_int_equal(why(t, secret, INT64_MAX), TOKEN_EXPIRED);
	tokens_close(t);
}

static void tokens_are_revoked_for_everybody(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = opened(*state), *service = opened(*state);
	char secret[TOKEN_SECRET_SIZE], second[TOKEN_SECRET_SIZE];

	make_plain(t, "ci", secret);
	assert_int_equal(why(service, secret, NOW), TOKEN_WRONG); /* it has not looked yet */
	assert_int_equal(tokens_refresh(service, &err), 1);
	assert_int_equal(tokens_refresh(service, &err), 0);
	assert_int_equal(why(service, secret, NOW), TOKEN_KNOWN);
	assert_int_equal(tokens_revoke(t, "c", NOW, &err), -BRIG_E_USAGE);
	assert_says(&err, "there is no token 'c': ");
	assert_int_equal(tokens_revoke(t, "ci", NOW + 5, &err), 0);
	assert_int_equal(tokens_refresh(service, &err), 1);
	assert_int_equal(why(service, secret, NOW), TOKEN_REVOKED);
	assert_int_equal(tokens_count(service), 0);
	assert_true(tokens_named(service, "ci")->revoked == NOW + 5);
	assert_int_equal(tokens_revoke(t, "ci", NOW, &err), -BRIG_E_USAGE);
	assert_says(&err, "was revoked");
	make_plain(t, "ci", second); /* the name is free again, for another secret */
	assert_int_equal(tokens_refresh(service, &err), 1);
	assert_int_equal(why(service, secret, NOW), TOKEN_WRONG);
	assert_int_equal(why(service, second, NOW), TOKEN_KNOWN);
	tokens_close(t);
	tokens_close(service);
}

static void names_are_taken_once(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = opened(*state);
	char secret[TOKEN_SECRET_SIZE], second[TOKEN_SECRET_SIZE] = "untouched";

	make_plain(t, "ci", secret);
	assert_int_equal(tokens_create(t, &(struct token){ .name = "ci", .created = NOW }, second, &err),
			 -BRIG_E_REFUSED);
	assert_says(&err, "there is a token 'ci' already");
	assert_string_equal(second, "untouched");
	assert_int_equal(why(t, secret, NOW), TOKEN_KNOWN);
	tokens_close(t);
}

static const char *some_languages[] = { "python", "cpp" }, *some_backends[] = { "native" },
		  *some_environments[] = { "data.v2", "web" }, *some_doors[] = { "api", "piston" };
static const struct token full = {
	.name = "All.of_it-1",
	.max_trust = TOKEN_TRUSTED,
	.languages = { some_languages, 2 },
	.backends = { some_backends, 1 },
	.environments = { some_environments, 2 },
	.doors = { some_doors, 2 },
	.quota = { .concurrent = 3, .runs_per_minute = 60, .cpu_seconds_per_hour = 7200, .memory = 3 * GiB },
	.makes_environments = true,
	.admin = true,
	.created = NOW,
	.expires = NOW + 86400,
};

static void everything_that_is_said_is_kept(void **state)
{
	struct tokens *t = opened(*state);
	const struct token *got;
	char secret[TOKEN_SECRET_SIZE];

	make(t, &full, secret);
	tokens_close(t);
	t = opened(*state);
	got = tokens_find(t, secret, NOW, NULL);
	assert_non_null(got);
	assert_string_equal(got->name, full.name);
	assert_int_equal(got->max_trust, TOKEN_TRUSTED);
	assert_int_equal(got->languages.n, 2);
	assert_string_equal(got->languages.item[1], "cpp");
	assert_string_equal(got->backends.item[0], "native");
	assert_string_equal(got->environments.item[0], "data.v2");
	assert_memory_equal(&got->quota, &full.quota, sizeof(full.quota));
	assert_true(got->admin);
	assert_true(got->created == NOW && got->expires == NOW + 86400 && got->revoked == 0);
	tokens_close(t);
}

static json_t *document(const struct tokens *t, int64_t now_s)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	json_t *doc;

	assert_int_equal(tokens_json(t, now_s, &text, &err), 0);
	assert_null(strstr(text, "hash"));
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	free(text);
	return doc;
}

static void the_document_tells_all_but_secrets(void **state)
{
	struct tokens *t = opened(*state);
	char secret[TOKEN_SECRET_SIZE], plain[TOKEN_SECRET_SIZE], *text = NULL;
	json_t *doc, *want;

	make(t, &full, secret);
	make_plain(t, "plain", plain);
	assert_int_equal(tokens_revoke(t, "plain", NOW + 1, NULL), 0);
	doc = document(t, NOW + 86400);
	want = json_pack("{s:[{s:s,s:s,s:s,s:[s,s],s:[s],s:[s,s],s:[s,s],s:i,s:i,s:i,s:I,s:b,s:b,s:s,s:s,s:n},"
			 "{s:s,s:s,s:s,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:b,s:b,s:s,s:n,s:s}]}",
			 "tokens", "name", "All.of_it-1", "state", "expired", "max_trust", "trusted", "languages",
			 "python", "cpp", "backends", "native", "environments", "data.v2", "web", "doors", "api",
			 "piston", "concurrent", 3, "runs_per_minute", 60, "cpu_seconds_per_hour", 7200, "memory_max",
			 (json_int_t)3 * (json_int_t)GiB, "makes_environments", 1, "admin", 1, "created",
			 "2027-01-15T08:00:00.000Z", "expires", "2027-01-16T08:00:00.000Z", "revoked", "name", "plain",
			 "state", "revoked", "max_trust", "unknown", "languages", "backends", "environments", "doors",
			 "concurrent", "runs_per_minute", "cpu_seconds_per_hour", "memory_max", "makes_environments", 0,
			 "admin", 0, "created", "2027-01-15T08:00:00.000Z", "expires", "revoked",
			 "2027-01-15T08:00:01.000Z");
	assert_non_null(want);
	assert_true(json_equal(doc, want));
	json_decref(doc);
	assert_int_equal(token_json(tokens_named(t, full.name), NOW, &text, NULL), 0);
	doc = json_loads(text, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(doc, "state")), "active");
	free(text);
	json_decref(doc);
	json_decref(want);
	tokens_close(t);
}

/* ---- descriptions that are refused ------------------------------------------------------------- */

static void bad_descriptions_are_refused(void **state)
{
	static const char *bad_words[] = { "Python" }, *blank[] = { "" }, *many[TOKEN_LIST_MAX + 1];
	struct brig_error err = BRIG_ERROR_INIT;
	struct tokens *t = opened(*state);
	char secret[TOKEN_SECRET_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = "go";
	{
		const struct {
			struct token what;
			const char *says;
		} rows[] = {
			{ { .name = "", .created = NOW }, "cannot be the name" },
			{ { .name = "-x", .created = NOW }, "cannot be the name" },
			{ { .name = "a b", .created = NOW }, "cannot be the name" },
			{ { .name = "uid:0", .created = NOW }, "cannot be the name" },
			{ { .name = "a/b", .created = NOW }, "cannot be the name" },
			{ { .name = "x\n", .created = NOW }, "cannot be the name" },
			{ { .name = "x", .created = NOW, .max_trust = (enum token_trust)3 }, "max_trust" },
			{ { .name = "x", .created = NOW, .languages = { bad_words, 1 } },
			  "'Python' cannot be among the languages" },
			{ { .name = "x", .created = NOW, .backends = { blank, 1 } }, "among the backends" },
			{ { .name = "x", .created = NOW, .environments = { many, TOKEN_LIST_MAX + 1 } }, "at most 32" },
			{ { .name = "x", .created = NOW, .quota.memory = UINT64_MAX }, "memory_max" },
			{ { .name = "x", .created = NOW, .quota.cpu_seconds_per_hour = UINT64_MAX },
			  "cpu_seconds_per_hour" },
			{ { .name = "x", .created = NOW, .quota.concurrent = UINT32_MAX }, "concurrent" },
			{ { .name = "x", .created = NOW, .expires = -1 }, "expires" },
			{ { .name = "x", .created = 0 }, "clock" },
		};

		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			assert_int_equal(tokens_create(t, &rows[i].what, secret, &err), -BRIG_E_USAGE);
			assert_says(&err, rows[i].says);
		}
	}
	assert_int_equal(tokens_count(t), 0);
	tokens_close(t);
}

/* ---- files that are refused -------------------------------------------------------------------- */

#define HASH_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HASH_B "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define REST   ",\"max_trust\":\"unknown\",\"created\":1800000000"
#define GOOD   "{\"name\":\"good\",\"hash\":\"" HASH_A "\"" REST "}\n"
/* The second line, with a name and a hash of its own. */
#define SECOND(more) "{\"name\":\"second\",\"hash\":\"" HASH_B "\"" REST more "}\n"

static const struct {
	const char *line, *says;
} bad_lines[] = {
	{ "\n", "is no JSON object" },
	{ "nonsense\n", "is no JSON object" },
	{ "[]\n", "is no JSON object" },
	{ "{}\n", "name is missing" },
	{ "{\"name\":\"x\"" REST "}\n", "hash is missing" },
	{ "{\"name\":\"x\",\"hash\":\"" HASH_B "\",\"created\":1}\n", "max_trust is missing" },
	{ "{\"name\":\"x\",\"hash\":\"" HASH_B "\",\"max_trust\":\"unknown\"}\n", "created is missing" },
	{ "{\"name\":\"x y\",\"hash\":\"" HASH_B "\"" REST "}\n", "name must be" },
	{ "{\"name\":7,\"hash\":\"" HASH_B "\"" REST "}\n", "name must be" },
	{ "{\"name\":\"x\",\"hash\":\"ff\"" REST "}\n", "hash must be" },
	{ "{\"name\":\"x\",\"hash\":\"" HASH_B "00\"" REST "}\n", "hash must be" },
	{ "{\"name\":\"good\",\"hash\":\"" HASH_B "\"" REST "}\n", "good is the name of a token above" },
	{ "{\"name\":\"x\",\"hash\":\"" HASH_A "\"" REST "}\n", "x has the secret of a token above" },
	{ "{\"name\":\"x\",\"name\":\"y\",\"hash\":\"" HASH_B "\"" REST "}\n", "is no JSON object" },
	{ SECOND(",\"max_runs\":1"), "not known here" },
	{ SECOND(",\"languages\":[]"), "languages must be" },
	{ SECOND(",\"languages\":\"go\""), "languages must be" },
	{ SECOND(",\"languages\":[\"go\",1]"), "languages must be" },
	{ SECOND(",\"environments\":[\"../x\"]"), "environments must be" },
	{ SECOND(",\"concurrent\":0"), "concurrent must be" },
	{ SECOND(",\"concurrent\":-1"), "concurrent must be" },
	{ SECOND(",\"concurrent\":4294967297"), "concurrent must be" },
	{ SECOND(",\"concurrent\":1.5"), "concurrent must be" },
	{ SECOND(",\"memory_max\":\"1g\""), "memory_max must be" },
	{ SECOND(",\"memory_max\":9223372036854775807"), "memory_max must be" },
	{ SECOND(",\"admin\":1"), "admin must be" },
	{ SECOND(",\"expires\":\"never\""), "expires must be" },
	{ SECOND(",\"expires\":null"), "expires must be" },
	{ SECOND(",\"revoked\":-5"), "revoked must be" },
	{ SECOND("} {\"a\":1"), "is no JSON object" },
	{ "{\"name\":\"x\"", "the file was cut" },
	{ "{\"name\":\"second\",\"hash\":\"" HASH_B "\"" REST "}", "the file was cut" },
};

/* No half of a file counts, and who was known before is not known any more. */
static void one_bad_line_refuses_the_file(void **state)
{
	const struct bed *b = *state;
	struct tokens *service = opened(b), *t = NULL;
	char secret[TOKEN_SECRET_SIZE], kept[1024], text[2048];
	size_t kept_len;

	make_plain(service, "good-one", secret);
	kept_len = read_file(b, kept, sizeof(kept));
	for (size_t i = 0; i < ARRAY_LEN(bad_lines); i++) {
		struct brig_error err = BRIG_ERROR_INIT, again = BRIG_ERROR_INIT;

		(void)snprintf(text, sizeof(text), "%s%s", GOOD, bad_lines[i].line);
		write_file(b, text, strlen(text));
		assert_int_equal(tokens_open(b->state, &t, &err), -BRIG_E_REFUSED);
		assert_says(&err, b->file);
		assert_says(&err, "line 2: ");
		assert_says(&err, bad_lines[i].says);
		assert_int_equal(tokens_refresh(service, &again), -BRIG_E_REFUSED);
		assert_string_equal(again.msg, err.msg);
		again.msg[0] = '\0';
		assert_int_equal(tokens_refresh(service, &again), -BRIG_E_REFUSED); /* and it says so again */
		assert_string_equal(again.msg, err.msg);
		assert_int_equal(why(service, secret, NOW), TOKEN_UNREADABLE);
		assert_int_equal(tokens_revoke(service, "good", NOW, &err), -BRIG_E_REFUSED); /* nothing is repaired */
		write_file(b, kept, kept_len);
		assert_int_equal(tokens_refresh(service, &err), 1);
		assert_int_equal(why(service, secret, NOW), TOKEN_KNOWN);
	}
	tokens_close(service);
}

static void bytes_that_are_no_text_are_refused(void **state)
{
	static const char nul[] = GOOD "{\"name\":\"\0\"}\n", latin[] = GOOD "{\"name\":\"\xe4\"}\n";
	struct brig_error err = BRIG_ERROR_INIT;
	const struct bed *b = *state;
	struct tokens *t = opened(b);

	write_file(b, nul, sizeof(nul) - 1);
	assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
	assert_says(&err, "line 2");
	write_file(b, latin, sizeof(latin) - 1);
	assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
	assert_says(&err, "line 2");
	write_file(b, "", 0);
	assert_int_equal(tokens_refresh(t, &err), 1);
	assert_int_equal(unlink(b->file), 0);
	assert_int_equal(tokens_refresh(t, &err), 1);
	assert_int_equal(tokens_refresh(t, &err), 0);
	tokens_close(t);
}

/* What others can read or change is refused, with what to do; fixed, it counts again. */
static void open_files_and_folders_are_refused(void **state)
{
	static const struct {
		mode_t mode;
		const char *says;
	} modes[] = { { 0640, "chmod 600" }, { 0604, "chmod 600" }, { 0644, "chmod 600" }, { 0660, "chmod go-w" } };
	struct brig_error err = BRIG_ERROR_INIT;
	const struct bed *b = *state;
	struct tokens *t = opened(b), *other = NULL;
	char secret[TOKEN_SECRET_SIZE];

	make_plain(t, "ci", secret);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(b->file, modes[i].mode), 0);
		assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
		assert_says(&err, modes[i].says);
		assert_int_equal(why(t, secret, NOW), TOKEN_UNREADABLE);
		assert_int_equal(chmod(b->file, 0600), 0);
		assert_int_equal(tokens_refresh(t, &err), 1);
		assert_int_equal(why(t, secret, NOW), TOKEN_KNOWN);
	}
	assert_int_equal(chmod(b->folder, 0755), 0);
	assert_int_equal(tokens_open(b->state, &other, &err), -BRIG_E_REFUSED);
	assert_says(&err, "chmod 700");
	assert_int_equal(chmod(b->folder, 0700), 0);
	tokens_close(t);
}

static void files_of_others_and_links_are_refused(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct bed *b = *state;
	struct tokens *t = opened(b);
	char secret[TOKEN_SECRET_SIZE], aside[256];

	make_plain(t, "ci", secret);
	(void)snprintf(aside, sizeof(aside), "%s/aside", b->base);
	assert_int_equal(rename(b->file, aside), 0);
	assert_int_equal(symlink(aside, b->file), 0);
	assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
	assert_int_equal(why(t, secret, NOW), TOKEN_UNREADABLE);
	assert_int_equal(unlink(b->file), 0);
	assert_int_equal(rename(aside, b->file), 0);
	assert_int_equal(tokens_refresh(t, &err), 1);
	assert_int_equal(why(t, secret, NOW), TOKEN_KNOWN);
	if (geteuid() == 0) {
		assert_int_equal(chown(b->file, 1, 1), 0);
		assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
		assert_says(&err, "belongs to user 1");
	}
	tokens_close(t);
}

/* ---- many -------------------------------------------------------------------------------------- */

static void put_line(struct buf *text, size_t i, const char *more)
{
	assert_true(buf_addf(text, "{\"name\":\"n%zu\",\"hash\":\"%064zx\"" REST "%s}\n", i, i, more));
}

static void there_are_ceilings(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct bed *b = *state;
	struct tokens *t = opened(b);
	AUTO_BUF text = BUF_INIT(16 * MiB);
	char secret[TOKEN_SECRET_SIZE];
	const struct token one_more = { .name = "more", .created = NOW };

	for (size_t i = 0; i < TOKENS_MAX; i++)
		put_line(&text, i, "");
	write_file(b, text.data, text.len);
	assert_int_equal(tokens_refresh(t, &err), 1);
	assert_int_equal(tokens_count(t), TOKENS_MAX);
	assert_int_equal(tokens_create(t, &one_more, secret, &err), -BRIG_E_REFUSED);
	assert_says(&err, "1000 tokens");
	assert_int_equal(tokens_revoke(t, "n500", NOW, &err), 0);
	make(t, &one_more, secret); /* in the place of the revoked one */
	assert_null(tokens_named(t, "n500"));
	assert_int_equal(why(t, secret, NOW), TOKEN_KNOWN);
	put_line(&text, TOKENS_MAX, "");
	write_file(b, text.data, text.len);
	assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
	assert_says(&err, "line 1001: is one token too many");
	for (size_t i = 0; text.len <= TOKENS_FILE_MAX; i++)
		put_line(&text, i, "");
	write_file(b, text.data, text.len);
	assert_int_equal(tokens_refresh(t, &err), -BRIG_E_SYSTEM);
	assert_says(&err, "larger than anything");
	assert_int_equal(why(t, secret, NOW), TOKEN_UNREADABLE);
	tokens_close(t);
}

static void long_lines_are_refused(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct bed *b = *state;
	struct tokens *t = opened(b);
	AUTO_BUF text = BUF_INIT(MiB);

	buf_adds(&text, "{\"name\":\"");
	while (text.len <= TOKEN_LINE_MAX)
		buf_adds(&text, "aaaaaaaaaaaaaaaa");
	buf_adds(&text, "\"}\n");
	write_file(b, text.data, text.len);
	assert_int_equal(tokens_refresh(t, &err), -BRIG_E_REFUSED);
	assert_says(&err, "line 1: has more bytes");
	tokens_close(t);
}

#define WRITERS 4
#define EACH    10

static int writer(const struct bed *b, int number)
{
	struct tokens *t = NULL;

	if (tokens_open(b->state, &t, NULL) < 0)
		return 1;
	for (int i = 0; i < EACH; i++) {
		struct token what = { .created = NOW };
		char secret[TOKEN_SECRET_SIZE];

		(void)snprintf(what.name, sizeof(what.name), "w%d-%d", number, i);
		if (tokens_create(t, &what, secret, NULL) < 0 || !tokens_find(t, secret, NOW, NULL))
			return 1;
		if (i % 2 && tokens_revoke(t, what.name, NOW, NULL) < 0)
			return 1;
	}
	tokens_close(t);
	return 0;
}

/* Whoever reads meanwhile never sees a file that is not whole. */
static void writers_lose_nothing(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	const struct bed *b = *state;
	struct tokens *t = opened(b);
	pid_t child[WRITERS];
	int left = WRITERS, status;

	for (int i = 0; i < WRITERS; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i] == 0)
			_exit(writer(b, i));
	}
	while (left > 0) {
		if (tokens_refresh(t, &err) < 0)
			fail_msg("%s", err.msg);
		for (int i = 0; i < WRITERS; i++)
			if (child[i] > 0 && waitpid(child[i], &status, WNOHANG) == child[i]) {
				assert_int_equal(status, 0);
				child[i] = 0;
				left--;
			}
	}
	assert_true(tokens_refresh(t, &err) >= 0);
	assert_int_equal(tokens_count(t), WRITERS * EACH / 2);
	for (int i = 0; i < WRITERS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "w%d-%d", i, EACH - 1);
		assert_non_null(tokens_named(t, name));
	}
	tokens_close(t);
}

/* ---- what a token allows ----------------------------------------------------------------------- */

static void requests_do_not_exceed_their_token(void **state UNUSED)
{
	static const struct token open_one = { .name = "open", .max_trust = TOKEN_TRUSTED };
	static const struct token low = { .name = "low", .max_trust = TOKEN_UNTRUSTED };
	static const struct {
		const struct token *token;
		struct token_wish wish;
		const char *refusal; /* NULL: it is allowed */
	} rows[] = {
		{ &open_one, { .trust = "trusted", .language = "go", .backend = "direct", .environment = "x" }, NULL },
		{ &open_one, { .packages = true, .memory = UINT64_MAX }, NULL },
		{ &low, { .trust = "untrusted" }, NULL },
		{ &low,
		  { .trust = "unknown" },
		  "the token 'low' may not run with trust 'unknown': it may with 'untrusted'" },
		{ &low, { .trust = NULL }, "trust 'trusted'" },
		{ &low, { .trust = "Untrusted" }, "'Untrusted' is no trust level" },
		{ &low, { .trust = "" }, "is no trust level" },
		{ &full, { .trust = "trusted", .language = "cpp", .backend = "native" }, NULL },
		{ &full,
		  { .language = "go", .backend = "native" },
		  "the token 'All.of_it-1' may not use the language 'go': it may use python, cpp" },
		{ &full, { .language = "pytho", .backend = "native" }, "language 'pytho'" },
		{ &full, { .language = NULL, .backend = "native" }, "the request names none: name one" },
		{ &full, { .language = "cpp", .backend = "docker" }, "backend 'docker': it may use native" },
		{ &full, { .language = "cpp", .backend = NULL }, "may use the backends native only" },
		{ &full, { .language = "cpp", .backend = "native", .environment = "web" }, NULL },
		{ &full, { .language = "cpp", .backend = "native", .environment = "none" }, NULL },
		{ &full, { .language = "cpp", .backend = "native", .environment = "db" }, "environment 'db'" },
		{ &full,
		  { .language = "cpp", .backend = "native", .environment = "web", .packages = true },
		  "may not install packages" },
		{ &full, { .language = "cpp", .backend = "native", .memory = 3 * GiB }, NULL },
		{ &full, { .language = "cpp", .backend = "native", .memory = 3 * GiB + 1 }, "may have 3 GB together" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		int rc = token_allows(rows[i].token, &rows[i].wish, &err);

		if (rc != (rows[i].refusal
				   ? -(strstr(rows[i].refusal, "is no trust level") ? BRIG_E_USAGE : BRIG_E_REFUSED)
				   : 0))
			fail_msg("row %zu: %d %s", i, rc, err.msg);
		if (rows[i].refusal)
			assert_says(&err, rows[i].refusal);
	}
}

static void environments_are_made_by_those_who_may(void **state UNUSED)
{
	static const struct token admin = { .name = "admin", .admin = true };
	static const struct token listed = { .name = "listed", .environments = { some_environments, 2 } };
	static const struct token maker = { .name = "maker",
					    .makes_environments = true,
					    .environments = { some_environments, 2 } };
	static const struct token boundless = { .name = "boundless", .makes_environments = true };
	static const struct token bound = { .name = "bound", .admin = true, .environments = { some_environments, 2 } };
	const struct {
		const struct token *token;
		const char *name, *refusal;
		bool sees;
	} rows[] = {
		{ &admin, "any", NULL, true },
		{ &listed, "web", "may not make or remove", true },
		{ &maker, "web", NULL, true },
		{ &maker, "any", "environment 'any'", false },
		{ &boundless, "any", "names none", true },
		{ &bound, "web", NULL, true },
		{ &bound, "any", "environment 'any'", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		int rc = token_makes(rows[i].token, rows[i].name, &err);

		if (rc != (rows[i].refusal ? -BRIG_E_REFUSED : 0))
			fail_msg("row %zu: %d %s", i, rc, err.msg);
		if (rows[i].refusal)
			assert_says(&err, rows[i].refusal);
		assert_int_equal(token_sees_environment(rows[i].token, rows[i].name), rows[i].sees);
	}
}

static void long_lists_are_cut_in_messages(void **state UNUSED)
{
	static const char *many[TOKEN_LIST_MAX];
	const struct token t = { .name = "many", .max_trust = TOKEN_TRUSTED, .languages = { many, TOKEN_LIST_MAX } };
	struct brig_error err = BRIG_ERROR_INIT;

	for (size_t i = 0; i < TOKEN_LIST_MAX; i++)
		many[i] = "a-language-with-a-long-name";
	assert_int_equal(token_allows(&t, &(struct token_wish){ .language = "go" }, &err), -BRIG_E_REFUSED);
	assert_says(&err, "may not use the language 'go'");
	assert_says(&err, "...");
}

static void what_is_not_asked_for_is_not_more(void **state UNUSED)
{
	static const struct token low = { .name = "low", .max_trust = TOKEN_UNTRUSTED };

	assert_string_equal(token_trust_default(&low, "unknown"), "untrusted");
	assert_string_equal(token_trust_default(&full, "unknown"), "unknown");
	assert_string_equal(token_trust_default(&full, "untrusted"), "untrusted");
	assert_string_equal(token_trust_default(&low, NULL), "untrusted");
	assert_string_equal(token_backend_default(&full), "native");
	assert_null(token_backend_default(&low));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_token_is_made_and_found),
		TEST(other_secrets_are_nobody),
		TEST(tokens_expire),
		TEST(tokens_are_revoked_for_everybody),
		TEST(names_are_taken_once),
		TEST(everything_that_is_said_is_kept),
		TEST(the_document_tells_all_but_secrets),
		TEST(bad_descriptions_are_refused),
		TEST(one_bad_line_refuses_the_file),
		TEST(bytes_that_are_no_text_are_refused),
		TEST(open_files_and_folders_are_refused),
		TEST(files_of_others_and_links_are_refused),
		TEST(there_are_ceilings),
		TEST(long_lines_are_refused),
		TEST(writers_lose_nothing),
		cmocka_unit_test(requests_do_not_exceed_their_token),
		cmocka_unit_test(long_lists_are_cut_in_messages),
		cmocka_unit_test(what_is_not_asked_for_is_not_more),
		cmocka_unit_test(environments_are_made_by_those_who_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
