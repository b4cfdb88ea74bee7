/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/verify.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "model/user_counts.h"

enum relation { REL_AT_MOST, REL_AT_LEAST, REL_EQUALS, REL_NOT, REL_HAS, REL_WITHIN };

struct declared {
	bool is_text;
	uint64_t num;
	const char *text;
};

struct check {
	const char *name;
	enum protection protection;
	enum fact_id fact;
	enum relation relation;
	struct declared declared;
	bool if_known, left_out;
};

static uint64_t round_up_page(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* As root the cell's ids are unused on the host, so any id but root's is separate; else it must not be the caller's. */
static uint64_t caller_uid(void)
{
	return geteuid();
}

static bool shown_read_only(const struct plan *plan)
{
	return plan->workspace && plan->workspace->read_only;
}

/* Of native cells; in others the workspace has one name, and WITHIN allows for less. */
static const char *writable_places(const struct plan *plan)
{
	static const char *const places[WORKSPACE_ALIAS_COUNT] = {
		[WORKSPACE_ALIAS_NONE] = "/workspace /tmp /dev/shm",
		[WORKSPACE_MNT_DATA] = "/workspace /tmp /dev/shm /mnt/data",
		[WORKSPACE_HOME_USER] = "/workspace /tmp /dev/shm /home/user",
	};

	if (shown_read_only(plan))
		return "/tmp /dev/shm";
	return places[plan->workspace ? WORKSPACE_ALIAS_NONE : plan->workspace_alias];
}

static bool list_has(const char *list, char separator, const char *word, size_t len)
{
	for (const char *p = list; *p;) {
		size_t n = strcspn(p, (char[]){ separator, '\0' });

		if (n == len && strncmp(p, word, len) == 0)
			return true;
		p += n;
		p += *p != '\0';
	}
	return false;
}

static bool words_within(const char *words, const char *allowed)
{
	for (const char *p = words; *p;) {
		size_t n = strcspn(p, " ");

		if (n > 0 && !list_has(allowed, ' ', p, n))
			return false;
		p += n;
		p += *p != '\0';
	}
	return true;
}

static bool holds(enum relation relation, const struct declared *want, const struct fact *got)
{
	bool same = want->is_text ? str_eq(want->text, got->text) : want->num == got->num;

	switch (relation) {
	case REL_AT_MOST:
		return got->num <= want->num;
	case REL_AT_LEAST:
		return got->num >= want->num;
	case REL_EQUALS:
		return same;
	case REL_NOT:
		return !same;
	case REL_HAS:
		return list_has(got->text, ',', want->text, strlen(want->text));
	case REL_WITHIN:
		return words_within(got->text, want->text);
	}
	return false;
}

static void describe(struct evidence_row *row, const struct check *c, const struct fact *got)
{
	static const char *const prefix[] = {
		[REL_AT_MOST] = "<= ", [REL_AT_LEAST] = ">= ", [REL_EQUALS] = "",
		[REL_NOT] = "not ",    [REL_HAS] = "",         [REL_WITHIN] = "only ",
	};

	if (c->declared.is_text)
		(void)snprintf(row->declared, sizeof(row->declared), "%s%s", prefix[c->relation],
			       *c->declared.text ? c->declared.text : "none");
	else
		(void)snprintf(row->declared, sizeof(row->declared), "%s%llu", prefix[c->relation],
			       (unsigned long long)c->declared.num);
	if (!got->known)
		(void)str_copy(row->enforced, sizeof(row->enforced), "not known");
	else if (c->declared.is_text)
		(void)str_copy(row->enforced, sizeof(row->enforced), *got->text ? got->text : "none");
	else if (got->num == UINT64_MAX)
		(void)str_copy(row->enforced, sizeof(row->enforced), "unlimited");
	else
		(void)snprintf(row->enforced, sizeof(row->enforced), "%llu", (unsigned long long)got->num);
	(void)str_copy(row->source, sizeof(row->source), got->source);
}

struct verify_outcome verify_run(const struct plan *plan, const struct facts *facts, struct evidence *ret)
{
#define PROT_NONE PROT_COUNT
#define N(value)               \
	{                      \
		.num = (value) \
	}
#define T(value)                                 \
	{                                        \
		.is_text = true, .text = (value) \
	}
	const struct check checks[] = {
#define CHECK(name, protection, fact, relation, ...) \
	{ #name, PROT_##protection, FACT_##fact, REL_##relation, __VA_ARGS__, false, false },
#define CHECK_IF(condition, name, protection, fact, relation, ...) \
	{ #name, PROT_##protection, FACT_##fact, REL_##relation, __VA_ARGS__, false, !(condition) },
#define CHECK_IF_KNOWN(name, protection, fact, relation, ...) \
	{ #name, PROT_##protection, FACT_##fact, REL_##relation, __VA_ARGS__, true, false },
#include "verify/checks.def"
	};
#undef N
#undef T
	static_assert(ARRAY_LEN(checks) <= EVIDENCE_MAX, "EVIDENCE_MAX is too small");
	struct verify_outcome out = { .first_broken = NULL };

	ret->n = ret->kept = 0;
	for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
		const struct check *c = &checks[i];
		const struct fact *got = &facts->row[c->fact];
		struct evidence_row *row;

		if (c->left_out || (c->if_known && !got->known))
			continue;
		row = &ret->row[ret->n++];
		*row = (struct evidence_row){ .check = c->name };
		describe(row, c, got);
		row->kept = got->known && holds(c->relation, &c->declared, got);
		ret->kept += row->kept;
		if (row->kept)
			continue;
		if (c->protection != PROT_COUNT && plan->may_degrade & PROT_BIT(c->protection)) {
			row->degraded = true;
			out.degraded |= PROT_BIT(c->protection);
		} else if (!out.first_broken) {
			out.first_broken = c->name;
		}
	}
	return out;
}
