/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_desk.c - the recorder's side; record_packet.h has the rules
 *
 * The recorder remembers the last few thousand runs: when it first heard of each, and where its entry is. A run that is
 * not among them may have been announced to a recorder that died; in that case the end of the log is searched before
 * its entry is written (RULE W3).
 *
 * The time of an entry is when its request arrived, which only the handle knows. The recorder accepts a time up to
 * BACKDATE_NS before it first heard of the run or started itself, and never one in the future.
 */
#include "executor/record_desk.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "metrics/metrics.h"

#define BACKDATE_NS      (600 * NS_PER_SEC)
#define KNOWN_SETS       1024
#define KNOWN_OF_SET     4
#define CHILDREN_MAX     4
#define WAITING_MAX      64 /* queries, while all children are busy */
#define QUESTION_SECONDS 60

struct known_run {
	char id[RUN_ID_LEN + 1]; /* "": none */
	uint64_t heard_ns;       /* wall clock */
	struct audit_place place;
	uint8_t body[SHA256_LEN]; /* of the entry at place */
};

struct desk {
	struct desk_options options;
	struct statedir dir;
	struct audit_log *audit; /* NULL: not open yet */
	int spool;               /* of the history; FD_NONE: not open yet */
	uint64_t born_ns;
	struct known_run known[KNOWN_SETS][KNOWN_OF_SET];
	pid_t child[CHILDREN_MAX];             /* 0: none */
	struct packet_in waiting[WAITING_MAX]; /* oldest first */
	size_t n_waiting;
};

int desk_open(const struct desk_options *options, struct desk **ret, struct brig_error *err)
{
	struct desk *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return err_nomem(err);
	d->options = *options;
	d->dir = (struct statedir)STATEDIR_INIT;
	d->spool = FD_NONE;
	d->born_ns = clock_wall_ns();
	rc = statedir_open(options->state, true, &d->dir, err);
	/* on failure, runs are recorded nevertheless, and queries say what to install */
	(void)history_warm_up(NULL);
	if (rc < 0) {
		desk_close(d);
		return rc;
	}
	*ret = d;
	return 0;
}

void desk_close(struct desk *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_waiting; i++)
		packet_forget(&d->waiting[i]);
	audit_close(d->audit);
	fd_closep(&d->spool);
	statedir_close(&d->dir);
	free(d);
}

/* ---- runs that it has heard of --------------------------------------------------------------------------------- */

static struct known_run *set_of(struct desk *d, const char *id)
{
	size_t at = 0;

	for (const char *c = id; *c; c++)
		at = at * 31 + (unsigned char)*c;
	return d->known[at % KNOWN_SETS];
}

static struct known_run *find_run(struct desk *d, const char *id)
{
	struct known_run *set = set_of(d, id);

	for (size_t i = 0; i < KNOWN_OF_SET; i++)
		if (str_eq(set[i].id, id))
			return &set[i];
	return NULL;
}

/* Replaces the run that was announced first. */
static struct known_run *remember_run(struct desk *d, const char *id)
{
	struct known_run *set = set_of(d, id), *oldest = find_run(d, id);

	if (oldest)
		return oldest;
	oldest = set;
	for (size_t i = 1; i < KNOWN_OF_SET; i++)
		if (set[i].heard_ns < oldest->heard_ns)
			oldest = &set[i];
	*oldest = (struct known_run){ .heard_ns = clock_wall_ns() };
	(void)str_copy(oldest->id, sizeof(oldest->id), id);
	return oldest;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* The client may be gone, which is no error. */
static void send_answer(int reply, const struct packet_out *w)
{
	(void)packet_send(reply, w, FD_NONE);
}

static void answer_error(int reply, const struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(answer);

	packet_number(&w, PACKET_code, (uint64_t)err->code);
	packet_number(&w, PACKET_sys, (uint64_t)err->sys);
	packet_text(&w, PACKET_message, err->msg);
	send_answer(reply, &w);
}

static void answer_document(int reply, const char *text)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(answer);

	packet_number(&w, PACKET_code, 0);
	packet_text(&w, PACKET_document, text);
	if (w.bytes.full || w.bytes.no_memory) {
		struct brig_error err = BRIG_ERROR_INIT;

		(void)err_set(&err, BRIG_E_SYSTEM, EFBIG, "the answer is longer than can be sent: ask for less");
		answer_error(reply, &err);
		return;
	}
	send_answer(reply, &w);
}

/* An answer without content, or with an error. */
static int answer_done(int reply)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(answer);

	packet_number(&w, PACKET_code, 0);
	send_answer(reply, &w);
	return 0;
}

/* ---- children -------------------------------------------------------------------------------------------------- */

static void reap(struct desk *d)
{
	for (size_t i = 0; i < CHILDREN_MAX; i++)
		if (d->child[i] > 0 && waitpid(d->child[i], NULL, WNOHANG) != 0)
			d->child[i] = 0;
}

/*
 * 1: this is the child, which ends with the recorder or by its time limit; 0: this is the parent; -code. The child has
 * no access to the log's key.
 */
static int fork_child(struct desk *d, struct brig_error *err)
{
	pid_t *place = NULL, parent = getpid(), pid;

	reap(d);
	for (size_t i = 0; i < CHILDREN_MAX && !place; i++)
		if (d->child[i] == 0)
			place = &d->child[i];
	if (!place)
		return err_set(err, BRIG_E_SYSTEM, EAGAIN, "the recorder is busy with other questions");
	pid = fork();
	if (pid < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "the recorder cannot begin with a question");
	if (pid > 0) {
		*place = pid;
		return 0;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	(void)alarm(QUESTION_SECONDS);
	audit_close(MOVE_PTR(d->audit));
	fd_closep(&d->spool);
	return 1;
}

static void ingest_in_child(struct desk *d)
{
	const struct history_retention keep = { .days = d->options.set->history_days,
						.bytes = d->options.set->history_size };
	struct history_notes *notes;

	/* On failure, the next run that is due tries again. */
	if (fork_child(d, NULL) != 1)
		return;
	notes = calloc(1, sizeof(*notes));
	if (notes)
		(void)history_ingest(&(struct history_place){ .dir = &d->dir }, &keep, 0, notes, NULL);
	_exit(0);
}

/* 0: a child works on it; -code: none could be started, -EAGAIN in err->sys if all are busy. */
static int begin_question(struct desk *d, const struct packet_in *m, struct brig_error *err)
{
	char *text = NULL;
	int rc = fork_child(d, err);

	if (rc != 1)
		return rc;
	rc = d->options.answer(d->options.arg, m, &text, err);
	if (rc < 0)
		answer_error(m->beside, err);
	else
		answer_document(m->beside, text);
	_exit(0);
}

static int answer_question(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	int rc = begin_question(d, m, err);

	if (rc == 0 || err->sys != EAGAIN || d->n_waiting == WAITING_MAX)
		return rc;
	d->waiting[d->n_waiting++] = *m;
	*m = (struct packet_in)PACKET_IN_INIT;
	return 0;
}

static void go_on_with_questions(struct desk *d)
{
	struct brig_error err = BRIG_ERROR_INIT;

	while (d->n_waiting > 0) {
		int rc = begin_question(d, &d->waiting[0], &err);

		if (rc < 0 && err.sys == EAGAIN)
			return;
		if (rc < 0)
			answer_error(d->waiting[0].beside, &err);
		packet_forget(&d->waiting[0]);
		d->n_waiting--;
		memmove(&d->waiting[0], &d->waiting[1], d->n_waiting * sizeof(d->waiting[0]));
	}
}

/* ---- writes ---------------------------------------------------------------------------------------------------- */

static int open_log(struct desk *d, struct brig_error *err)
{
	return d->audit ? 0 : audit_open(&d->dir, &d->audit, err);
}

static int do_audit_ready(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	int rc = open_log(d, err);

	(void)remember_run(d, m->at[PACKET_id]);
	if (rc == 0)
		rc = audit_ready(d->audit, d->options.set, err);
	return rc < 0 ? rc : answer_done(m->beside);
}

static int do_receipt_ready(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	int rc = receipt_ready(&d->dir, err);

	return rc < 0 ? rc : answer_done(m->beside);
}

/* Adds the record of a run to the history; *ret_due: the spool must be imported. */
static int add_history(struct desk *d, const struct packet_in *m, const struct audit_place *place, bool *ret_due,
		       char *ret_note, size_t size, struct brig_error *err)
{
	const struct history_packed what = { .id = m->at[PACKET_id],
					     .bytes = { .data = m->at[PACKET_packed], .len = m->len[PACKET_packed] },
					     .audit_seq = place ? place->seq : 0,
					     .audit_hash = place ? place->hash : NULL };
	AUTO_FREE struct history_notes *notes = calloc(1, sizeof(*notes));
	int rc;

	if (!notes)
		return err_nomem(err);
	rc = history_add_packed(&(struct history_place){ .dir = &d->dir, .spool = &d->spool }, &what, ret_due, notes,
				err);
	(void)str_copy(ret_note, size, notes->n > 0 ? notes->text[0] : ""); /* there can be only one */
	return rc;
}

/*
 * Answers with the place of the entry, and the outcome for the history if the message contained a record; the run is
 * valid without it.
 */
static int answer_place(struct desk *d, const struct packet_in *m, const struct audit_place *place)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(answer);
	struct brig_error why = BRIG_ERROR_INIT;
	char note[RESULT_TEXT_MAX] = "";
	bool due = false;
	int rc = m->at[PACKET_packed] ? add_history(d, m, place, &due, note, sizeof(note), &why) : 0;

	packet_number(&w, PACKET_code, 0);
	packet_text(&w, PACKET_message, rc < 0 ? why.msg : NULL);
	packet_number(&w, PACKET_seq, place->seq);
	packet_bytes(&w, PACKET_hash, place->hash, sizeof(place->hash));
	packet_text(&w, PACKET_note, note[0] ? note : NULL);
	send_answer(m->beside, &w);
	if (due)
		ingest_in_child(d);
	return 0;
}

static uint64_t believe_time(const struct desk *d, const struct known_run *run, uint64_t said_ns)
{
	uint64_t since_ns = run ? run->heard_ns : d->born_ns;

	return min_u64(max_u64(said_ns, since_ns > BACKDATE_NS ? since_ns - BACKDATE_NS : 0), clock_wall_ns());
}

/* Whether the entry of this run says the same. */
static bool has_body(const struct known_run *run, const struct audit_said *said)
{
	uint8_t hash[SHA256_LEN];

	sha256(said->body, said->len, hash);
	return memcmp(run->body, hash, sizeof(hash)) == 0;
}

static int do_append(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	struct known_run *run = find_run(d, m->at[PACKET_id]);
	struct audit_said said = { .id = m->at[PACKET_id],
				   .body = m->at[PACKET_body],
				   .len = m->len[PACKET_body],
				   .may_be_there = !run,
				   .wall_ns = believe_time(d, run, packet_get_number(m, PACKET_began_ns, 0)) };
	const char *fault = audit_body_fault(said.body, said.len, said.id);
	struct audit_place place = { 0 };
	int rc;

	if (fault)
		return err_set(err, BRIG_E_REFUSED, 0, "this is no entry of run %s: %s", said.id, fault);
	if (run && run->place.seq > 0)
		return has_body(run, &said) ? answer_place(d, m, &run->place)
					    : err_set(err, BRIG_E_REFUSED, EEXIST,
						      "the log has an entry of run %s already, which says something "
						      "else and stays",
						      said.id);
	rc = open_log(d, err);
	if (rc == 0)
		rc = audit_append_body(d->audit, d->options.set, &said, &place, err);
	if (rc < 0)
		return rc;
	run = remember_run(d, said.id);
	run->place = place;
	rc = answer_place(d, m, &place);
	sha256(said.body, said.len, run->body); /* nobody waits for this any more */
	return rc;
}

static int do_leftover(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	int rc = open_log(d, err);

	if (rc == 0)
		rc = audit_append_leftover(d->audit, d->options.set, m->at[PACKET_id], m->at[PACKET_leftovers], err);
	return rc < 0 ? rc : answer_done(m->beside);
}

static int do_history(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(answer);
	char note[RESULT_TEXT_MAX] = "";
	bool due = false;
	int rc = add_history(d, m, NULL, &due, note, sizeof(note), err);

	if (rc < 0)
		return rc;
	packet_number(&w, PACKET_code, 0);
	packet_text(&w, PACKET_note, note[0] ? note : NULL);
	send_answer(m->beside, &w);
	if (due)
		ingest_in_child(d);
	return 0;
}

/* The run's place in the log, if it has one. */
static int place_of(struct desk *d, const char *id, struct audit_place *ret, struct brig_error *err)
{
	const struct known_run *run = find_run(d, id);
	int rc;

	*ret = run ? run->place : (struct audit_place){ .seq = 0 };
	if (run || d->options.set->audit == AUDIT_OFF)
		return 0;
	rc = open_log(d, err);
	if (rc == 0)
		rc = audit_find_recent(d->audit, id, ret, err);
	return rc < 0 ? rc : 0;
}

static int do_receipt(struct desk *d, struct packet_in *m, struct brig_error *err)
{
	const struct bytes claims = { .data = m->at[PACKET_claims], .len = m->len[PACKET_claims] };
	AUTO_FREE char *text = NULL;
	struct audit_place where;
	int rc = place_of(d, m->at[PACKET_id], &where, err);

	if (rc == 0)
		rc = receipt_sign(&d->dir, d->audit ? audit_id(d->audit) : "", &where, m->at[PACKET_id], &claims, &text,
				  err);
	if (rc < 0)
		return rc;
	answer_document(m->beside, text);
	return 0;
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static int (*const handlers[PACKET_KINDS])(struct desk *d, struct packet_in *m, struct brig_error *err) = {
	[PACKET_KIND_audit_ready] = do_audit_ready,
	[PACKET_KIND_receipt_ready] = do_receipt_ready,
	[PACKET_KIND_append] = do_append,
	[PACKET_KIND_leftover] = do_leftover,
	[PACKET_KIND_history] = do_history,
	[PACKET_KIND_receipt] = do_receipt,
	[PACKET_KIND_ask_history] = answer_question,
	[PACKET_KIND_ask_show] = answer_question,
	[PACKET_KIND_ask_metrics] = answer_question,
	[PACKET_KIND_ask_verify] = answer_question,
};

static const char *message_fault(const struct packet_in *m)
{
	const char *id = m->at[PACKET_id];

	if (!handlers[m->kind])
		return "a message that is the recorder's own to send";
	if (id && strspn(id, "abcdefghijklmnopqrstuvwxyz234567") != RUN_ID_LEN)
		return "an id that no run has";
	return NULL;
}

static void refuse(int reply, const char *why, struct brig_error *err)
{
	(void)err_set(err, BRIG_E_REFUSED, EBADMSG, "the recorder was sent %s", why);
	if (reply >= 0)
		answer_error(reply, err);
}

int desk_step(struct desk *d, int sock, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_PACKET_IN m = PACKET_IN_INIT;
	const char *fault = NULL;
	int rc;

	reap(d);
	go_on_with_questions(d);
	rc = packet_receive(sock, false, &m, &fault);
	if (rc == 0)
		return 0;
	if (rc < 0 && rc != -EBADMSG)
		return err_set(err, BRIG_E_SYSTEM, -rc, "the recorder has lost its service");
	if (!fault)
		fault = message_fault(&m);
	if (fault)
		refuse(m.beside, fault, err);
	else if (handlers[m.kind](d, &m, &why) < 0)
		answer_error(m.beside, &why);
	return 1;
}
