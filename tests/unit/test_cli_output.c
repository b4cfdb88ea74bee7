/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/sanitize.h"
#include "cli/ui.h"
#include "cli/write.h"

/* ---- what a terminal is shown (TT-02) ----------------------------------------------------------- */

static const struct {
	const char *name, *in, *want;
} shown[] = {
	{ "plain text", "hello, world\n", "hello, world\n" },
	{ "tab and carriage return", "a\tb\rc\r\n", "a\tb\rc\r\n" },
	{ "accents, CJK, emoji with joiner", "\u00e9\u4e2d\U0001f468\u200d\U0001f469",
	  "\u00e9\u4e2d\U0001f468\u200d\U0001f469" },
	{ "clear screen", "\033[2J", "\\x1b[2J" },
	{ "window title", "\033]0;owned\a", "\\x1b]0;owned\\x07" },
	{ "backspace and delete", "a\b\x7f", "a\\x08\\x7f" },
	{ "vertical tab and form feed", "\v\f", "\\x0b\\x0c" },
	{ "C1 control as UTF-8",
	  "\xc2\x9b"
	  "2J",
	  "\\u009b2J" },
	{ "C1 control as a byte",
	  "\x9b"
	  "2J",
	  "\\x9b2J" },
	{ "bidirectional override", "a\u202eb\u2066", "a\\u202eb\\u2066" },
	{ "direction marks and what is not seen", "\u061c\u200e\u200f\u200b\u2060\ufeff\u00ad",
	  "\\u061c\\u200e\\u200f\\u200b\\u2060\\ufeff\\u00ad" },
	{ "line separator", "a\u2028", "a\\u2028" },
	{ "invisible tag", "\U000e0041", "\\U000e0041" },
	{ "odd bytes", "\xff\xc3(", "\\xff\\xc3(" },
	{ "overlong newline", "\xc0\x8a", "\\xc0\\x8a" },
	{ "surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80" },
	{ "character broken by another", "\xe2\x82\u00e9", "\\xe2\\x82\u00e9" },
	{ "ends within a character", "a\xf0\x9f\x98", "a\\xf0\\x9f\\x98" },
};

static void sanitizer_shows_what_is_harmless(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		AUTO_BUF out = BUF_INIT(4096);

		sanitize_text(SANITIZE_STREAM, shown[i].in, strlen(shown[i].in), &out);
		if (!str_eq(buf_str(&out), shown[i].want))
			fail_msg("%s: '%s'", shown[i].name, buf_str(&out));
	}
}

static void sanitizer_shows_nul(void **state UNUSED)
{
	AUTO_BUF out = BUF_INIT(64);

	sanitize_text(SANITIZE_STREAM, "a\0b", 3, &out);
	assert_string_equal(buf_str(&out), "a\\x00b");
}

/* Wherever the stream is cut into pieces, the same is shown. */
static void sanitizer_does_not_depend_on_chunks(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		for (size_t size = 1; size <= 3; size++) {
			AUTO_BUF out = BUF_INIT(4096);
			struct sanitizer s = { 0 };
			size_t len = strlen(shown[i].in);

			for (size_t at = 0; at < len; at += size)
				sanitize(&s, shown[i].in + at, len - at < size ? len - at : size, &out);
			sanitize_end(&s, &out);
			if (!str_eq(buf_str(&out), shown[i].want))
				fail_msg("%s in pieces of %zu: '%s'", shown[i].name, size, buf_str(&out));
		}
}

/* Every string of two bytes: nothing that a terminal obeys gets through, and nothing outgrows its room. */
static void sanitizer_lets_no_control_through(void **state UNUSED)
{
	for (unsigned v = 0; v < 4 * 0x10000; v++) {
		const enum sanitize_kind kind = (enum sanitize_kind)(v >> 16);
		const char in[] = { (char)(v >> 8), (char)v };
		AUTO_BUF out = BUF_INIT(SANITIZE_GROWTH * sizeof(in));

		sanitize_text(kind, in, sizeof(in), &out);
		assert_false(out.full);
		assert_true(str_is_utf8(buf_str(&out), out.len));
		for (size_t i = 0; i < out.len; i++) {
			unsigned char c = (unsigned char)out.data[i];

			assert_true((c >= 0x20 && c != 0x7f) || ((c == '\n' || c == '\t') && kind != SANITIZE_LINE) ||
				    (c == '\r' && kind == SANITIZE_STREAM));
			assert_false(c == 0xc2 && (unsigned char)out.data[i + 1] < 0xa0);
		}
	}
}

/* Each of these reaches a reader in visible form, wherever brig puts it. */
#define HOSTILE                                                                                            \
	"\r \x7f \xc2\x85 \xc2\x9b \u00ad \u061c \u200b \u200d \u200e \u200f \u2028 \u2029 \u202e \u2060 " \
	"\u2066 \ufeff \U000e0041 \x9b \xff"
#define VISIBLE                                                                                                        \
	"\\x0d \\x7f \\u0085 \\u009b \\u00ad \\u061c \\u200b \\u200d \\u200e \\u200f \\u2028 \\u2029 \\u202e \\u2060 " \
	"\\u2066 \\ufeff \\U000e0041 \\x9b \\xff"

static void t1_names_stay_one_visible_line(void **state UNUSED)
{
	struct ui_table table = { .n_columns = 1 };
	AUTO_BUF line = BUF_INIT(4096), lines = BUF_INIT(4096), cell = BUF_INIT(4096);

	ui_line(HOSTILE "\n\tb", &line);
	assert_string_equal(buf_str(&line), VISIBLE "\\x0a\\x09b");
	ui_lines(HOSTILE "\n\tb", strlen(HOSTILE) + 3, &lines);
	assert_string_equal(buf_str(&lines), VISIBLE "\n\tb");
	ui_table_add(&table, HOSTILE "\nb", UI_PLAIN);
	ui_table_show(&table, false, &cell);
	ui_table_release(&table);
	assert_string_equal(buf_str(&cell), VISIBLE "\\x0ab\n");
}

/* What was written to a pipe, as a string. */
static void read_back(int pipe_fds[2], char *dst, size_t size)
{
	ssize_t n;

	close(pipe_fds[1]);
	n = fd_read_all(pipe_fds[0], dst, size - 1);
	assert_true(n >= 0);
	dst[n] = '\0';
	close(pipe_fds[0]);
}

/* A command that forgets to make a text safe: the gate does, and lets only our colours pass. */
static void t1_gate_holds_what_a_command_forgot(void **state UNUSED)
{
	AUTO_BUF text = BUF_INIT(4096);
	char got[4096];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	ui_paint(&text, true, UI_GREEN, "ok");
	buf_adds(&text, " " HOSTILE " \033[2J \033]0;x\a \033[31;5m \033");
	assert_int_equal(ui_put(fds[1], &text), 0);
	read_back(fds, got, sizeof(got));
	assert_string_equal(got, "\033[32mok\033[0m " VISIBLE " \\x1b[2J \\x1b]0;x\\x07 \\x1b[31;5m \\x1b");
}

static void t2_json_means_the_same_without_raw_characters(void **state UNUSED)
{
	AUTO_BUF text = BUF_INIT(4096);
	char got[4096];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	buf_adds(&text, "{\n\t\"a\": \"\x7f\xc2\x9b\u202e\u200d\U000e0041\u00e9\U0001f468\"}");
	assert_int_equal(ui_put_json(fds[1], &text), 0);
	read_back(fds, got, sizeof(got));
	assert_string_equal(got, "{\n\t\"a\": \"\\u007f\\u009b\\u202e\\u200d\\udb40\\udc41\u00e9\U0001f468\"}");
}

/* What is data stays as it is, where there is no terminal. */
static void t2_data_for_programs_is_not_changed(void **state UNUSED)
{
	AUTO_BUF text = BUF_INIT(4096);
	char got[4096];
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	buf_adds(&text, HOSTILE "\033[2J");
	assert_int_equal(ui_put_bytes(fds[1], &text, false), 0);
	read_back(fds, got, sizeof(got));
	assert_string_equal(got, HOSTILE "\033[2J");
}

/* ---- options ------------------------------------------------------------------------------------ */

struct values {
	bool flag;
	const char *text;
	struct words list;
	struct wishes wishes;
};

#define AT(member) offsetof(struct values, member)
static const struct option_row rows[] = {
	{ "flag", 'f', OPTION_FLAG, NULL, AT(flag), NULL, "a flag" },
	{ "text", 't', OPTION_TEXT, "TEXT", AT(text), NULL, "a text" },
	{ "list", 0, OPTION_LIST, "ITEM", AT(list), NULL, "a list" },
	{ "memory", 0, OPTION_WISH, "SIZE", AT(wishes), "mem_limit", "a wish" },
	{ "set", 0, OPTION_WISH, "KEY=VALUE", AT(wishes), NULL, "any wish" },
	{ "no-lamp", 0, OPTION_FIXED_WISH, "false", AT(wishes), "lamp", "a wish without a value" },
};
static const struct command command = {
	.name = "test",
	.synopsis = "FILE",
	.summary = "a test",
	.options = rows,
	.n_options = ARRAY_LEN(rows),
};

#define WORDS_MAX 16

/* A command line to parse, and everything that comes of it. */
struct line {
	char copy[WORDS_MAX][64];
	char *argv[WORDS_MAX + 1];
	int argc;
	struct values v;
	struct operands ops;
	struct brig_error err;
	int rc;
};

static void parse(struct line *l, const char *const *words)
{
	*l = (struct line){ 0 };
	for (; words[l->argc]; l->argc++) {
		assert_true(l->argc < WORDS_MAX);
		(void)str_copy(l->copy[l->argc], sizeof(l->copy[0]), words[l->argc]);
		l->argv[l->argc] = l->copy[l->argc];
	}
	l->rc = options_parse(&command, l->argc, l->argv, &l->v, &l->ops, &l->err);
}
#define PARSE(l, ...) parse(l, (const char *const[]){ __VA_ARGS__, NULL })

static void options_take_every_spelling(void **state UNUSED)
{
	static const char *const spellings[][4] = {
		{ "--text", "a b" }, { "--text=a b" }, { "-t", "a b" }, { "-ta b" }, { "--text=x", "--text=a b" },
	};
	struct line l;

	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		parse(&l, spellings[i]);
		assert_int_equal(l.rc, OPTIONS_OK);
		assert_string_equal(l.v.text, "a b");
		assert_int_equal(l.ops.words.n, 0);
		options_release(&command, &l.v, &l.ops);
	}
}

static void options_mix_with_operands_until_the_dashes(void **state UNUSED)
{
	struct line l;

	PARSE(&l, "file", "-f", "-", "--list=1", "--list", "--text", "--", "--flag", "--", "-x");
	assert_int_equal(l.rc, OPTIONS_OK);
	assert_true(l.v.flag);
	assert_null(l.v.text); /* it was the value of --list */
	assert_int_equal(l.v.list.n, 2);
	assert_string_equal(l.v.list.item[1], "--text");
	assert_int_equal(l.ops.words.n, 2);
	assert_string_equal(l.ops.words.item[0], "file");
	assert_string_equal(l.ops.words.item[1], "-");
	assert_int_equal(l.ops.rest.n, 3);
	assert_string_equal(l.ops.rest.item[0], "--flag");
	assert_string_equal(l.ops.rest.item[1], "--");
	assert_string_equal(l.ops.rest.item[2], "-x");
	options_release(&command, &l.v, &l.ops);
}

static void options_become_wishes_in_order(void **state UNUSED)
{
	struct line l;

	PARSE(&l, "--set", "pids_limit=5", "--memory", "64m", "--set=user=1:1", "--no-lamp");
	assert_int_equal(l.rc, OPTIONS_OK);
	assert_int_equal(l.v.wishes.n, 4);
	assert_string_equal(l.v.wishes.item[0].key, "pids_limit");
	assert_string_equal(l.v.wishes.item[0].value, "5");
	assert_string_equal(l.v.wishes.item[1].key, "mem_limit");
	assert_string_equal(l.v.wishes.item[1].value, "64m");
	assert_string_equal(l.v.wishes.item[2].key, "user");
	assert_string_equal(l.v.wishes.item[2].value, "1:1");
	assert_string_equal(l.v.wishes.item[3].key, "lamp");
	assert_string_equal(l.v.wishes.item[3].value, "false");
	options_release(&command, &l.v, &l.ops);
}

static void options_explain_what_is_wrong(void **state UNUSED)
{
	static const struct {
		const char *words[4];
		const char *msg;
	} cases[] = {
		{ { "--flog" }, "unknown option '--flog'; did you mean '--flag'?" },
		{ { "--flog=1" }, "unknown option '--flog'; did you mean '--flag'?" },
		{ { "--zzzzzzzz" }, "unknown option '--zzzzzzzz'" },
		{ { "-x" }, "unknown option '-x'" },
		{ { "--flag=1" }, "--flag takes no value" },
		{ { "--no-lamp=1" }, "--no-lamp takes no value" },
		{ { "file", "--text" }, "--text needs a value: --text TEXT" },
		{ { "--set", "nothing" }, "--set takes KEY=VALUE, not 'nothing'" },
		{ { "--set", "=1" }, "--set takes KEY=VALUE, not '=1'" },
	};
	struct line l;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		parse(&l, cases[i].words);
		assert_int_equal(l.rc, -BRIG_E_USAGE);
		assert_string_equal(l.err.msg, cases[i].msg);
		options_release(&command, &l.v, &l.ops);
	}
}

static void options_help_is_asked_for_before_the_dashes_only(void **state UNUSED)
{
	struct line l;

	PARSE(&l, "file", "--help", "--nonsense");
	assert_int_equal(l.rc, OPTIONS_HELP);
	options_release(&command, &l.v, &l.ops);
	PARSE(&l, "file", "--", "-h");
	assert_int_equal(l.rc, OPTIONS_OK);
	options_release(&command, &l.v, &l.ops);
}

/* Tables of the real commands: no name twice, a value's name where there is a value, help within its lines. */
static void tables_are_sound(void **state UNUSED)
{
	for (size_t c = 0; c < command_count; c++) {
		const struct command *cmd = commands[c];
		AUTO_BUF page = BUF_INIT(64 * KiB);

		options_help(cmd, &page);
		assert_non_null(strstr(buf_str(&page), cmd->summary));
		for (const char *line = buf_str(&page); *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= 100);
		for (size_t i = 0; i < cmd->n_options; i++) {
			const struct option_row *a = &cmd->options[i];

			assert_true((a->kind == OPTION_FLAG) == (a->value == NULL));
			assert_non_null(strstr(buf_str(&page), a->name));
			assert_int_not_equal(a->letter, 'h');
			for (size_t k = 0; k < i; k++) {
				assert_string_not_equal(a->name, cmd->options[k].name);
				assert_true(a->letter == 0 || a->letter != cmd->options[k].letter);
			}
		}
	}
}

/* Dashes are written "\\-" in manual pages. */
static void add_manual_spelling(struct buf *out, const char *name)
{
	buf_adds(out, "\\-\\-");
	for (; *name; name++)
		buf_addf(out, "%s%c", *name == '-' ? "\\" : "", *name);
}

static void the_manual_has_every_command_and_option(void **state UNUSED)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	static char page[64 * 1024];
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/docs/man/brig.1", root ? root : ".");
	assert_true(fd_get_at(AT_FDCWD, path, page, sizeof(page)) > 0);
	assert_non_null(strstr(page, "\"brig " BRIG_VERSION "\""));
	for (size_t c = 0; c < command_count; c++) {
		AUTO_BUF name = BUF_INIT(256);

		buf_addf(&name, "brig %s", commands[c]->name);
		if (!strstr(page, buf_str(&name)))
			fail_msg("docs/man/brig.1 has no '%s'", buf_str(&name));
		for (size_t i = 0; i < commands[c]->n_options; i++) {
			AUTO_BUF option = BUF_INIT(256);

			add_manual_spelling(&option, commands[c]->options[i].name);
			if (!strstr(page, buf_str(&option)))
				fail_msg("docs/man/brig.1 has no '%s'", buf_str(&option));
		}
	}
}

static void commands_are_found_by_their_words(void **state UNUSED)
{
	char run[] = "run", policy[] = "policy", check[] = "check", typo[] = "docter", more[] = "x";
	struct brig_error err = BRIG_ERROR_INIT;
	int words;

	assert_ptr_equal(command_find(2, (char *[]){ run, more, NULL }, &words, &err), &command_run);
	assert_int_equal(words, 1);
	assert_ptr_equal(command_find(3, (char *[]){ policy, check, more, NULL }, &words, &err), &command_policy_check);
	assert_int_equal(words, 2);
	assert_null(command_find(1, (char *[]){ policy, NULL }, &words, &err));
	assert_non_null(strstr(err.msg, "'brig policy show' or 'brig policy check'"));
	assert_null(command_find(1, (char *[]){ typo, NULL }, &words, &err));
	assert_non_null(strstr(err.msg, "did you mean 'doctor'?"));
	assert_null(command_find(0, (char *[]){ NULL }, &words, &err));
}

/* ---- writing ------------------------------------------------------------------------------------- */

struct reader {
	int fd;
	size_t got;
};

static void *read_slowly(void *arg)
{
	struct reader *r = arg;
	char piece[777];
	ssize_t n;

	while ((n = read(r->fd, piece, sizeof(piece))) > 0)
		r->got += (size_t)n;
	return NULL;
}

/* More than a pipe holds, into a pipe that must not block. */
static void write_is_whole_on_a_nonblocking_pipe(void **state UNUSED)
{
	size_t len = 1 << 20;
	AUTO_FREE char *data = calloc(1, len);
	struct reader r = { 0 };
	pthread_t thread;
	int pipe_fds[2];

	assert_non_null(data);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(pipe_fds[1]), 0);
	r.fd = pipe_fds[0];
	assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
	assert_int_equal(write_all(pipe_fds[1], data, len, -1), 0);
	(void)close(pipe_fds[1]);
	(void)pthread_join(thread, NULL);
	(void)close(pipe_fds[0]);
	assert_int_equal(r.got, len);
}

/* Nobody reads, and somebody has given up: that ends the wait, for blocking pipes as well. */
static void write_gives_up_when_cancelled(void **state UNUSED)
{
	size_t len = 1 << 20;
	AUTO_FREE char *data = calloc(1, len);
	int pipe_fds[2], cancel = eventfd(1, EFD_CLOEXEC);

	assert_non_null(data);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(write_all(pipe_fds[1], data, len, cancel), -ECANCELED);
	(void)close(pipe_fds[0]);
	assert_int_equal(write_all(pipe_fds[1], data, len, cancel), -EPIPE);
	(void)close(pipe_fds[1]);
	(void)close(cancel);
}

static void write_part_does_not_wait_for_a_full_pipe(void **state UNUSED)
{
	size_t len = 1 << 20;
	AUTO_FREE char *data = calloc(1, len);
	int pipe_fds[2];
	ssize_t n;

	assert_non_null(data);
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	n = write_part(pipe_fds[1], data, len, -1, 0);
	assert_true(n > 0 && (size_t)n < len);
	assert_int_equal(write_part(pipe_fds[1], data, len, -1, 0), 0);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

struct collector {
	int fd;
	struct buf got;
};

static void *collect(void *arg)
{
	struct collector *c = arg;
	char piece[5000];
	ssize_t n;

	while ((n = read(c->fd, piece, sizeof(piece))) > 0)
		buf_add(&c->got, piece, (size_t)n);
	return NULL;
}

/* Nobody reads while the program runs: callbacks return all the same, and in the end every byte is there, in order. */
static void output_waits_for_its_reader_after_the_run(void **state UNUSED)
{
	struct collector c = { .got = BUF_INIT(4 * MiB) };
	AUTO_BUF want = BUF_INIT(4 * MiB);
	struct live live;
	pthread_t thread;
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	live_init(&live, -1, false, false);
	live.out = (struct live_stream){ .fd = pipe_fds[1], .queue = BUF_INIT(4 * MiB) };
	for (unsigned i = 0; i < 16; i++) {
		char piece[20000];

		memset(piece, (int)('a' + i), sizeof(piece));
		buf_add(&want, piece, sizeof(piece));
		live_on_output(&live, BRIG_STDOUT, piece, sizeof(piece));
	}
	assert_true(live.out.queue.len > 0);
	c.fd = pipe_fds[0];
	assert_int_equal(pthread_create(&thread, NULL, collect, &c), 0);
	live_finish(&live);
	(void)close(pipe_fds[1]);
	(void)pthread_join(thread, NULL);
	(void)close(pipe_fds[0]);
	assert_int_equal(live.out.error, 0);
	assert_int_equal(c.got.len, want.len);
	assert_memory_equal(c.got.data, want.data, want.len);
	buf_release(&c.got);
}

static void output_stops_when_its_reader_is_gone(void **state UNUSED)
{
	struct live live;
	int pipe_fds[2];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	live_init(&live, -1, false, false);
	live.out = (struct live_stream){ .fd = pipe_fds[1], .queue = BUF_INIT(4 * MiB) };
	(void)close(pipe_fds[0]);
	live_on_output(&live, BRIG_STDOUT, "x", 1);
	assert_int_equal(live.out.error, EPIPE);
	live_on_output(&live, BRIG_STDOUT, "x", 1);
	live_finish(&live);
	(void)close(pipe_fds[1]);
}

static void numbers_read_well(void **state UNUSED)
{
	static const struct {
		uint64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "0 ms" }, { 999, "999 ms" }, { 1250, "1.25 s" }, { 59990, "59.99 s" }, { 125000, "2 m 05 s" },
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(ui_millis(text, sizeof(text), cases[i].ms), cases[i].text);
}

static void tables_align_and_escape(void **state UNUSED)
{
	static const char *const cells[] = { "a", "b\033\n", "", "long \u00e9", "x", "z" };
	struct ui_table table = { .n_columns = 3 };
	AUTO_BUF out = BUF_INIT(4096);

	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		ui_table_add(&table, cells[i], UI_RED);
	ui_table_show(&table, false, &out);
	ui_table_release(&table);
	assert_string_equal(buf_str(&out), "a       b\\x1b\\x0a\nlong \u00e9  x          z\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sanitizer_shows_what_is_harmless),
		cmocka_unit_test(sanitizer_shows_nul),
		cmocka_unit_test(sanitizer_does_not_depend_on_chunks),
		cmocka_unit_test(sanitizer_lets_no_control_through),
		cmocka_unit_test(t1_names_stay_one_visible_line),
		cmocka_unit_test(t1_gate_holds_what_a_command_forgot),
		cmocka_unit_test(t2_json_means_the_same_without_raw_characters),
		cmocka_unit_test(t2_data_for_programs_is_not_changed),
		cmocka_unit_test(options_take_every_spelling),
		cmocka_unit_test(options_mix_with_operands_until_the_dashes),
		cmocka_unit_test(options_become_wishes_in_order),
		cmocka_unit_test(options_explain_what_is_wrong),
		cmocka_unit_test(options_help_is_asked_for_before_the_dashes_only),
		cmocka_unit_test(tables_are_sound),
		cmocka_unit_test(the_manual_has_every_command_and_option),
		cmocka_unit_test(commands_are_found_by_their_words),
		cmocka_unit_test(write_is_whole_on_a_nonblocking_pipe),
		cmocka_unit_test(write_gives_up_when_cancelled),
		cmocka_unit_test(write_part_does_not_wait_for_a_full_pipe),
		cmocka_unit_test(output_waits_for_its_reader_after_the_run),
		cmocka_unit_test(output_stops_when_its_reader_is_gone),
		cmocka_unit_test(numbers_read_well),
		cmocka_unit_test(tables_align_and_escape),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("cli_output", tests, NULL, NULL);
}
