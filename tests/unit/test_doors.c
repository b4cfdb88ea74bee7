/* SPDX-License-Identifier: Apache-2.0 */
/* Doors: which are open, how versions are chosen, the hash of the handshake of WebSocket, and sessions of MCP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/sha1.h"
#include "base/str.h"
#include "server/doors.h"
#include "server/doors/door.h"
#include "server/doors/e2b/connect.h"
#include "server/doors/e2b/filesystem.h"
#include "server/doors/e2b/sudo.h"
#include "server/doors/mcp/mcp.h"
#include "server/doors/piston/semver.h"

static void hashes_are_those_of_the_standard(void **state)
{
	/* RFC 3174, 7.3, and texts whose end fills a block, or the room for the length. */
	static const struct {
		size_t times;
		const char *text, *hex;
	} rows[] = {
		{ 1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ 1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ 1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		  "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ 55, "a", "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
		{ 64, "a", "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
		{ 80, "01234567", "dea356a2cddd90c7a7ecedc5ebb563934f460452" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[1024] = "", hex[2 * SHA1_LEN + 1];
		uint8_t hash[SHA1_LEN];

		for (size_t k = 0; k < rows[i].times; k++)
			strcat(text, rows[i].text);
		sha1(text, strlen(text), hash);
		for (size_t k = 0; k < SHA1_LEN; k++)
			(void)snprintf(hex + 2 * k, 3, "%02x", hash[k]);
		assert_string_equal(hex, rows[i].hex);
	}
}

static void versions_are_chosen_as_npm_does(void **state)
{
	static const struct {
		const char *version, *selector;
		bool fits;
	} rows[] = {
		{ "3.11.2", "*", true },
		{ "3.11.2", "x", true },
		{ "3.11.2", "3.11.2", true },
		{ "3.11.2", "v3.11.2", true },
		{ "3.11.2", "=3.11.2", true },
		{ "3.11.2", "3.11.3", false },
		{ "3.11.2", "3", true },
		{ "3.11.2", "3.x", true },
		{ "3.11.2", "3.11.*", true },
		{ "3.11.2", "3.1", false },
		{ "3.11.2", "^3.0.0", true },
		{ "3.11.2", "^3.12.0", false },
		{ "4.0.0", "^3.0.0", false },
		{ "0.2.5", "^0.2.3", true },
		{ "0.3.0", "^0.2.3", false },
		{ "0.0.4", "^0.0.3", false },
		{ "3.11.2", "~3.11.0", true },
		{ "3.12.0", "~3.11.0", false },
		{ "3.12.0", "~3", true },
		{ "3.11.2", ">=3", true },
		{ "3.11.2", ">3", false },
		{ "4.0.0", ">3", true },
		{ "3.11.2", "<3.11.2", false },
		{ "3.11.2", "<=3.11", true },
		{ "3.11.2", ">= 3.0.0 <4", true },
		{ "3.11.2", ">=3 <3.11", false },
		{ "3.11.2", "1 || 3", true },
		{ "3.11.2", "1||2", false },
		{ "3.11.2", "3.0.0 - 3.12", true },
		{ "3.11.2", "1.0.0 - 3.11.1", false },
		{ "3.11.2", "3.11.2-beta.1", true },
		{ "3.11.2", "", true },
		{ "3.11.2", "new", false },
		{ "3.11.2", "3.11.2.1", false },
		{ "3.11.2", "3..2", false },
		{ "3.11.2", "=>3", false },
		{ "3.11.2", "~>3.11", true },
		{ "3.12.0", "~>3.11", false },
		{ "3.11.2", "==3", false },
		{ "3.11.2", "^=3", false },
		{ "3.11.2", "3 |", false },
		{ "3.11.2", "9999999999", false },
		{ "none", "*", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (semver_fits(rows[i].version, rows[i].selector) != rows[i].fits)
			fail_msg("%s and '%s'", rows[i].version, rows[i].selector);
}

static void doors_are_shut_unless_named(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct door_set set;

	(void)state;
	assert_int_equal(doors_parse("", &set, &err), 0);
	assert_false(doors_any(&set));
	assert_int_equal(doors_parse("dify:untrusted, piston", &set, &err), 0);
	assert_true(set.is_open[DOOR_dify] && set.is_open[DOOR_piston] && !set.is_open[DOOR_fusion]);
	assert_int_equal(set.trust[DOOR_dify], TOKEN_UNTRUSTED);
	assert_int_equal(set.trust[DOOR_piston], TOKEN_UNKNOWN);
	assert_true(doors_have_sockets(&set));
	assert_int_equal(doors_parse("all:untrusted", &set, &err), 0);
	for (enum door d = DOOR_api + 1; d < DOOR_COUNT; d++)
		assert_true(set.is_open[d] && set.trust[d] == TOKEN_UNTRUSTED);
	assert_int_equal(doors_parse("api", &set, &err), -BRIG_E_USAGE);
	assert_int_equal(doors_parse("dify:root", &set, &err), -BRIG_E_USAGE);
	assert_int_equal(doors_parse("pistn", &set, &err), -BRIG_E_USAGE);
	assert_non_null(strstr(err.msg, "did you mean 'piston'"));
}

static void tokens_open_what_they_were_made_for(void **state)
{
	const char *some[] = { "piston", "api" };
	const struct token plain = { 0 }, listed = { .doors = { some, 1 } }, both = { .doors = { some, 2 } },
			   anybody = { .is_for_all = true };

	(void)state;
	assert_true(token_opens(&plain, "api") && !token_opens(&plain, "piston"));
	assert_true(token_opens(&listed, "piston") && !token_opens(&listed, "api") && !token_opens(&listed, "dify"));
	assert_true(token_opens(&both, "piston") && token_opens(&both, "api"));
	assert_true(token_opens(&anybody, "dify") && token_opens(&anybody, "api"));
}

/* As somebody of that name asks. */
static void ask_as(struct client *c, const char *name)
{
	(void)str_copy(c->req->who, sizeof(c->req->who), name);
}

static void sessions_are_few_and_forgotten(void **state)
{
	static struct front front;
	static struct request req;
	struct client c = { .front = &front, .req = &req };
	char first[MCP_SESSION_ID_LEN + 1], used[MCP_SESSION_ID_LEN + 1], name[16];

	(void)state;
	front.now_ns = 1;
	ask_as(&c, "a");
	assert_null(mcp_session_find(&c, "x"));
	(void)str_copy(first, sizeof(first), mcp_session_id(mcp_session_new(&c)));
	(void)str_copy(used, sizeof(used), mcp_session_id(mcp_session_new(&c)));
	assert_string_not_equal(first, used);
	assert_non_null(mcp_session_find(&c, first));
	ask_as(&c, "b");
	assert_null(mcp_session_find(&c, first)); /* of another token */
	ask_as(&c, "a");
	front.now_ns += 50 * 60 * NS_PER_SEC;
	assert_non_null(mcp_session_find(&c, used));
	front.now_ns += 11 * 60 * NS_PER_SEC;
	assert_null(mcp_session_find(&c, first)); /* an hour and a minute */
	assert_non_null(mcp_session_find(&c, used));
	for (int i = 0; i < 64; i++)
		assert_non_null(mcp_session_new(&c));
	assert_null(mcp_session_find(&c, used)); /* more than one may have */
	ask_as(&c, "b");
	(void)str_copy(first, sizeof(first), mcp_session_id(mcp_session_new(&c)));
	for (int i = 0; i < 1024; i++) {
		(void)snprintf(name, sizeof(name), "c%d", i / 64);
		ask_as(&c, name);
		assert_non_null(mcp_session_new(&c));
	}
	ask_as(&c, "b");
	assert_null(mcp_session_find(&c, first)); /* more than all may have */
	mcp_sessions_free(&front);
}

#define FRAME(flag, len, text) flag "\0\0\0" len text

static void frames_are_whole_or_none(void **state)
{
	static const struct {
		struct bytes body;
		size_t messages;
		enum connect_frame last;
	} rows[] = {
		{ { "", 0 }, 0, CONNECT_NO_MORE },
		{ { FRAME("\0", "\2", "{}"), 7 }, 1, CONNECT_NO_MORE },
		{ { FRAME("\0", "\2", "{}") FRAME("\0", "\0", ""), 12 }, 2, CONNECT_NO_MORE },
		{ { FRAME("\0", "\2", "{}") FRAME("\2", "\2", "{}") "more", 18 }, 1, CONNECT_NO_MORE },
		{ { FRAME("\0", "\2", "{}"), 6 }, 0, CONNECT_BAD },
		{ { FRAME("\0", "\2", "{}"), 4 }, 0, CONNECT_BAD },
		{ { "\0\xff\xff\xff\xff{}", 7 }, 0, CONNECT_BAD },
		{ { FRAME("\1", "\2", "{}"), 7 }, 0, CONNECT_BAD },
		{ { FRAME("\2", "\3", "{}"), 7 }, 0, CONNECT_BAD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum connect_frame what;
		const char *why = NULL;
		struct bytes text;
		size_t at = 0, n = 0;

		while ((what = connect_next(rows[i].body.data, rows[i].body.len, &at, &text, &why)) == CONNECT_FRAME) {
			assert_true(text.data + text.len <= rows[i].body.data + rows[i].body.len);
			n++;
		}
		assert_int_equal(n, rows[i].messages);
		assert_int_equal(what, rows[i].last);
		assert_true((what == CONNECT_BAD) == (why != NULL));
	}
}

static void paths_are_made_plain(void **state)
{
	static const char *const rows[][2] = {
		{ "", E2B_HOME },
		{ "~", E2B_HOME },
		{ "~/", E2B_HOME },
		{ "a", E2B_HOME "/a" },
		{ "~/a/", E2B_HOME "/a" },
		{ "./a/../b//c/.", E2B_HOME "/b/c" },
		{ "../x", "/home/x" },
		{ "/", "/" },
		{ "/..", "/" },
		{ "/a/../../b", "/b" },
		{ "/...", "/..." },
		{ "/home/user", E2B_HOME },
		{ "~a", NULL },
		{ "a/~", E2B_HOME "/a/~" },
	};
	char path[E2B_PATH_MAX + 1], shown[E2B_PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(filesystem_path(rows[i][0], path) == (rows[i][1] != NULL));
		if (!rows[i][1])
			continue;
		e2b_shown_path(path, shown);
		assert_string_equal(shown, rows[i][1]);
	}
}

static void sudo_is_left_out_where_a_command_begins(void **state)
{
	static const char *const rows[][2] = {
		{ "sudo ls", "ls" },
		{ "sudo  -n -E apt-get update && sudo apt-get install -y x", "apt-get update && apt-get install -y x" },
		{ "A=1 sudo B=2 env", "A=1 B=2 env" },
		{ "sudo -u root id; sudo --user=root id", "id; id" },
		{ "x=$(sudo cat f) | (sudo tee g)", "x=$(cat f) | (tee g)" },
		{ "if sudo true; then sudo id; fi", "if true; then id; fi" },
		{ "sudo sudo rm -rf /", "rm -rf /" },
		{ "a &\nsudo b", "a &\nb" },
		/* These stay. */
		{ "echo sudo ls", "echo sudo ls" },
		{ "echo 'a; sudo ls' \"b; sudo ls\"", "echo 'a; sudo ls' \"b; sudo ls\"" },
		{ "cat <<E\nsudo ls\nE", "cat <<E\nsudo ls\nE" },
		{ "a=(sudo ls)", "a=(sudo ls)" },
		{ "ls # ; sudo b\nc", "ls # ; sudo b\nc" },
		{ "sudo", "sudo" },
		{ "sudo -i", "sudo -i" },
		{ "sudo -s ls", "sudo -s ls" },
		{ "sudo -u other ls", "sudo -u other ls" },
		{ "/usr/bin/sudo ls", "/usr/bin/sudo ls" },
		{ "'sudo ls", "'sudo ls" },
		{ "sudo 'a", "'a" },
		{ "su -c ls", "su -c ls" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF out = BUF_INIT(KiB);

		e2b_without_sudo(rows[i][0], &out);
		assert_string_equal(buf_str(&out), rows[i][1]);
	}
}

static void names_of_input_files_are_normalised(void **state UNUSED)
{
	static const char *const rows[][2] = {
		{ "a", "a" },
		{ "./a", "a" },
		{ "a//b", "a/b" },
		{ "././a/./b/.", "a/b" },
		{ "a/", "a" },
		{ "../a", "../a" },
		{ "/a", "/a" },
		{ "//./a//b", "/a/b" },
		{ ".a/..b", ".a/..b" },
		{ "", NULL },
		{ ".", NULL },
		{ "./", NULL },
		{ "1234/6789", NULL },
		{ "123/5678", NULL },
		{ "12/4567", "12/4567" },
	};
	char dst[8];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_path = door_path(rows[i][0], dst, sizeof(dst));

		if (is_path != (rows[i][1] != NULL) || (is_path && !str_eq(dst, rows[i][1])))
			fail_msg("'%s' is made '%s'", rows[i][0], is_path ? dst : "nothing");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_those_of_the_standard),
		cmocka_unit_test(versions_are_chosen_as_npm_does),
		cmocka_unit_test(doors_are_shut_unless_named),
		cmocka_unit_test(tokens_open_what_they_were_made_for),
		cmocka_unit_test(sessions_are_few_and_forgotten),
		cmocka_unit_test(frames_are_whole_or_none),
		cmocka_unit_test(paths_are_made_plain),
		cmocka_unit_test(names_of_input_files_are_normalised),
		cmocka_unit_test(sudo_is_left_out_where_a_command_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
