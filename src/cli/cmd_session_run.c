/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig session run`: code in an interpreter of a session, which keeps its state.
 *
 * Output is shown as it is written, and so is the text of each result, as in a notebook.  An image is written to a new
 * file in --out.  Ctrl-C interrupts the code and then waits for its end, as for any other run.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/cancel.h"
#include "cli/live.h"
#include "cli/request.h"
#include "cli/rows.h"
#include "cli/session.h"

#define NAMES_MAX 10000 /* that are tried for an image */

#define AT(member) offsetof(struct session_values, member)
static const struct option_row run_options[] = {
	{ "code", 'c', OPTION_TEXT, "CODE", AT(code), NULL, "run this text instead of a file" },
	{ "lang", 'l', OPTION_TEXT, "LANGUAGE", AT(lang), NULL,
	  "the language of the context; without it the file's extension decides, else python" },
	{ "context", 0, OPTION_TEXT, "CONTEXT", AT(context), NULL,
	  "the number of the context; without it the first one of the language, which is made if need be" },
	{ "timeout", 0, OPTION_TEXT, "TIME", AT(timeout), NULL, "time limit of this run: 5, 1.5s, 200ms, 2m" },
	{ "env", 'e', OPTION_LIST, "NAME=VALUE", AT(env), NULL, "a variable of this run; may be repeated" },
	{ "out", 'o', OPTION_TEXT, "DIR", AT(out_dir), NULL,
	  "write pictures that it shows to files of this folder, which is made if need be" },
	{ "events", 0, OPTION_FLAG, NULL, AT(events), NULL,
	  "print what happens as lines of JSON while it runs; the last one has the whole result" },
	{ "quiet", 'q', OPTION_FLAG, NULL, AT(quiet), NULL, "no lines of our own on stderr, but why nothing ran" },
	{ "raw", 0, OPTION_FLAG, NULL, AT(raw), NULL, "let control characters of the program reach the terminal" },
	ROW_JSON,
};

/* Forms of a result that are images; the first one present is written. */
static const struct {
	const char *form, *ending;
	bool is_base64;
} pictures[] = {
	{ "png", "png", true },
	{ "jpeg", "jpg", true },
	{ "svg", "svg", false },
	{ "pdf", "pdf", true },
};

/* File extensions of languages that have contexts. */
static const struct {
	const char *ending, *language;
} endings[] = {
	{ ".js", "javascript" },
	{ ".mjs", "javascript" },
	{ ".cjs", "javascript" },
	{ ".ts", "typescript" },
	{ ".sh", "bash" },
	{ ".bash", "bash" },
	{ ".r", "r" },
	{ ".R", "r" },
	{ ".py", "python" },
};

struct shown {
	const struct session_work *w;
	struct live live;
	int cancel_fd;
	size_t n_pictures;
};

/* ---- results ------------------------------------------------------------------------------------------------ */

static void put_line(struct shown *s, enum brig_stream stream, const char *text, size_t len)
{
	const struct live_stream *to = stream == BRIG_STDERR ? &s->live.err : &s->live.out;

	if (to->mid_line)
		live_on_output(&s->live, stream, "\n", 1);
	live_on_output(&s->live, stream, text, len);
	if (len == 0 || text[len - 1] != '\n')
		live_on_output(&s->live, stream, "\n", 1);
}

/* Creates a new file in the directory, never replacing one; -errno. */
static int open_picture(struct shown *s, const char *ending, char *path, size_t size)
{
	int fd = -EEXIST;

	if (mkdir(s->w->v.out_dir, 0777) < 0 && errno != EEXIST)
		return -errno;
	while (fd == -EEXIST && s->n_pictures < NAMES_MAX) {
		(void)snprintf(path, size, "%s/picture-%zu.%s", s->w->v.out_dir, ++s->n_pictures, ending);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
		fd = fd < 0 ? -errno : fd;
	}
	return fd;
}

static void write_picture(struct shown *s, const json_t *value, size_t kind)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);
	AUTO_FREE char *bytes = malloc(len + 1);
	ssize_t n = (ssize_t)len;
	char path[4096];
	AUTO_FD fd = FD_NONE;
	int rc;

	if (bytes && pictures[kind].is_base64)
		n = base64_get(bytes, text, len);
	else if (bytes)
		memcpy(bytes, text, len);
	if (!bytes || n < 0) {
		ui_say("a picture (%s) cannot be read", pictures[kind].form);
		return;
	}
	fd = open_picture(s, pictures[kind].ending, path, sizeof(path));
	rc = fd < 0 ? fd : fd_write_all(fd, bytes, (size_t)n);
	if (rc < 0)
		ui_say("cannot write a picture to '%.200s': %s", s->w->v.out_dir, strerrordesc_np(-rc));
	else if (!s->w->v.quiet)
		ui_say("picture: %s", path);
}

/* True: the result has an image, which is written or mentioned. */
static bool show_picture(struct shown *s, const json_t *forms)
{
	for (size_t i = 0; i < ARRAY_LEN(pictures); i++) {
		const json_t *value = json_object_get(forms, pictures[i].form);

		if (!json_is_string(value))
			continue;
		if (s->w->v.out_dir)
			write_picture(s, value, i);
		else if (!s->w->v.quiet)
			ui_say("a picture (%s): --out DIR writes it to a file", pictures[i].form);
		return true;
	}
	return false;
}

static void show_result(struct shown *s, const json_t *forms)
{
	const json_t *text = json_object_get(forms, "text"), *trace = json_object_get(forms, "traceback");

	if (json_is_string(trace)) {
		put_line(s, BRIG_STDERR, json_string_value(trace), json_string_length(trace));
		return;
	}
	if (json_is_string(text))
		put_line(s, BRIG_STDOUT, json_string_value(text), json_string_length(text));
	(void)show_picture(s, forms);
}

static void on_event(void *user, enum event_kind kind, const json_t *event)
{
	struct shown *s = user;
	const struct session_values *v = &s->w->v;

	if (v->events)
		cli_session_print_event(event);
	if (kind == EVENT_result && (v->events || v->json) && v->out_dir)
		(void)show_picture(s, json_object_get(event, "result"));
	if (v->events || v->json)
		return;
	if (kind == EVENT_stdout || kind == EVENT_stderr)
		service_output(event, kind == EVENT_stdout ? BRIG_STDOUT : BRIG_STDERR, live_on_output, &s->live);
	else if (kind == EVENT_result)
		show_result(s, json_object_get(event, "result"));
}

/* ---- the run -------------------------------------------------------------------------------------------------- */

static int watch(struct shown *s, struct service_call *call, struct brig_error *err)
{
	bool is_cancelled = false;
	int rc = 1;

	while (rc > 0) {
		struct pollfd slot[2] = { service_call_waits(call),
					  { .fd = is_cancelled ? -1 : s->cancel_fd, .events = POLLIN } };

		if (poll(slot, ARRAY_LEN(slot), -1) < 0 && errno != EINTR)
			return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the service");
		if (slot[1].revents) {
			is_cancelled = true;
			if (service_call_cancel(call, err) < 0)
				return -err->code;
		}
		if (slot[0].revents)
			rc = service_call_step(call, err);
	}
	return rc;
}

static int run_ask(struct session_work *w, const struct service_ask *ask, const char *name, struct brig_error *err)
{
	struct service_answer answer = { .text = BUF_INIT(0) };
	bool is_for_program = w->v.json || w->v.events;
	struct shown shown = { .w = w,
			       .cancel_fd = is_for_program ? cancel_open_for_reader(STDOUT_FILENO) : cancel_open() };
	const struct service_listener listener = { on_event, &shown };
	struct service_call *call = NULL;
	int rc = cli_session_call(w, ask, &answer, &call, err);

	live_init(&shown.live, shown.cancel_fd, w->v.raw, /* watch= */ false);
	if (rc == 0) {
		service_call_listen(call, &listener);
		rc = watch(&shown, call, err);
		live_finish(&shown.live);
		if (rc < 0)
			(void)err_wrap(err, "the service at %.100s", w->place.path);
	}
	service_call_free(call);
	if (rc == 0)
		rc = cli_session_end(w, &answer, name, err);
	buf_release(&answer.text);
	return rc;
}

static const char *language_of(const struct session_work *w, const char *file)
{
	const char *dot = file ? strrchr(file, '.') : NULL;

	if (w->v.lang || w->v.context)
		return w->v.lang;
	for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++)
		if (str_eq(dot, endings[i].ending))
			return endings[i].language;
	return NULL;
}

/* From -c, a file, or standard input. */
static int load_code(const struct session_work *w, const char *file, struct buf *code, struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;

	if (!file == !w->v.code)
		return err_set(err, BRIG_E_USAGE, 0,
			       "give one thing to run behind SESSION: a file, '-' for standard input, or -c CODE");
	if (w->v.code) {
		buf_adds(code, w->v.code);
		return code->no_memory ? err_nomem(err) : 0;
	}
	if (str_eq(file, "-"))
		return request_read_all(STDIN_FILENO, "standard input", code, err);
	fd = request_open(file, FILE_STREAMS, err);
	return fd < 0 ? fd_move(&fd) : request_read_all(fd, file, code, err);
}

static int run(struct session_work *w, struct brig_error *err)
{
	const char *file = w->ops.words.n > 1 ? w->ops.words.item[1] : NULL;
	AUTO_BUF code = BUF_INIT(BRIG_CODE_MAX + 1);
	struct service_ask ask;
	uint64_t context;
	int rc = load_code(w, file, &code, err);

	if (rc == 0 && code.len > BRIG_CODE_MAX)
		rc = err_set(err, BRIG_E_USAGE, 0, "the code has more than %llu MB: put it into a file of the session",
			     (unsigned long long)(BRIG_CODE_MAX / MiB));
	if (rc < 0 || cli_session_number(w->v.context, "--context", &context, err) < 0)
		return -err->code;
	cli_session_ask_begin(&ask, ROUTE_session_run, w->id);
	message_put_number(&ask.message, FIELD_stream, 1);
	message_put_bytes(&ask.message, FIELD_code, buf_str(&code), code.len);
	message_put_text(&ask.message, FIELD_language, language_of(w, file));
	if (context)
		message_put_number(&ask.message, FIELD_context, context);
	cli_session_put_env(&ask, &w->v.env);
	rc = cli_session_put_time(&ask, w->v.timeout, err);
	if (rc == 0)
		rc = run_ask(w, &ask, file, err);
	service_ask_release(&ask);
	return rc;
}

static const struct session_shape shape = { 1, 2, 0, false,
					    "name a session and what is to run: brig session run SESSION FILE, or -c "
					    "CODE" };

const struct command command_session_run = {
	.name = "session run",
	.synopsis = "[OPTIONS] SESSION [FILE]",
	.summary = "run code in an interpreter that keeps its state",
	.examples = "  brig session run k7xq -c 'import math; math.pi'\n"
		    "  brig session run --out plots k7xq plot.py\n"
		    "  brig session run -l bash k7xq -c 'cd /tmp; ls'\n",
	.details =
		"FILE '-' reads the code from standard input.  What the code writes is shown as it comes, and so is\n"
		"the value of its last expression.  Ctrl-C interrupts it; its state stays.\n\n"
		"Exit status: as of 'brig run'; 1 if the code ended with an error.\n",
	SESSION_COMMAND(run_options, shape, run),
};
