/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/record_link.h"

#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/wait.h"

void link_pair_release(struct link_pair *p)
{
	fd_closep(&p->ours);
	fd_closep(&p->theirs);
}

static int make_pair(struct link_pair *p, struct brig_error *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot ask the recorder");
	p->ours = ends[0];
	p->theirs = ends[1];
	return 0;
}

void link_pair_renew(struct link_pair *p)
{
	if (p->theirs >= 0)
		return;
	fd_closep(&p->ours);
	(void)make_pair(p, NULL); /* on failure, the pair is made when it is needed */
}

/* Sends a request on the pair, which is created unless a fresh one exists. */
static int ask_on(int link, const struct packet_out *w, struct link_pair *p, struct brig_error *err)
{
	int rc = 0;

	if (p->theirs < 0) {
		fd_closep(&p->ours);
		rc = make_pair(p, err);
	}
	if (rc < 0)
		return rc;
	rc = packet_send(link, w, p->theirs);
	fd_closep(&p->theirs); /* so that the recorder's end is the only one, and its closing is seen */
	if (rc == -EMSGSIZE)
		return err_set(err, BRIG_E_USAGE, 0, "this is longer than anything that the recorder takes");
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot ask the recorder") : 0;
}

int link_ask(int link, const struct packet_out *w, int *ret_reply, struct brig_error *err)
{
	struct link_pair p = { .ours = FD_NONE, .theirs = FD_NONE };
	int rc = ask_on(link, w, &p, err);

	if (rc == 0)
		*ret_reply = fd_move(&p.ours);
	link_pair_release(&p);
	return rc;
}

/* 1, or the error in the answer. */
static int hear(const struct packet_in *m, struct brig_error *err)
{
	uint64_t code = packet_get_number(m, PACKET_code, 0);

	if (code == 0)
		return 1;
	if (code > BRIG_E_INTERNAL)
		code = BRIG_E_INTERNAL;
	(void)err_set(err, (enum brig_code)code, 0, "%s", m->at[PACKET_message] ? m->at[PACKET_message] : "");
	if (err)
		err->sys = (int)packet_get_number(m, PACKET_sys, 0);
	return -(int)code;
}

int link_answer(int reply, struct packet_in *ret, struct brig_error *err)
{
	const char *why = NULL;
	int rc = packet_receive(reply, true, ret, &why);

	if (rc == 1 && ret->kind == PACKET_KIND_answer)
		return hear(ret, err);
	if (rc == 0)
		return 0;
	if (rc == -EPIPE || rc == -ECONNRESET)
		return err_set(err, BRIG_E_SYSTEM, EPIPE, "the recorder has ended before it answered");
	return err_set(err, BRIG_E_SYSTEM, EPROTO, "the recorder answered with %s", why ? why : "something else");
}

static int ms_left(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns();

	return now >= deadline_ns ? 0 : (int)((deadline_ns - now) / NS_PER_MS + 1);
}

static void do_meanwhile(struct link_meanwhile *m)
{
	void (*fn)(void *arg) = m ? MOVE_PTR(m->fn) : NULL;

	if (fn)
		fn(m->arg);
}

/* What is asked, and what is done beside it. */
struct call {
	const struct packet_out *question;
	struct link_meanwhile *meanwhile; /* NULL: nothing */
};

/* One attempt. */
static int call_once(int link, const struct call *what, struct link_pair *pair, uint64_t deadline_ns,
		     struct packet_in *ret, struct brig_error *err)
{
	struct pollfd p = { .fd = link, .events = POLLOUT };
	int rc;

	while ((rc = ask_on(link, what->question, pair, err)) < 0) {
		if (err->sys != EAGAIN || ms_left(deadline_ns) == 0)
			return rc;
		(void)wait_poll(&p, 1, ms_left(deadline_ns));
		wait_sleep(NS_PER_MS); /* there may be room, but too many descriptors in flight */
	}
	do_meanwhile(what->meanwhile);
	p = (struct pollfd){ .fd = pair->ours, .events = POLLIN };
	while ((rc = link_answer(pair->ours, ret, err)) == 0) {
		packet_forget(ret);
		if (ms_left(deadline_ns) == 0)
			return err_set(err, BRIG_E_SYSTEM, ETIMEDOUT, "the recorder does not answer");
		(void)wait_poll(&p, 1, ms_left(deadline_ns));
	}
	return rc;
}

/*
 * Another run of the handle may send a request while this one waits, so this run takes the pair's ends for itself; if
 * the pair was renewed meanwhile, it holds other ends.
 */
static int call_on(int link, const struct call *what, struct link_pair *spare, struct packet_in *ret,
		   struct brig_error *err)
{
	struct link_pair pair = { .ours = FD_NONE, .theirs = fd_move(&spare->theirs) };
	uint64_t deadline_ns = clock_now_ns() + LINK_PATIENCE;
	struct brig_error why = BRIG_ERROR_INIT;
	int rc;

	if (pair.theirs >= 0)
		pair.ours = fd_move(&spare->ours);
	do {
		packet_forget(ret);
		rc = call_once(link, what, &pair, deadline_ns, ret, &why);
	} while (rc < 0 && why.sys == EPIPE && ms_left(deadline_ns) > 0);
	if (rc < 0 && err)
		*err = why;
	if (spare->ours < 0)
		spare->ours = fd_move(&pair.ours); /* closed later */
	link_pair_release(&pair);
	return rc < 0 ? rc : 0;
}

int link_call(int link, const struct packet_out *w, struct packet_in *ret, struct brig_error *err)
{
	struct link_pair none = { .ours = FD_NONE, .theirs = FD_NONE };
	int rc = call_on(link, &(struct call){ .question = w }, &none, ret, err);

	link_pair_release(&none);
	return rc;
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

static int call_for(int link, const struct packet_out *w, struct brig_error *err)
{
	AUTO_PACKET_IN answer = PACKET_IN_INIT;

	return link_call(link, w, &answer, err);
}

int link_audit_ready(int link, const char *id, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(audit_ready);

	packet_text(&w, PACKET_id, id);
	return call_for(link, &w, err);
}

int link_announce(int link, const char *id, struct link_pair *pair, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(audit_ready);

	packet_text(&w, PACKET_id, id);
	return ask_on(link, &w, pair, err);
}

int link_receipt_ready(int link, const char *id, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(receipt_ready);

	packet_text(&w, PACKET_id, id);
	return call_for(link, &w, err);
}

int link_audit_append(int link, struct link_pair *pair, struct record *rec, struct link_history *history,
		      struct link_meanwhile *meanwhile, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(append);
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	AUTO_BUF body = BUF_INIT(AUDIT_BODY_MAX);
	AUTO_BUF packed = BUF_INIT(HISTORY_PACKED_MAX);
	int rc = audit_body(rec, &body, err);

	if (rc == 0 && history)
		rc = history_pack(rec, &packed, err);
	if (rc < 0)
		return rc;
	packet_text(&w, PACKET_id, rec->res->id);
	packet_number(&w, PACKET_began_ns, rec->wall_ns);
	packet_bytes(&w, PACKET_body, body.data, body.len);
	if (history)
		packet_bytes(&w, PACKET_packed, packed.data, packed.len);
	rc = call_on(link, &(struct call){ &w, meanwhile }, pair, &answer, err);
	if (rc < 0)
		return rc;
	if (!answer.at[PACKET_seq] || answer.len[PACKET_hash] != SHA256_LEN)
		return err_set(err, BRIG_E_SYSTEM, EPROTO, "the recorder does not say where the entry is");
	rec->audit_seq = packet_get_number(&answer, PACKET_seq, 0);
	memcpy(rec->audit_hash, answer.at[PACKET_hash], SHA256_LEN);
	if (history && answer.at[PACKET_message])
		(void)err_set(&history->err, BRIG_E_SYSTEM, 0, "%s", answer.at[PACKET_message]);
	if (history && answer.at[PACKET_note])
		history_note(&history->notes, "%s", answer.at[PACKET_note]);
	return 0;
}

int link_audit_append_leftover(int link, const char *id, const char *what, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(leftover);

	packet_text(&w, PACKET_id, id);
	packet_text(&w, PACKET_leftovers, what);
	return call_for(link, &w, err);
}

int link_history_add(int link, const struct record *rec, struct history_notes *notes, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(history);
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	AUTO_BUF packed = BUF_INIT(HISTORY_PACKED_MAX);
	int rc = history_pack(rec, &packed, err);

	if (rc < 0)
		return rc;
	packet_text(&w, PACKET_id, rec->res->id);
	packet_bytes(&w, PACKET_packed, packed.data, packed.len);
	rc = link_call(link, &w, &answer, err);
	if (rc == 0 && answer.at[PACKET_note])
		history_note(notes, "%s", answer.at[PACKET_note]);
	return rc;
}

int link_receipt_make(int link, const struct record *rec, char **ret, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(receipt);
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	AUTO_FREE char *claims = NULL;
	int rc = receipt_claims(rec, &claims, err);

	if (rc < 0)
		return rc;
	packet_text(&w, PACKET_id, rec->res->id);
	packet_bytes(&w, PACKET_claims, claims, strlen(claims));
	rc = link_call(link, &w, &answer, err);
	if (rc < 0)
		return rc;
	*ret = strdup(answer.at[PACKET_document] ? answer.at[PACKET_document] : "");
	return *ret ? 0 : err_nomem(err);
}
