/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs every compiled filter in a small interpreter of classic BPF: over every number of every architecture, over
 * corner values of every argument that a filter looks at, with and without garbage in the halves of the arguments
 * that the kernel ignores.  What to expect comes from three places that know nothing of the compiler: the lists (for
 * calls without a condition), the table of cases below (for conditions), and lists of calls written out here that no
 * edit of data/syscalls may let through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "sys/seccomp.h"
#include "sys/seccomp_tables.h"

#define NR_KNOWN_BELOW 1024
#define MAX_PROGRAM    512
#define ALLOW          SECCOMP_RET_ALLOW
#define KILL           SECCOMP_RET_KILL_PROCESS
#define ERR(e)         (SECCOMP_RET_ERRNO | (uint32_t)(e))
#define MALFORMED      0xdeadu /* no answer of a filter */
#define GARBAGE        0xfeedface00000000u

/* Both ways of each conditional jump, per program; index: arch, family or init, strict. */
enum { TAKEN = 1, NOT_TAKEN = 2 };
#define PROGRAMS_PER_ARCH (FAMILY_COUNT * 2 + 2)
static uint8_t coverage[4][PROGRAMS_PER_ARCH][MAX_PROGRAM], told_coverage[4][PROGRAMS_PER_ARCH][MAX_PROGRAM];
static uint64_t decisions;

struct subject {
	const struct seccomp_arch_filters *arch;
	struct seccomp_filter filter;
	struct seccomp_filter telling; /* n == 0: brig's own have no such form */
	unsigned family;               /* FAMILY_COUNT: brig's own; init, and where others are strict, inspect */
	bool strict;
	uint8_t *seen, *told_seen;
};

/* ---- the interpreter ---- */

static uint32_t load_word(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word = 0;

	assert_true(offset % 4 == 0 && offset + sizeof(word) <= sizeof(*data));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

static bool test_holds(uint16_t code, uint32_t a, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == k;
	case BPF_JGT:
		return a > k;
	case BPF_JGE:
		return a >= k;
	case BPF_JSET:
		return (a & k) != 0;
	default:
		fail_msg("instruction 0x%x is no test", code);
		return false;
	}
}

static uint32_t run_program(struct seccomp_filter filter, uint8_t *seen, const struct seccomp_data *data)
{
	uint32_t a = 0;

	decisions++;
	for (size_t pc = 0; pc < filter.n; pc++) {
		const struct sock_filter *in = &filter.insns[pc];
		bool yes;

		switch (in->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = load_word(data, in->k);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= in->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += in->k;
			break;
		case BPF_RET | BPF_K:
			return in->k;
		default:
			yes = test_holds(in->code, a, in->k);
			seen[pc] |= yes ? TAKEN : NOT_TAKEN;
			pc += yes ? in->jt : in->jf;
		}
	}
	return MALFORMED; /* ran off the end */
}

static void check_telling(const struct subject *s, const struct seccomp_data *data, uint32_t plain);

/* Whatever is asked of a family's filter is asked of its telling form as well, and of the library's own reader. */
static uint32_t interpret(const struct subject *s, const struct seccomp_data *data)
{
	uint32_t plain = run_program(s->filter, s->seen, data);

	assert_int_equal(seccomp_decide(s->filter, data), plain);
	if (s->telling.n > 0)
		check_telling(s, data, plain);
	return plain;
}

static uint32_t decide(const struct subject *s, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = s->arch->audit_arch, .instruction_pointer = 0x1234567890 };

	memcpy(data.args, args, sizeof(data.args));
	return interpret(s, &data);
}

/* ---- all programs ---- */

static struct subject subject_of(size_t arch, unsigned family, bool strict)
{
	struct subject s = { .arch = &seccomp_arch_filters[arch], .family = family, .strict = strict };

	if (family == FAMILY_COUNT)
		s.filter = strict ? s.arch->inspect : s.arch->init;
	else
		s.filter = s.arch->family[family][strict][0], s.telling = s.arch->family[family][strict][1];
	s.told_seen = told_coverage[arch][family * 2 + strict];
	s.seen = coverage[arch][family * 2 + strict];
	return s;
}

typedef void check_fn(const struct subject *);

static void for_programs(unsigned first, unsigned end, check_fn *check)
{
	for (size_t arch = 0; arch < seccomp_arch_filter_count; arch++)
		for (unsigned i = first; i < end; i++) {
			struct subject s = subject_of(arch, i / 2, i % 2);

			check(&s);
		}
}

static void for_each_family_program(check_fn *check)
{
	for_programs(0, FAMILY_COUNT * 2, check);
}

static void for_each_program(check_fn *check)
{
	for_programs(0, PROGRAMS_PER_ARCH, check);
}

static const char *label(const struct subject *s)
{
	static char text[64];

	if (s->family == FAMILY_COUNT)
		snprintf(text, sizeof(text), "%s %s", s->arch->name, s->strict ? "inspect" : "init");
	else
		snprintf(text, sizeof(text), "%s %s%s", s->arch->name, syscall_family_name[s->family],
			 s->strict ? " strict" : "");
	return text;
}

static void expect(const struct subject *s, const char *name, uint32_t nr, const uint64_t args[6], uint32_t want)
{
	uint32_t got = decide(s, nr, args);

	if (got != want)
		fail_msg("%s: %s (0x%x) with %#llx %#llx %#llx: 0x%08x instead of 0x%08x", label(s), name, nr,
			 (unsigned long long)args[0], (unsigned long long)args[1], (unsigned long long)args[2], got,
			 want);
}

/* ---- the lists, read once more ---- */

enum listed { UNLISTED, PLAIN, CONDITIONAL, DENIED };

struct entry {
	char name[40];
	unsigned groups; /* bit: group index; DENIED: 0 */
	unsigned plain;  /* of these, where it stands without a condition */
	enum listed how;
	uint32_t answer[2];
};

static const char *const groups[] = { "base", "files", "process", "events", "network",
				      "ipc",  "jit",   "signals", "pidfds", "session" };
static struct entry entries[512];
static size_t n_entries;
static unsigned family_groups[FAMILY_COUNT];

static struct entry *entry_of(const char *name)
{
	for (size_t i = 0; i < n_entries; i++)
		if (str_eq(entries[i].name, name))
			return &entries[i];
	return NULL;
}

static struct entry *entry_add(const char *name)
{
	struct entry *e = entry_of(name);

	if (!e) {
		assert_true(n_entries < ARRAY_LEN(entries));
		e = &entries[n_entries++];
		assert_true(str_copy(e->name, sizeof(e->name), name));
	}
	return e;
}

static unsigned group_bit(const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(groups); i++)
		if (str_eq(groups[i], name))
			return 1u << i;
	fail_msg("group '%s' is not known to this test", name);
	return 0;
}

static uint32_t answer_named(const char *word)
{
	static const struct {
		const char *name;
		uint32_t action;
	} known[] = { { "EPERM", ERR(EPERM) },
		      { "ENOSYS", ERR(ENOSYS) },
		      { "EINVAL", ERR(EINVAL) },
		      { "EOPNOTSUPP", ERR(EOPNOTSUPP) },
		      { "KILL", KILL } };

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_eq(known[i].name, word))
			return known[i].action;
	fail_msg("answer '%s' is not known to this test", word);
	return 0;
}

/* The words of each line; returns false at the end of the file. */
static bool next_line(FILE *f, char words[12][64], int *n)
{
	char line[512], *save;

	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = '\0';
		*n = 0;
		for (char *w = strtok_r(line, " \t", &save); w && *n < 12; w = strtok_r(NULL, " \t", &save))
			(void)str_copy(words[(*n)++], 64, w);
		if (*n > 0)
			return true;
	}
	return false;
}

static FILE *open_list(const char *name)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/data/syscalls/%s.list", root ? root : ".", name);
	f = fopen(path, "re");
	if (!f)
		fail_msg("%s: cannot be read (set TEST_SOURCE_ROOT)", path);
	return f;
}

static void read_group(const char *name)
{
	FILE *f = open_list(name);
	char words[12][64];
	int n;

	while (next_line(f, words, &n)) {
		struct entry *e = entry_add(words[0]);

		e->how = n > 1 ? CONDITIONAL : PLAIN;
		e->groups |= group_bit(name);
		e->plain |= n > 1 ? 0 : group_bit(name);
	}
	fclose(f);
}

static void read_denials(void)
{
	FILE *f = open_list("deny");
	char words[12][64];
	int n;

	while (next_line(f, words, &n)) {
		struct entry *e = entry_add(words[0] + (words[0][0] == '?'));

		assert_int_equal(n, 3);
		assert_int_equal(e->how, UNLISTED);
		e->how = DENIED;
		e->answer[0] = answer_named(words[1]);
		e->answer[1] = answer_named(words[2]);
	}
	fclose(f);
}

static void read_families(void)
{
	FILE *f = open_list("families");
	char words[12][64];
	int n;

	while (next_line(f, words, &n))
		for (unsigned family = 0; family < FAMILY_COUNT; family++)
			for (int i = 1; str_eq(words[0], syscall_family_name[family]) && i < n; i++)
				family_groups[family] |= group_bit(words[i]);
	fclose(f);
}

static int read_lists(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(groups); i++)
		read_group(groups[i]);
	read_denials();
	read_families();
	return 0;
}

/* ---- the form of a program ---- */

static size_t farthest_jump(const struct sock_filter *in)
{
	if (BPF_CLASS(in->code) != BPF_JMP)
		return 0;
	return BPF_OP(in->code) == BPF_JA ? in->k : max_u64(in->jt, in->jf);
}

static void check_form(const struct subject *s)
{
	assert_true(s->filter.n > 4 && s->filter.n <= MAX_PROGRAM);
	assert_int_equal(s->filter.insns[0].k, offsetof(struct seccomp_data, arch));
	assert_int_equal(s->filter.insns[s->filter.n - 1].code, BPF_RET | BPF_K);
	for (size_t pc = 0; pc < s->filter.n; pc++) {
		const struct sock_filter *in = &s->filter.insns[pc];
		size_t far = farthest_jump(in);

		assert_true(pc + far + 1 < s->filter.n || BPF_CLASS(in->code) == BPF_RET);
	}
}

#include "test_seccomp_telling.h"

/* ---- every number ---- */

static const uint64_t corner_args[][6] = {
	{ 0 },
	{ 1, 1, 1, 1, 1, 1 },
	{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
	{ INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX },
	{ 1ull << 32, 1ull << 32, 1ull << 32, 1ull << 32, 1ull << 32, 1ull << 32 },
	{ 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000 },
};

static void check_number(const struct subject *s, uint32_t nr)
{
	AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(s->arch->audit_arch, (int)nr);
	const struct entry *e = name ? entry_of(name) : NULL;
	uint32_t want = name ? ERR(EPERM) : ERR(ENOSYS);

	if (e && e->how == DENIED)
		want = e->answer[s->strict];
	else if (e && (e->plain & family_groups[s->family]))
		want = ALLOW;
	else if (e && (e->groups & family_groups[s->family]))
		return; /* see cases[] */
	for (size_t i = 0; i < ARRAY_LEN(corner_args); i++)
		expect(s, name ? name : "unknown", nr, corner_args[i], want);
}

static void check_numbers(const struct subject *s)
{
	for (uint32_t nr = 0; nr < NR_KNOWN_BELOW; nr++)
		check_number(s, nr);
}

static void every_number_has_the_listed_answer(void **state)
{
	(void)state;
	for_each_family_program(check_numbers);
}

static void check_unknown_numbers(const struct subject *s)
{
	static const uint32_t numbers[] = { NR_KNOWN_BELOW, 4096,       65536,      0x3fffffff,
					    0x80000000,     0xc0000000, 0xfffffffe, 0xffffffff };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		for (size_t c = 0; c < ARRAY_LEN(corner_args); c++)
			expect(s, "unknown", numbers[i], corner_args[c], ERR(ENOSYS));
}

static void unknown_numbers_do_not_exist(void **state)
{
	(void)state;
	for_each_family_program(check_unknown_numbers);
}

static void check_foreign(const struct subject *s)
{
	static const uint32_t foreign[] = { 0,
					    AUDIT_ARCH_I386,
					    AUDIT_ARCH_ARM,
					    AUDIT_ARCH_PPC64LE,
					    AUDIT_ARCH_RISCV64,
					    AUDIT_ARCH_S390X,
					    AUDIT_ARCH_X86_64,
					    AUDIT_ARCH_AARCH64,
					    UINT32_MAX };

	for (size_t i = 0; i < ARRAY_LEN(foreign); i++)
		for (int nr = 0; foreign[i] != s->arch->audit_arch && nr < NR_KNOWN_BELOW; nr++) {
			struct seccomp_data data = { .nr = nr, .arch = foreign[i] };

			assert_int_equal(interpret(s, &data), KILL);
		}
}

static void foreign_architectures_are_killed(void **state)
{
	(void)state;
	for_each_program(check_foreign);
}

static void check_x32(const struct subject *s)
{
	for (uint32_t nr = 0; s->arch->audit_arch == AUDIT_ARCH_X86_64 && nr < NR_KNOWN_BELOW; nr++) {
		expect(s, "x32", 0x40000000 | nr, corner_args[nr % ARRAY_LEN(corner_args)], KILL);
		expect(s, "x32", 0x7ffffc00 | nr, corner_args[nr % ARRAY_LEN(corner_args)], KILL);
	}
}

static void x32_numbers_are_killed(void **state)
{
	(void)state;
	for_each_program(check_x32);
}

/* ---- conditions ---- */

#include "test_seccomp_cases.h"

static bool call_is_in_family(const struct subject *s, const char *name)
{
	const struct entry *e = entry_of(name);

	return e && (e->groups & family_groups[s->family]);
}

static void check_cases(const struct subject *s)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int nr = seccomp_syscall_resolve_name_arch(s->arch->audit_arch, cases[i].name);
		bool listed = call_is_in_family(s, cases[i].name) &&
			      (!cases[i].group || (group_bit(cases[i].group) & family_groups[s->family]));

		assert_int_not_equal(nr, __NR_SCMP_ERROR);
		if (nr >= 0)
			expect(s, cases[i].name, (uint32_t)nr, cases[i].args, listed ? cases[i].want : ERR(EPERM));
	}
}

static void conditions_hold_at_their_corners(void **state)
{
	(void)state;
	for_each_family_program(check_cases);
}

static void check_upper_halves(const struct subject *s)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int nr = seccomp_syscall_resolve_name_arch(s->arch->audit_arch, cases[i].name);
		uint64_t args[6];
		uint32_t clean;

		if (nr < 0)
			continue;
		clean = decide(s, (uint32_t)nr, cases[i].args);
		for (unsigned dirty = 1; dirty < 8; dirty++) {
			for (unsigned a = 0; a < 6; a++)
				args[a] = cases[i].args[a] | ((dirty >> a & 1) && a != cases[i].pointer ? GARBAGE : 0);
			expect(s, cases[i].name, (uint32_t)nr, args, clean);
		}
	}
}

static void upper_halves_change_nothing(void **state)
{
	(void)state;
	for_each_family_program(check_upper_halves);
}

/* Of a case that is allowed with one more group: some family has the call without it. */
static bool is_refused_somewhere(const struct entry *e, const struct call_case *c)
{
	for (unsigned f = 0; f < FAMILY_COUNT && c->group; f++)
		if ((e->groups & family_groups[f]) && !(group_bit(c->group) & family_groups[f]))
			return true;
	return false;
}

static void every_condition_has_cases_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < n_entries; i++) {
		bool is_conditional = entries[i].groups != entries[i].plain;
		unsigned allowed = 0, refused = 0;

		for (size_t c = 0; is_conditional && c < ARRAY_LEN(cases); c++)
			if (str_eq(cases[c].name, entries[i].name)) {
				*(cases[c].want == ALLOW ? &allowed : &refused) += 1;
				refused += cases[c].want == ALLOW && is_refused_somewhere(&entries[i], &cases[c]);
			}
		if (is_conditional && (allowed == 0 || refused == 0))
			fail_msg("%s: %u cases that are allowed, %u that are refused", entries[i].name, allowed,
				 refused);
	}
}

/* Puts every constant of the program, and its neighbours, into every argument of every case. */
static void sweep_argument(const struct subject *s, uint32_t nr, const uint64_t base[6], unsigned arg)
{
	uint64_t args[6];

	memcpy(args, base, sizeof(args));
	for (size_t pc = 0; pc < s->filter.n; pc++)
		for (int d = -1; d <= 1; d++) {
			uint32_t got;

			args[arg] = s->filter.insns[pc].k + (uint32_t)d;
			got = decide(s, nr, args);
			if (got != ALLOW && got != ERR(EPERM))
				fail_msg("%s: conditional call %u answers 0x%08x", label(s), nr, got);
		}
}

static void sweep_cases(const struct subject *s)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int nr = seccomp_syscall_resolve_name_arch(s->arch->audit_arch, cases[i].name);

		for (unsigned arg = 0; nr >= 0 && arg < 3; arg++)
			sweep_argument(s, (uint32_t)nr, cases[i].args, arg);
	}
}

static void conditional_calls_are_allowed_or_eperm(void **state)
{
	(void)state;
	for_each_family_program(sweep_cases);
}

/* ---- written out, so that no edit of the lists can undo it ---- */

static void check_dangerous_calls(const struct subject *s)
{
	for (size_t i = 0; i < ARRAY_LEN(never_allowed); i++)
		for (size_t c = 0; c < ARRAY_LEN(corner_args); c++) {
			int nr = seccomp_syscall_resolve_name_arch(s->arch->audit_arch, never_allowed[i]);

			assert_int_not_equal(nr, __NR_SCMP_ERROR);
			if (nr >= 0 && decide(s, (uint32_t)nr, corner_args[c]) == ALLOW)
				fail_msg("%s allows %s", label(s), never_allowed[i]);
		}
}

static void dangerous_calls_are_never_allowed(void **state)
{
	(void)state;
	for_each_family_program(check_dangerous_calls);
}

/* A strict profile may answer harder, never softer. */
static void strict_allows_the_same_calls(void **state)
{
	(void)state;
	for (size_t arch = 0; arch < seccomp_arch_filter_count; arch++)
		for (unsigned family = 0; family < FAMILY_COUNT; family++)
			for (uint32_t nr = 0; nr < NR_KNOWN_BELOW; nr++) {
				struct subject lax = subject_of(arch, family, false),
					       strict = subject_of(arch, family, true);
				uint32_t a = decide(&lax, nr, corner_args[0]), b = decide(&strict, nr, corner_args[0]);

				if (a != b && (a == ALLOW || b != KILL))
					fail_msg("%s: %u: 0x%08x, strict 0x%08x", label(&lax), nr, a, b);
			}
}

static void init_has_exactly_its_calls(void **state)
{
	static const char *const names[] = { "read",       "write",           "sendmsg",         "recvmsg",
					     "close",      "wait4",           "waitid",          "exit",
					     "exit_group", "rt_sigreturn",    "rt_sigprocmask",  "kill",
					     "poll",       "ppoll",           "restart_syscall", "clock_gettime",
					     "nanosleep",  "clock_nanosleep", "getpid",          "setitimer" };

	(void)state;
	for (size_t arch = 0; arch < seccomp_arch_filter_count; arch++) {
		struct subject s = subject_of(arch, FAMILY_COUNT, false);

		for (uint32_t nr = 0; nr < 2 * NR_KNOWN_BELOW; nr++) {
			AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(s.arch->audit_arch, (int)nr);
			bool wanted = false;

			for (size_t i = 0; name && i < ARRAY_LEN(names); i++)
				wanted |= str_eq(name, names[i]);
			expect(&s, name ? name : "unknown", nr, corner_args[nr % ARRAY_LEN(corner_args)],
			       wanted ? ALLOW : KILL);
		}
		expect(&s, "unknown", UINT32_MAX, corner_args[0], KILL);
	}
}

/* Memory that is not executable, an answer, and the end. */
static void inspect_has_exactly_its_calls(void **state)
{
	static const char *const always[] = {
		"read",  "write",         "brk",     "munmap",    "mremap", "madvise",
		"futex", "clock_gettime", "sysinfo", "getrandom", "exit",   "exit_group"
	};
	static const char *const unless_exec[] = { "mmap", "mprotect" };
	static const uint64_t plain[6] = { 0, 4096, 3, 0x22, UINT64_MAX, 0 },
			      exec[6] = { 0, 4096, GARBAGE | 7, 0x22, UINT64_MAX, 0 };

	(void)state;
	for (size_t arch = 0; arch < seccomp_arch_filter_count; arch++) {
		struct subject s = subject_of(arch, FAMILY_COUNT, true);

		for (uint32_t nr = 0; nr < 2 * NR_KNOWN_BELOW; nr++) {
			AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(s.arch->audit_arch, (int)nr);
			bool wanted = false, conditional = false;

			for (size_t i = 0; name && i < ARRAY_LEN(always); i++)
				wanted |= str_eq(name, always[i]);
			for (size_t i = 0; name && i < ARRAY_LEN(unless_exec); i++)
				conditional |= str_eq(name, unless_exec[i]);
			expect(&s, name ? name : "unknown", nr, plain, wanted || conditional ? ALLOW : KILL);
			expect(&s, name ? name : "unknown", nr, exec, wanted ? ALLOW : conditional ? ERR(EPERM) : KILL);
		}
		expect(&s, "unknown", UINT32_MAX, plain, KILL);
	}
}

#include "test_seccomp_keeper.h"

/* ---- the programs themselves ---- */

static void programs_are_well_formed(void **state)
{
	(void)state;
	for_each_program(check_form);
}

static void own_architecture_is_chosen(void **state)
{
	(void)state;
	for (unsigned family = 0; family < FAMILY_COUNT; family++) {
		struct seccomp_filter f = seccomp_filter_for(family, false), strict = seccomp_filter_for(family, true);

		assert_true(f.n > 0 && strict.n > 0 && f.insns != strict.insns);
		assert_int_equal(f.insns[1].k, seccomp_arch_native());
	}
	assert_int_equal(seccomp_filter_init().insns[1].k, seccomp_arch_native());
	assert_int_equal(seccomp_filter_inspect().insns[1].k, seccomp_arch_native());
	assert_ptr_not_equal(seccomp_filter_inspect().insns, seccomp_filter_init().insns);
	assert_int_equal(seccomp_filter_for(FAMILY_COUNT, false).n, 0);
	assert_int_equal(seccomp_filter_telling(FAMILY_COUNT, false).n, 0);
	assert_int_equal(seccomp_filter_telling(FAMILY_JIT, true).insns[1].k, seccomp_arch_native());
	assert_int_equal(seccomp_install((struct seccomp_filter){ .n = 0 }), -EOPNOTSUPP);
}

static unsigned branch_ways, branch_ways_taken;

static void check_branches(const struct subject *s, struct seccomp_filter filter, const uint8_t *seen, const char *form)
{
	unsigned ways = 0, taken = 0;

	for (size_t pc = 0; pc < filter.n; pc++) {
		uint16_t code = filter.insns[pc].code;

		if (BPF_CLASS(code) != BPF_JMP || BPF_OP(code) == BPF_JA)
			continue;
		ways += 2;
		taken += !!(seen[pc] & TAKEN) + !!(seen[pc] & NOT_TAKEN);
	}
	print_message("# %s%s: %u instructions, %u of %u branches\n", label(s), form, filter.n, taken, ways);
	if (taken * 100 < ways * 95)
		fail_msg("%s: %u of %u branches covered", label(s), taken, ways);
	branch_ways += ways;
	branch_ways_taken += taken;
}

static void check_coverage(const struct subject *s)
{
	check_branches(s, s->filter, s->seen, "");
	if (s->telling.n > 0)
		check_branches(s, s->telling, s->told_seen, ", telling");
}

/* Must run last: it judges what the others have done. */
static void branches_are_covered(void **state)
{
	(void)state;
	for_each_program(check_coverage);
	print_message("# %u of %u branches, %llu decisions\n", branch_ways_taken, branch_ways,
		      (unsigned long long)decisions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_well_formed),
		cmocka_unit_test(telling_programs_are_well_formed),
		cmocka_unit_test(every_number_has_its_name),
		cmocka_unit_test(calls_of_this_machine_have_names),
		cmocka_unit_test(a_foreign_program_kills),
		cmocka_unit_test(own_architecture_is_chosen),
		cmocka_unit_test(every_number_has_the_listed_answer),
		cmocka_unit_test(unknown_numbers_do_not_exist),
		cmocka_unit_test(foreign_architectures_are_killed),
		cmocka_unit_test(x32_numbers_are_killed),
		cmocka_unit_test(every_condition_has_cases_both_ways),
		cmocka_unit_test(conditions_hold_at_their_corners),
		cmocka_unit_test(upper_halves_change_nothing),
		cmocka_unit_test(conditional_calls_are_allowed_or_eperm),
		cmocka_unit_test(dangerous_calls_are_never_allowed),
		cmocka_unit_test(strict_allows_the_same_calls),
		cmocka_unit_test(init_has_exactly_its_calls),
		cmocka_unit_test(inspect_has_exactly_its_calls),
		cmocka_unit_test(keeper_refuses_nothing_of_a_program),
		cmocka_unit_test(keeper_refuses_in_nobodys_way),
		cmocka_unit_test(branches_are_covered),
	};

	return cmocka_run_group_tests(tests, read_lists, NULL);
}
