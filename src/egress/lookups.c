/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's lookups, which arrive as datagrams on the cell's 127.0.0.1.  A listed name has an IPv4 address of the
 * cell's own loopback and no other record; localhost is the cell itself; nothing else exists.  None of this gets out: a
 * listed name is resolved when the program connects to its address, in the same way as for the proxy.
 *
 * Every query is answered immediately, also negatively, so that no program waits in vain.
 */
#include <netinet/in.h>
#include <string.h>

#include "base/str.h"
#include "egress/dns.h"
#include "egress/server.h"

#define PER_ROUND 64

static bool is_reverse(const char *name)
{
	static const char end[] = ".arpa";
	size_t len = strlen(name);

	return len >= strlen(end) && str_eq(name + len - strlen(end), end);
}

/* A refused name is counted once per lookup: resolvers query both address families together. */
static void note(struct server *s, const struct dns_query *q, enum why why)
{
	if (q->type != DNS_AAAA && !is_reverse(q->host.text))
		(void)table_note(s->table, q->host.text, 0, why, "");
}

static enum dns_code look_up(struct server *s, const struct dns_query *q, uint32_t *ret_address)
{
	if (q->code != DNS_OK)
		return q->code;
	if (!q->is_host)
		return DNS_NO_SUCH_NAME;
	if (names_is_own(q->host.text)) {
		*ret_address = INADDR_LOOPBACK;
		return DNS_OK;
	}
	if (!names_is_listed(&s->names, &q->host)) {
		note(s, q, WHY_unlisted);
		return DNS_NO_SUCH_NAME;
	}
	*ret_address = names_address(&s->names, &q->host);
	if (*ret_address != 0)
		return DNS_OK;
	note(s, q, WHY_no_address);
	return DNS_NO_SUCH_NAME;
}

static void answer(struct server *s, const uint8_t *bytes, size_t len, const struct sockaddr_in *from)
{
	uint8_t text[DNS_ANSWER_MAX];
	uint32_t address = 0;
	struct dns_query q;
	enum dns_code code;
	size_t n;

	if (!dns_parse(bytes, len, &q))
		return;
	code = look_up(s, &q, &address);
	n = dns_answer(bytes, &q, code, q.type == DNS_A ? address : 0, text);
	/* A lost one, because there is no reader, is as good as not sent. */
	(void)sendto(s->lookups, text, n, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)from, sizeof(*from));
}

void lookups_serve(struct server *s)
{
	uint8_t bytes[DNS_QUERY_MAX + 1]; /* the last byte shows one that is too long */
	struct sockaddr_in from;
	socklen_t size;
	ssize_t n;

	for (unsigned i = 0; i < PER_ROUND && s->lookups >= 0; i++) {
		size = sizeof(from);
		n = recvfrom(s->lookups, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &size);
		if (n < 0 || size != sizeof(from))
			return;
		answer(s, bytes, (size_t)n, &from);
		if (++s->n_lookups < s->connections_max * LOOKUPS_PER_CONN)
			continue;
		(void)table_note(s->table, "", 0, WHY_lookups, "");
		fd_closep(&s->lookups); /* and the kernel tells later clients so */
	}
}
