/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler.  A program is written from its last instruction to its first: every jump goes forward, so its target
 * exists when the jump is written and its distance is known.  The shape is
 *
 *	load arch; not ours: kill
 *	load nr; a balanced tree of ">= start of range" tests over ranges of numbers with the same answer
 *	at the leaves: an answer, or the test of a call's arguments
 *
 * Kernels since 5.11 remember which numbers are allowed whatever their arguments and do not run the filter for those
 * at all, so the tree is balanced by count, not by how often a call is made.
 */
#include "gen-filters.h"

#include <stddef.h>

#define NR_OFFSET   offsetof(struct seccomp_data, nr)
#define ARCH_OFFSET offsetof(struct seccomp_data, arch)
/* Little-endian architectures only, see the arch table. */
#define ARG_LOW(i)     (offsetof(struct seccomp_data, args) + 8 * (i))
#define ARG_HIGH(i)    (ARG_LOW(i) + 4)
#define X32_START      0x40000000u
#define NEGATIVE_START 0x80000000u
/* A conditional jump skips 255 at most; leave room for the detours that the jump itself may need. */
#define REACH 250

struct range {
	uint32_t start;
	uint32_t action;
	const struct call *call;
};

static unsigned emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->top == 0)
		die("a filter needs more than %d instructions", MAX_INSNS);
	p->insns[--p->top] = (struct sock_filter){ code, jt, jf, k };
	return p->top;
}

/* An answer that the next jump can reach. */
static unsigned answer(struct program *p, uint32_t action)
{
	for (unsigned i = p->top; i < MAX_INSNS && i - p->top < REACH; i++)
		if (p->insns[i].code == (BPF_RET | BPF_K) && p->insns[i].k == action)
			return i;
	return emit(p, BPF_RET | BPF_K, 0, 0, action);
}

/* The target itself, or a detour to it that the next jump can reach. */
static unsigned within_reach(struct program *p, unsigned target)
{
	struct sock_filter there = p->insns[target];

	if (target - p->top < REACH)
		return target;
	if (there.code == (BPF_RET | BPF_K))
		return answer(p, there.k);
	return emit(p, BPF_JMP | BPF_JA, 0, 0, target - p->top);
}

static unsigned branch(struct program *p, uint16_t test, uint32_t k, unsigned yes, unsigned no)
{
	yes = within_reach(p, yes);
	no = within_reach(p, no);
	return emit(p, BPF_JMP | test | BPF_K, (uint8_t)(yes - p->top), (uint8_t)(no - p->top), k);
}

/* One of term->values, which are sorted: three or more in a row take two tests. */
static unsigned test_values(struct program *p, const struct term *term, unsigned yes, unsigned no)
{
	unsigned next = no;
	unsigned end = term->n;

	while (end > 0) {
		unsigned last = end - 1;
		unsigned first = last;
		unsigned after = next;

		while (first > 0 && term->values[first - 1] + 1 == term->values[first])
			first--;
		if (last - first < 2) {
			next = branch(p, BPF_JEQ, term->values[last], yes, after);
			end = last;
			continue;
		}
		/* everything is >= 0 */
		next = term->values[first] == 0 ? yes : branch(p, BPF_JGE, term->values[first], yes, after);
		next = branch(p, BPF_JGT, term->values[last], after, next);
		end = first;
	}
	return next;
}

/* A load is followed by what was written before it, so a test that ended elsewhere needs a jump. */
static unsigned load(struct program *p, size_t offset, unsigned next)
{
	if (next != p->top)
		emit(p, BPF_JMP | BPF_JA, 0, 0, next - p->top);
	return emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static unsigned test_term(struct program *p, const struct term *term, unsigned yes, unsigned no)
{
	switch (term->kind) {
	case TERM_NULL:
		yes = load(p, ARG_HIGH(term->arg), branch(p, BPF_JEQ, 0, yes, no));
		return load(p, ARG_LOW(term->arg), branch(p, BPF_JEQ, 0, yes, no));
	case TERM_NO_BITS:
		return load(p, ARG_LOW(term->arg), branch(p, BPF_JSET, term->mask, no, yes));
	case TERM_NOT:
		return load(p, ARG_LOW(term->arg), branch(p, BPF_JEQ, term->values[0], no, yes));
	case TERM_IN:
		break;
	}
	yes = test_values(p, term, yes, no);
	if (term->mask != UINT32_MAX) {
		if (yes != p->top)
			emit(p, BPF_JMP | BPF_JA, 0, 0, yes - p->top);
		yes = emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, term->mask);
	}
	return load(p, ARG_LOW(term->arg), yes);
}

static unsigned test_call(struct program *p, const struct call *call, uint32_t refusal)
{
	unsigned next = answer(p, refusal);

	for (unsigned i = call->n; i-- > 0;) {
		const struct alternative *a = &call->alternatives[i];
		unsigned yes = answer(p, SECCOMP_RET_ALLOW);

		for (unsigned t = a->n; t-- > 0;)
			yes = test_term(p, &a->terms[t], yes, next);
		next = yes;
	}
	return next;
}

static unsigned tree(struct program *p, const struct range *ranges, unsigned n, uint32_t refusal)
{
	unsigned half = n / 2;
	unsigned right, left;

	if (n == 1)
		return ranges->call ? test_call(p, ranges->call, refusal) : answer(p, ranges->action);
	right = tree(p, ranges + half, n - half, refusal);
	left = tree(p, ranges, half, refusal);
	return branch(p, BPF_JGE, ranges[half].start, right, left);
}

static unsigned add_range(struct range *ranges, unsigned n, struct range r)
{
	if (n > 0 && !ranges[n - 1].call && !r.call && ranges[n - 1].action == r.action)
		return n;
	ranges[n] = r;
	return n + 1;
}

/* x32 calls carry one bit more than their 64-bit twins.  Negative numbers carry it too but are no calls at all. */
static unsigned make_ranges(const struct policy *policy, struct range *ranges)
{
	unsigned n = 0;

	for (uint32_t nr = 0; nr < NR_LIMIT; nr++)
		n = add_range(ranges, n, (struct range){ nr, policy->by_nr[nr].action, policy->by_nr[nr].call });
	n = add_range(ranges, n, (struct range){ NR_LIMIT, policy->otherwise, NULL });
	if (policy->arch->x32) {
		n = add_range(ranges, n, (struct range){ X32_START, SECCOMP_RET_KILL_PROCESS, NULL });
		n = add_range(ranges, n, (struct range){ NEGATIVE_START, policy->otherwise, NULL });
	}
	return n;
}

void program_compile(struct program *prog, const struct policy *policy)
{
	static struct range ranges[NR_LIMIT + 3];
	unsigned root;

	prog->top = MAX_INSNS;
	root = load(prog, NR_OFFSET, tree(prog, ranges, make_ranges(policy, ranges), policy->refusal));
	root = branch(prog, BPF_JEQ, policy->arch->seccomp, root, answer(prog, SECCOMP_RET_KILL_PROCESS));
	load(prog, ARCH_OFFSET, root);
}
