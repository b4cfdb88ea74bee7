/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/recorded.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/fd.h"
#include "base/str.h"
#include "server/runner/answer.h"

#define ANSWERS_OF_A_TURN 16
#define REQUEST_ID_MAX    128

struct recorded_ask {
	struct recorded_ask *next;
	int reply;
	recorded_fn then;
	struct request req; /* points to the fields below */
	struct token token;
	char request_id[REQUEST_ID_MAX + 1];
	char id[EXECUTION_ID_LEN + 1];
};

int recorded_open(struct recorded *r)
{
	r->epoll = epoll_create1(EPOLL_CLOEXEC);
	return r->epoll < 0 ? -errno : 0;
}

static void forget(struct recorded_ask *a)
{
	fd_closep(&a->reply);
	free(a);
}

void recorded_close(struct recorded *r)
{
	while (r->first) {
		struct recorded_ask *a = r->first;

		r->first = a->next;
		forget(a);
	}
	fd_closep(&r->epoll);
}

static struct recorded_ask *keep(const struct request *req, const char *id, recorded_fn then)
{
	struct recorded_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->reply = FD_NONE;
	a->then = then;
	a->req = (struct request){
		.tag = req->tag, .route = req->route, .beside = JOB_DESCRIPTORS_NONE, .gathering = req->gathering
	};
	(void)str_copy(a->request_id, sizeof(a->request_id), req->request_id);
	a->req.request_id = a->request_id;
	if (req->token) {
		(void)str_copy(a->token.name, sizeof(a->token.name), req->token->name);
		a->token.admin = req->token->admin;
		a->req.token = &a->token;
	}
	(void)str_copy(a->id, sizeof(a->id), id ? id : "");
	return a;
}

static int send_question(struct service *s, struct recorded_ask *a, const struct brig_question *q,
			 struct brig_error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = a } };
	int rc = brig_ask(s->host->b, q, &a->reply, err);

	if (rc < 0)
		return rc;
	return epoll_ctl(s->recorded.epoll, EPOLL_CTL_ADD, a->reply, &ev) < 0
		       ? err_set(err, BRIG_E_SYSTEM, errno, "cannot wait for the recorder")
		       : 0;
}

void recorded_ask(struct service *s, const struct request *req, const struct brig_question *q, const char *id,
		  recorded_fn then)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct recorded_ask *a = s->recorded.n < RECORDED_MAX ? keep(req, id, then) : NULL;
	int rc = a ? send_question(s, a, q, &err)
		   : err_set(&err, BRIG_E_SYSTEM, EAGAIN, "too many questions wait for the recorder");

	if (!a || rc < 0) {
		then(s, req, id, rc, NULL, &err);
		if (a)
			forget(a);
		return;
	}
	a->next = s->recorded.first;
	s->recorded.first = a;
	s->recorded.n++;
}

static void unlink_ask(struct recorded *r, struct recorded_ask *a)
{
	struct recorded_ask **at = &r->first;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	r->n--;
	(void)epoll_ctl(r->epoll, EPOLL_CTL_DEL, a->reply, NULL);
}

static void hear(struct service *s, struct recorded_ask *a)
{
	struct brig_error err = BRIG_ERROR_INIT;
	char *text = NULL;
	int rc = brig_answer(a->reply, &text, &err);

	if (rc == 0)
		return;
	unlink_ask(&s->recorded, a);
	a->then(s, &a->req, a->id, rc, text, &err);
	forget(a);
}

/*
 * The clients have gone with the front, and the next front starts with new tags.  Requests of other fronts, and parts
 * of lists, continue.
 */
void recorded_all_gone(struct service *s)
{
	for (struct recorded_ask *a = s->recorded.first, *next; a; a = next) {
		next = a->next;
		if (a->req.gathering || forwarded_is_tag(a->req.tag))
			continue;
		unlink_ask(&s->recorded, a);
		forget(a);
	}
}

void recorded_step(struct service *s)
{
	struct epoll_event ev[ANSWERS_OF_A_TURN];
	int n = epoll_wait(s->recorded.epoll, ev, ANSWERS_OF_A_TURN, 0);

	for (int i = 0; i < n; i++)
		hear(s, ev[i].data.ptr);
}

void recorded_trouble(struct service *s, const struct request *req, const struct brig_error *err)
{
	if (err->code == BRIG_E_SYSTEM && (err->sys == EPIPE || err->sys == EAGAIN))
		answer_retry(s, req, 503, 1, "%s: ask again", err->msg);
	else
		answer_trouble(s, req, err);
}
