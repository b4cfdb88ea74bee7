/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lists.c - listing the keys of a bucket
 *
 * A stream lists its subjects in byte order, from an offset, together with their total number.  To get the last n, the
 * runner first requests an offset beyond the end, which returns only the number, and then that number minus n: so no
 * answer is longer than needed, however full the bucket is.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "server/link/link.h"

#define ANSWER_MAX ((size_t)MiB)

/* { "total", "state": { "subjects": { "$KV.BUCKET.KEY": n, ... } } } */
bool list_read(const void *bytes, size_t len, const char *prefix, struct buf *out, size_t *ret_strange)
{
	json_t *doc = len <= ANSWER_MAX ? json_loadb(bytes ? bytes : "", len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	json_t *state = json_object_get(doc, "state"), *subjects = json_object_get(state, "subjects");
	json_int_t total = json_integer_value(json_object_get(doc, "total"));
	bool is_good =
		json_is_object(state) && total >= 0 && json_object_size(subjects) <= message_max_count(FIELD_listed);
	const char *subject;
	json_t *n;

	*ret_strange = 0;
	message_put_text(out, FIELD_state, "ok");
	message_put_number(out, FIELD_total, is_good ? (uint64_t)total : 0);
	json_object_foreach(subjects, subject, n)
	{
		const char *key = subject + strlen(prefix);

		if (!is_good || strncmp(subject, prefix, strlen(prefix)) != 0 || !*key ||
		    !message_takes(FIELD_listed, key))
			++*ret_strange;
		else
			message_put_text(out, FIELD_listed, key);
	}
	json_decref(doc);
	return is_good;
}

static void on_listed(void *user, uint64_t arg, const struct broker_message *m)
{
	struct link *l = user;
	const char *name = link_bucket_name((enum link_bucket)(arg >> 32));
	char prefix[BROKER_SUBJECT_MAX];
	AUTO_BUF out = BUF_INIT(MiB);
	size_t n_strange;

	(void)snprintf(prefix, sizeof(prefix), "$KV.%s.", name);
	if (!m || m->status != 0 || !list_read(m->data, m->len, prefix, &out, &n_strange)) {
		ops_trouble(l, (uint32_t)arg, m ? "the broker does not say which keys there are" : "no broker answers");
		return;
	}
	if (n_strange > 0)
		link_complain(l, name, "keys that brig did not make");
	link_send(l, (uint32_t)arg, LINK_DONE, &out);
}

bool lists_take(struct link *l, uint32_t tag, const struct message *m)
{
	uint64_t bucket = message_number(m, FIELD_bucket, BUCKETS_OF_LINK);
	uint64_t offset = message_number(m, FIELD_offset, 0);
	const char *key = message_text(m, FIELD_key), *name;
	char subject[BROKER_SUBJECT_MAX], body[BROKER_SUBJECT_MAX + 64];

	if (!ops_is_pattern(key) || bucket >= BUCKETS_OF_LINK || offset > LINK_BEHIND)
		return false;
	name = link_bucket_name((enum link_bucket)bucket);
	(void)snprintf(subject, sizeof(subject), "$JS.API.STREAM.INFO.KV_%s", name);
	(void)snprintf(body, sizeof(body), "{\"subjects_filter\":\"$KV.%s.%s\",\"offset\":%llu}", name, key,
		       (unsigned long long)offset);
	if (!l->is_up ||
	    broker_request(l->broker, &(struct broker_message){ .subject = subject, .data = body, .len = strlen(body) },
			   LINK_REQUEST_NS, on_listed, bucket << 32 | tag) < 0)
		ops_trouble(l, tag, "no broker can be asked now");
	return true;
}
