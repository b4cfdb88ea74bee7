/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - the access log: one line per request on standard error
 *
 * A line never contains a credential, a query or a body; the route's name replaces the path.  A slow reader of the log
 * must not block the service: a line that would block is dropped, and the next one reports how many were.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/doors/door.h"
#include "server/report.h"

#define LINE_MAX_BYTES 4096 /* PIPE_BUF: a writable pipe takes as much without blocking */

static void write_line(struct front *f, const struct buf *line)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	if (poll(&p, 1, 0) <= 0 || !(p.revents & POLLOUT) || write(STDERR_FILENO, buf_str(line), line->len) < 0)
		f->log_lost++;
}

static void add_lost(struct front *f, struct buf *line)
{
	if (f->log_lost == 0)
		return;
	if (f->options->json_log)
		(void)buf_addf(line, ",\"lost_lines\":%llu", (unsigned long long)f->log_lost);
	else
		(void)buf_addf(line, " lost_lines=%llu", (unsigned long long)f->log_lost);
	f->log_lost = 0;
}

static void add_member(struct buf *line, const char *name, const char *value)
{
	if (!*value)
		return;
	(void)buf_addf(line, ",\"%s\":\"", name);
	report_add_json(line, value);
	(void)buf_adds(line, "\"");
}

static void add_json(struct buf *line, const struct request *req, const char *route, uint64_t us)
{
	(void)buf_adds(line, "{\"time\":\"");
	report_add_time(line);
	(void)buf_addf(line, "\",\"request_id\":\"%s\",\"method\":\"%s\",\"route\":\"", req->id, req->method);
	report_add_json(line, route);
	(void)buf_addf(line, "\",\"status\":%u,\"bytes\":%llu,\"ms\":%llu.%03u", req->status,
		       (unsigned long long)req->sent, (unsigned long long)us / 1000, (unsigned)(us % 1000));
	if (req->trace[0]) {
		char trace[33], span[17];

		trace_ids(req, trace, span);
		(void)buf_addf(line, ",\"trace_id\":\"%s\",\"span_id\":\"%s\"", trace, span);
	}
	add_member(line, "token", req->who);
	add_member(line, "execution", req->execution);
	add_member(line, "verdict", req->verdict);
}

static void add_text(struct buf *line, const struct request *req, const char *route, uint64_t us)
{
	report_add_time(line);
	(void)buf_addf(line, " %s %s %s %u bytes=%llu ms=%llu.%03u token=%s", req->id,
		       req->method[0] ? req->method : "-", route, req->status, (unsigned long long)req->sent,
		       (unsigned long long)us / 1000, (unsigned)(us % 1000), req->who[0] ? req->who : "-");
	if (req->execution[0])
		(void)buf_addf(line, " execution=%s", req->execution);
	if (req->verdict[0])
		(void)buf_addf(line, " verdict=%s", req->verdict);
	if (req->trace[0]) {
		char trace[33], span[17];

		trace_ids(req, trace, span);
		(void)buf_addf(line, " trace_id=%s", trace);
	}
}

void log_request(struct client *c)
{
	AUTO_BUF line = BUF_INIT(LINE_MAX_BYTES);
	const struct request *req = c->req;
	const char *route = req->route < ROUTE_COUNT ? route_rows[req->route].name : "-";
	uint64_t us = (clock_now_ns() - req->began_ns) / 1000;
	char through[128];

	if (req->call && req->call->route) {
		(void)snprintf(through, sizeof(through), "%s:%s", door_rows[req->call->door].name,
			       req->call->route->path);
		route = through;
	}
	if (c->front->options->json_log)
		add_json(&line, req, route, us);
	else
		add_text(&line, req, route, us);
	add_lost(c->front, &line);
	(void)buf_adds(&line, c->front->options->json_log ? "}\n" : "\n");
	write_line(c->front, &line);
}

void log_relay(struct front *f, const char *route, const char *who, unsigned status, uint64_t began_ns)
{
	AUTO_BUF line = BUF_INIT(LINE_MAX_BYTES);
	struct request req = { .id = "-", .method = "SOCKET", .status = status };
	uint64_t us = (clock_now_ns() - began_ns) / 1000;

	(void)str_copy(req.who, sizeof(req.who), who);
	if (f->options->json_log)
		add_json(&line, &req, route, us);
	else
		add_text(&line, &req, route, us);
	add_lost(f, &line);
	(void)buf_adds(&line, f->options->json_log ? "}\n" : "\n");
	write_line(f, &line);
}

void log_trouble(struct front *f, const char *text)
{
	AUTO_BUF line = BUF_INIT(LINE_MAX_BYTES);

	report_add_line(&line, text);
	write_line(f, &line);
}
