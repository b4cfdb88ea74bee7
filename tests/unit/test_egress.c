/* SPDX-License-Identifier: Apache-2.0 */
/* The judgements of the egress proxy: rules, addresses, requests, bodies, and the table that the supervisor reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "egress/request.h"
#include "egress/table.h"

/* ---- hosts and rules -------------------------------------------------------------------------- */

static const struct {
	const char *text;
	bool bracketed;
	const char *canonical; /* NULL: no host */
} hosts[] = {
	{ "example.org", true, "example.org" },
	{ "EXAMPLE.Org", true, "example.org" },
	{ "example.org.", true, "example.org" },
	{ "example.org..", true, NULL },
	{ ".example.org", true, NULL },
	{ "a..b", true, NULL },
	{ "", true, NULL },
	{ ".", true, NULL },
	{ "localhost", true, "localhost" },
	{ "xn--bcher-kva.example", true, "xn--bcher-kva.example" },
	{ "b\xc3\xbc"
	  "cher.example",
	  true, NULL },
	{ "_dmarc.example.org", true, "_dmarc.example.org" },
	{ "-a.example", true, NULL },
	{ "a-.example", true, NULL },
	{ "1password.com", true, "1password.com" },
	{ "a b", true, NULL },
	{ "a@b", true, NULL },
	{ "a/b", true, NULL },
	{ "a%00b", true, NULL },
	{ "*.example.org", true, NULL },
	/* addresses, in the one usual spelling */
	{ "127.0.0.1", true, "127.0.0.1" },
	{ "127.0.0.1.", true, "127.0.0.1" },
	{ "127.1", true, NULL },
	{ "2130706433", true, NULL },
	{ "0x7f000001", true, NULL },
	{ "0x7f.0.0.1", true, NULL },
	{ "0X7F.1", true, NULL },
	{ "0177.0.0.1", true, NULL },
	{ "127.0.0.01", true, NULL },
	{ "127.0.0.0x1", true, NULL },
	{ "1.2.3.4.5", true, NULL },
	{ "256.1.1.1", true, NULL },
	{ "foo.1", true, NULL },
	{ "foo.0x", true, NULL },
	{ "foo.0xg", true, "foo.0xg" },
	{ "[::1]", true, "::1" },
	{ "[0:0::0:1]", true, "::1" },
	{ "[2001:DB8::1]", true, "2001:db8::1" },
	{ "[::ffff:127.0.0.1]", true, NULL },
	{ "[::ffff:7f00:1]", true, NULL },
	{ "[::127.0.0.1]", true, NULL },
	{ "[fe80::1%eth0]", true, NULL },
	{ "[fe80::1%25eth0]", true, NULL },
	{ "[127.0.0.1]", true, NULL },
	{ "[example.org]", true, NULL },
	{ "[::1", true, NULL },
	{ "::1]", true, NULL },
	{ "[]", true, NULL },
	{ "::1", true, NULL },
	{ "::1", false, "::1" },
	{ "::ffff:1.2.3.4", false, NULL },
};

static void hosts_have_one_form(void **state UNUSED)
{
	struct host h;

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		bool ok = host_parse(hosts[i].text, strlen(hosts[i].text), hosts[i].bracketed, &h);

		if (ok != (hosts[i].canonical != NULL) || (ok && !str_eq(h.text, hosts[i].canonical)))
			fail_msg("'%s' is read as '%s', %s", hosts[i].text, h.text, ok ? "a host" : "no host");
	}
}

static void long_names_are_no_hosts(void **state UNUSED)
{
	char name[300];
	struct host h;

	memset(name, 'a', sizeof(name));
	for (size_t i = 50; i < sizeof(name); i += 51)
		name[i] = '.';
	assert_true(host_parse(name, 253, true, &h));
	assert_false(host_parse(name, 254, true, &h));
	assert_false(host_parse(name, sizeof(name), true, &h));
	memset(name, 'b', sizeof(name));
	assert_true(host_parse(name, 63, true, &h));
	assert_false(host_parse(name, 64, true, &h));
	assert_false(host_parse("a\0b", 3, true, &h));
}

static const struct {
	const char *item;
	const char *wrong; /* a piece of the message; NULL: it is fine */
} items[] = {
	{ "example.org", NULL },
	{ "*.example.org", NULL },
	{ "example.org:8443", NULL },
	{ "*.example.org:*", NULL },
	{ "10.1.2.3", NULL },
	{ "10.1.2.3:5432", NULL },
	{ "[::1]:8080", NULL },
	{ "[::1]", NULL },
	{ "::1", NULL },
	{ "*", "a list of everything" },
	{ "*:443", "a list of everything" },
	{ "a.*.org", "whole labels" },
	{ "*example.org", "whole labels" },
	{ "*.10.1.2.3", "nothing below" },
	{ "https://example.org", "without a scheme" },
	{ "example.org/path", "no path" },
	{ "10.0.0.0/8", "each address" },
	{ "user@example.org", "no user" },
	{ "example.org:0", "1 to 65535" },
	{ "example.org:65536", "1 to 65535" },
	{ "example.org:", "1 to 65535" },
	{ "example.org:https", "1 to 65535" },
	{ "127.1", "usual spelling" },
	{ "::ffff:10.0.0.1", "usual spelling" },
	{ "", "usual spelling" },
};

static void items_are_checked(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(items); i++) {
		struct setting_list list = { .n = 0 };
		struct brig_error err = { .code = 0 };
		int rc;

		assert_true(setting_list_add(&list, items[i].item));
		rc = egress_check(&list, &err);
		if (items[i].wrong ? rc != -BRIG_E_POLICY || !strstr(err.msg, items[i].wrong) : rc != 0)
			fail_msg("'%s': %d, %s", items[i].item, rc, err.msg);
	}
}

static const struct {
	const char *host;
	uint16_t port;
	enum rule_match match;
} matches[] = {
	{ "example.org", 443, MATCH_YES },
	{ "example.org", 80, MATCH_YES },
	{ "example.org", 8443, MATCH_OTHER_PORT },
	{ "EXAMPLE.ORG.", 443, MATCH_YES },
	{ "www.example.org", 443, MATCH_NONE },
	{ "example.org.evil.test", 443, MATCH_NONE },
	{ "notexample.org", 443, MATCH_NONE },
	{ "files.test", 443, MATCH_NONE }, /* "*.files.test" is what is below */
	{ "a.files.test", 443, MATCH_YES },
	{ "a.b.files.test", 80, MATCH_YES },
	{ "a.files.test", 22, MATCH_OTHER_PORT },
	{ "xfiles.test", 443, MATCH_NONE },
	{ "db.test", 5432, MATCH_YES },
	{ "db.test", 443, MATCH_OTHER_PORT },
	{ "any.test", 1, MATCH_YES },
	{ "any.test", 65535, MATCH_YES },
	{ "10.1.2.3", 80, MATCH_YES },
	{ "10.1.2.3", 81, MATCH_OTHER_PORT },
	{ "10.1.2.4", 80, MATCH_NONE },
	{ "[::1]", 8080, MATCH_YES },
	{ "[0:0:0:0:0:0:0:1]", 8080, MATCH_YES },
	{ "[::2]", 8080, MATCH_NONE },
};

static void rules_match_hosts_and_ports(void **state UNUSED)
{
	static const char *const listed[] = { "example.org", "*.files.test", "db.test:5432",
					      "any.test:*",  "10.1.2.3",     "[::1]:8080" };
	struct setting_list list = { .n = 0 };
	struct brig_error err;
	struct rule_list rules;
	struct host h;

	for (size_t i = 0; i < ARRAY_LEN(listed); i++)
		assert_true(setting_list_add(&list, listed[i]));
	assert_int_equal(rules_parse(&list, &rules, &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
		assert_true(host_parse(matches[i].host, strlen(matches[i].host), true, &h));
		if (rules_match(&rules, &h, matches[i].port) != matches[i].match)
			fail_msg("%s:%u", matches[i].host, matches[i].port);
	}
	assert_true(rules_match_address(&rules, &(struct address){ .byte = { 10, 1, 2, 3 } }, 443));
	assert_false(rules_match_address(&rules, &(struct address){ .byte = { 10, 1, 2, 3 } }, 22));
	/* The same bytes are another address in the other family. */
	assert_false(rules_match_address(&rules, &(struct address){ .v6 = true, .byte = { 10, 1, 2, 3 } }, 443));
}

/* ---- addresses -------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	const char *what; /* NULL: public */
} addresses[] = {
	{ "0.0.0.0", "this network" },
	{ "0.255.255.255", "this network" },
	{ "1.0.0.0", NULL },
	{ "9.255.255.255", NULL },
	{ "10.0.0.0", "private" },
	{ "10.255.255.255", "private" },
	{ "11.0.0.0", NULL },
	{ "100.63.255.255", NULL },
	{ "100.64.0.0", "shared" },
	{ "100.127.255.255", "shared" },
	{ "100.128.0.0", NULL },
	{ "127.0.0.1", "loopback" },
	{ "127.255.255.255", "loopback" },
	{ "128.0.0.0", NULL },
	{ "169.254.169.254", "link-local" },
	{ "169.253.255.255", NULL },
	{ "169.255.0.0", NULL },
	{ "172.15.255.255", NULL },
	{ "172.16.0.0", "private" },
	{ "172.31.255.255", "private" },
	{ "172.32.0.0", NULL },
	{ "192.0.0.9", "IETF" },
	{ "192.0.1.1", NULL },
	{ "192.0.2.1", "documentation" },
	{ "192.31.196.1", "AS112" },
	{ "192.52.193.1", "AMT" },
	{ "192.88.99.1", "6to4" },
	{ "192.168.0.1", "private" },
	{ "192.169.0.0", NULL },
	{ "192.175.48.1", "AS112" },
	{ "198.17.255.255", NULL },
	{ "198.18.0.0", "benchmarking" },
	{ "198.19.255.255", "benchmarking" },
	{ "198.20.0.0", NULL },
	{ "198.51.100.1", "documentation" },
	{ "203.0.113.255", "documentation" },
	{ "223.255.255.255", NULL },
	{ "224.0.0.1", "multicast" },
	{ "239.255.255.255", "multicast" },
	{ "240.0.0.1", "reserved" },
	{ "255.255.255.255", "reserved" },
	{ "93.184.216.34", NULL },
	{ "8.8.8.8", NULL },
	{ "::", "unspecified" },
	{ "::1", "loopback" },
	{ "::2", "IPv4-compatible" },
	{ "::ffff:8.8.8.8", "IPv4-mapped" },
	{ "::ffff:127.0.0.1", "IPv4-mapped" },
	{ "::8.8.8.8", "IPv4-compatible" },
	{ "64:ff9b::8.8.8.8", NULL },
	{ "64:ff9b::10.0.0.1", "private" },
	{ "64:ff9b::127.0.0.1", "loopback" },
	{ "64:ff9b::169.254.169.254", "link-local" },
	{ "64:ff9b:1::8.8.8.8", "not global" },
	{ "64:ff9b::1:808:808", "not global" },
	{ "100::1", "discard" },
	{ "2001::1", "IETF" },
	{ "2001:1ff::1", "IETF" },
	{ "2001:200::1", NULL },
	{ "2001:db8::1", "documentation" },
	{ "2001:db9::1", NULL },
	{ "2001:4860:4860::8888", NULL },
	{ "2002:7f00:1::", "6to4" },
	{ "2002:808:808::", "6to4" },
	{ "2003::1", NULL },
	{ "2620:4f:8000::1", "AS112" },
	{ "2620:4f:8001::1", NULL },
	{ "2606:2800:220:1::1", NULL },
	{ "3fff::1", "documentation" },
	{ "3fff:fff:ffff::1", "documentation" },
	{ "3fff:1000::1", NULL },
	{ "4000::1", "not global" },
	{ "5f00::1", "segment" },
	{ "fc00::1", "private" },
	{ "fdff::1", "private" },
	{ "fe80::1", "link-local" },
	{ "febf::1", "link-local" },
	{ "fec0::1", "site-local" },
	{ "ff02::1", "multicast" },
};

static void special_addresses_are_known(void **state UNUSED)
{
	struct address a;

	for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
		const char *what;

		assert_true(address_parse(addresses[i].text, &a));
		what = address_special(&a);
		if (addresses[i].what ? !what || !strstr(what, addresses[i].what) : what != NULL)
			fail_msg("%s is %s", addresses[i].text, what ? what : "public");
	}
}

static void addresses_survive_sockaddr(void **state UNUSED)
{
	static const char *const texts[] = { "1.2.3.4", "2001:4860::8888" };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct sockaddr_storage ss;
		struct address a, b;
		char text[ADDRESS_TEXT_MAX];

		assert_true(address_parse(texts[i], &a));
		assert_true(address_to_sockaddr(&a, 80, &ss) > 0);
		assert_true(address_from_sockaddr((const struct sockaddr *)&ss, &b));
		assert_true(address_eq(&a, &b));
		assert_string_equal(address_text(&b, text), texts[i]);
	}
	assert_false(address_from_sockaddr(&(const struct sockaddr){ .sa_family = AF_UNIX },
					   &(struct address){ .v6 = false }));
}

/* ---- HTTP --------------------------------------------------------------------------------------- */

#define LF     "\r\n"
#define HOST_A "Host: a.test" LF

static const struct {
	const char *head;
	enum why why; /* WHY_ok: let through */
	const char *host;
	uint16_t port;
} heads[] = {
	{ "CONNECT a.test:443 HTTP/1.1" LF LF, WHY_ok, "a.test", 443 },
	{ "CONNECT a.test:443 HTTP/1.0" LF LF, WHY_ok, "a.test", 443 },
	{ "CONNECT A.Test.:443 HTTP/1.1" LF "Host: a.test:443" LF LF, WHY_ok, "a.test", 443 },
	{ "CONNECT a.test:443 HTTP/1.1" LF HOST_A LF, WHY_ok, "a.test", 443 },
	{ "CONNECT [2001:db8::1]:443 HTTP/1.1" LF "Host: [2001:DB8:0::1]:443" LF LF, WHY_ok, "2001:db8::1", 443 },
	{ "CONNECT a.test HTTP/1.1" LF LF, WHY_strange_host, "a.test", 0 },
	{ "CONNECT a.test:0 HTTP/1.1" LF LF, WHY_strange_host, NULL, 0 },
	{ "CONNECT a.test:99999 HTTP/1.1" LF LF, WHY_strange_host, NULL, 0 },
	{ "CONNECT a.test:443@evil.test:80 HTTP/1.1" LF LF, WHY_user_info, NULL, 0 },
	{ "CONNECT a.test@evil.test:80 HTTP/1.1" LF LF, WHY_user_info, NULL, 0 },
	{ "CONNECT http://a.test:443 HTTP/1.1" LF LF, WHY_strange_host, NULL, 0 },
	{ "CONNECT 0x7f.1:80 HTTP/1.1" LF LF, WHY_strange_host, "0x7f.1", 80 },
	{ "CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1" LF LF, WHY_strange_host, NULL, 80 },
	{ "CONNECT a.test:443 HTTP/1.1" LF "Host: b.test:443" LF LF, WHY_ok, "a.test", 443 },
	{ "CONNECT a.test:443 HTTP/1.1" LF "Host: 127.0.0.1:3128" LF LF, WHY_ok, "a.test", 443 },
	{ "CONNECT a.test:443 HTTP/1.1" LF HOST_A HOST_A LF, WHY_host_differs, "a.test", 443 },
	{ "CONNECT a.test:443 HTTP/1.1" LF "Content-Length: 5" LF LF, WHY_ambiguous, "a.test", 443 },
	{ "CONNECT a.test:443 HTTP/1.1" LF "Content-Length: 0" LF LF, WHY_ok, "a.test", 443 },
	{ "connect a.test:443 HTTP/1.1" LF LF, WHY_not_http, NULL, 0 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A LF, WHY_ok, "a.test", 80 },
	{ "GET http://a.test HTTP/1.1" LF HOST_A LF, WHY_ok, "a.test", 80 },
	{ "GET HTTP://A.TEST:80/x?y HTTP/1.1" LF HOST_A LF, WHY_ok, "a.test", 80 },
	{ "GET http://a.test:8080/ HTTP/1.1" LF "host:\ta.test:8080 " LF LF, WHY_ok, "a.test", 8080 },
	{ "GET http://a.test/ HTTP/1.0" LF LF, WHY_ok, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF LF, WHY_host_differs, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF "Host: b.test" LF LF, WHY_host_differs, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF "Host: a.test:8080" LF LF, WHY_host_differs, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A HOST_A LF, WHY_host_differs, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF "Host: a.test, b.test" LF LF, WHY_host_differs, "a.test", 80 },
	{ "GET http://a.test@evil.test/ HTTP/1.1" LF HOST_A LF, WHY_user_info, "evil.test", 80 },
	{ "GET http://user:secret@a.test/ HTTP/1.1" LF HOST_A LF, WHY_user_info, "a.test", 80 },
	{ "GET http://a.test\\@evil.test/ HTTP/1.1" LF HOST_A LF, WHY_strange_host, NULL, 0 },
	{ "GET http://a.test#@evil.test/ HTTP/1.1" LF HOST_A LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test:/ HTTP/1.1" LF HOST_A LF, WHY_strange_host, NULL, 80 },
	{ "GET http:///x HTTP/1.1" LF HOST_A LF, WHY_strange_host, NULL, 80 },
	{ "GET https://a.test/ HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "GET ftp://a.test/ HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "GET / HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "GET / HTTP/1.1" LF LF, WHY_not_proxied, NULL, 0 },
	{ "GET / HTTP/1.1" LF HOST_A "no colon" LF LF, WHY_not_proxied, NULL, 0 },
	{ "GET a.test HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "GET https://a@b/ HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "GET * HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "OPTIONS * HTTP/1.1" LF HOST_A LF, WHY_not_proxied, NULL, 0 },
	{ "GET http://2130706433/ HTTP/1.1" LF "Host: 2130706433" LF LF, WHY_strange_host, "2130706433", 80 },
	{ "GET http://017700000001/ HTTP/1.1" LF HOST_A LF, WHY_strange_host, "017700000001", 80 },
	/* the form */
	{ "GET http://a.test/ HTTP/1.1" LF "Host: a.test\n\r\n", WHY_malformed, NULL, 0 },
	{ "GET http://a.test/ HTTP/1.1\n" HOST_A LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test/ HTTP/1.1\rHost: a.test" LF LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A " folded" LF LF, WHY_malformed, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A "X : y" LF LF, WHY_malformed, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A ": y" LF LF, WHY_malformed, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A "no colon" LF LF, WHY_malformed, "a.test", 80 },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A "X: \x01" LF LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test/a b HTTP/1.1" LF HOST_A LF, WHY_malformed, NULL, 0 },
	{ "GET  http://a.test/ HTTP/1.1" LF HOST_A LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test/ HTTP/2.0" LF HOST_A LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test/ http/1.1" LF HOST_A LF, WHY_malformed, NULL, 0 },
	{ "GET http://a.test/" LF HOST_A LF, WHY_malformed, NULL, 0 },
	{ "Get http://a.test/ HTTP/1.1" LF HOST_A LF, WHY_malformed, NULL, 0 },
	/* lengths */
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 5" LF LF, WHY_ok, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 5" LF "Content-Length: 5" LF LF, WHY_ambiguous,
	  "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 5, 5" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: +5" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: -5" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 0x5" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length:" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 99999999999999999999" LF LF, WHY_ambiguous,
	  "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Transfer-Encoding: chunked" LF LF, WHY_ok, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Transfer-Encoding: Chunked" LF LF, WHY_ok, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.0" LF HOST_A "Transfer-Encoding: chunked" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Transfer-Encoding: gzip, chunked" LF LF, WHY_ambiguous, "a.test",
	  80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Transfer-Encoding: xchunked" LF LF, WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Transfer-Encoding: chunked" LF "Transfer-Encoding: identity" LF LF,
	  WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 5" LF "Transfer-Encoding: chunked" LF LF,
	  WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Transfer-Encoding: chunked" LF "Content-Length: 5" LF LF,
	  WHY_ambiguous, "a.test", 80 },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Connection: close, Content-Length" LF "Content-Length: 5" LF LF,
	  WHY_ambiguous, "a.test", 80 },
	/* other tongues */
	{ "\x16\x03\x01\x02", WHY_not_http, NULL, 0 },
	{ "\x04\x01", WHY_not_http, NULL, 0 },
	{ "SSH-2.0-OpenSSH_9" LF LF, WHY_malformed, NULL, 0 },
	{ "PRI * HTTP/2.0" LF LF, WHY_malformed, NULL, 0 },
};

static void heads_are_read_strictly(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		size_t seen = 0, len = strlen(heads[i].head);
		struct request r;
		enum parse p = http_parse(heads[i].head, len, &seen, &r);

		if (p != (heads[i].why == WHY_ok ? PARSE_DONE : PARSE_BAD) || r.why != heads[i].why)
			fail_msg("%s is %s", heads[i].head,
				 p == PARSE_MORE   ? "not complete"
				 : p == PARSE_DONE ? "fine"
						   : why_info[r.why].text);
		if (heads[i].host && (!str_eq(r.host.text, heads[i].host) || r.port != heads[i].port))
			fail_msg("%s leads to %s:%u", heads[i].head, r.host.text, r.port);
		if (p == PARSE_DONE && r.used != len)
			fail_msg("%s uses %zu of %zu bytes", heads[i].head, r.used, len);
	}
}

/* Byte by byte must be the same as at once, and nothing may be decided before the end unless it is a refusal. */
static void heads_may_come_in_pieces(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		size_t seen = 0, n = 0, len = strlen(heads[i].head);
		enum parse p = PARSE_MORE;
		struct request r = { .why = WHY_ok };

		while (p == PARSE_MORE && n < len)
			p = http_parse(heads[i].head, ++n, &seen, &r);
		assert_int_equal(p, heads[i].why == WHY_ok ? PARSE_DONE : PARSE_BAD);
		assert_int_equal(r.why, heads[i].why);
		if (p == PARSE_DONE)
			assert_int_equal(n, len);
	}
}

static void nul_and_length_are_refused(void **state UNUSED)
{
	static char big[REQUEST_HEAD_MAX + 64];
	char many[8192] = "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n";
	size_t seen = 0;
	struct request r;

	assert_int_equal(http_parse("GET http://a.test/\0 HTTP/1.1\r\n\r\n", 32, &seen, &r), PARSE_BAD);
	assert_int_equal(r.why, WHY_malformed);
	memset(big, 'A', sizeof(big));
	seen = 0;
	assert_int_equal(http_parse(big, REQUEST_HEAD_MAX - 1, &seen, &r), PARSE_MORE);
	assert_int_equal(http_parse(big, REQUEST_HEAD_MAX, &seen, &r), PARSE_BAD);
	assert_int_equal(r.why, WHY_too_long);
	for (int i = 0; i <= HTTP1_LINES_MAX; i++)
		strcat(many, "X: y\r\n");
	strcat(many, "\r\n");
	seen = 0;
	assert_int_equal(http_parse(many, strlen(many), &seen, &r), PARSE_BAD);
	assert_int_equal(r.why, WHY_too_long);
}

static const struct {
	const char *head, *sent;
} rewrites[] = {
	{ "GET http://a.test/x?y=z HTTP/1.1" LF HOST_A "Accept: */*" LF LF,
	  "GET /x?y=z HTTP/1.1" LF HOST_A "Accept: */*" LF "Connection: close" LF LF },
	{ "GET http://A.test. HTTP/1.1" LF "HOST:a.TEST" LF LF, "GET / HTTP/1.1" LF HOST_A "Connection: close" LF LF },
	{ "GET http://a.test?q HTTP/1.0" LF LF, "GET /?q HTTP/1.0" LF HOST_A "Connection: close" LF LF },
	{ "GET http://a.test:8080/ HTTP/1.1" LF "Host: a.test:8080" LF LF,
	  "GET / HTTP/1.1" LF "Host: a.test:8080" LF "Connection: close" LF LF },
	{ "GET http://[2001:db8::1]/ HTTP/1.1" LF "Host: [2001:db8::1]" LF LF,
	  "GET / HTTP/1.1" LF "Host: [2001:db8::1]" LF "Connection: close" LF LF },
	{ "GET http://a.test/ HTTP/1.1" LF HOST_A "Proxy-Authorization: Basic x" LF "Proxy-Connection: keep-alive" LF
	  "Keep-Alive: 5" LF "TE: trailers" LF "Trailer: X" LF "Upgrade: h2c" LF "Connection: x-hop , keep-alive" LF
	  "X-Hop: 1" LF "X-End: 2" LF LF,
	  "GET / HTTP/1.1" LF HOST_A "X-End: 2" LF "Connection: close" LF LF },
	{ "POST http://a.test/ HTTP/1.1" LF HOST_A "Content-Length: 3" LF LF,
	  "POST / HTTP/1.1" LF HOST_A "Content-Length: 3" LF "Connection: close" LF LF },
};

static void forwarded_heads_are_our_own(void **state UNUSED)
{
	char sent[2048];

	for (size_t i = 0; i < ARRAY_LEN(rewrites); i++) {
		size_t seen = 0, n;
		struct request r;

		assert_int_equal(http_parse(rewrites[i].head, strlen(rewrites[i].head), &seen, &r), PARSE_DONE);
		n = http_rewrite(rewrites[i].head, &r, sent, sizeof(sent) - 1);
		sent[n] = '\0';
		assert_string_equal(sent, rewrites[i].sent);
		assert_int_equal(http_rewrite(rewrites[i].head, &r, sent, n - 1), 0);
	}
}

/* ---- bodies --------------------------------------------------------------------------------------- */

#define POST_A "POST http://a.test/ HTTP/1.1" LF HOST_A

/* The reader of bodies has tests of its own (test_http1.c); here is what the proxy adds: chunks without anything beside. */
static const struct {
	const char *request;
	size_t taken;
	bool done, bad;
} bodies[] = {
	{ POST_A LF "GET /", 0, true, false },
	{ POST_A "Content-Length: 5" LF LF "helloGET /", 5, true, false },
	{ POST_A "Content-Length: 5" LF LF "hel", 3, false, false },
	{ POST_A "Transfer-Encoding: chunked" LF LF "5\r\nhello\r\n0\r\n\r\nGET /", 15, true, false },
	{ POST_A "Transfer-Encoding: chunked" LF LF "5\r\nhel", 6, false, false },
	{ POST_A "Transfer-Encoding: chunked" LF LF "5\r\nhelloX", 9, false, true },
	{ POST_A "Transfer-Encoding: chunked" LF LF "5;x=y\r\nhello\r\n", 2, false, true },
	{ POST_A "Transfer-Encoding: chunked" LF LF "0\r\nTrailer: x\r\n\r\n", 4, false, true },
};

static void bodies_end_where_they_say(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		for (size_t piece = 1; piece < 30; piece += 28) { /* byte by byte, and at once */
			size_t seen = 0, len = strlen(bodies[i].request), at, taken = 0;
			struct request r;

			assert_int_equal(http_parse(bodies[i].request, len, &seen, &r), PARSE_DONE);
			for (at = r.used; at < len; at += piece)
				taken += http_body_take(&r.body, bodies[i].request + at,
							piece < len - at ? piece : len - at);
			if (taken != bodies[i].taken || r.body.done != bodies[i].done || r.body.bad != bodies[i].bad)
				fail_msg("'%s': %zu bytes, %s%s", bodies[i].request, taken, r.body.done ? "done" : "",
					 r.body.bad ? "bad" : "");
		}
}

/* ---- SOCKS ---------------------------------------------------------------------------------------- */

static const struct {
	const char *bytes;
	size_t len;
	enum parse parse;
	enum why why;
	const char *host;
	uint16_t port;
} socks[] = {
#define BYTES(s) s, sizeof(s) - 1
	{ BYTES("\5\1\0\3\6a.test\0\120"), PARSE_DONE, WHY_ok, "a.test", 80 },
	{ BYTES("\5\1\0\3\7A.TEST.\1\273"), PARSE_DONE, WHY_ok, "a.test", 443 },
	{ BYTES("\5\1\0\1\12\1\2\3\0\120"), PARSE_DONE, WHY_ok, "10.1.2.3", 80 },
	{ BYTES("\5\1\0\4\x20\1\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\120"), PARSE_DONE, WHY_ok, "2001:db8::1", 80 },
	{ BYTES("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1\0\120"), PARSE_BAD, WHY_strange_host, NULL, 0 },
	{ BYTES("\5\1\0\3\t127.0.0.1\0\120"), PARSE_DONE, WHY_ok, "127.0.0.1", 80 },
	{ BYTES("\5\1\0\3\5"
		"127.1\0\120"),
	  PARSE_BAD, WHY_strange_host, "127.1", 80 },
	{ BYTES("\5\1\0\3\5[::1]\0\120"), PARSE_BAD, WHY_strange_host, NULL, 0 },
	{ BYTES("\5\1\0\3\3::1\0\120"), PARSE_BAD, WHY_strange_host, NULL, 0 },
	{ BYTES("\5\1\0\3\3a\0b\0\120"), PARSE_BAD, WHY_strange_host, NULL, 0 },
	{ BYTES("\5\1\0\3\0\0\120"), PARSE_BAD, WHY_strange_host, NULL, 0 },
	{ BYTES("\5\1\0\3\6a.test\0\0"), PARSE_BAD, WHY_strange_host, "a.test", 0 },
	{ BYTES("\5\2\0\3\6a.test\0\120"), PARSE_BAD, WHY_socks_command, "a.test", 80 },
	{ BYTES("\5\3\0\3\6a.test\0\120"), PARSE_BAD, WHY_socks_command, "a.test", 80 },
	{ BYTES("\5\1\1\3\6a.test\0\120"), PARSE_BAD, WHY_not_http, NULL, 0 },
	{ BYTES("\5\1\0\2\6a.test\0\120"), PARSE_BAD, WHY_strange_host, NULL, 0 },
	{ BYTES("\4\1\0\3\6a.test\0\120"), PARSE_BAD, WHY_not_http, NULL, 0 },
	{ BYTES("\5\1\0\3\6a.test\0"), PARSE_MORE, WHY_ok, NULL, 0 },
	{ BYTES("\5\1\0\3"), PARSE_MORE, WHY_ok, NULL, 0 },
	{ BYTES(""), PARSE_MORE, WHY_ok, NULL, 0 },
};

static void socks_requests_are_read(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(socks); i++) {
		struct request r;
		enum parse p = socks_parse_request(socks[i].bytes, socks[i].len, &r);

		if (p != socks[i].parse || (p == PARSE_BAD && r.why != socks[i].why))
			fail_msg("request %zu: %d, %s", i, (int)p, why_info[r.why].text);
		if (socks[i].host && (!str_eq(r.host.text, socks[i].host) || r.port != socks[i].port))
			fail_msg("request %zu leads to %s:%u", i, r.host.text, r.port);
		for (size_t n = 0; p == PARSE_DONE && n < socks[i].len; n++)
			assert_int_equal(socks_parse_request(socks[i].bytes, n, &r), PARSE_MORE);
	}
}

static void socks_greetings_are_read(void **state UNUSED)
{
	struct request r;

	assert_int_equal(socks_parse_greeting("\5\1\0", 3, &r), PARSE_DONE);
	assert_int_equal(r.used, 3);
	assert_int_equal(socks_parse_greeting("\5\2\2\0\5", 5, &r), PARSE_DONE);
	assert_int_equal(r.used, 4);
	assert_int_equal(socks_parse_greeting("\5\2\2", 3, &r), PARSE_MORE);
	assert_int_equal(socks_parse_greeting("\5", 1, &r), PARSE_MORE);
	assert_int_equal(socks_parse_greeting("\5\1\2", 3, &r), PARSE_BAD);
	assert_int_equal(r.why, WHY_socks_method);
	assert_int_equal(socks_parse_greeting("\5\0", 2, &r), PARSE_BAD);
	assert_int_equal(socks_parse_greeting("\4", 1, &r), PARSE_BAD);
}

/* ---- the table ------------------------------------------------------------------------------------ */

static void rows_are_counted_and_read(void **state UNUSED)
{
	struct table *t = calloc(1, sizeof(*t));
	struct network net = { .n = 0 };
	struct denied denied = { .n = 0 };
	struct table_row *row;

	assert_non_null(t);
	row = table_note(t, "a.test", 443, WHY_ok, "");
	assert_non_null(row);
	row->sent = 10;
	row->received = 20;
	assert_ptr_equal(table_note(t, "a.test", 443, WHY_ok, ""), row);
	assert_non_null(table_note(t, "b.test", 8443, WHY_unlisted, ""));
	assert_non_null(table_note(t, "c.test", 80, WHY_special, "10.0.0.1 (private)"));
	assert_non_null(table_note(t, "", 0, WHY_not_http, ""));
	assert_non_null(table_note(t, "d.test", 443, WHY_unresolved, "no such name"));
	table_read(t, &net, &denied);
	assert_int_equal(net.n, 5);
	assert_string_equal(net.row[0].host, "a.test");
	assert_true(net.row[0].allowed && net.row[0].count == 2 && net.row[0].sent_bytes == 10 &&
		    net.row[0].received_bytes == 20);
	assert_true(net.row[1].allowed && strstr(net.row[1].reason, "no such name"));
	assert_int_equal(denied.n, 3);
	assert_string_equal(denied.row[0].what, "b.test:8443");
	assert_string_equal(denied.row[0].fix, "add b.test:8443 to whitelist");
	assert_string_equal(denied.row[1].fix, "add 10.0.0.1 to whitelist, if it is meant");
	assert_string_equal(denied.row[2].fix, "");
	network_release(&net);
	denied_release(&denied);
	free(t);
}

/* A flood of refused hosts hides no connection, and no row is written behind the last one. */
static void floods_are_bounded(void **state UNUSED)
{
	struct table *t = calloc(1, sizeof(*t));
	struct network net = { .n = 0 };
	char name[32];

	assert_non_null(t);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "h%d.test", i);
		assert_true((table_note(t, name, 80, WHY_unlisted, "") != NULL) == (i < TABLE_ROWS));
	}
	assert_non_null(table_note(t, "a.test", 80, WHY_ok, ""));
	assert_int_equal(t->dropped, 1000 - TABLE_ROWS);
	table_read(t, &net, NULL);
	assert_int_equal(net.n, TABLE_ROWS + 1);
	assert_int_equal(net.dropped, 1000 - TABLE_ROWS);
	network_release(&net);
	free(t);
}

/* What a proxy that was taken over may have left. */
static void hostile_tables_do_no_harm(void **state UNUSED)
{
	struct table *t = malloc(sizeof(*t));
	struct network net = { .n = 0 };
	struct denied denied = { .n = 0 };

	assert_non_null(t);
	for (int fill = 0; fill < 256; fill += 5) {
		memset(t, fill, sizeof(*t));
		table_read(t, &net, &denied);
	}
	for (size_t i = 0; i < net.n; i++) {
		assert_true(strlen(net.row[i].host) < sizeof(net.row[i].host));
		for (const char *c = net.row[i].host; *c; c++)
			assert_in_range(*c, ' ', '~');
	}
	network_release(&net);
	denied_release(&denied);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_have_one_form),         cmocka_unit_test(long_names_are_no_hosts),
		cmocka_unit_test(items_are_checked),           cmocka_unit_test(rules_match_hosts_and_ports),
		cmocka_unit_test(special_addresses_are_known), cmocka_unit_test(addresses_survive_sockaddr),
		cmocka_unit_test(heads_are_read_strictly),     cmocka_unit_test(heads_may_come_in_pieces),
		cmocka_unit_test(nul_and_length_are_refused),  cmocka_unit_test(forwarded_heads_are_our_own),
		cmocka_unit_test(bodies_end_where_they_say),   cmocka_unit_test(socks_requests_are_read),
		cmocka_unit_test(socks_greetings_are_read),    cmocka_unit_test(rows_are_counted_and_read),
		cmocka_unit_test(floods_are_bounded),          cmocka_unit_test(hostile_tables_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
