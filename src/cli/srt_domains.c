/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srt has a list of allowed domains and one of exceptions; brig's whitelist has no exceptions.  So an entry that is
 * denied completely is left out, and one that is denied in part is refused: leaving it out would be surprising,
 * allowing it would be weaker.  Entries without a port mean any port in srt, like ":*" in brig.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "cli/srt.h"

struct domain {
	char host[256]; /* without "*." and without the brackets of an address */
	bool is_wild, is_address6, is_all;
	uint64_t port; /* 0: any */
};

#define FORMS "is no domain such as \"example.org\", \"*.example.org\", \"example.org:443\" or \"[2001:db8::1]\""

/* Cuts the port off the end. */
static bool split_port(char *text, uint64_t *ret)
{
	char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');

	*ret = 0;
	if (!colon || (bracket && colon < bracket))
		return true;
	*colon = '\0';
	return str_to_u64(colon + 1, ret) && *ret > 0 && *ret <= 65535;
}

static bool read_address6(const char *text, struct domain *d)
{
	char inner[INET6_ADDRSTRLEN];
	struct in6_addr address;
	size_t len = strlen(text);

	if (len < 4 || text[len - 1] != ']' || len - 2 >= sizeof(inner))
		return false;
	memcpy(inner, text + 1, len - 2);
	inner[len - 2] = '\0';
	d->is_address6 = inet_pton(AF_INET6, inner, &address) == 1;
	return d->is_address6 && inet_ntop(AF_INET6, &address, d->host, sizeof(d->host));
}

static bool is_name(const char *host)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	size_t len = strlen(host);

	return len > 0 && strspn(host, letters) == len && host[0] != '.' && host[len - 1] != '.' &&
	       !strstr(host, "..") && strchr(host, '.');
}

static bool read_domain(const char *text, struct domain *d)
{
	char host[256];

	*d = (struct domain){ 0 };
	if (!str_copy(host, sizeof(host), text) || !split_port(host, &d->port))
		return false;
	if (host[0] == '[')
		return read_address6(host, d);
	d->is_all = str_eq(host, "*");
	d->is_wild = strncmp(host, "*.", 2) == 0;
	(void)str_copy(d->host, sizeof(d->host), d->is_wild ? host + 2 : host);
	return d->is_all || (!d->is_wild && str_eq(host, "localhost")) || is_name(d->host);
}

/* Whether every host of b matches a. */
static bool host_covers(const struct domain *a, const struct domain *b)
{
	size_t la = strlen(a->host), lb = strlen(b->host);

	if (a->is_all)
		return true;
	if (a->is_address6 != b->is_address6 || (b->is_wild && !a->is_wild))
		return false;
	if (!a->is_wild)
		return strcasecmp(a->host, b->host) == 0;
	if (b->is_wild && strcasecmp(a->host, b->host) == 0)
		return true;
	return lb > la + 1 && b->host[lb - la - 1] == '.' && strcasecmp(b->host + lb - la, a->host) == 0;
}

static bool covers(const struct domain *a, const struct domain *b)
{
	return host_covers(a, b) && (a->port == 0 || a->port == b->port);
}

static bool overlaps(const struct domain *a, const struct domain *b)
{
	return (host_covers(a, b) || host_covers(b, a)) && (a->port == 0 || b->port == 0 || a->port == b->port);
}

static void add(struct srt *s, const struct domain *d)
{
	(void)buf_addf(&s->whitelist, "%s%s%s%s%s", s->whitelist.len ? "," : "", d->is_wild ? "*." : "",
		       d->is_address6 ? "[" : "", d->host, d->is_address6 ? "]" : "");
	if (d->port)
		(void)buf_addf(&s->whitelist, ":%u", (unsigned)d->port);
	else
		buf_adds(&s->whitelist, ":*");
}

/* Adds an allowed entry to the whitelist unless it is denied. */
static int judge(struct srt *s, struct json_reader *r, const char *text, const struct json_strings *denied)
{
	struct domain a, d;

	if (!read_domain(text, &a) || a.is_all)
		return json_complain(r, FORMS);
	for (size_t i = 0; i < denied->n; i++) {
		(void)read_domain(denied->item[i], &d); /* it was validated before */
		if (covers(&d, &a))
			return 0;
		if (overlaps(&d, &a))
			return err_set(
				r->err, BRIG_E_USAGE, 0,
				"%s '%.80s' cannot be honoured: network.deniedDomains takes '%.80s' out of it, and a "
				"whitelist of brig's has no exceptions; list the hosts and ports that are meant",
				r->path, text, denied->item[i]);
	}
	if (str_eq(a.host, "localhost"))
		srt_notice(s, "%s: localhost is the cell's own; list 127.0.0.1 with its port to reach this host's",
			   r->path);
	else
		add(s, &a);
	return 0;
}

int srt_domains(struct srt *s, struct json_reader *r, const struct json_strings *allowed,
		const struct json_strings *denied)
{
	struct domain d;

	for (size_t i = 0; i < denied->n; i++) {
		(void)json_enter(r, "network.deniedDomains", 0);
		(void)json_enter(r, NULL, i);
		if (!read_domain(denied->item[i], &d))
			return json_complain(r, FORMS);
		json_leave(r, 0);
	}
	for (size_t i = 0; i < allowed->n; i++) {
		(void)json_enter(r, "network.allowedDomains", 0);
		(void)json_enter(r, NULL, i);
		if (judge(s, r, allowed->item[i], denied) < 0)
			return -r->err->code;
		json_leave(r, 0);
	}
	return 0;
}
