/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks without a token: what the kernel says of a connection to our own socket, and nobody for anything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/runner/access.h"

struct place {
	char path[100];
	int listener, client, accepted;
};

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	return sa;
}

static void open_place(struct place *p, const char *name, int type)
{
	struct sockaddr_un sa;

	(void)snprintf(p->path, sizeof(p->path), "/tmp/test-access-%d-%s", (int)getpid(), name);
	sa = address_of(p->path);
	(void)unlink(p->path);
	p->listener = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	p->client = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(p->listener, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(p->listener, 1), 0);
	assert_int_equal(connect(p->client, (struct sockaddr *)&sa, sizeof(sa)), 0);
	p->accepted = accept(p->listener, NULL, NULL);
	assert_true(p->accepted >= 0);
}

static void close_place(struct place *p)
{
	(void)close(p->listener);
	(void)close(p->client);
	(void)close(p->accepted);
	(void)unlink(p->path);
}

static struct host host; /* whose policy names no users */

static const struct token *ask(struct service *s, int peer)
{
	struct buf bytes = BUF_INIT(1000);
	struct message m;
	const char *wrong;
	char why[256] = "";
	uint16_t status = 0;
	const struct token *t;

	message_put_number(&bytes, FIELD_has_peer, 1);
	assert_true(message_read(bytes.data, bytes.len, &m, &wrong));
	t = access_find(s, &m, peer, &status, why, sizeof(why));
	assert_int_equal(t != NULL, *why == '\0');
	buf_release(&bytes);
	return t;
}

static void the_kernel_says_who_asks(void **state UNUSED)
{
	static const int types[] = { SOCK_STREAM, SOCK_SEQPACKET };

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct serve_options options = { 0 };
		struct listener listener = { .is_unix = true };
		struct service s = { .options = &options, .listener = &listener, .n_listeners = 1, .host = &host };
		struct place own;
		char name[32];
		const struct token *t;

		open_place(&own, "own", types[i]);
		(void)snprintf(listener.address, sizeof(listener.address), "%s", own.path);
		t = ask(&s, own.accepted);
		assert_non_null(t);
		(void)snprintf(name, sizeof(name), "uid:%u", (unsigned)getuid());
		assert_string_equal(t->name, name);
		assert_true(t->admin);
		close_place(&own);
	}
}

/* Whatever else a hostile front might send in a client's place. */
static void nothing_else_is_a_client(void **state UNUSED)
{
	struct serve_options options = { 0 };
	struct listener listener = { .is_unix = true };
	struct service s = { .options = &options, .listener = &listener, .n_listeners = 1, .host = &host };
	struct place own, foreign;
	int pair[2], pipes[2], tcp = socket(AF_INET, SOCK_STREAM, 0), fresh = socket(AF_UNIX, SOCK_STREAM, 0);

	open_place(&own, "own", SOCK_STREAM);
	open_place(&foreign, "foreign", SOCK_STREAM);
	(void)snprintf(listener.address, sizeof(listener.address), "%s", own.path);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_null(ask(&s, -1));
	assert_null(ask(&s, own.listener));
	assert_null(ask(&s, own.client)); /* whose peer is the service */
	assert_null(ask(&s, foreign.accepted));
	assert_null(ask(&s, pair[0]));
	assert_null(ask(&s, pipes[0]));
	assert_null(ask(&s, tcp));
	assert_null(ask(&s, fresh));
	listener.is_unix = false; /* an address that only looks like a path */
	assert_null(ask(&s, own.accepted));
	listener.is_unix = true;
	listener.address[0] = '\0';
	assert_null(ask(&s, pair[0]));
	close_place(&own);
	close_place(&foreign);
	for (int i = 0; i < 2; i++) {
		(void)close(pair[i]);
		(void)close(pipes[i]);
	}
	(void)close(tcp);
	(void)close(fresh);
}

/* The name is ours, the socket is not: another one that was bound to it before. */
static void a_name_alone_is_not_enough(void **state UNUSED)
{
	struct serve_options options = { 0 };
	struct listener listener = { .is_unix = true };
	struct service s = { .options = &options, .listener = &listener, .n_listeners = 1, .host = &host };
	struct place before, own;

	if (getuid() != 0)
		skip(); /* the kernel does not tell others */
	open_place(&before, "own", SOCK_STREAM);
	open_place(&own, "own", SOCK_STREAM); /* which takes its name */
	(void)snprintf(listener.address, sizeof(listener.address), "%s", own.path);
	assert_non_null(ask(&s, own.accepted));
	assert_null(ask(&s, before.accepted));
	close_place(&before);
	close_place(&own);
}

/* A client cannot choose what its end is called so that it looks like an accepted one. */
static void a_bound_client_is_not_believed(void **state UNUSED)
{
	struct serve_options options = { 0 };
	struct listener listener = { .is_unix = true };
	struct service s = { .options = &options, .listener = &listener, .n_listeners = 1, .host = &host };
	struct sockaddr_un abstract = { .sun_family = AF_UNIX };
	struct place own;
	int sock = socket(AF_UNIX, SOCK_STREAM, 0);

	open_place(&own, "own", SOCK_STREAM);
	(void)snprintf(listener.address, sizeof(listener.address), "%s", own.path);
	(void)snprintf(abstract.sun_path + 1, sizeof(abstract.sun_path) - 1, "%s", own.path);
	assert_int_equal(bind(sock, (struct sockaddr *)&abstract, sizeof(abstract)), 0);
	assert_null(ask(&s, sock));
	(void)close(sock);
	close_place(&own);
}

/* ---- rows of the policy ------------------------------------------------------------------------------- */

static struct users *read_users(const char *text, struct brig_error *err)
{
	json_t *rows = json_loads(text, 0, NULL);
	struct users *u = NULL;

	assert_non_null(rows);
	(void)users_read(rows, &u, err);
	json_decref(rows);
	return u;
}

/* The place of the row that fits, or "". */
static const char *fits(const struct users *u, uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
	const struct users_row *row =
		users_find(u, &(struct users_peer){ .uid = uid, .gid = gid, .groups = groups, .n_groups = n });

	return row ? row->place : "";
}

static void the_first_row_that_fits_counts(void **state UNUSED)
{
	static const gid_t groups[] = { 5, 4001 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct users *u = read_users("[{\"place\":\"a\",\"user\":\"3001\",\"max_trust\":\"trusted\",\"memory_max\":7,"
				     "\"languages\":[\"c\",\"go\"]},"
				     "{\"place\":\"b\",\"group\":\"4001\",\"refuse\":true},"
				     "{\"place\":\"c\",\"user\":\"root\",\"max_trust\":\"untrusted\"},"
				     "{\"place\":\"d\",\"user\":\"*\",\"admin\":true}]",
				     &err);
	const struct users_row *row;

	assert_non_null(u);
	assert_string_equal(fits(u, 3001, 1, groups, 2), "a");
	assert_string_equal(fits(u, 3002, 1, groups, 2), "b");
	assert_string_equal(fits(u, 3002, 4001, NULL, 0), "b");
	assert_string_equal(fits(u, 3002, 1, groups, 1), "d");
	assert_string_equal(fits(u, 0, 4001, groups, 2), "c");
	assert_string_equal(fits(NULL, 0, 0, NULL, 0), "");
	row = users_find(u, &(struct users_peer){ .uid = 3001 });
	assert_int_equal(row->may.max_trust, TOKEN_TRUSTED);
	assert_int_equal(row->may.quota.memory, 7);
	assert_int_equal(row->may.languages.n, 2);
	assert_string_equal(row->may.languages.item[1], "go");
	users_free(u);
}

static void rows_about_others_leave_root_alone(void **state UNUSED)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct users *u = read_users("[{\"place\":\"a\",\"group\":\"0\",\"refuse\":true},"
				     "{\"place\":\"b\",\"user\":\"*\",\"refuse\":true}]",
				     &err);

	assert_non_null(u);
	assert_string_equal(fits(u, 0, 0, NULL, 0), "");
	assert_string_equal(fits(u, geteuid(), 0, NULL, 0), "");
	assert_string_equal(fits(u, 3001, 0, NULL, 0), "a");
	assert_string_equal(fits(u, 3001, 1, NULL, 0), "b");
	users_free(u);
}

static void names_that_nobody_has_are_told(void **state UNUSED)
{
	static const char *const rows[] = { "[{\"place\":\"p:7\",\"user\":\"no-such-user\"}]",
					    "[{\"place\":\"p:7\",\"group\":\"no-such-group\"}]",
					    "[{\"place\":\"p:7\",\"user\":\"4294967295\"}]", "[{\"place\":\"p:7\"}]" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct brig_error err = BRIG_ERROR_INIT;

		assert_null(read_users(rows[i], &err));
		assert_int_equal(err.code, BRIG_E_POLICY);
		assert_non_null(strstr(err.msg, "p:7"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_says_who_asks),       cmocka_unit_test(nothing_else_is_a_client),
		cmocka_unit_test(a_name_alone_is_not_enough),     cmocka_unit_test(a_bound_client_is_not_believed),
		cmocka_unit_test(the_first_row_that_fits_counts), cmocka_unit_test(rows_about_others_leave_root_alone),
		cmocka_unit_test(names_that_nobody_has_are_told),
	};

	return cmocka_run_group_tests_name("server_access", tests, NULL, NULL);
}
