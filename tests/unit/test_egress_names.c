/* SPDX-License-Identifier: Apache-2.0 */
/* Names without a proxy: which addresses stand for them, which sockets that takes, and the lookups that tell of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "egress/dns.h"
#include "egress/names.h"

#define LOOPBACK 0x7f000001u

static struct rule_list rules;
static struct names names;
static struct plan_egress plan;

static void begin(const char *const *items)
{
	rules.n = 0;
	for (size_t i = 0; items[i]; i++)
		assert_null(host_rule_parse(items[i], &rules.row[rules.n++]));
	names_begin(&names, &rules, &plan);
}

static struct host host_of(const char *text)
{
	struct host h;

	assert_true(host_parse(text, strlen(text), false, &h));
	return h;
}

static uint32_t address_of(const char *text)
{
	const struct host h = host_of(text);

	return names_is_listed(&names, &h) ? names_address(&names, &h) : 0;
}

static size_t places_at(uint32_t address)
{
	size_t n = 0;

	for (size_t i = 0; i < plan.n_places; i++)
		n += plan.place[i].address == address;
	return n;
}

static bool has_place(uint32_t address, uint16_t port)
{
	for (size_t i = 0; i < plan.n_places; i++)
		if (plan.place[i].address == address && plan.place[i].port == port && !plan.place[i].datagrams)
			return true;
	return false;
}

/* ---- addresses ----------------------------------------------------------------------------------- */

static void an_empty_list_has_only_the_proxy(void **state UNUSED)
{
	begin((const char *const[]){ NULL });
	assert_int_equal(plan.n_places, 2);
	assert_true(has_place(LOOPBACK, EGRESS_PORT));
	assert_true(plan.place[1].datagrams && plan.place[1].port == 53 && plan.place[1].address == LOOPBACK);
	assert_int_equal(address_of("example.org"), 0);
}

static void exact_names_have_the_ports_of_the_list(void **state UNUSED)
{
	begin((const char *const[]){ "a.org", "b.org:5432", "a.org:8443", "c.org:*", "10.1.2.3:80", "localhost:80",
				     "[2001:db8::1]:443", "a.org", NULL });
	assert_int_equal(address_of("a.org"), NAMES_FIRST);
	assert_int_equal(address_of("b.org"), NAMES_FIRST + 1);
	assert_int_equal(address_of("c.org"), NAMES_FIRST + 2);
	assert_int_equal(names.n, 3);
	assert_true(has_place(NAMES_FIRST, 80) && has_place(NAMES_FIRST, 443) && has_place(NAMES_FIRST, 8443));
	assert_int_equal(places_at(NAMES_FIRST), 3);
	assert_true(has_place(NAMES_FIRST + 1, 5432));
	assert_int_equal(places_at(NAMES_FIRST + 1), 1);
	assert_true(has_place(NAMES_FIRST + 2, 80) && has_place(NAMES_FIRST + 2, 443));
	assert_int_equal(address_of("d.org"), 0);
	assert_int_equal(address_of("x.a.org"), 0);
	assert_int_equal(address_of("10.1.2.3"), 0);
	assert_int_equal(address_of("localhost"), 0);
	assert_string_equal(names_at(&names, NAMES_FIRST + 1), "b.org");
	assert_null(names_at(&names, NAMES_FIRST + 3));
	assert_null(names_at(&names, NAMES_FIRST - 1));
	assert_null(names_at(&names, LOOPBACK));
}

static void names_below_wildcards_are_given_what_is_left(void **state UNUSED)
{
	char text[32];

	begin((const char *const[]){ "*.w.org", "x.w.org:22", "*.v.org:8443", NULL });
	assert_int_equal(names.n, 1 + NAMES_BELOW);
	/* Its own port, and those of the wildcard that it is below. */
	assert_int_equal(places_at(NAMES_FIRST), 3);
	assert_int_equal(places_at(NAMES_FIRST + 1), 3);
	assert_null(names_at(&names, NAMES_FIRST + 1));
	assert_int_equal(address_of("a.w.org"), NAMES_FIRST + 1);
	assert_int_equal(address_of("b.v.org"), NAMES_FIRST + 2);
	assert_int_equal(address_of("a.w.org"), NAMES_FIRST + 1);
	assert_int_equal(address_of("w.org"), 0);
	assert_string_equal(names_at(&names, NAMES_FIRST + 1), "a.w.org");
	for (int i = 0; i < NAMES_BELOW; i++) {
		(void)snprintf(text, sizeof(text), "n%d.w.org", i);
		assert_int_equal(address_of(text) != 0, i < NAMES_BELOW - 2);
	}
	assert_int_equal(address_of("b.v.org"), NAMES_FIRST + 2);
}

/* The most that a list can ask for: what has no room has no address, and nothing is half there. */
static void sockets_are_bounded(void **state UNUSED)
{
	char text[SETTING_LIST_MAX][32];
	const char *items[SETTING_LIST_MAX + 1];

	for (int i = 0; i < SETTING_LIST_MAX; i++) {
		if (i % 2)
			(void)snprintf(text[i], sizeof(text[i]), "n%d.w.org:%d", i, 1000 + i);
		else
			(void)snprintf(text[i], sizeof(text[i]), "*.w.org:%d", 1000 + i);
		items[i] = text[i];
	}
	items[SETTING_LIST_MAX] = NULL;
	begin(items);
	assert_true(plan.n_places <= EGRESS_PLACES_MAX);
	assert_true(names.n > 0 && names.n < SETTING_LIST_MAX / 2);
	for (size_t i = 0; i < names.n; i++)
		assert_int_equal(places_at(NAMES_FIRST + (uint32_t)i), SETTING_LIST_MAX / 2 + 1);
	assert_int_equal(address_of("n63.w.org"), 0);
}

static void localhost_is_the_cell(void **state UNUSED)
{
	assert_true(names_is_own("localhost") && names_is_own("a.localhost"));
	assert_false(names_is_own("notlocalhost") || names_is_own("localhost.org") || names_is_own(""));
}

/* ---- lookups ------------------------------------------------------------------------------------- */

#define HEAD "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define QUESTION     \
	"\x06"       \
	"LiSted\x04" \
	"test\x00\x00\x01\x00\x01"
#define LABEL  \
	"\x3f" \
	"abcdefghijklmnopqrstuvwxyz0123456789-abcdefghijklmnopqrstuvwxyz"

static const struct {
	const char *what;
	const char *bytes;
	size_t len;
	int code; /* -1: nothing is said to it */
	const char *host;
} queries[] = {
#define Q(what, text, code, host)                        \
	{                                                \
		what, text, sizeof(text) - 1, code, host \
	}
	Q("a name", HEAD QUESTION, DNS_OK, "listed.test"),
	Q("more behind it", HEAD QUESTION "\x00\x00\x29\x04\xd0\x00\x00\x00\x00\x00\x00", DNS_OK, "listed.test"),
	Q("the root", HEAD "\x00\x00\x01\x00\x01", DNS_OK, NULL),
	Q("a dot in a label",
	  HEAD "\x03"
	       "a.b\x00\x00\x01\x00\x01",
	  DNS_OK, NULL),
	Q("a NUL in a label",
	  HEAD "\x03"
	       "a\x00"
	       "b\x00\x00\x01\x00\x01",
	  DNS_OK, NULL),
	Q("an address in disguise",
	  HEAD "\x03"
	       "127\x01"
	       "1\x00\x00\x01\x00\x01",
	  DNS_OK, NULL),
	Q("another class",
	  HEAD "\x01"
	       "a\x00\x00\x01\x00\x03",
	  DNS_NOT_DONE, "a"),
	Q("nothing", "", -1, NULL),
	Q("a short head", "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00", -1, NULL),
	Q("an answer", "\x12\x34\x81\x00\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION, -1, NULL),
	Q("no question", HEAD, DNS_MALFORMED, NULL),
	Q("two questions", "\x12\x34\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00" QUESTION, DNS_MALFORMED, NULL),
	Q("an answer in it", "\x12\x34\x01\x00\x00\x01\x00\x01\x00\x00\x00\x00" QUESTION, DNS_MALFORMED, NULL),
	Q("another operation", "\x12\x34\x29\x00\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION, DNS_NOT_DONE, NULL),
	Q("a pointer", HEAD "\xc0\x0c\x00\x01\x00\x01", DNS_MALFORMED, NULL),
	Q("a label of 64", HEAD "\x40\x00\x01\x00\x01", DNS_MALFORMED, NULL),
	Q("a label that is cut",
	  HEAD "\x05"
	       "abc",
	  DNS_MALFORMED, NULL),
	Q("no end of the name",
	  HEAD "\x01"
	       "a",
	  DNS_MALFORMED, NULL),
	Q("no class",
	  HEAD "\x01"
	       "a\x00\x00\x01\x00",
	  DNS_MALFORMED, NULL),
	Q("a name of 257", HEAD LABEL LABEL LABEL LABEL "\x00\x00\x01\x00\x01", DNS_MALFORMED, NULL),
#undef Q
};

static void queries_are_read_strictly(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
		/* Of its own size, so that a byte too many is seen. */
		AUTO_FREE uint8_t *bytes = malloc(queries[i].len + 1);
		struct dns_query q;
		bool any;

		memcpy(bytes, queries[i].bytes, queries[i].len);
		any = dns_parse(bytes, queries[i].len, &q);
		if (any != (queries[i].code >= 0) || (any && (int)q.code != queries[i].code))
			fail_msg("%s: code %d", queries[i].what, any ? (int)q.code : -1);
		if (any && q.is_host != (queries[i].host != NULL))
			fail_msg("%s: a host or not", queries[i].what);
		if (queries[i].host)
			assert_string_equal(q.host.text, queries[i].host);
	}
}

static void a_long_query_is_malformed(void **state UNUSED)
{
	uint8_t bytes[DNS_QUERY_MAX + 1] = { 0 };
	struct dns_query q;

	memcpy(bytes, HEAD QUESTION, sizeof(HEAD QUESTION) - 1);
	assert_true(dns_parse(bytes, DNS_QUERY_MAX, &q) && q.code == DNS_OK);
	assert_true(dns_parse(bytes, DNS_QUERY_MAX + 1, &q) && q.code == DNS_MALFORMED);
}

static void answers_repeat_the_question(void **state UNUSED)
{
	static const char query[] = HEAD QUESTION,
			  yes[] = "\x12\x34\x85\x80\x00\x01\x00\x01\x00\x00\x00\x00" QUESTION
				  "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x42\x00\x01",
			  none[] = "\x12\x34\x85\x80\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION,
			  no[] = "\x12\x34\x85\x83\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION,
			  bad[] = "\x12\x34\x85\x81\x00\x00\x00\x00\x00\x00\x00\x00";
	const uint8_t *bytes = (const uint8_t *)query;
	uint8_t answer[DNS_ANSWER_MAX];
	struct dns_query q;

	assert_true(dns_parse(bytes, sizeof(query) - 1, &q));
	assert_int_equal(dns_answer(bytes, &q, DNS_OK, NAMES_FIRST, answer), sizeof(yes) - 1);
	assert_memory_equal(answer, yes, sizeof(yes) - 1);
	assert_int_equal(dns_answer(bytes, &q, DNS_OK, 0, answer), sizeof(none) - 1);
	assert_memory_equal(answer, none, sizeof(none) - 1);
	assert_int_equal(dns_answer(bytes, &q, DNS_NO_SUCH_NAME, NAMES_FIRST, answer), sizeof(no) - 1);
	assert_memory_equal(answer, no, sizeof(no) - 1);
	assert_true(dns_parse(bytes, 20, &q));
	assert_int_equal(dns_answer(bytes, &q, q.code, NAMES_FIRST, answer), sizeof(bad) - 1);
	assert_memory_equal(answer, bad, sizeof(bad) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_list_has_only_the_proxy),
		cmocka_unit_test(exact_names_have_the_ports_of_the_list),
		cmocka_unit_test(names_below_wildcards_are_given_what_is_left),
		cmocka_unit_test(sockets_are_bounded),
		cmocka_unit_test(localhost_is_the_cell),
		cmocka_unit_test(queries_are_read_strictly),
		cmocka_unit_test(a_long_query_is_malformed),
		cmocka_unit_test(answers_repeat_the_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
