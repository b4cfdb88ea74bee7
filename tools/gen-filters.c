/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen-filters c FOLDER                       all programs, as the C source of seccomp_arch_filters
 * gen-filters docker FOLDER FAMILY [strict]  one policy, in the format of Docker's --security-opt seccomp=
 */
#include "gen-filters.h"

#include <errno.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const char *constant; /* of enum syscall_family */
} families[] = {
	{ "generic", "FAMILY_GENERIC" },
	{ "interpreter", "FAMILY_INTERPRETER" },
	{ "jit", "FAMILY_JIT" },
	{ "toolchain", "FAMILY_TOOLCHAIN" },
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* Processes of brig's own: a list is all they may do.  The names are members of struct seccomp_arch_filters. */
static const char *const own_lists[] = { "init", "inspect" };
#define OWN_LISTS (sizeof(own_lists) / sizeof(own_lists[0]))

static const struct arch archs[] = {
	{ "x86_64", SCMP_ARCH_X86_64, .x32 = true },
	{ "aarch64", SCMP_ARCH_AARCH64, .x32 = false },
};
#define ARCHS (sizeof(archs) / sizeof(archs[0]))

void die(const char *fmt, ...)
{
	va_list ap;

	fputs("gen-filters: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void write_program(const char *name, const struct policy *policy)
{
	static struct program prog;

	program_compile(&prog, policy);
	printf("static const struct sock_filter %s[] = {\n", name);
	for (unsigned i = prog.top; i < MAX_INSNS; i++)
		printf("\t{ 0x%02x, %u, %u, 0x%08x },\n", prog.insns[i].code, prog.insns[i].jt, prog.insns[i].jf,
		       prog.insns[i].k);
	printf("};\n\n");
}

static void write_programs(const struct arch *arch, const struct call_set *allowed, const struct call_set *denied,
			   const struct call_set own[OWN_LISTS])
{
	static struct policy policy;
	char name[64];

	for (unsigned f = 0; f < FAMILIES; f++)
		for (unsigned strict = 0; strict < 2; strict++) {
			snprintf(name, sizeof(name), "%s_%s%s", arch->name, families[f].name, strict ? "_strict" : "");
			policy_for_family(&policy, arch, &allowed[f], denied, strict);
			write_program(name, &policy);
		}
	for (unsigned i = 0; i < OWN_LISTS; i++) {
		snprintf(name, sizeof(name), "%s_%s", arch->name, own_lists[i]);
		policy_for_own(&policy, arch, &own[i]);
		write_program(name, &policy);
	}
}

static void write_table(void)
{
	printf("#define FILTER(name) { name, sizeof(name) / sizeof(name[0]) }\n\n");
	printf("const struct seccomp_arch_filters seccomp_arch_filters[] = {\n");
	for (unsigned a = 0; a < ARCHS; a++) {
		printf("\t{ .name = \"%s\", .audit_arch = 0x%08x, ", archs[a].name, archs[a].seccomp);
		for (unsigned i = 0; i < OWN_LISTS; i++)
			printf(".%s = FILTER(%s_%s), ", own_lists[i], archs[a].name, own_lists[i]);
		printf(".family = {\n");
		for (unsigned f = 0; f < FAMILIES; f++)
			printf("\t\t[%s] = { FILTER(%s_%s), FILTER(%s_%s_strict) },\n", families[f].constant,
			       archs[a].name, families[f].name, archs[a].name, families[f].name);
		printf("\t} },\n");
	}
	printf("};\nconst size_t seccomp_arch_filter_count = %zu;\n", ARCHS);
}

static void write_c(const char *folder)
{
	static struct call_set allowed[FAMILIES], denied, own[OWN_LISTS];

	for (unsigned f = 0; f < FAMILIES; f++)
		family_load(&allowed[f], folder, families[f].name);
	deny_load(&denied, folder);
	for (unsigned i = 0; i < OWN_LISTS; i++)
		group_load(&own[i], folder, own_lists[i]);
	printf("/* Made by gen-filters from data/syscalls: change those files, not this one. */\n"
	       "#include <linux/filter.h>\n\n#include \"sys/seccomp_tables.h\"\n\n");
	for (unsigned a = 0; a < ARCHS; a++)
		write_programs(&archs[a], allowed, &denied, own);
	write_table();
}

/* Docker's rules are conjunctions of comparisons, so a set becomes one rule per value, in every combination. */
static void write_docker_rules(const struct call *call, const struct alternative *a)
{
	unsigned pick[MAX_TERMS] = { 0 };
	unsigned t;

	do {
		printf(",\n  {\"names\": [\"%s\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": [", call->name);
		for (t = 0; t < a->n; t++) {
			const struct term *term = &a->terms[t];
			bool whole = term->kind == TERM_NULL;

			printf("%s{\"index\": %u, \"op\": \"%s\", \"value\": %u, \"valueTwo\": %u}", t ? ", " : "",
			       term->arg, whole ? "SCMP_CMP_EQ" : "SCMP_CMP_MASKED_EQ", whole ? 0 : term->mask,
			       term->kind == TERM_IN ? term->values[pick[t]] : 0);
		}
		printf("]}");
		for (t = 0; t < a->n; t++) {
			if (++pick[t] < a->terms[t].n)
				break;
			pick[t] = 0;
		}
	} while (t < a->n);
}

static void write_docker_denials(const struct call_set *denied, bool strict)
{
	for (unsigned i = 0; i < denied->n; i++) {
		const struct call *call = &denied->calls[i];
		uint32_t action = call->action[strict];

		if (action == SECCOMP_RET_KILL_PROCESS)
			printf(",\n  {\"names\": [\"%s\"], \"action\": \"SCMP_ACT_KILL_PROCESS\"}", call->name);
		else if (action != ERRNO_ACTION(EPERM))
			printf(",\n  {\"names\": [\"%s\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": %u}",
			       call->name, action & SECCOMP_RET_DATA);
	}
}

static void write_docker(const char *folder, const char *family, bool strict)
{
	static struct call_set allowed, denied;
	const char *comma = "";

	family_load(&allowed, folder, family);
	deny_load(&denied, folder);
	printf("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": %d,\n"
	       " \"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\", \"subArchitectures\": []},\n"
	       "  {\"architecture\": \"SCMP_ARCH_AARCH64\", \"subArchitectures\": []}],\n"
	       " \"syscalls\": [\n  {\"action\": \"SCMP_ACT_ALLOW\", \"names\": [",
	       EPERM);
	for (unsigned i = 0; i < allowed.n; i++)
		if (allowed.calls[i].n == 0) {
			printf("%s\"%s\"", comma, allowed.calls[i].name);
			comma = ", ";
		}
	printf("]}");
	for (unsigned i = 0; i < allowed.n; i++)
		for (unsigned a = 0; a < allowed.calls[i].n; a++)
			write_docker_rules(&allowed.calls[i], &allowed.calls[i].alternatives[a]);
	write_docker_denials(&denied, strict);
	printf("\n ]}\n");
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "c") == 0)
		write_c(argv[2]);
	else if ((argc == 4 || argc == 5) && strcmp(argv[1], "docker") == 0)
		write_docker(argv[2], argv[3], argc == 5 && strcmp(argv[4], "strict") == 0);
	else
		die("usage: gen-filters c FOLDER | gen-filters docker FOLDER FAMILY [strict]");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
