/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to a session that its steward answers: files, ports, signals. */
#include <signal.h>

#include "api/request.h"
#include "api/session.h"
#include "backend/guest/steward.h"

static int need(const struct brig_session *s, struct brig_error *err)
{
	return s ? 0 : err_set(err, BRIG_E_USAGE, 0, "there is no session");
}

static int ask(struct brig_session *s, const struct session_ask *what, uint64_t *ret_tag, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_ask(s->engine, what, ret_tag, err);
}

/* Requests that would wait for a process of the session, or create one. */
static int need_awake(const struct brig_session *s, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_check_awake(s->engine, err);
}

/* A path is never NULL; the session refuses an empty one. */
static const char *path_of(const char *path)
{
	return path ? path : "";
}

int brig_session_open(struct brig_session *s, const char *path, enum brig_session_open how, uint32_t mode,
		      uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_OPEN, { how, mode }, { path_of(path) } }, ret_tag, err);
}

int brig_session_stat(struct brig_session *s, const char *path, uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_STAT, { 0 }, { path_of(path) } }, ret_tag, err);
}

int brig_session_list(struct brig_session *s, const char *path, uint32_t depth, uint32_t limit, uint64_t *ret_tag,
		      struct brig_error *err)
{
	const int64_t most = limit > 0 && limit < STEWARD_ENTRIES_MAX ? limit : STEWARD_ENTRIES_MAX;
	const int64_t deep = depth > 0 && depth < STEWARD_DEPTH_MAX ? depth : depth > 0 ? STEWARD_DEPTH_MAX : 1;

	return ask(s, &(struct session_ask){ STEWARD_LIST, { deep, most }, { path_of(path) } }, ret_tag, err);
}

int brig_session_mkdir(struct brig_session *s, const char *path, uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_MKDIR, { 0755 }, { path_of(path) } }, ret_tag, err);
}

int brig_session_move(struct brig_session *s, const char *from, const char *to, uint64_t *ret_tag,
		      struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_MOVE, { 0 }, { path_of(from), path_of(to) } }, ret_tag, err);
}

int brig_session_remove(struct brig_session *s, const char *path, uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_REMOVE, { 0 }, { path_of(path) } }, ret_tag, err);
}

int brig_session_watch(struct brig_session *s, const char *path, int recursive, uint64_t *ret_tag,
		       struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_WATCH, { recursive != 0 }, { path_of(path) } }, ret_tag, err);
}

int brig_session_unwatch(struct brig_session *s, uint64_t watch, uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_UNWATCH, { (int64_t)watch }, { NULL } }, ret_tag, err);
}

int brig_session_connect(struct brig_session *s, uint16_t port, uint64_t *ret_tag, struct brig_error *err)
{
	int rc = need_awake(s, err);

	return rc < 0 ? rc : ask(s, &(struct session_ask){ STEWARD_CONNECT, { port }, { NULL } }, ret_tag, err);
}

int brig_session_pause(struct brig_session *s, uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_PAUSE, { 0 }, { NULL } }, ret_tag, err);
}

int brig_session_resume(struct brig_session *s, uint64_t *ret_tag, struct brig_error *err)
{
	return ask(s, &(struct session_ask){ STEWARD_RESUME, { 0 }, { NULL } }, ret_tag, err);
}

int brig_session_save(struct brig_session *s, int file, uint64_t most_bytes, uint64_t *ret_tag, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_copy(s->engine, file, true, most_bytes, ret_tag, err);
}

int brig_session_load(struct brig_session *s, int file, uint64_t *ret_tag, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_copy(s->engine, file, false, UINT64_MAX, ret_tag, err);
}

int brig_session_set_timeout(struct brig_session *s, uint64_t timeout_ms, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_set_timeout(s->engine, timeout_ms, err);
}

void brig_session_times(const struct brig_session *s, uint64_t *ret_left_ms, uint64_t *ret_most_ms)
{
	*ret_left_ms = *ret_most_ms = 0;
	if (s && s->engine && !s->finished)
		session_times(s->engine, ret_left_ms, ret_most_ms);
}

int brig_session_start(struct brig_session *s, const struct brig_session_process *what, uint64_t *ret_tag,
		       struct brig_error *err)
{
	struct brig_session_process known;
	int rc = need_awake(s, err);

	if (rc == 0 && !what)
		rc = err_set(err, BRIG_E_USAGE, 0, "brig_session_start needs a process");
	if (rc == 0)
		rc = versioned_read(&known, sizeof(known), what, "brig_session_process", err);
	return rc < 0 ? rc : piece_begin_process(s, &known, ret_tag, err);
}

int brig_session_run(struct brig_session *s, const struct brig_session_code *what, uint64_t *ret_tag,
		     struct brig_error *err)
{
	struct brig_session_code known;
	int rc = need_awake(s, err);

	if (rc == 0 && (!what || !what->code))
		rc = err_set(err, BRIG_E_USAGE, 0, "brig_session_run needs code");
	if (rc == 0)
		rc = versioned_read(&known, sizeof(known), what, "brig_session_code", err);
	return rc < 0 ? rc : piece_begin_code(s, &known, ret_tag, err);
}

int brig_session_input(struct brig_session *s, uint64_t process, const void *data, size_t len, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_input(s->engine, process, data, len, err);
}

int brig_session_close_input(struct brig_session *s, uint64_t process, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_close_input(s->engine, process, err);
}

int brig_session_flow(struct brig_session *s, uint64_t process_or_context, int reads, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_flow(s->engine, process_or_context, reads, err);
}

int brig_session_signal(struct brig_session *s, uint64_t process, int signal, uint64_t *ret_tag, struct brig_error *err)
{
	int rc = signal == SIGKILL ? need(s, err) : need_awake(s, err);

	return rc < 0 ? rc : session_signal(s->engine, process, signal, ret_tag, err);
}

int brig_session_resize(struct brig_session *s, uint64_t process, uint32_t rows, uint32_t columns, uint64_t *ret_tag,
			struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_resize(s->engine, process, rows, columns, ret_tag, err);
}

int brig_session_context(struct brig_session *s, const char *language, const char *cwd, uint64_t *ret_context,
			 struct brig_error *err)
{
	int rc = need_awake(s, err);

	return rc < 0 ? rc : session_context(s->engine, language, cwd, ret_context, err);
}

int brig_session_interrupt(struct brig_session *s, uint64_t context, struct brig_error *err)
{
	int rc = need_awake(s, err);

	return rc < 0 ? rc : session_interrupt(s->engine, context, err);
}

int brig_session_cancel(struct brig_session *s, uint64_t run, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : piece_cancel(s, run, err);
}

int brig_session_restart(struct brig_session *s, uint64_t context, struct brig_error *err)
{
	int rc = need_awake(s, err);

	return rc < 0 ? rc : session_restart(s->engine, context, err);
}

int brig_session_close_context(struct brig_session *s, uint64_t context, struct brig_error *err)
{
	int rc = need(s, err);

	return rc < 0 ? rc : session_close_context(s->engine, context, err);
}
