/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that come as one descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "sys/loopback.h"

#define MANY  150 /* more than one message holds */
#define FIRST 0x7f420101u

static struct loopback_place places[MANY];

static void make_places(void)
{
	for (uint32_t i = 0; i < MANY; i++)
		places[i] = (struct loopback_place){ .address = FIRST + i, .port = 0, .datagrams = i == 1 };
}

static void all_come_in_their_order(void **state UNUSED)
{
	AUTO_FD offered = FD_NONE;
	int socks[MANY];

	make_places();
	offered = loopback_offer(places, MANY, 8);
	assert_true(offered >= 0);
	assert_int_equal(loopback_take(offered, socks, MANY), MANY);
	for (uint32_t i = 0; i < MANY; i++) {
		struct sockaddr_in at;
		socklen_t len = sizeof(at);
		int listens = -1;

		assert_int_equal(getsockname(socks[i], (struct sockaddr *)&at, &len), 0);
		assert_int_equal(ntohl(at.sin_addr.s_addr), FIRST + i);
		len = sizeof(listens);
		assert_int_equal(getsockopt(socks[i], SOL_SOCKET, SO_ACCEPTCONN, &listens, &len), 0);
		assert_int_equal(listens, i != 1);
		fd_closep(&socks[i]);
	}
	assert_int_equal(loopback_take(offered, socks, MANY), 0);
}

static void too_many_are_refused(void **state UNUSED)
{
	AUTO_FD offered = FD_NONE;
	int socks[MANY];

	make_places();
	offered = loopback_offer(places, 3, 8);
	assert_true(offered >= 0);
	assert_int_equal(loopback_take(offered, socks, 2), -E2BIG);
}

static void one_that_cannot_be_is_an_error(void **state UNUSED)
{
	make_places();
	places[2].address = 0x08080808u; /* nobody's here */
	assert_int_equal(loopback_offer(places, 3, 8), -EADDRNOTAVAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_come_in_their_order),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(one_that_cannot_be_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
