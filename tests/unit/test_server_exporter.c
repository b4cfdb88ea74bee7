/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter of traces and a collector that does not answer: whoever sends never waits, and what does not fit is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "server/exporter.h"

#define PATIENCE_MS 20000
#define RECORDS     400 /* more than any queue holds */
#define SPANS       3   /* that each says it has */

static int listen_somewhere(char *url, size_t size)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	(void)snprintf(url, size, "http://127.0.0.1:%u/", ntohs(at.sin_port));
	return fd;
}

static void nobody_waits_for_a_collector(void **state UNUSED)
{
	static char spans[60 * 1024];
	struct brig_error err = BRIG_ERROR_INIT;
	struct exporter_counts counts;
	struct exporter *e = NULL;
	char url[64];
	AUTO_FD listener = listen_somewhere(url, sizeof(url));
	AUTO_FD peer = FD_NONE;

	if (exporter_start(url, &e, &err) < 0)
		fail_msg("%s", err.msg);
	memset(spans, ' ', sizeof(spans));
	exporter_send(e, spans, sizeof(spans), SPANS);
	assert_int_equal(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, PATIENCE_MS), 1);
	peer = accept(listener, NULL, NULL); /* and nothing is ever read of it */
	assert_true(peer >= 0);
	for (size_t i = 0; i < RECORDS; i++)
		exporter_send(e, spans, sizeof(spans), SPANS);
	exporter_counts(e, &counts);
	assert_int_equal(counts.exported, 0);
	assert_true(counts.dropped > 0 && counts.dropped % SPANS == 0 && counts.dropped < RECORDS * SPANS);
	exporter_send(e, spans, EXPORTER_RECORD_MAX, 1); /* more than a record holds */
	exporter_counts(e, &counts);
	assert_int_equal(counts.dropped % SPANS, 1);
	fd_closep(&listener); /* now nobody is there, which is found out at once */
	fd_closep(&peer);
	exporter_close(e);
}

static void what_is_no_address_is_said(void **state UNUSED)
{
	static const char *const urls[] = {
		"",          "127.0.0.1:4318", "http://", "http://h:0", "http://[::1", "http://u@h/", "http://h/a b",
		"gopher://h"
	};

	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		struct exporter *e = NULL;

		assert_true(exporter_start(urls[i], &e, &err) < 0);
		if (err.code != BRIG_E_USAGE || !strstr(err.msg, "collector"))
			fail_msg("'%s': %d %s", urls[i], err.code, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_waits_for_a_collector),
		cmocka_unit_test(what_is_no_address_is_said),
	};

	return cmocka_run_group_tests_name("server_exporter", tests, NULL, NULL);
}
