/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/table.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

struct table_row *table_note(struct table *t, const char *host, uint16_t port, enum why why, const char *detail)
{
	struct table_half *half = &t->half[why_info[why].kind == WHY_KIND_DENIED];
	struct table_row *r;

	for (size_t i = 0; i < half->n; i++) {
		r = &half->row[i];
		if (r->why == why && r->port == port && str_eq(r->host, host) && str_eq(r->detail, detail)) {
			r->count++;
			return r;
		}
	}
	if (half->n == TABLE_ROWS) {
		t->dropped++;
		return NULL;
	}
	r = &half->row[half->n];
	(void)str_copy(r->host, sizeof(r->host), host);
	(void)str_copy(r->detail, sizeof(r->detail), detail);
	r->port = port;
	r->why = (uint8_t)why;
	r->count = 1;
	half->n++;
	return r;
}

/* ---- the supervisor's side ------------------------------------------------------------------------ */

/* Printable ASCII up to the first NUL; anything else becomes a question mark. */
static void copy_text(char *dst, size_t size, const char *src, size_t src_size)
{
	size_t i;

	for (i = 0; i < src_size && i < size - 1 && src[i]; i++)
		dst[i] = src[i] >= ' ' && src[i] <= '~' ? src[i] : '?';
	dst[i] = '\0';
}

/* "host:port" as a line of the whitelist; the usual ports need not be said. */
static void put_line(char *dst, size_t size, const char *host, unsigned port)
{
	bool v6 = strchr(host, ':') != NULL;
	const char *open = v6 ? "[" : "", *close = v6 ? "]" : "";

	if (port == 80 || port == 443 || port == 0) /* a lookup does not say what for */
		(void)snprintf(dst, size, "%s%.150s%s", open, host, close);
	else
		(void)snprintf(dst, size, "%s%.150s%s:%u", open, host, close, port);
}

static void put_fix(char *dst, size_t size, const struct network_row *n, enum why_fix fix, const char *detail)
{
	char line[176], address[ADDRESS_TEXT_MAX];

	dst[0] = '\0';
	switch (fix) {
	case FIX_NOTHING:
		break;
	case FIX_HOST:
		put_line(line, sizeof(line), n->host, n->port);
		(void)snprintf(dst, size, "add %.140s to whitelist", line);
		break;
	case FIX_ADDRESS: /* the detail begins with it */
		copy_text(address, sizeof(address), detail, strcspn(detail, " "));
		put_line(line, sizeof(line), address, n->port);
		(void)snprintf(dst, size, "add %.100s to whitelist, if it is meant", line);
		break;
	case FIX_CONNECTIONS:
		(void)snprintf(dst, size, "raise egress_connections");
		break;
	case FIX_BYTES:
		(void)snprintf(dst, size, "raise egress_bytes");
		break;
	}
}

static enum network_end end_of(enum why why)
{
	switch (why) {
	case WHY_special:
	case WHY_own_address:
		return NETWORK_NOT_PUBLIC;
	case WHY_unresolved:
		return NETWORK_UNRESOLVED;
	case WHY_unreachable:
		return NETWORK_UNREACHABLE;
	case WHY_timed_out:
		return NETWORK_TIMED_OUT;
	default:
		return why_info[why].kind == WHY_KIND_DENIED ? NETWORK_DENIED : NETWORK_REACHED;
	}
}

static void read_row(const struct table_row *r, bool denied_half, struct network *net, struct denied *denied)
{
	const struct why_info *info;
	struct network_row n = {
		.port = r->port, .count = r->count, .sent_bytes = r->sent, .received_bytes = r->received
	};
	struct denied_row d = { .kind = DENIED_HOST, .count = r->count };
	char detail[TABLE_DETAIL_MAX];

	if (r->why >= WHY_COUNT || (why_info[r->why].kind == WHY_KIND_DENIED) != denied_half)
		return;
	info = &why_info[r->why];
	copy_text(n.host, sizeof(n.host), r->host, sizeof(r->host));
	copy_text(detail, sizeof(detail), r->detail, sizeof(r->detail));
	(void)snprintf(n.reason, sizeof(n.reason), "%s%s%s", info->text, detail[0] ? ": " : "", detail);
	n.allowed = !denied_half;
	n.end = end_of(r->why);
	(void)network_add(net, &n);
	if (!denied_half || !denied)
		return;
	if (n.host[0] && n.port == 0)
		(void)snprintf(d.what, sizeof(d.what), "%.180s", n.host);
	else if (n.host[0])
		(void)snprintf(d.what, sizeof(d.what), "%.180s:%u", n.host, n.port);
	else
		(void)snprintf(d.what, sizeof(d.what), "%.*s", (int)sizeof(d.what) - 1, info->text);
	(void)snprintf(d.why, sizeof(d.why), "%s", n.reason);
	put_fix(d.fix, sizeof(d.fix), &n, info->fix, detail);
	(void)denied_add(denied, &d);
}

void table_report(enum why why, struct network *net, struct denied *denied)
{
	const struct table_row row = { .why = (uint8_t)why, .count = 1 };

	read_row(&row, why_info[why].kind == WHY_KIND_DENIED, net, denied);
}

uint64_t table_received(const struct table *t)
{
	uint64_t bytes = 0;
	uint32_t n = t->half[0].n;

	for (size_t i = 0; i < n && i < TABLE_ROWS; i++)
		bytes += t->half[0].row[i].received;
	return bytes;
}

void table_read(const struct table *t, struct network *net, struct denied *denied)
{
	for (size_t h = 0; h < ARRAY_LEN(t->half); h++)
		for (size_t i = 0; i < t->half[h].n && i < TABLE_ROWS; i++)
			read_row(&t->half[h].row[i], h == 1, net, denied);
	net->dropped += t->dropped;
}
