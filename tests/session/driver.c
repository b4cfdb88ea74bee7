/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - sessions through the public library, told what to do in lines of JSON.
 *
 *	{ "do": "begin", "options": { KEY: VALUE }, "timeout_ms": N, "trust": T, "env": [...] }      -> { "event": "begun", "session": N }
 *	{ "do": "start" | "run" | "open" | ..., "session": N, ... }                                  -> { "event": "tag", "tag": N }
 *	events of sessions as they come, one line each; {"event": "over"} when a session's last step was made
 *
 * One thread, one handle, one poll.  At end of file every session is ended.
 */
#include <brig/session.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>

#define SESSIONS_MAX 256
#define OPTIONS_MAX  32
#define WORDS_MAX    64
#define READ_MAX     65536

struct held {
	struct brig_session *s;
	bool over;
	struct brig_option options[OPTIONS_MAX];
	const char *env[WORDS_MAX];
	json_t *asked; /* what the options point to */
};

static struct brig *handle;
static struct held held[SESSIONS_MAX];
static size_t n_held;

static void say(json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);

	puts(text);
	(void)fflush(stdout);
	free(text);
	json_decref(line);
}

static json_t *bytes(const char *data, size_t len)
{
	json_t *text = json_stringn(data, len);
	json_t *codes;

	if (text)
		return text;
	codes = json_array();
	for (size_t i = 0; i < len; i++)
		json_array_append_new(codes, json_integer((unsigned char)data[i]));
	return codes;
}

/* ---- events ------------------------------------------------------------------------------------ */

/* A file is read to its end; a connection is told apart and spoken to. */
static json_t *look_at(int fd)
{
	char data[READ_MAX];
	json_t *text;
	ssize_t n, len = 0;
	int type;
	socklen_t size = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		(void)send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
		while (len < READ_MAX && poll(&p, 1, 5000) > 0 &&
		       (n = recv(fd, data + len, (size_t)(READ_MAX - len), MSG_DONTWAIT)) > 0)
			len += n;
	} else {
		while (len < READ_MAX && (n = read(fd, data + len, (size_t)(READ_MAX - len))) > 0)
			len += n;
	}
	text = bytes(data, (size_t)len);
	(void)close(fd);
	return text;
}

static const char *pending_write; /* what the next descriptor that comes is to be filled with */

static void take_descriptor(json_t *line, int fd)
{
	if (pending_write) {
		ssize_t n = write(fd, pending_write, strlen(pending_write));

		json_object_set_new(line, "written", json_integer(n));
		(void)close(fd);
		free((void *)(uintptr_t)pending_write);
		pending_write = NULL;
		return;
	}
	json_object_set_new(line, "content", look_at(fd));
}

static void add_entry(json_t *line, const struct brig_session_entry *e)
{
	json_object_set_new(line, "entry",
			    json_pack("{sssssisisIsI}", "path", e->path, "target", e->target, "mode", (int)e->mode,
				      "target_mode", (int)e->target_mode, "bytes", (json_int_t)e->bytes, "mtime",
				      (json_int_t)e->mtime));
}

static void add_fields(json_t *line, const struct brig_session_event *e)
{
	json_t *fields = json_object();

	for (size_t i = 0; i < e->n_fields; i++)
		json_object_set_new(fields, e->fields[i].name, bytes(e->fields[i].value, e->fields[i].len));
	json_object_set_new(line, "fields", fields);
	json_object_set_new(line, "form", json_string(e->name));
}

static json_t *result_json(struct brig_result *r)
{
	char *text = NULL;
	json_t *out = NULL;

	if (brig_result_json(r, &text, NULL) == 0)
		out = json_loads(text, 0, NULL);
	brig_free(text);
	brig_result_free(r);
	return out ? out : json_null();
}

static void on_event(void *user, const struct brig_session_event *e)
{
	static const char *const names[] = { "",      "ready",   "done",   "output", "exited",
					     "entry", "changed", "result", "ran",    "stopping" };
	const struct held *h = user;
	json_t *line = json_pack("{sssIsI}", "event", names[e->kind], "session", (json_int_t)(h - held), "tag",
				 (json_int_t)e->tag);

	switch (e->kind) {
	case BRIG_SESSION_DONE:
		json_object_set_new(line, "error", json_string(e->error ? strerrorname_np(e->error) : ""));
		json_object_set_new(line, "flags", json_integer(e->flags));
		json_object_set_new(line, "pid", json_integer(e->pid));
		json_object_set_new(line, "entries", json_integer((json_int_t)e->entries));
		json_object_set_new(line, "bytes", json_integer((json_int_t)e->bytes));
		json_object_set_new(line, "left_out", json_integer((json_int_t)e->left_out));
		if (e->fd >= 0)
			take_descriptor(line, e->fd);
		break;
	case BRIG_SESSION_OUTPUT:
		json_object_set_new(line, "stream", json_integer(e->stream));
		json_object_set_new(line, "data", bytes(e->data, e->len));
		break;
	case BRIG_SESSION_EXITED:
		json_object_set_new(line, "code", json_integer(e->exit_code));
		json_object_set_new(line, "signal", json_integer(e->signal));
		json_object_set_new(line, "flags", json_integer(e->flags));
		break;
	case BRIG_SESSION_ENTRY:
		add_entry(line, e->entry);
		break;
	case BRIG_SESSION_CHANGED:
		json_object_set_new(line, "change", json_integer(e->change));
		json_object_set_new(line, "name", json_string(e->name));
		break;
	case BRIG_SESSION_RESULT:
		add_fields(line, e);
		break;
	case BRIG_SESSION_RAN:
		json_object_set_new(line, "count", json_integer((json_int_t)e->count));
		json_object_set_new(line, "result", result_json(e->result));
		break;
	case BRIG_SESSION_STOPPING:
		json_object_set_new(line, "reason", json_string(e->name));
		break;
	default:
		break;
	}
	say(line);
}

/* ---- what is asked for ------------------------------------------------------------------------- */

static const char *text_of(json_t *asked, const char *name)
{
	return json_string_value(json_object_get(asked, name));
}

static uint64_t number_of(json_t *asked, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(asked, name));
}

static size_t words_of(json_t *asked, const char *name, const char **words)
{
	json_t *list = json_object_get(asked, name), *word;
	size_t i;

	json_array_foreach(list, i, word) if (i < WORDS_MAX) words[i] = json_string_value(word);
	return json_array_size(list) < WORDS_MAX ? json_array_size(list) : WORDS_MAX;
}

static int begin(json_t *asked, uint64_t *ret, struct brig_error *err)
{
	struct held *h = &held[n_held];
	struct brig_session_opts opts = BRIG_SESSION_OPTS_INIT;
	const char *key;
	json_t *value;
	int rc;

	h->asked = json_incref(asked);
	json_object_foreach(json_object_get(asked, "options"), key, value) if (opts.n_options < OPTIONS_MAX)
		h->options[opts.n_options++] = (struct brig_option){ key, json_string_value(value) };
	opts.options = h->options;
	opts.env = h->env;
	opts.n_env = words_of(asked, "env", h->env);
	opts.trust = text_of(asked, "trust");
	opts.timeout_ms = number_of(asked, "timeout_ms");
	opts.on_event = on_event;
	opts.user = h;
	rc = brig_session_begin(handle, &opts, &h->s, err);
	if (rc == 0)
		*ret = n_held++;
	return rc;
}

static int start(struct brig_session *s, json_t *asked, uint64_t *ret, struct brig_error *err)
{
	struct brig_session_process p = BRIG_SESSION_PROCESS_INIT;
	const char *argv[WORDS_MAX], *env[WORDS_MAX];

	p.argv = argv;
	p.n_argv = words_of(asked, "argv", argv);
	p.env = env;
	p.n_env = words_of(asked, "env", env);
	p.cwd = text_of(asked, "cwd");
	p.flags = (uint32_t)number_of(asked, "flags");
	p.rows = (uint32_t)number_of(asked, "rows");
	p.columns = (uint32_t)number_of(asked, "columns");
	p.timeout_ms = number_of(asked, "timeout_ms");
	return brig_session_start(s, &p, ret, err);
}

static int run(struct brig_session *s, json_t *asked, uint64_t *ret, struct brig_error *err)
{
	struct brig_session_code c = BRIG_SESSION_CODE_INIT;
	const char *env[WORDS_MAX];

	c.context = number_of(asked, "context");
	c.code = text_of(asked, "code");
	c.code_len = json_string_length(json_object_get(asked, "code"));
	c.env = env;
	c.n_env = words_of(asked, "env", env);
	c.timeout_ms = number_of(asked, "timeout_ms");
	return brig_session_run(s, &c, ret, err);
}

static int open_file(struct brig_session *s, json_t *asked, uint64_t *ret, struct brig_error *err)
{
	const char *content = text_of(asked, "content");

	if (content)
		pending_write = strdup(content);
	return brig_session_open(s, text_of(asked, "path"), content ? BRIG_OPEN_WRITE : BRIG_OPEN_READ, 0644, ret, err);
}

/* A FIFO is there already; who reads it comes first, and until the other comes a writer of ours keeps it from the end of file. */
static int open_copy(const char *path, bool saves)
{
	static int writer = -1;
	struct stat st;
	int fd;

	if (stat(path, &st) < 0 || !S_ISFIFO(st.st_mode))
		return open(path, saves ? O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0600);
	fd = open(path, (saves ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
	if (writer >= 0)
		(void)close(writer);
	writer = saves ? -1 : open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, 0);
	return fd;
}

static int copy(struct brig_session *s, bool saves, json_t *asked, uint64_t *ret, struct brig_error *err)
{
	uint64_t most = number_of(asked, "most");
	int fd = open_copy(text_of(asked, "file"), saves);
	int rc = fd < 0  ? -BRIG_E_SYSTEM
		 : saves ? brig_session_save(s, fd, most ? most : UINT64_MAX, ret, err)
			 : brig_session_load(s, fd, ret, err);

	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static int ask(struct brig_session *s, const char *what, json_t *a, uint64_t *ret, struct brig_error *err)
{
	const char *path = text_of(a, "path");
	uint64_t of = number_of(a, "of");
#define IS(name) (strcmp(what, name) == 0)

	return IS("start")         ? start(s, a, ret, err)
	       : IS("run")         ? run(s, a, ret, err)
	       : IS("open")        ? open_file(s, a, ret, err)
	       : IS("stat")        ? brig_session_stat(s, path, ret, err)
	       : IS("list")        ? brig_session_list(s, path, (uint32_t)number_of(a, "depth"),
						       (uint32_t)number_of(a, "limit"), ret, err)
	       : IS("mkdir")       ? brig_session_mkdir(s, path, ret, err)
	       : IS("move")        ? brig_session_move(s, path, text_of(a, "to"), ret, err)
	       : IS("remove")      ? brig_session_remove(s, path, ret, err)
	       : IS("watch")       ? brig_session_watch(s, path, (int)number_of(a, "recursive"), ret, err)
	       : IS("unwatch")     ? brig_session_unwatch(s, of, ret, err)
	       : IS("connect")     ? brig_session_connect(s, (uint16_t)number_of(a, "port"), ret, err)
	       : IS("pause")       ? brig_session_pause(s, ret, err)
	       : IS("resume")      ? brig_session_resume(s, ret, err)
	       : IS("save")        ? copy(s, true, a, ret, err)
	       : IS("load")        ? copy(s, false, a, ret, err)
	       : IS("context")     ? brig_session_context(s, text_of(a, "language"), text_of(a, "cwd"), ret, err)
	       : IS("interrupt")   ? brig_session_interrupt(s, of, err)
	       : IS("restart")     ? brig_session_restart(s, of, err)
	       : IS("close")       ? brig_session_close_context(s, of, err)
	       : IS("signal")      ? brig_session_signal(s, of, (int)number_of(a, "signal"), ret, err)
	       : IS("resize")      ? brig_session_resize(s, of, (uint32_t)number_of(a, "rows"),
							 (uint32_t)number_of(a, "columns"), ret, err)
	       : IS("input")       ? brig_session_input(s, of, text_of(a, "data"),
							json_string_length(json_object_get(a, "data")), err)
	       : IS("close_input") ? brig_session_close_input(s, of, err)
	       : IS("flow")        ? brig_session_flow(s, of, (int)number_of(a, "reads"), err)
	       : IS("cancel")      ? brig_session_cancel(s, of, err)
	       : IS("timeout")     ? brig_session_set_timeout(s, number_of(a, "timeout_ms"), err)
	       : IS("stop")        ? (brig_session_stop(s, text_of(a, "reason")), 0)
				   : -BRIG_E_USAGE;
#undef IS
}

static int tell_pools(struct brig_error *err)
{
	char *text = NULL;
	int rc = brig_pools_json(handle, &text, err);

	if (rc == 0)
		say(json_pack("{ssso}", "event", "pools", "pools", json_loads(text, 0, NULL)));
	brig_free(text);
	return rc;
}

static void serve_line(const char *line)
{
	json_t *asked = json_loads(line, 0, NULL);
	const char *what = text_of(asked, "do");
	uint64_t number = 0, session = number_of(asked, "session");
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = -BRIG_E_USAGE;

	if (what && strcmp(what, "begin") == 0)
		rc = n_held < SESSIONS_MAX ? begin(asked, &number, &err) : -1;
	else if (what && strcmp(what, "pools") == 0)
		rc = tell_pools(&err);
	else if (what && session < n_held && !held[session].over)
		rc = ask(held[session].s, what, asked, &number, &err);
	say(json_pack("{sssIsiss}", "event", "asked", "tag", (json_int_t)number, "rc", rc, "message", err.msg));
	json_decref(asked);
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static void step(struct held *h)
{
	struct brig_result *r = NULL;

	if (brig_session_step(h->s, NULL) > 0)
		return;
	h->over = true;
	(void)brig_session_end(h->s, &r, NULL);
	say(json_pack("{sssIso}", "event", "over", "session", (json_int_t)(h - held), "result", result_json(r)));
	json_decref(h->asked);
}

static bool serve_input(void)
{
	static char line[1 << 20];
	static size_t len;
	ssize_t n = read(STDIN_FILENO, line + len, sizeof(line) - 1 - len);
	char *end;

	if (n <= 0)
		return false;
	len += (size_t)n;
	while ((end = memchr(line, '\n', len))) {
		*end = '\0';
		serve_line(line);
		len -= (size_t)(end + 1 - line);
		memmove(line, end + 1, len);
	}
	return true;
}

int main(void)
{
	struct brig_error err = BRIG_ERROR_INIT;
	bool more = true;

	if (brig_open(NULL, &handle, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	while (more) {
		struct pollfd slots[SESSIONS_MAX + 1];

		slots[0] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
		for (size_t i = 0; i < n_held; i++) {
			if (!held[i].over)
				step(&held[i]);
			slots[i + 1] = (struct pollfd){ .fd = held[i].over ? -1 : brig_session_fd(held[i].s),
							.events = POLLIN };
		}
		(void)poll(slots, n_held + 1, -1);
		if (slots[0].revents)
			more = serve_input();
	}
	for (size_t i = 0; i < n_held; i++)
		if (!held[i].over)
			(void)brig_session_end(held[i].s, NULL, NULL);
	brig_close(handle);
	return 0;
}
