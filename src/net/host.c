/* SPDX-License-Identifier: Apache-2.0 */
#include "net/host.h"

#include <string.h>

#include "base/str.h"

#define LABEL_MAX 63

/* ---- hosts -------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_label(const char *s, size_t len)
{
	if (len == 0 || len > LABEL_MAX || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_label_char(s[i]))
			return false;
	return true;
}

/* A last label that is a number makes inet_aton() and browsers read the whole as an IPv4 address. */
static bool is_numeric(const char *s)
{
	const char *p = s;

	if (s[0] == '0' && s[1] == 'x') {
		s += 2;
		s += strspn(s, "0123456789abcdef");
		return *s == '\0';
	}
	while (is_digit(*p))
		p++;
	return *p == '\0';
}

static bool is_name(const char *s)
{
	const char *dot;

	for (; (dot = strchr(s, '.')); s = dot + 1)
		if (!is_label(s, (size_t)(dot - s)))
			return false;
	return is_label(s, strlen(s)) && !is_numeric(s);
}

/* An IPv4 address must not be written as IPv6. */
static bool is_disguised(const struct address *a)
{
	static const uint8_t zero[10] = { 0 };

	return a->v6 && memcmp(a->byte, zero, sizeof(zero)) == 0 &&
	       (a->byte[10] | a->byte[11] | a->byte[12] | a->byte[13]);
}

static bool parse_v6(const char *text, size_t len, struct host *ret)
{
	char spelled[ADDRESS_TEXT_MAX];

	if (len >= sizeof(spelled))
		return false;
	memcpy(spelled, text, len);
	spelled[len] = '\0';
	if (!strchr(spelled, ':') || !address_parse(spelled, &ret->address) || is_disguised(&ret->address))
		return false;
	ret->is_address = true;
	(void)address_text(&ret->address, spelled);
	return str_copy(ret->text, sizeof(ret->text), spelled);
}

/* As written, in lower case: also for what is not a host, so that it can be reported. */
static void keep_text(const char *text, size_t len, struct host *ret)
{
	len = (size_t)min_u64(len, sizeof(ret->text) - 1);
	for (size_t i = 0; i < len; i++)
		ret->text[i] = lower(text[i]);
	ret->text[len] = '\0';
}

bool host_parse(const char *text, size_t len, bool bracketed, struct host *ret)
{
	*ret = (struct host){ .is_address = false };
	if (len > 0 && text[len - 1] == '.')
		len--;
	keep_text(text, len, ret);
	if (len == 0 || len >= sizeof(ret->text) || memchr(text, '\0', len))
		return false;
	if (bracketed && text[0] == '[')
		return len > 2 && text[len - 1] == ']' && parse_v6(text + 1, len - 2, ret);
	if (!bracketed && memchr(text, ':', len))
		return parse_v6(text, len, ret);
	ret->is_address = address_parse(ret->text, &ret->address);
	return ret->is_address ? !ret->address.v6 : is_name(ret->text);
}

bool port_parse(const char *text, size_t len, uint16_t *ret)
{
	uint32_t port = 0;

	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(text[i]))
			return false;
		port = port * 10 + (uint32_t)(text[i] - '0');
	}
	if (port == 0 || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

bool authority_parse(const char *text, size_t len, struct host *ret, uint16_t *ret_port)
{
	const char *end = text + len, *from = text, *colon;

	*ret = (struct host){ .is_address = false };
	*ret_port = 0;
	if (len > 0 && text[0] == '[') {
		from = memchr(text, ']', len);
		if (!from)
			return false;
	}
	colon = memchr(from, ':', (size_t)(end - from));
	if (colon && !port_parse(colon + 1, (size_t)(end - colon - 1), ret_port))
		return false;
	return host_parse(text, (size_t)((colon ? colon : end) - text), true, ret);
}

/* ---- rules -------------------------------------------------------------------------------------- */

/* Where the port's colon is, or the end.  "::1" without brackets has no port. */
static const char *find_port(const char *item)
{
	const char *from = item[0] == '[' ? strchr(item, ']') : item;
	const char *colon = from ? strchr(from, ':') : NULL;

	if (!colon || (item[0] != '[' && strchr(colon + 1, ':')))
		return item + strlen(item);
	return colon;
}

const char *host_rule_parse(const char *item, struct host_rule *ret)
{
	const char *colon = find_port(item);

	*ret = (struct host_rule){ .ports = PORTS_WEB };
	if (strstr(item, "://"))
		return "write the host alone, without a scheme";
	if (strchr(item, '/'))
		return "a host has no path, and networks cannot be listed: list each address";
	if (strchr(item, '@'))
		return "a host has no user";
	if (*colon) {
		ret->ports = str_eq(colon + 1, "*") ? PORTS_ANY : PORTS_ONE;
		if (ret->ports == PORTS_ONE && !port_parse(colon + 1, strlen(colon + 1), &ret->port))
			return "the port is 1 to 65535, or *";
	}
	if (strncmp(item, "*.", 2) == 0) {
		ret->below = true;
		item += 2;
	}
	if (memchr(item, '*', (size_t)(colon - item)))
		return "* stands for whole labels at the beginning (*.example.org); a list of everything is none";
	if (!host_parse(item, (size_t)(colon - item), item[0] == '[', &ret->host))
		return "it is neither a host name (others than ASCII in punycode) nor an address in its usual spelling";
	if (ret->below && ret->host.is_address)
		return "an address has nothing below it";
	return NULL;
}

static bool ports_allow(const struct host_rule *r, uint16_t port)
{
	switch (r->ports) {
	case PORTS_WEB:
		return port == 80 || port == 443;
	case PORTS_ONE:
		return port == r->port;
	case PORTS_ANY:
		return true;
	}
	return false;
}

static bool host_allows(const struct host_rule *r, const struct host *h)
{
	size_t len = strlen(h->text), suffix = strlen(r->host.text);

	if (r->host.is_address || h->is_address)
		return r->host.is_address && h->is_address && address_eq(&r->host.address, &h->address);
	if (!r->below)
		return str_eq(r->host.text, h->text);
	return len > suffix + 1 && h->text[len - suffix - 1] == '.' && str_eq(h->text + len - suffix, r->host.text);
}

enum rule_match host_rule_match(const struct host_rule *r, const struct host *host, uint16_t port)
{
	if (!host_allows(r, host))
		return MATCH_NONE;
	return ports_allow(r, port) ? MATCH_YES : MATCH_OTHER_PORT;
}
