/* SPDX-License-Identifier: Apache-2.0 */
/* The file of counters: whatever stands in it, the texts made of it keep their syntax. */
#include <string.h>

#include "base/str.h"
#include "metrics/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct metrics_snapshot *s)
{
	AUTO_BUF text = BUF_INIT(64 * MiB);

	metrics_to_prometheus(s, &text);
	if (text.full || !str_is_utf8(text.data, text.len) || strlen(text.data) != text.len)
		abort();
	/* Every line begins with a metric or is a comment: no name has broken out of its label. */
	for (const char *line = text.data; *line; line = strchr(line, '\n') + 1)
		if (strncmp(line, "brig_", 5) != 0 && strncmp(line, "# ", 2) != 0)
			abort();
}

static void check_bytes(const void *bytes, size_t len)
{
	struct metrics_snapshot *s = NULL;
	struct brig_error err = BRIG_ERROR_INIT;
	json_t *doc;
	char *text;

	if (metrics_read_bytes(bytes, len, &s, &err) < 0) {
		if (!*err.msg)
			abort();
		return;
	}
	check_text(s);
	doc = metrics_to_json(s);
	text = doc ? json_dumps(doc, 0) : NULL;
	if (!text)
		abort();
	free(text);
	json_decref(doc);
	metrics_snapshot_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metrics_layout l;
	struct metrics_header h;
	unsigned char *bytes;
	size_t at;

	check_bytes(data, size);
	if (size == 0 || size > 4096)
		return 0;
	/* The same input behind a good header, as names and as numbers of one metric. */
	metrics_layout_make(&l);
	bytes = calloc(1, l.size);
	if (!bytes)
		return 0;
	metrics_header_make(&l, &h);
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + l.names[LABELS_language], data, size); /* and on into the sets behind it */
	at = l.numbers[data[0] % METRIC_COUNT];
	memcpy(bytes + at, data, min_u64(size, l.size - at));
	check_bytes(bytes, l.size);
	free(bytes);
	return 0;
}
