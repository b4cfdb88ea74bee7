/* SPDX-License-Identifier: Apache-2.0 */
/* What readers of the history take from disk, a spool and its records, and the search for what must not be kept. */
#include <stdint.h>
#include <string.h>

#include "history/packed.h"
#include "history/redact.h"
#include "history/spool.h"
#include "model/plan.h"
#include "sys/crypto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take_record(void *arg, const void *record, size_t len)
{
	char id[RUN_ID_LEN + 1];
	struct packed_reader r;
	struct packed_row row;
	size_t bytes = 0;

	++*(size_t *)arg;
	if (!packed_check(record, len, id))
		return 0;
	/* What was accepted once is accepted again, to its end, and every value lies inside it. */
	if (!packed_open(&r, record, len) || strlen(id) != RUN_ID_LEN)
		abort();
	for (int rc; (rc = packed_next(&r, &row)) != 0;) {
		if (rc < 0 || row.n > TABLE_COLUMNS_MAX)
			abort();
		for (size_t i = 0; i < row.n; i++)
			for (size_t k = 0; row.value[i].kind == PACKED_BYTES && k < row.value[i].len; k++)
				bytes += (unsigned char)row.value[i].data[k];
	}
	return bytes == SIZE_MAX; /* never: it is only to be read */
}

/* The input as the record of a spool that is whole, with the input as damage behind it. */
static void scan_sealed(const uint8_t *data, size_t size)
{
	struct {
		char magic[8];
		uint64_t mark;
		uint8_t key[SHORT_HASH_KEY_LEN];
		uint64_t record_mark, len, sum;
	} head = { .magic = "brigspl1", .mark = 0x1234567890abcdef, .record_mark = 0x1234567890abcdef, .len = size };
	AUTO_BUF spool = BUF_INIT(2 * size + sizeof(head));
	struct spool_report report;
	size_t n = 0;

	memcpy(head.magic, "brigspl1", 8);
	head.sum = short_hash(head.key, data, size);
	buf_add(&spool, &head, sizeof(head));
	buf_add(&spool, data, size);
	buf_add(&spool, data, size);
	if (spool_scan(buf_str(&spool), spool.len, take_record, &n, &report) != 0 || n == 0 || report.records != n)
		abort();
}

/* A text without stars that was looked for is not there afterwards. */
static void look_for(const uint8_t *data, size_t size)
{
	struct setting_list list = { 0 };
	char item[8] = "";
	size_t len = size < 8 ? size : 1 + (size_t)data[0] % 7;
	AUTO_BUF out = BUF_INIT(4 * size + 1);
	struct redact_text text;

	memcpy(item, data + (size > 0), size > 0 ? len - 1 : 0);
	len = strlen(item);
	(void)setting_list_add(&list, item);
	text = (struct redact_text){
		.data = (const char *)data, .len = size, .keep = size - size / 3, .cut = size % 2
	};
	(void)redact(&list, &text, &out);
	if (len > 0 && !strchr(item, '*') && memmem(buf_str(&out), out.len, item, len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spool_report report;
	size_t n = 0;

	if (spool_scan(data, size, take_record, &n, &report) != 0 || report.records != n || report.damaged_bytes > size)
		abort();
	scan_sealed(data, size);
	look_for(data, size);
	return 0;
}
