/* SPDX-License-Identifier: Apache-2.0 */
/* Reads data/syscalls (its README.md describes the lines) and decides the answer for each number. */
#include "gen-filters.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <ctype.h>
#include <errno.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const struct {
	const char *name;
	uint32_t value;
} names[] = {
#define NAME(n)      { #n, (uint32_t)(n) },
#define NUMBER(n, v) { #n, v },
#include "gen-filters-names.def"
#undef NAME
#undef NUMBER
};

static const struct {
	const char *name;
	uint32_t action;
} answers[] = {
	{ "EPERM", ERRNO_ACTION(EPERM) },     { "ENOSYS", ERRNO_ACTION(ENOSYS) },
	{ "EINVAL", ERRNO_ACTION(EINVAL) },   { "EOPNOTSUPP", ERRNO_ACTION(EOPNOTSUPP) },
	{ "KILL", SECCOMP_RET_KILL_PROCESS },
};

/* The line being read, for messages. */
static struct {
	const char *file;
	unsigned line;
} at;

static uint32_t value_of(const char *word)
{
	char *end;
	unsigned long value;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i].name, word) == 0)
			return names[i].value;
	value = strtoul(word, &end, 0);
	if (!isdigit((unsigned char)*word) || *end || value > UINT32_MAX)
		die("%s:%u: '%s' is neither a number nor in gen-filters-names.def", at.file, at.line, word);
	return (uint32_t)value;
}

static uint32_t answer_of(const char *word)
{
	for (size_t i = 0; word && i < sizeof(answers) / sizeof(answers[0]); i++)
		if (strcmp(answers[i].name, word) == 0)
			return answers[i].action;
	die("%s:%u: '%s' is not an answer", at.file, at.line, word ? word : "");
}

static int compare_values(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void add_value(struct term *term, uint32_t value)
{
	for (unsigned i = 0; i < term->n; i++)
		if (term->values[i] == value)
			return;
	if (term->n == MAX_VALUES)
		die("%s:%u: more than %d values", at.file, at.line, MAX_VALUES);
	term->values[term->n++] = value;
	qsort(term->values, term->n, sizeof(term->values[0]), compare_values);
}

static uint32_t flags_of(char *word, const char *separator)
{
	uint32_t flags = 0;
	char *save;

	for (char *w = strtok_r(word, separator, &save); w; w = strtok_r(NULL, separator, &save))
		flags |= value_of(w);
	return flags;
}

/* argN, argN&MASK, argN&~MASK */
static void parse_operand(struct term *term, char *word)
{
	if (strncmp(word, "arg", 3) != 0 || word[3] < '0' || word[3] > '5' || (word[4] && word[4] != '&'))
		die("%s:%u: '%s' is not an argument", at.file, at.line, word);
	term->arg = (unsigned)(word[3] - '0');
	term->mask = UINT32_MAX;
	if (word[4] && word[5] == '~')
		term->mask = ~flags_of(word + 6, "|");
	else if (word[4])
		term->mask = flags_of(word + 5, "|");
}

static void parse_term(struct term *term, char *operand, const char *op, char *values)
{
	char *save;

	if (!operand || !op || !values)
		die("%s:%u: a term has three words", at.file, at.line);
	*term = (struct term){ .n = 0 };
	parse_operand(term, operand);
	if (strcmp(op, "no-bits") == 0) {
		term->kind = TERM_NO_BITS;
		term->mask = flags_of(values, ",");
	} else if (strcmp(op, "is") == 0 && strcmp(values, "null") == 0) {
		term->kind = TERM_NULL;
	} else if (strcmp(op, "not") == 0 && term->mask == UINT32_MAX) {
		term->kind = TERM_NOT;
		add_value(term, value_of(values));
	} else if (strcmp(op, "in") == 0) {
		for (char *w = strtok_r(values, ",", &save); w; w = strtok_r(NULL, ",", &save))
			add_value(term, value_of(w));
	} else {
		die("%s:%u: '%s' is not a test", at.file, at.line, op);
	}
}

static bool same_term(const struct term *a, const struct term *b)
{
	return a->kind == b->kind && a->arg == b->arg && a->mask == b->mask && a->n == b->n &&
	       memcmp(a->values, b->values, a->n * sizeof(a->values[0])) == 0;
}

/* Lines that differ only in the values of their last term are one alternative with more values. */
static bool same_but_last(const struct alternative *a, const struct alternative *b)
{
	unsigned last = a->n - 1;

	if (a->n != b->n || a->terms[last].kind != TERM_IN || b->terms[last].kind != TERM_IN)
		return false;
	for (unsigned i = 0; i < last; i++)
		if (!same_term(&a->terms[i], &b->terms[i]))
			return false;
	return a->terms[last].arg == b->terms[last].arg && a->terms[last].mask == b->terms[last].mask;
}

static void add_alternative(struct call *call, const struct alternative *a)
{
	for (unsigned i = 0; i < call->n; i++) {
		const struct term *last = &a->terms[a->n - 1];

		if (!same_but_last(&call->alternatives[i], a))
			continue;
		for (unsigned v = 0; v < last->n; v++)
			add_value(&call->alternatives[i].terms[a->n - 1], last->values[v]);
		return;
	}
	if (call->n == MAX_ALTERNATIVES)
		die("%s:%u: more than %d alternatives", at.file, at.line, MAX_ALTERNATIVES);
	call->alternatives[call->n++] = *a;
}

static struct call *find_call(struct call_set *set, const char *name)
{
	for (unsigned i = 0; i < set->n; i++)
		if (strcmp(set->calls[i].name, name) == 0)
			return &set->calls[i];
	return NULL;
}

static struct call *add_call(struct call_set *set, const char *name)
{
	struct call *call;

	if (set->n == MAX_CALLS || strlen(name) >= sizeof(call->name))
		die("%s:%u: no room for '%s'", at.file, at.line, name);
	call = &set->calls[set->n++];
	*call = (struct call){ .action = { SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW } };
	strcpy(call->name, name);
	return call;
}

/* A name that libseccomp does not know is a misspelling, unless the list says that it may be new. */
static void check_name(const char *name)
{
	if (seccomp_syscall_resolve_name(name) == __NR_SCMP_ERROR)
		die("%s:%u: no architecture has a call '%s'", at.file, at.line, name);
}

static void parse_group_line(struct call_set *set, char *line)
{
	char *save;
	char *name = strtok_r(line, " \t\n", &save);
	char *word = strtok_r(NULL, " \t\n", &save);
	struct call *call = find_call(set, name);
	struct alternative a = { .n = 0 };

	check_name(name);
	if (call && (!word || call->n == 0))
		die("%s:%u: '%s' is listed twice", at.file, at.line, name);
	if (!call)
		call = add_call(set, name);
	for (const char *link = "when"; word; link = "and", word = strtok_r(NULL, " \t\n", &save)) {
		char *operand = strtok_r(NULL, " \t\n", &save);
		char *op = strtok_r(NULL, " \t\n", &save);

		if (strcmp(word, link) != 0 || a.n == MAX_TERMS)
			die("%s:%u: '%s' is out of place", at.file, at.line, word);
		parse_term(&a.terms[a.n++], operand, op, strtok_r(NULL, " \t\n", &save));
	}
	if (a.n > 0)
		add_alternative(call, &a);
}

static void parse_deny_line(struct call_set *set, char *line)
{
	char *save;
	char *name = strtok_r(line, " \t\n", &save);
	bool may_be_new = *name == '?';
	struct call *call = add_call(set, name + may_be_new);

	for (unsigned strict = 0; strict < 2; strict++)
		call->action[strict] = answer_of(strtok_r(NULL, " \t\n", &save));
	if (!may_be_new)
		check_name(call->name);
	else if (call->action[0] != ERRNO_ACTION(ENOSYS) || call->action[1] != ERRNO_ACTION(ENOSYS))
		die("%s:%u: a call that may be unknown must be answered with ENOSYS", at.file, at.line);
}

static void read_list(struct call_set *set, const char *folder, const char *name,
		      void (*parse)(struct call_set *, char *))
{
	char path[512], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.list", folder, name);
	f = fopen(path, "re");
	if (!f)
		die("%s: %s", path, strerror(errno));
	at.file = path;
	for (at.line = 1; fgets(line, sizeof(line), f); at.line++) {
		line[strcspn(line, "#\n")] = '\0';
		if (line[strspn(line, " \t")])
			parse(set, line);
	}
	fclose(f);
}

void group_load(struct call_set *set, const char *folder, const char *group)
{
	read_list(set, folder, group, parse_group_line);
}

void deny_load(struct call_set *set, const char *folder)
{
	read_list(set, folder, "deny", parse_deny_line);
}

/* families.list is read with the same reader; the family's groups are collected here. */
static struct {
	const char *wanted;
	char groups[MAX_GROUPS][24];
	unsigned n;
} family;

static void parse_family_line(struct call_set *set, char *line)
{
	char *save;

	(void)set;
	if (strcmp(strtok_r(line, " \t\n", &save), family.wanted) != 0)
		return;
	for (char *w = strtok_r(NULL, " \t\n", &save); w; w = strtok_r(NULL, " \t\n", &save)) {
		if (family.n == MAX_GROUPS || strlen(w) >= sizeof(family.groups[0]))
			die("%s:%u: no room for group '%s'", at.file, at.line, w);
		strcpy(family.groups[family.n++], w);
	}
}

void family_load(struct call_set *set, const char *folder, const char *name)
{
	family.wanted = name;
	family.n = 0;
	read_list(set, folder, "families", parse_family_line);
	if (family.n == 0)
		die("%s/families.list has no family '%s'", folder, name);
	for (unsigned i = 0; i < family.n; i++)
		group_load(set, folder, family.groups[i]);
}

/* Names that this architecture does not have resolve to something negative and are left out. */
static void apply(struct policy *p, const struct call_set *set, bool strict)
{
	for (unsigned i = 0; i < set->n; i++) {
		const struct call *call = &set->calls[i];
		int nr = seccomp_syscall_resolve_name_arch(p->arch->seccomp, call->name);

		if (nr < 0)
			continue;
		if (nr >= NR_LIMIT)
			die("'%s' has number %d on %s", call->name, nr, p->arch->name);
		p->by_nr[nr].action = call->action[strict];
		p->by_nr[nr].call = call->n > 0 ? call : NULL;
	}
}

static void start_policy(struct policy *p, const struct arch *arch, uint32_t known, uint32_t unknown)
{
	p->arch = arch;
	p->refusal = ERRNO_ACTION(EPERM);
	p->otherwise = unknown;
	for (int nr = 0; nr < NR_LIMIT; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(arch->seccomp, nr);

		p->by_nr[nr].action = name ? known : unknown;
		p->by_nr[nr].call = NULL;
		free(name);
	}
}

void policy_for_family(struct policy *p, const struct arch *arch, const struct call_set *allowed,
		       const struct call_set *denied, bool strict)
{
	for (unsigned i = 0; i < denied->n; i++)
		for (unsigned j = 0; j < allowed->n; j++)
			if (strcmp(denied->calls[i].name, allowed->calls[j].name) == 0)
				die("'%s' is both allowed and in deny.list", denied->calls[i].name);
	start_policy(p, arch, ERRNO_ACTION(EPERM), ERRNO_ACTION(ENOSYS));
	apply(p, denied, strict);
	apply(p, allowed, strict);
}

static int number_of(const struct policy *p, const struct call *call)
{
	int nr = seccomp_syscall_resolve_name_arch(p->arch->seccomp, call->name);

	return nr < NR_LIMIT ? nr : -1;
}

void policy_tell(struct policy *p, const struct call_set *denied, const struct call_set *told)
{
	const uint32_t tell = SECCOMP_RET_USER_NOTIF;

	for (unsigned i = 0; i < denied->n; i++) {
		int nr = number_of(p, &denied->calls[i]);

		if (nr >= 0 && denied->calls[i].action[1] == SECCOMP_RET_KILL_PROCESS &&
		    p->by_nr[nr].action != SECCOMP_RET_KILL_PROCESS)
			p->by_nr[nr].action = tell;
	}
	for (unsigned i = 0; i < told->n; i++) {
		int nr = number_of(p, &told->calls[i]);

		if (nr >= 0 && !p->by_nr[nr].call && p->by_nr[nr].action == SECCOMP_RET_ALLOW) {
			p->by_nr[nr].action = tell;
			p->by_nr[nr].call = told->calls[i].n > 0 ? &told->calls[i] : NULL;
		}
	}
	for (int nr = 0; nr < NR_LIMIT; nr++)
		if (!p->by_nr[nr].call && p->by_nr[nr].action == ERRNO_ACTION(EPERM))
			p->by_nr[nr].action = tell;
	p->refusal = tell;
}

/* The C library tries clone3, whose flags lie behind a pointer, before clone, whose flags are seen: where it may do the latter it is
 * told that the former is not there. */
static void leave_clone(struct policy *p, const struct arch *arch)
{
	int nr = seccomp_syscall_resolve_name_arch(arch->seccomp, "clone3");

	if (nr >= 0 && nr < NR_LIMIT)
		p->by_nr[nr].action = ERRNO_ACTION(ENOSYS);
}

void policy_for_own(struct policy *p, const struct arch *arch, const struct call_set *allowed)
{
	start_policy(p, arch, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_PROCESS);
	apply(p, allowed, false);
	for (unsigned i = 0; i < allowed->n; i++)
		if (strcmp(allowed->calls[i].name, "clone") == 0)
			leave_clone(p, arch);
}

void set_add(struct call_set *set, const struct call_set *more)
{
	for (unsigned i = 0; i < more->n; i++) {
		const struct call *one = &more->calls[i];
		struct call *there = find_call(set, one->name);

		if (!there)
			there = add_call(set, one->name);
		else if (there->n == 0 || there->n >= one->n)
			continue;
		*there = *one;
	}
}

void policy_for_keeper(struct policy *p, const struct arch *arch, const struct call_set *allowed)
{
	start_policy(p, arch, SECCOMP_RET_TRACE, SECCOMP_RET_TRACE);
	p->refusal = SECCOMP_RET_TRACE;
	apply(p, allowed, false);
}
