/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_ask.c - how the drill speaks with the runner, from where the front would */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "hostile.h"

struct shared *shared;
const char *mallory, *alice;
struct front *front;
uint32_t last_tag;
bool is_broken;
static char why_text[512];

/* No stdio: that asks the kernel more than the front may. */
void say(const char *line)
{
	(void)!write(STDERR_FILENO, line, strlen(line));
}

void tell(const char *why, const char *fmt, ...)
{
	char name[200], line[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	(void)snprintf(line, sizeof(line), "%s - %s%s%s\n", why ? "not ok" : "ok", name, why ? ": " : "",
		       why ? why : "");
	say(line);
}

const char *wrong(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why_text, sizeof(why_text), fmt, ap);
	va_end(ap);
	return why_text;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

void got_release(struct got *g)
{
	json_decref(g->doc);
	*g = (struct got){ .status = -1 };
}

struct got next_record(void)
{
	struct got g = { .status = -1 };
	struct pollfd p = { .fd = channel_fd(front->channel) };
	struct record r;
	struct message m;
	const char *why, *text;
	size_t len;
	int rc;

	while ((rc = channel_receive(front->channel, &r, NULL)) == 0) {
		if (channel_flush(front->channel, NULL) < 0)
			return g;
		p.events = channel_events(front->channel);
		if (poll(&p, 1, PATIENCE_MS) == 0)
			return g;
	}
	if (rc < 0) {
		is_broken = true;
		return g;
	}
	g.status = r.status;
	g.tag = r.tag;
	g.type = r.type;
	if (r.type != RECORD_ANSWER || !message_read(r.data, r.len, &m, &why))
		return g;
	text = message_text(&m, FIELD_who);
	(void)str_copy(g.who, sizeof(g.who), text ? text : "");
	text = message_bytes(&m, FIELD_body, &len);
	g.doc = text ? json_loadb(text, len, JSON_ALLOW_NUL, NULL) : NULL;
	return g;
}

void begin(struct buf *m, enum route route, const char *credential)
{
	*m = (struct buf)BUF_INIT(MESSAGE_MAX);
	message_put_number(m, FIELD_route, route);
	message_put_text(m, FIELD_request_id, "drill");
	message_put_text(m, FIELD_credential, credential);
}

/* Takes the message. */
uint32_t put(struct buf *m, const int *fds, size_t n_fds)
{
	struct record r = { .tag = ++last_tag, .type = RECORD_ASK, .data = m->data, .len = m->len, .n_fds = n_fds };

	for (size_t i = 0; i < n_fds; i++)
		r.fds[i] = fds[i];
	(void)channel_send(front->channel, &r, NULL);
	buf_release(m);
	return r.tag;
}

struct got ask_with(struct buf *m, const int *fds, size_t n_fds)
{
	uint32_t tag = put(m, fds, n_fds);
	struct got g = next_record();

	while (g.status >= 0 && (g.tag != tag || g.type != RECORD_ANSWER)) {
		got_release(&g);
		g = next_record();
	}
	return g;
}

struct got ask(struct buf *m)
{
	return ask_with(m, NULL, 0);
}

const char *member(const struct got *g, const char *name)
{
	const char *text = json_string_value(json_object_get(g->doc, name));

	return text ? text : "";
}

void begin_shell(struct buf *m, const char *credential, const char *code)
{
	begin(m, ROUTE_execute, credential);
	message_put_number(m, FIELD_kind, BRIG_KIND_SHELL);
	message_put_bytes(m, FIELD_code, code, strlen(code));
}

bool is_ok(const struct got *g)
{
	return g->status == 200 && str_eq(member(g, "verdict"), "ok");
}

const char *expect(const struct got *g, int status)
{
	return g->status == status ? NULL : wrong("the answer is %d and not %d", g->status, status);
}

const char *honest(void)
{
	struct buf m;

	begin_shell(&m, mallory, "echo honest");
	AUTO_GOT g = ask(&m);
	if (!is_ok(&g) || !str_eq(member(&g, "stdout"), "honest\n") || !str_eq(g.who, "mallory"))
		return wrong("an honest request afterwards: %d %s %s", g.status, g.who, member(&g, "verdict"));
	return NULL;
}

/* The same in short: she is who she is. */
const char *honest_word(void)
{
	struct buf m;

	begin(&m, ROUTE_whoami, mallory);
	AUTO_GOT g = ask(&m);
	return g.status == 200 && str_eq(member(&g, "name"), "mallory")
		       ? NULL
		       : wrong("an honest request afterwards: %d", g.status);
}
