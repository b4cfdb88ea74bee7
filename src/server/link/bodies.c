/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bodies.c - messages longer than a broker carries
 *
 * They are put into the bucket of bodies in pieces, under their own SHA-256, and replaced by a stub:
 *
 *	"brig stub 1\n", SHA-256 (32 bytes), length (eight bytes, little endian)
 *
 * A reader of the stub fetches the pieces in sequence and verifies the hash.  If they do not match, that is reported
 * and the message ignored; if a piece is missing, it may be retried.  Pieces expire with the bucket.
 */
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "server/link/link.h"

static const char stub_magic[] = "brig stub 1\n";
#define MAGIC_LEN (sizeof(stub_magic) - 1)
#define STUB_LEN  (MAGIC_LEN + SHA256_LEN + sizeof(uint64_t))
#define WHOLE_MAX (MESSAGE_MAX + MiB)

struct transfer {
	struct transfer *next;
	uint64_t number;
	uint8_t hash[SHA256_LEN];
	uint64_t len;
	size_t piece; /* number of the next one */
	struct buf whole;
	/* sending */
	body_fn fn;
	void *arg;
	/* receiving */
	struct destination to;
};

static uint64_t last_number;

static void end(struct link *l, struct transfer *t)
{
	struct transfer **at = &l->transfers;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	l->n_transfers--;
	buf_release(&t->whole);
	free(t->arg);
	free(t);
}

static struct transfer *begin(struct link *l)
{
	struct transfer *t = l->n_transfers < LINK_TRANSFERS_MAX ? calloc(1, sizeof(*t)) : NULL;

	if (!t)
		return NULL;
	t->number = ++last_number;
	t->whole = (struct buf)BUF_INIT(WHOLE_MAX);
	t->next = l->transfers;
	l->transfers = t;
	l->n_transfers++;
	return t;
}

static struct transfer *find(const struct link *l, uint64_t number)
{
	struct transfer *t = l->transfers;

	while (t && t->number != number)
		t = t->next;
	return t;
}

static void name_piece(const struct transfer *t, const char *before, char dst[BROKER_SUBJECT_MAX])
{
	char hex[SHA256_HEX + 1];

	(void)snprintf(dst, BROKER_SUBJECT_MAX, "%s$KV.%s.%s.%zu", before, link_bucket_name(BUCKET_BODIES),
		       hex_put(hex, t->hash, SHA256_LEN), t->piece);
}

/* ---- sending ------------------------------------------------------------------------------------------------ */

static void put_piece(struct link *l, struct transfer *t);

static void finish_out(struct link *l, struct transfer *t, const void *bytes, size_t len)
{
	t->fn(l, t->arg, bytes, len);
	end(l, t);
}

static void on_put(void *user, uint64_t number, const struct broker_message *m)
{
	struct link *l = user;
	struct transfer *t = find(l, number);
	uint64_t sequence;

	if (!t)
		return;
	if (!m || ops_error_of(m, &sequence) != 0) {
		finish_out(l, t, NULL, 0);
		return;
	}
	t->piece++;
	put_piece(l, t);
}

static void put_piece(struct link *l, struct transfer *t)
{
	size_t at = t->piece * LINK_WHOLE_MAX;
	char subject[BROKER_SUBJECT_MAX], stub[STUB_LEN];
	uint64_t le = htole64(t->len);

	if (at < t->len) {
		name_piece(t, "", subject);
		if (broker_request(l->broker,
				   &(struct broker_message){ .subject = subject,
							     .data = t->whole.data + at,
							     .len = min_u64(t->len - at, LINK_WHOLE_MAX) },
				   LINK_REQUEST_NS, on_put, t->number) < 0)
			finish_out(l, t, NULL, 0);
		return;
	}
	memcpy(stub, stub_magic, MAGIC_LEN);
	memcpy(stub + MAGIC_LEN, t->hash, SHA256_LEN);
	memcpy(stub + MAGIC_LEN + SHA256_LEN, &le, sizeof(le));
	finish_out(l, t, stub, sizeof(stub));
}

void bodies_send(struct link *l, struct buf *whole, body_fn fn, void *arg)
{
	struct transfer *t;

	if (whole->len <= LINK_WHOLE_MAX) {
		fn(l, arg, whole->data, whole->len);
		free(arg);
		return;
	}
	t = begin(l);
	if (!t) {
		fn(l, arg, NULL, 0);
		free(arg);
		return;
	}
	t->fn = fn;
	t->arg = arg;
	t->len = whole->len;
	t->whole = *whole;
	*whole = (struct buf)BUF_INIT(0);
	sha256(t->whole.data, t->whole.len, t->hash);
	put_piece(l, t);
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

/* A temporary failure: the runner repeats a query, and the stream redelivers a job. */
static void put_off(struct link *l, const struct destination *to, const char *why)
{
	if (to->tag)
		ops_trouble(l, to->tag, why);
	else if (to->op == LINK_JOB)
		pulls_return(l, to->subject, false);
}

/* A permanent failure: the data is no sealed message.  A query is answered with its revision but no message. */
static void refuse(struct link *l, const struct destination *to, const char *why)
{
	link_complain(l, to->subject[0] ? to->subject : "a bucket", why);
	if (to->tag)
		ops_done(l, to->tag, "ok", to->revision);
	else if (to->op == LINK_JOB)
		pulls_return(l, to->subject, true);
}

/* Delivers a complete message to the runner. */
static void hand_over(struct link *l, const struct destination *to, const void *bytes, size_t len)
{
	AUTO_BUF inner = BUF_INIT(MESSAGE_MAX);
	AUTO_BUF out = BUF_INIT(MESSAGE_MAX);
	uint8_t sig[SIGN_LEN];
	const char *why = seal_read(bytes, len, &inner, sig);

	if (why) {
		refuse(l, to, why);
		return;
	}
	if (to->tag)
		message_put_text(&out, FIELD_state, "ok");
	if (to->revision)
		message_put_number(&out, FIELD_revision, to->revision);
	if (to->subject[0])
		message_put_text(&out, FIELD_subject, to->subject);
	message_put_bytes(&out, FIELD_sealed, inner.data, inner.len);
	message_put_bytes(&out, FIELD_seal, sig, sizeof(sig));
	link_send(l, to->tag, to->op, &out);
}

static void get_piece(struct link *l, struct transfer *t);

static void fail_in(struct link *l, struct transfer *t, const char *why)
{
	refuse(l, &t->to, why);
	end(l, t);
}

static void on_piece(void *user, uint64_t number, const struct broker_message *m)
{
	struct link *l = user;
	struct transfer *t = find(l, number);
	size_t wanted;

	if (!t)
		return;
	wanted = min_u64(t->len - t->whole.len, LINK_WHOLE_MAX);
	if (!m || m->status != 0) {
		put_off(l, &t->to, "a piece of it is not there, or not yet");
		end(l, t);
		return;
	}
	if (m->len != wanted) {
		fail_in(l, t, "a piece that has another length");
		return;
	}
	(void)buf_add(&t->whole, m->data, m->len);
	t->piece++;
	get_piece(l, t);
}

static void get_piece(struct link *l, struct transfer *t)
{
	char subject[BROKER_SUBJECT_MAX], before[64];
	uint8_t hash[SHA256_LEN];

	if (t->whole.no_memory || t->whole.full) {
		put_off(l, &t->to, "there is no memory for it");
		end(l, t);
		return;
	}
	if (t->whole.len < t->len) {
		(void)snprintf(before, sizeof(before), "$JS.API.DIRECT.GET.KV_%s.", link_bucket_name(BUCKET_BODIES));
		name_piece(t, before, subject);
		if (broker_request(l->broker, &(struct broker_message){ .subject = subject }, LINK_REQUEST_NS, on_piece,
				   t->number) < 0) {
			put_off(l, &t->to, "no broker gives its pieces now");
			end(l, t);
		}
		return;
	}
	sha256(t->whole.data, t->whole.len, hash);
	if (crypto_same(hash, t->hash, SHA256_LEN)) {
		hand_over(l, &t->to, t->whole.data, t->whole.len);
		end(l, t);
	} else {
		fail_in(l, t, "pieces that are not what their hash says");
	}
}

void bodies_deliver(struct link *l, const struct destination *to, const void *bytes, size_t len)
{
	struct transfer *t;
	uint64_t le;

	if (len != STUB_LEN || memcmp(bytes, stub_magic, MAGIC_LEN) != 0) {
		hand_over(l, to, bytes, len);
		return;
	}
	memcpy(&le, (const char *)bytes + MAGIC_LEN + SHA256_LEN, sizeof(le));
	le = le64toh(le);
	if (le <= LINK_WHOLE_MAX || le > WHOLE_MAX) {
		refuse(l, to, "a stub of a length that it cannot have");
		return;
	}
	t = begin(l);
	if (!t) {
		put_off(l, to, "more long messages at one time than are fetched");
		return;
	}
	t->to = *to;
	t->len = le;
	memcpy(t->hash, (const char *)bytes + MAGIC_LEN, SHA256_LEN);
	get_piece(l, t);
}

void bodies_forget(struct link *l)
{
	while (l->transfers)
		end(l, l->transfers);
}
