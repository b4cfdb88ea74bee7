/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_FACTS_H
#define MODEL_FACTS_H

#include "base/util.h"

enum fact_id {
#define FACT(name, kind) FACT_##name,
#include "model/facts.def"
	FACT_COUNT
};

struct fact {
	bool known;
	uint64_t num;
	char text[200];
	char source[120]; /* where it was read: a path or a call */
};

struct facts {
	struct fact row[FACT_COUNT];
};

extern const char *const fact_name[FACT_COUNT];

void fact_num(struct facts *f, enum fact_id id, uint64_t value, const char *source_fmt, ...) PRINTF(4, 5);
void fact_text(struct facts *f, enum fact_id id, const char *value, const char *source_fmt, ...) PRINTF(4, 5);

/* Copies what only *from has, with the remark behind where it was read. */
void facts_add_missing(struct facts *to, const struct facts *from, const char *remark);

#endif
