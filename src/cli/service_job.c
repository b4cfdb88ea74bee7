/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_job.c - jobs of a batch through a service
 *
 * Each job has its own connection, like a command; the batch determines how many there are at a time, which bounds what
 * waits at the service.  Quotas and a full queue (429, 503) slow a batch down instead of making it fail: the job is
 * retried when the service said, unless it is cancelled.
 *
 *	asked -> answered
 *	  ^        `--- no room: waits for a timer
 *	  `--------------'
 */
#include <string.h>
#include <sys/timerfd.h>

#include "base/err.h"
#include "base/fd.h"
#include "cli/service.h"
#include "server/message.h"

#define RETRY_MAX_S 60 /* quotas may name an hour, but may be changed earlier */

struct service_job {
	const struct service_place *place;
	struct brig_request req;      /* with duplicated descriptors */
	struct brig_folders *folders; /* NULL: none */
	struct service_ask ask;
	struct service_answer answer;
	struct service_call *call; /* NULL: it waits for the timer, or has ended */
	int timer;
	bool is_cancelled, has_to_run_here;
};

static void job_free(struct service_job *j)
{
	service_call_free(j->call);
	service_ask_release(&j->ask);
	brig_folders_close(j->folders);
	buf_release(&j->answer.text);
	fd_closep(&j->timer);
	free(j);
}

/* 0, or 1: no service. */
static int ask(struct service_job *j, struct brig_error *err)
{
	AUTO_FD sock = FD_NONE;
	int rc = service_reach(j->place, &sock, err);

	buf_release(&j->answer.text);
	j->answer = (struct service_answer){ .text = BUF_INIT(0) };
	return rc != 0 ? rc : service_call_new(&sock, &j->ask, &j->req, &j->answer, &j->call, err);
}

/* 1: its project is too large for a service. */
static int open_folders(struct service_job *j, struct brig *b, struct brig_error *err)
{
	int too_large = 0, rc;

	if (!j->req.workspace)
		return 0;
	rc = brig_folders_open(b, &j->req, &j->folders, &too_large, err);
	return rc < 0 && too_large && !j->place->is_named ? 1 : rc;
}

static int fill(struct service_job *j, struct brig_error *err)
{
	int files = j->req.files_fd, rc = service_ask_fill(&j->ask, &j->req, j->folders, err);

	if (j->req.files_fd != files) /* a copy, which the message has duplicated */
		fd_closep(&j->req.files_fd);
	return rc == -BRIG_E_REFUSED && !j->place->is_named ? 1 : rc;
}

int service_job_begin(const struct service_place *place, struct brig *b, const struct brig_request *req,
		      bool never_again, struct service_job **ret, struct brig_error *err)
{
	struct service_job *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return err_nomem(err);
	*j = (struct service_job){
		.place = place, .req = *req, .ask = SERVICE_ASK_INIT, .answer.text = BUF_INIT(0), .timer = FD_NONE
	};
	if (never_again)
		message_put_number(&j->ask.message, FIELD_retry_never, 1);
	rc = open_folders(j, b, err);
	if (rc == 0)
		rc = fill(j, err);
	if (rc == 0)
		rc = ask(j, err);
	if (rc != 0) {
		job_free(j);
		return rc;
	}
	*ret = j;
	return 0;
}

struct pollfd service_job_waits(const struct service_job *j)
{
	return j->call ? service_call_waits(j->call) : (struct pollfd){ .fd = j->timer, .events = POLLIN };
}

/* 1: waits for the timer. */
static int put_off(struct service_job *j, struct brig_error *err)
{
	uint64_t seconds = j->answer.retry_after ? min_u64(j->answer.retry_after, RETRY_MAX_S) : 1;
	const struct itimerspec when = { .it_value.tv_sec = (time_t)seconds };

	if (j->timer < 0)
		j->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (j->timer < 0 || timerfd_settime(j->timer, 0, &when, NULL) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the service");
	return 1;
}

static bool has_no_room(const struct service_answer *a)
{
	return !a->is_accepted && (a->status == 429 || a->status == 503);
}

int service_job_step(struct service_job *j, struct brig_error *err)
{
	uint64_t rang;
	int rc = 0;

	if (!j->call) {
		if (j->is_cancelled)
			return 0;
		if (read(j->timer, &rang, sizeof(rang)) < 0)
			return errno == EAGAIN ? 1 : 0;
		rc = ask(j, err);
		j->has_to_run_here = rc > 0;
		return rc > 0 ? 0 : rc < 0 ? rc : 1;
	}
	rc = service_call_step(j->call, err);
	if (rc > 0)
		return rc;
	service_call_free(j->call);
	j->call = NULL;
	if (rc < 0 && !j->answer.is_accepted && !j->place->is_named) {
		j->has_to_run_here = true;
		return 0;
	}
	if (rc < 0)
		return err_wrap(err, "the service at %.100s", j->place->path);
	return has_no_room(&j->answer) && !j->is_cancelled ? put_off(j, err) : 0;
}

/* Disconnecting cancels the request at the service. */
void service_job_cancel(struct service_job *j)
{
	j->is_cancelled = true;
	service_call_free(j->call);
	j->call = NULL;
	j->answer.status = 0;
}

int service_job_end(struct service_job *j, struct brig_result **ret, struct brig_error *err)
{
	int rc = 1;

	*ret = NULL;
	if (!j->has_to_run_here)
		rc = j->answer.status == 200
			     ? brig_result_from_json(buf_str(&j->answer.text), j->answer.text.len, ret, err)
			     : service_refusal(j->place, &j->answer, err);
	if (rc == 0 && j->folders)
		rc = brig_folders_finish(j->folders, j->ask.left, *ret, err);
	if (rc < 0) {
		brig_result_free(*ret);
		*ret = NULL;
	}
	job_free(j);
	return rc;
}
