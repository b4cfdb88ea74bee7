/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.c - operations for the runner
 *
 * Buckets are streams with one message per key.  A put names the revision it replaces, which the stream's leader
 * compares (Nats-Expected-Last-Subject-Sequence).  Reads go to the leader as well, not to a replica, since decisions
 * need the latest value.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "server/link/link.h"

#define WRONG_REVISION 10071
#define NOT_FOUND      10037

/* ---- answers of brokers ------------------------------------------------------------------------------------- */

static json_t *read_answer(const struct broker_message *m)
{
	json_t *doc = m->status == 0 ? json_loadb(m->data ? m->data : "", m->len, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (json_is_object(doc))
		return doc;
	json_decref(doc);
	return NULL;
}

static int error_of(const json_t *doc)
{
	const json_t *error = json_object_get(doc, "error");
	json_int_t code = json_integer_value(json_object_get(error, "err_code"));

	if (!error)
		return 0;
	return code > 0 && code < 100000 ? (int)code : 1;
}

int ops_error_of(const struct broker_message *m, uint64_t *ret_sequence)
{
	json_t *doc = read_answer(m);
	int error = doc ? error_of(doc) : -1;

	*ret_sequence = (uint64_t)json_integer_value(json_object_get(doc, "seq"));
	json_decref(doc);
	return error;
}

/* ---- answers to the runner ------------------------------------------------------------------------------------ */

void ops_done(struct link *l, uint32_t tag, const char *state, uint64_t revision)
{
	AUTO_BUF m = BUF_INIT(KiB);

	message_put_text(&m, FIELD_state, state);
	if (revision)
		message_put_number(&m, FIELD_revision, revision);
	link_send(l, tag, LINK_DONE, &m);
}

void ops_trouble(struct link *l, uint32_t tag, const char *why)
{
	AUTO_BUF m = BUF_INIT(KiB);

	message_put_text(&m, FIELD_trouble, why);
	link_send(l, tag, LINK_DONE, &m);
}

/* ---- put ------------------------------------------------------------------------------------- */

/* A put that waits for its body to be stored. */
struct put {
	uint32_t tag;
	char subject[BROKER_SUBJECT_MAX];
	char header[40], value[BROKER_SUBJECT_MAX]; /* "": no header */
};

static void on_put(void *user, uint64_t tag, const struct broker_message *m)
{
	struct link *l = user;
	uint64_t sequence = 0;
	int error = m ? ops_error_of(m, &sequence) : -1;
	char why[80];

	if (error == 0) {
		ops_done(l, (uint32_t)tag, "ok", sequence);
	} else if (error == WRONG_REVISION) {
		ops_done(l, (uint32_t)tag, "taken", 0);
	} else {
		(void)snprintf(why, sizeof(why),
			       error > 0 ? "the broker refuses it with error %d" : "no broker answers", error);
		ops_trouble(l, (uint32_t)tag, why);
	}
}

static void send_put(struct link *l, void *arg, const void *bytes, size_t len)
{
	const struct put *p = arg;
	struct broker_message m = { .subject = p->subject, .data = bytes, .len = len };

	if (p->header[0])
		m.header[0] = (struct broker_header){ p->header, p->value };
	if (!bytes || broker_request(l->broker, &m, LINK_REQUEST_NS, on_put, p->tag) < 0)
		ops_trouble(l, p->tag, "no broker takes it now");
}

/* Serialises what the runner has sealed. */
static bool write_sealed(const struct message *m, struct buf *out)
{
	size_t len, sig_len;
	const char *bytes = message_bytes(m, FIELD_sealed, &len), *sig = message_bytes(m, FIELD_seal, &sig_len), *why;
	struct message inner;

	return bytes && sig && sig_len == SIGN_LEN && message_read(bytes, len, &inner, &why) &&
	       seal_write(&inner, (const uint8_t *)sig, out);
}

static bool has_words(const char *text)
{
	return text && *text && !strpbrk(text, " \t\r\n>") && text[0] != '.' && !strstr(text, "..") &&
	       text[strlen(text) - 1] != '.';
}

/* A subject without wildcards. */
static bool is_plain(const char *text)
{
	return has_words(text) && !strchr(text, '*');
}

bool ops_is_pattern(const char *text)
{
	if (!has_words(text) || strpbrk(text, "\"\\"))
		return false;
	for (const char *at = strchr(text, '*'); at; at = strchr(at + 1, '*'))
		if ((at > text && at[-1] != '.') || (at[1] && at[1] != '.'))
			return false;
	return true;
}

static bool publish(struct link *l, uint32_t tag, const struct message *m, const char *subject, const char *header,
		    const char *value)
{
	AUTO_BUF whole = BUF_INIT(MESSAGE_MAX + MiB);
	struct put *p = calloc(1, sizeof(*p));

	if (!p || !write_sealed(m, &whole)) {
		free(p);
		return false;
	}
	p->tag = tag;
	(void)str_copy(p->subject, sizeof(p->subject), subject);
	if (header) {
		(void)str_copy(p->header, sizeof(p->header), header);
		(void)str_copy(p->value, sizeof(p->value), value);
	}
	bodies_send(l, &whole, send_put, p);
	return true;
}

static bool op_publish(struct link *l, uint32_t tag, const struct message *m)
{
	const char *key = message_text(m, FIELD_key), *class = message_text(m, FIELD_class);
	char subject[BROKER_SUBJECT_MAX];

	if (!is_plain(key) || !is_plain(class))
		return false;
	if (!l->is_up) {
		ops_trouble(l, tag, "there is no broker now");
		return true;
	}
	(void)snprintf(subject, sizeof(subject), "%s%s.%s", LINK_JOBS, class, key);
	return publish(l, tag, m, subject, "Nats-Msg-Id", key);
}

static bool op_put(struct link *l, uint32_t tag, const struct message *m)
{
	uint64_t bucket = message_number(m, FIELD_bucket, BUCKETS_OF_LINK);
	uint64_t revision = message_number(m, FIELD_revision, 0);
	const char *key = message_text(m, FIELD_key);
	char subject[BROKER_SUBJECT_MAX], number[24];

	if (!is_plain(key) || bucket >= BUCKETS_OF_LINK)
		return false;
	if (!l->is_up) {
		ops_trouble(l, tag, "there is no broker now");
		return true;
	}
	(void)snprintf(subject, sizeof(subject), "$KV.%s.%s", link_bucket_name((enum link_bucket)bucket), key);
	(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)revision);
	return publish(l, tag, m, subject, revision == LINK_ANY ? NULL : "Nats-Expected-Last-Subject-Sequence", number);
}

/* ---- get ------------------------------------------------------------------------------------- */

/* { "message": { "seq", "data": base64 } } */
static void on_got(void *user, uint64_t tag, const struct broker_message *m)
{
	struct link *l = user;
	json_t *doc = m ? read_answer(m) : NULL;
	const json_t *message = json_object_get(doc, "message");
	const json_t *data = json_object_get(message, "data");
	const char *text = data || !message ? json_string_value(data) : ""; /* omitted if the message is empty */
	size_t len = json_string_length(data);
	struct destination to = { .op = LINK_DONE,
				  .tag = (uint32_t)tag,
				  .revision = (uint64_t)json_integer_value(json_object_get(message, "seq")) };
	AUTO_FREE char *bytes = text ? malloc(len / 4 * 3 + 1) : NULL;
	ssize_t n = bytes ? base64_get(bytes, text, len) : -1;

	if (n >= 0)
		bodies_deliver(l, &to, bytes, (size_t)n);
	else if (doc && error_of(doc) == NOT_FOUND)
		ops_done(l, to.tag, "none", 0);
	else
		ops_trouble(l, to.tag, doc ? "the broker does not say what is there" : "no broker answers");
	json_decref(doc);
}

static bool op_get(struct link *l, uint32_t tag, const struct message *m)
{
	uint64_t bucket = message_number(m, FIELD_bucket, BUCKETS_OF_LINK + 1);
	const char *key = message_text(m, FIELD_key);
	char subject[BROKER_SUBJECT_MAX], body[BROKER_SUBJECT_MAX];

	if (!ops_is_pattern(key) || bucket > BUCKET_JOBS)
		return false;
	if (bucket == BUCKET_JOBS) {
		(void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.%s", LINK_STREAM);
		(void)snprintf(body, sizeof(body), "{\"last_by_subj\":\"%s*.*.%s\"}", LINK_JOBS, key);
	} else {
		const char *name = link_bucket_name((enum link_bucket)bucket);

		(void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.MSG.GET.KV_%s", name);
		(void)snprintf(body, sizeof(body), "{\"last_by_subj\":\"$KV.%s.%s\"}", name, key);
	}
	if (!l->is_up ||
	    broker_request(l->broker, &(struct broker_message){ .subject = subject, .data = body, .len = strlen(body) },
			   LINK_REQUEST_NS, on_got, tag) < 0)
		ops_trouble(l, tag, "no broker can be asked now");
	return true;
}

/* ---- other operations ------------------------------------------------------------------------ */

static void send_told(struct link *l, void *subject, const void *bytes, size_t len)
{
	if (bytes)
		(void)broker_publish(l->broker,
				     &(struct broker_message){ .subject = subject, .data = bytes, .len = len });
}

static bool op_tell(struct link *l, const struct message *m)
{
	AUTO_BUF whole = BUF_INIT(MESSAGE_MAX + MiB);
	const char *subject = message_text(m, FIELD_subject);
	char *copy;

	if (!is_plain(subject))
		return false;
	copy = strdup(subject);
	if (copy && write_sealed(m, &whole))
		bodies_send(l, &whole, send_told, copy);
	else
		free(copy);
	return true;
}

static bool op_word(struct link *l, const struct message *m)
{
	const char *subject = message_text(m, FIELD_subject), *word = message_text(m, FIELD_word);

	if (!is_plain(subject) || strncmp(subject, "$JS.ACK.", 8) != 0 || !word)
		return false;
	(void)broker_publish(l->broker,
			     &(struct broker_message){ .subject = subject, .data = word, .len = strlen(word) });
	return true;
}

static bool op_listen(struct link *l, const struct message *m)
{
	const char *subject = message_text(m, FIELD_subject);

	return subject && broker_subscribe(l->broker, subject) == 0;
}

bool ops_take(struct link *l, const struct record *r)
{
	struct message m;
	const char *why;

	if (r->type != RECORD_ASK || !message_read(r->data, r->len, &m, &why))
		return false;
	switch (r->status) {
	case LINK_PUBLISH:
		return op_publish(l, r->tag, &m);
	case LINK_PUT:
		return op_put(l, r->tag, &m);
	case LINK_GET:
		return op_get(l, r->tag, &m);
	case LINK_LIST:
		return lists_take(l, r->tag, &m);
	case LINK_TELL:
		return op_tell(l, &m);
	case LINK_WORD:
		return op_word(l, &m);
	case LINK_LISTEN:
		return op_listen(l, &m);
	case LINK_CREDIT:
		l->credit = message_number(&m, FIELD_credit, 0);
		pulls_step(l);
		return true;
	case LINK_LATER:
		pulls_set_later(l, &m);
		pulls_step(l);
		return true;
	case LINK_CLASSES:
		pulls_set_classes(l, &m);
		pulls_step(l);
		return true;
	default:
		return false;
	}
}

void ops_on_message(struct link *l, const struct broker_message *m)
{
	struct destination to = { .op = LINK_TOLD };

	if (pulls_on_message(l, m) || !str_copy(to.subject, sizeof(to.subject), m->subject) || m->len > LINK_WHOLE_MAX)
		return;
	bodies_deliver(l, &to, m->data, m->len);
}
