/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder is sent.  'm' and a message: what is understood lies within its bytes.  'b' and a body of an entry: what is
 * accepted is members of one JSON object on one line, the run's own id first.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "executor/record_packet.h"

#define ID "abcdefghijklmnop"

static void try_message(const char *bytes, size_t len)
{
	struct packet_in m = PACKET_IN_INIT;
	struct packet_head head;

	if (len < sizeof(head))
		return;
	memcpy(&head, bytes, sizeof(head));
	bytes += sizeof(head);
	len -= sizeof(head);
	if (packet_check(&head, bytes, len, &m))
		return;
	for (enum packet_field f = 0; f < PACKET_FIELDS; f++)
		if (m.at[f] && (m.at[f] < bytes || m.at[f] + m.len[f] > bytes + len))
			abort();
}

static void try_body(const char *body, size_t len)
{
	AUTO_BUF line = BUF_INIT(2 * AUDIT_ENTRY_MAX);
	json_t *doc;

	if (audit_body_fault(body, len, ID))
		return;
	(void)buf_adds(&line, "{\"seq\":1");
	(void)buf_add(&line, body, len);
	(void)buf_adds(&line, "}");
	doc = json_loadb(line.data, line.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	if (memchr(body, '\n', len) || strcmp(json_string_value(json_object_get(doc, "id")), ID) != 0 ||
	    json_number_value(json_object_get(doc, "seq")) > 1)
		abort();
	json_decref(doc);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	char *exact = malloc(len + 1);

	if (!exact || len == 0) {
		free(exact);
		return 0;
	}
	memcpy(exact, data, len);
	if (exact[0] == 'm')
		try_message(exact + 1, len - 1);
	else
		try_body(exact + 1, len - 1);
	free(exact);
	return 0;
}
