/* SPDX-License-Identifier: Apache-2.0 */
#include "model/facts.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

const char *const fact_name[] = {
#define FACT(name, kind) #name,
#include "model/facts.def"
};
static_assert(ARRAY_LEN(fact_name) == FACT_COUNT, "fact_name[] misses a fact");

static struct fact *fact_begin(struct facts *f, enum fact_id id, const char *source_fmt, va_list ap)
{
	struct fact *row = &f->row[id];

	row->known = true;
	(void)vsnprintf(row->source, sizeof(row->source), source_fmt, ap);
	return row;
}

void fact_num(struct facts *f, enum fact_id id, uint64_t value, const char *source_fmt, ...)
{
	va_list ap;

	va_start(ap, source_fmt);
	fact_begin(f, id, source_fmt, ap)->num = value;
	va_end(ap);
}

void fact_text(struct facts *f, enum fact_id id, const char *value, const char *source_fmt, ...)
{
	struct fact *row;
	va_list ap;

	va_start(ap, source_fmt);
	row = fact_begin(f, id, source_fmt, ap);
	va_end(ap);
	(void)str_copy(row->text, sizeof(row->text), value);
}

void facts_add_missing(struct facts *to, const struct facts *from, const char *remark)
{
	for (size_t i = 0; i < FACT_COUNT; i++) {
		struct fact *row = &to->row[i];
		size_t len;

		if (row->known || !from->row[i].known)
			continue;
		*row = from->row[i];
		len = strlen(row->source);
		(void)snprintf(row->source + len, sizeof(row->source) - len, "%s", remark);
	}
}
