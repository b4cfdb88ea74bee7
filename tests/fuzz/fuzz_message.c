/* SPDX-License-Identifier: Apache-2.0 */
/* A message between front and runner: what is understood lies within its bytes, and its texts end where they say. */
#include <stdlib.h>
#include <string.h>

#include "server/message.h"

/* It can be written into a file of lines. */
static void check_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			abort();
}

static void look_at(const struct message *m, enum field f)
{
	size_t len, n = message_count(m, f);
	const char *bytes = message_bytes(m, f, &len);
	const char **texts = calloc(n + 1, sizeof(*texts));

	if ((bytes != NULL) != message_has(m, f))
		abort();
	if (bytes && (bytes < m->bytes || bytes + len > m->bytes + m->len))
		abort();
	if (texts)
		message_texts(m, f, texts);
	for (size_t i = 0; texts && i < n; i++)
		if (texts[i] < m->bytes || texts[i] > m->bytes + m->len)
			abort();
	free(texts);
	if (bytes && (f == FIELD_job_id || f == FIELD_request_id || f == FIELD_traceparent))
		check_line(bytes);
	for (size_t at = 0, i = 0; (bytes = message_next(m, f, &at, &len)); i++)
		if (i >= n || bytes < m->bytes || bytes + len > m->bytes + m->len)
			abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	char *exact = malloc(len + 1);
	struct message m;
	const char *why;

	if (!exact)
		return 0;
	memcpy(exact, data, len);
	if (message_read(exact, len, &m, &why))
		for (enum field f = 0; f < FIELD_COUNT; f++)
			look_at(&m, f);
	free(exact);
	return 0;
}
