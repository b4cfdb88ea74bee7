/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - heads of answers, and error documents */
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/doors/door.h"
#include "server/report.h"

#define HEAD_MAX 8192

/* API documents must not render anything, even if a browser is made to show them. */
#define DATE_MAX            253402300799 /* the last second of the year 9999; programs set times of files beyond it */
#define POLICY_OF_DOCUMENTS "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

static const struct status_row {
	unsigned status;
	const char *reason, *code;
} rows[] = {
#define STATUS(number, reason, code) { number, reason, code },
#include "server/front/statuses.def"
#undef STATUS
};

static const struct status_row *row_of(unsigned status)
{
	static const struct status_row other = { 0, "Unknown", "error" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].status == status)
			return &rows[i];
	return &other;
}

const char *reply_reason(unsigned status)
{
	return row_of(status)->reason;
}

void reply_date_of(char dst[32], uint64_t seconds)
{
	static const char days[][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t when = (time_t)min_u64(seconds, DATE_MAX + 1);
	struct tm tm;

	dst[0] = '\0';
	if (seconds <= DATE_MAX && gmtime_r(&when, &tm))
		(void)snprintf(dst, 32, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday % 7], tm.tm_mday % 100,
			       months[tm.tm_mon % 12], (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100,
			       tm.tm_sec % 100);
}

void reply_date(char dst[32])
{
	reply_date_of(dst, clock_wall_ns() / NS_PER_SEC);
}

static void add_head(struct buf *head, const struct client *c, const struct reply *a)
{
	const struct request *req = c->req;
	char date[32];

	reply_date(date);
	(void)buf_addf(head, "HTTP/1.1 %u %s\r\nDate: %s\r\nX-Request-Id: %s\r\n", a->status, reply_reason(a->status),
		       date, req->id);
	if (a->status != 304 && a->status != 204)
		(void)buf_addf(head, "Content-Type: %s\r\nContent-Length: %zu\r\n",
			       a->content_type ? a->content_type : "application/json", a->len);
	(void)buf_addf(head,
		       "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
		       "Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: %s\r\n",
		       a->policy ? a->policy : POLICY_OF_DOCUMENTS);
	if (!a->may_be_kept)
		(void)buf_adds(head, "Cache-Control: no-store\r\n");
	if (a->status == 401)
		(void)buf_adds(head, "WWW-Authenticate: Bearer realm=\"brig\"\r\n");
	if (a->retry_after || a->status == 503)
		(void)buf_addf(head, "Retry-After: %llu\r\n", (unsigned long long)max_u64(a->retry_after, 1));
	if (a->location)
		(void)buf_addf(head, "Location: %s\r\n", a->location);
	if (a->allow)
		(void)buf_addf(head, "Allow: %s\r\n", a->allow);
	if (req->trace[0])
		(void)buf_addf(head, "traceparent: %s\r\n", req->trace);
	if (a->more)
		(void)buf_adds(head, a->more);
	if (c->is_last)
		(void)buf_adds(head, "Connection: close\r\n");
	else if (req->version_1_0)
		(void)buf_adds(head, "Connection: keep-alive\r\n");
	(void)buf_adds(head, "\r\n");
}

void reply_send(struct client *c, const struct reply *a)
{
	AUTO_BUF head = BUF_INIT(HEAD_MAX);
	struct iovec pieces[2] = { 0 };

	c->is_last |= !c->req->keep_alive || c->front->draining;
	if (c->req->port && !c->req->reader.done) /* its body has not been read, so what follows is no request */
		c->is_last = true;
	add_head(&head, c, a);
	if (head.full || head.no_memory) {
		client_close(c, true);
		return;
	}
	c->req->status = a->status;
	c->req->sent = c->req->is_head ? 0 : a->len;
	pieces[0] = (struct iovec){ head.data, head.len };
	memcpy(&pieces[1].iov_base, &a->body, sizeof(a->body)); /* only read */
	pieces[1].iov_len = c->req->is_head || a->status == 304 ? 0 : a->len;
	if (client_put(c, pieces, ARRAY_LEN(pieces)))
		client_finish(c);
}

static void send_error(struct client *c, unsigned status, const char *message, const char *allow)
{
	AUTO_BUF body = BUF_INIT(16 * KiB);

	if (c->req->call) {
		door_error(c, status, message);
		return;
	}

	(void)buf_addf(&body, "{\"error\":{\"code\":\"%s\",\"message\":\"", row_of(status)->code);
	report_add_json(&body, message);
	(void)buf_addf(&body, "\",\"request_id\":\"%s\"}}\n", c->req->id);
	reply_send(c, &(struct reply){ .status = status, .body = buf_str(&body), .len = body.len, .allow = allow });
}

/* Formats text that may contain client data, truncated within a character. */
static void compose(char *text, size_t size, const char *fmt, va_list ap)
{
	size_t good;

	(void)vsnprintf(text, size, fmt, ap);
	while ((good = str_utf8_prefix(text, strlen(text))) < strlen(text))
		text[good] = '?';
}

void reply_error(struct client *c, unsigned status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	compose(text, sizeof(text), fmt, ap);
	va_end(ap);
	send_error(c, status, text, NULL);
}

void reply_refuse(struct client *c, unsigned status, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	compose(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->is_last = true;
	send_error(c, status, text, NULL);
}

void reply_not_allowed(struct client *c, const char *path, const char *allow)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "%s takes %s and not %s", path, allow, c->req->method);
	send_error(c, 405, text, allow);
}
