/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.c - the recorder process (executor/record_packet.h), and queries to it. */
#include "api/recorder.h"

#include <string.h>

#include "api/handle.h"
#include "api/request.h"
#include "executor/record_desk.h"
#include "executor/record_link.h"
#include "sys/landlock.h"

/* ---- client ------------------------------------------------------------------------------------------------ */

static void put_history(struct packet_out *w, const struct brig_history *req)
{
	if (!req)
		return;
	packet_text(w, PACKET_verdict, req->verdict);
	packet_text(w, PACKET_language, req->language);
	packet_text(w, PACKET_trust, req->trust);
	packet_text(w, PACKET_since, req->since);
	packet_text(w, PACKET_until, req->until);
	packet_number(w, PACKET_limit, req->limit);
	packet_text(w, PACKET_who, req->who);
	packet_text(w, PACKET_door, req->door);
}

static int put_question(struct packet_out *w, const struct brig_question *q, struct brig_error *err)
{
	static const enum packet_kind kinds[] = { [BRIG_ASK_HISTORY] = PACKET_KIND_ask_history,
						  [BRIG_ASK_SHOW] = PACKET_KIND_ask_show,
						  [BRIG_ASK_METRICS] = PACKET_KIND_ask_metrics,
						  [BRIG_ASK_RECEIPT] = PACKET_KIND_ask_verify };

	if ((size_t)q->kind >= ARRAY_LEN(kinds))
		return err_set(err, BRIG_E_USAGE, 0, "there is no question %d", (int)q->kind);
	w->head.kind = kinds[q->kind];
	switch (q->kind) {
	case BRIG_ASK_HISTORY:
		put_history(w, q->history);
		break;
	case BRIG_ASK_SHOW:
		packet_text(w, PACKET_prefix, q->id);
		break;
	case BRIG_ASK_METRICS:
		packet_number(w, PACKET_format, q->format);
		break;
	case BRIG_ASK_RECEIPT:
		if (q->len > 0)
			packet_bytes(w, PACKET_text, q->text, q->len);
		else
			packet_bytes(w, PACKET_text, "", 1); /* not a receipt either */
		packet_text(w, PACKET_public_key, q->public_key);
		break;
	}
	return 0;
}

int brig_ask(struct brig *b, const struct brig_question *q, int *ret_fd, struct brig_error *err)
{
	struct brig_question known = BRIG_QUESTION_INIT;
	struct brig_history history = BRIG_HISTORY_INIT;
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(ask_show);
	int rc;

	if (!b || !q || !ret_fd)
		return err_set(err, BRIG_E_USAGE, 0,
			       "brig_ask needs a handle, a question and a place for a descriptor");
	if (b->recorder.link < 0)
		return err_set(err, BRIG_E_USAGE, 0, "brig_ask needs a handle that was opened with a recorder_fd");
	rc = versioned_read(&known, sizeof(known), q, "brig_question", err);
	if (rc == 0 && known.history) {
		rc = versioned_read(&history, sizeof(history), known.history, "brig_history", err);
		known.history = &history;
	}
	if (rc == 0)
		rc = put_question(&w, &known, err);
	return rc < 0 ? rc : link_ask(b->recorder.link, &w, ret_fd, err);
}

/* The document in an answer. */
static int take_document(const struct packet_in *answer, char **ret, struct brig_error *err)
{
	*ret = strdup(answer->at[PACKET_document] ? answer->at[PACKET_document] : "");
	return *ret ? 1 : err_nomem(err);
}

int brig_answer(int fd, char **ret, struct brig_error *err)
{
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	int rc;

	if (!ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_answer needs a place for the text");
	rc = link_answer(fd, &answer, err);
	return rc == 1 ? take_document(&answer, ret, err) : rc;
}

int handle_ask(struct brig *b, const struct brig_question *q, char **ret, struct brig_error *err)
{
	AUTO_PACKET_OUT w = PACKET_OUT_INIT(ask_show);
	AUTO_PACKET_IN answer = PACKET_IN_INIT;
	int rc = put_question(&w, q, err);

	if (rc == 0)
		rc = link_call(b->recorder.link, &w, &answer, err);
	if (rc == 0)
		rc = take_document(&answer, ret, err);
	return rc < 0 ? rc : 0;
}

/* ---- recorder ------------------------------------------------------------------------------------------------ */

struct brig_recorder {
	struct brig *b;
	struct desk *desk;
};

/* Untrusted text is parsed without access to files. */
static int check_receipt(const struct packet_in *q, char **ret, struct brig_error *err)
{
	int abi = landlock_abi();

	if (abi > 0)
		(void)landlock_confine(abi, NULL, 0);
	return brig_receipt_verify(q->at[PACKET_text], q->len[PACKET_text], q->at[PACKET_public_key], ret, err);
}

static int answer(void *arg, const struct packet_in *q, char **ret, struct brig_error *err)
{
	struct brig *b = arg;
	struct brig_history history = BRIG_HISTORY_INIT;

	switch (q->kind) {
	case PACKET_KIND_ask_history:
		history.verdict = q->at[PACKET_verdict];
		history.language = q->at[PACKET_language];
		history.trust = q->at[PACKET_trust];
		history.since = q->at[PACKET_since];
		history.until = q->at[PACKET_until];
		history.limit = (uint32_t)min_u64(packet_get_number(q, PACKET_limit, 0), UINT32_MAX);
		history.who = q->at[PACKET_who];
		history.door = q->at[PACKET_door];
		return brig_history_json(b, &history, ret, err);
	case PACKET_KIND_ask_show:
		return brig_show_json(b, q->at[PACKET_prefix], ret, err);
	case PACKET_KIND_ask_metrics:
		return brig_metrics(
			b, (enum brig_metrics_format)min_u64(packet_get_number(q, PACKET_format, 0), INT32_MAX), ret,
			err);
	case PACKET_KIND_ask_verify:
		return check_receipt(q, ret, err);
	default:
		return err_set(err, BRIG_E_INTERNAL, 0, "this is no question");
	}
}

int brig_recorder_open(struct brig *b, struct brig_recorder **ret, struct brig_error *err)
{
	struct brig_recorder *r;
	struct desk_options options;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_recorder_open needs a handle and a place for the recorder");
	if (b->recorder.link >= 0)
		return err_set(err, BRIG_E_USAGE, 0, "a handle with a recorder is none itself");
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(err);
	r->b = b;
	options = (struct desk_options){
		.state = b->recorder.state, .set = policy_base(b->policy), .answer = answer, .arg = b
	};
	rc = desk_open(&options, &r->desk, err);
	if (rc < 0) {
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

int brig_recorder_step(struct brig_recorder *r, int socket, struct brig_error *err)
{
	if (!r)
		return err_set(err, BRIG_E_USAGE, 0, "brig_recorder_step needs a recorder");
	return desk_step(r->desk, socket, err);
}

void brig_recorder_close(struct brig_recorder *r)
{
	if (!r)
		return;
	desk_close(r->desk);
	free(r);
}
