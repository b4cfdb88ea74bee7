/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen-filters c FOLDER                       all programs, as the C source of seccomp_arch_filters
 * gen-filters profiles FOLDER                all policies as Docker profiles, as the C source of docker_profile
 * gen-filters docker FOLDER FAMILY [strict]  one of these, in the format of Docker's --security-opt seccomp=
 *
 * A Docker profile is put around a whole container, so it allows container.list beyond the family's groups.
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
	{ "generic", "FAMILY_GENERIC" }, { "interpreter", "FAMILY_INTERPRETER" },
	{ "jit", "FAMILY_JIT" },         { "toolchain", "FAMILY_TOOLCHAIN" },
	{ "proxy", "FAMILY_PROXY" },     { "session", "FAMILY_SESSION" },
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* Processes of brig's own: a list is all they may do.  The names are members of struct seccomp_arch_filters. */
static const char *const own_lists[] = { "init", "inspect", "front", "recorder", "link" };
#define OWN_LISTS (sizeof(own_lists) / sizeof(own_lists[0]))
#define KEEPER    "keeper" /* one more, whose list is not all */

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

static const char *const profile_suffix[PROFILES] = { "", "_strict" };
static const char *const form_suffix[FORMS] = { "", "_tell" };

static void write_programs(const struct arch *arch, const struct call_set *allowed, const struct call_set *denied,
			   const struct call_set *told, const struct call_set own[OWN_LISTS],
			   const struct call_set *keeper)
{
	static struct policy policy;
	char name[64];

	for (unsigned i = 0; i < FAMILIES * PROFILES * FORMS; i++) {
		unsigned f = i / (PROFILES * FORMS), strict = i / FORMS % PROFILES, tells = i % FORMS;

		snprintf(name, sizeof(name), "%s_%s%s%s", arch->name, families[f].name, profile_suffix[strict],
			 form_suffix[tells]);
		policy_for_family(&policy, arch, &allowed[f], denied, strict);
		if (tells)
			policy_tell(&policy, denied, told);
		write_program(name, &policy);
	}
	for (unsigned i = 0; i < OWN_LISTS; i++) {
		snprintf(name, sizeof(name), "%s_%s", arch->name, own_lists[i]);
		policy_for_own(&policy, arch, &own[i]);
		write_program(name, &policy);
	}
	snprintf(name, sizeof(name), "%s_%s", arch->name, KEEPER);
	policy_for_keeper(&policy, arch, keeper);
	write_program(name, &policy);
}

static unsigned families_with_condition(const struct call_set *allowed, const char *name)
{
	unsigned bits = 0;

	for (unsigned f = 0; f < FAMILIES; f++)
		for (unsigned i = 0; i < allowed[f].n; i++)
			if (allowed[f].calls[i].n > 0 && strcmp(allowed[f].calls[i].name, name) == 0)
				bits |= 1u << f;
	return bits;
}

/* What can be said of a number: for messages about refused calls. */
static void write_calls(const struct arch *arch, const struct call_set *allowed)
{
	char *names[NR_LIMIT];
	size_t at = 1; /* 0 means none */

	printf("static const struct seccomp_call %s_calls[SECCOMP_CALLS] = {\n", arch->name);
	for (int nr = 0; nr < NR_LIMIT; nr++) {
		names[nr] = seccomp_syscall_resolve_num_arch(arch->seccomp, nr);
		if (!names[nr])
			continue;
		printf("\t[%d] = { %zu, 0x%x },\n", nr, at, families_with_condition(allowed, names[nr]));
		at += strlen(names[nr]) + 1;
	}
	if (at > UINT16_MAX)
		die("the names of all calls of %s are too long for their table", arch->name);
	printf("};\nstatic const char %s_names[] = \"\"", arch->name);
	for (int nr = 0; nr < NR_LIMIT; nr++) {
		if (names[nr])
			printf("\n\t\"\\0%s\"", names[nr]);
		free(names[nr]);
	}
	printf(";\n\n");
}

static void write_family(const struct arch *arch, unsigned f)
{
	printf("\t\t[%s] = {\n", families[f].constant);
	for (unsigned strict = 0; strict < PROFILES; strict++) {
		printf("\t\t\t{ ");
		for (unsigned tells = 0; tells < FORMS; tells++)
			printf("FILTER(%s_%s%s%s), ", arch->name, families[f].name, profile_suffix[strict],
			       form_suffix[tells]);
		printf("},\n");
	}
	printf("\t\t},\n");
}

static void write_table(void)
{
	printf("#define FILTER(name) { name, sizeof(name) / sizeof(name[0]) }\n\n");
	printf("const struct seccomp_arch_filters seccomp_arch_filters[] = {\n");
	for (unsigned a = 0; a < ARCHS; a++) {
		printf("\t{ .name = \"%s\", .audit_arch = 0x%08x, .call = %s_calls, .names = %s_names, ", archs[a].name,
		       archs[a].seccomp, archs[a].name, archs[a].name);
		for (unsigned i = 0; i < OWN_LISTS; i++)
			printf(".%s = FILTER(%s_%s), ", own_lists[i], archs[a].name, own_lists[i]);
		printf(".%s = FILTER(%s_%s), ", KEEPER, archs[a].name, KEEPER);
		printf(".family = {\n");
		for (unsigned f = 0; f < FAMILIES; f++)
			write_family(&archs[a], f);
		printf("\t} },\n");
	}
	printf("};\nconst size_t seccomp_arch_filter_count = %zu;\n", ARCHS);
}

static void write_c(const char *folder)
{
	static struct call_set allowed[FAMILIES], denied, told, own[OWN_LISTS], keeper;

	for (unsigned f = 0; f < FAMILIES; f++)
		family_load(&allowed[f], folder, families[f].name);
	deny_load(&denied, folder);
	group_load(&told, folder, "told");
	for (unsigned i = 0; i < OWN_LISTS; i++)
		group_load(&own[i], folder, own_lists[i]);
	group_load(&keeper, folder, KEEPER);
	for (unsigned f = 0; f < FAMILIES; f++)
		set_add(&keeper, &allowed[f]);
	printf("/* Made by gen-filters from data/syscalls: change those files, not this one. */\n"
	       "#include <linux/filter.h>\n\n#include \"sys/seccomp_tables.h\"\n\n");
	for (unsigned a = 0; a < ARCHS; a++) {
		write_programs(&archs[a], allowed, &denied, &told, own, &keeper);
		write_calls(&archs[a], allowed);
	}
	write_table();
}

/* Docker's rules are conjunctions of comparisons, so a set becomes one rule per value, in every combination. */
static void write_docker_rules(FILE *f, const struct call *call, const struct alternative *a)
{
	unsigned pick[MAX_TERMS] = { 0 };
	unsigned t;

	do {
		fprintf(f, ",\n{\"names\":[\"%s\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[", call->name);
		for (t = 0; t < a->n; t++) {
			const struct term *term = &a->terms[t];
			/* For a number that must not be, engines compare all 64 bits; the program's own filter does not. */
			static const char *const op[] = { [TERM_IN] = "MASKED_EQ",
							  [TERM_NOT] = "NE",
							  [TERM_NO_BITS] = "MASKED_EQ",
							  [TERM_NULL] = "EQ" };
			const uint32_t first[] = { [TERM_IN] = term->mask,
						   [TERM_NOT] = term->values[0],
						   [TERM_NO_BITS] = term->mask,
						   [TERM_NULL] = 0 };

			fprintf(f, "%s{\"index\":%u,\"op\":\"SCMP_CMP_%s\",\"value\":%u,\"valueTwo\":%u}", t ? "," : "",
				term->arg, op[term->kind], first[term->kind],
				term->kind == TERM_IN ? term->values[pick[t]] : 0);
		}
		fprintf(f, "]}");
		for (t = 0; t < a->n; t++) {
			if (++pick[t] < a->terms[t].n)
				break;
			pick[t] = 0;
		}
	} while (t < a->n);
}

static bool is_in(const struct call_set *set, const char *name)
{
	for (unsigned i = 0; i < set->n; i++)
		if (strcmp(set->calls[i].name, name) == 0)
			return true;
	return false;
}

/* All refused calls with one answer. */
static void write_docker_denial(FILE *f, const struct call_set *allowed, const struct call_set *denied, bool strict,
				uint32_t action)
{
	const char *comma = "";

	fprintf(f, ",\n{\"names\":[");
	for (unsigned i = 0; i < denied->n; i++) {
		const struct call *call = &denied->calls[i];

		if (call->action[strict] != action || is_in(allowed, call->name))
			continue;
		fprintf(f, "%s\"%s\"", comma, call->name);
		comma = ",";
	}
	if (action == SECCOMP_RET_KILL_PROCESS)
		fprintf(f, "],\"action\":\"SCMP_ACT_KILL_PROCESS\"}");
	else
		fprintf(f, "],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%u}", action & SECCOMP_RET_DATA);
}

static bool answers_with(const struct call_set *allowed, const struct call_set *denied, bool strict, uint32_t action)
{
	for (unsigned i = 0; i < denied->n; i++)
		if (denied->calls[i].action[strict] == action && !is_in(allowed, denied->calls[i].name))
			return true;
	return false;
}

static void write_docker_denials(FILE *f, const struct call_set *allowed, const struct call_set *denied, bool strict)
{
	/* EPERM is the profile's default. */
	static const uint32_t actions[] = { ERRNO_ACTION(ENOSYS), ERRNO_ACTION(EINVAL), ERRNO_ACTION(EOPNOTSUPP),
					    SECCOMP_RET_KILL_PROCESS };

	for (unsigned i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (answers_with(allowed, denied, strict, actions[i]))
			write_docker_denial(f, allowed, denied, strict, actions[i]);
}

static void write_docker(FILE *f, const char *folder, const char *family, bool strict)
{
	static struct call_set allowed, denied;
	const char *comma = "";

	allowed.n = denied.n = 0;
	family_load(&allowed, folder, family);
	group_load(&allowed, folder, "container");
	deny_load(&denied, folder);
	fprintf(f,
		"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":%d,"
		"\"archMap\":[{\"architecture\":\"SCMP_ARCH_X86_64\",\"subArchitectures\":[]},"
		"{\"architecture\":\"SCMP_ARCH_AARCH64\",\"subArchitectures\":[]}],"
		"\"syscalls\":[\n{\"action\":\"SCMP_ACT_ALLOW\",\"names\":[",
		EPERM);
	for (unsigned i = 0; i < allowed.n; i++)
		if (allowed.calls[i].n == 0) {
			fprintf(f, "%s\"%s\"", comma, allowed.calls[i].name);
			comma = ",";
		}
	fprintf(f, "]}");
	for (unsigned i = 0; i < allowed.n; i++)
		for (unsigned a = 0; a < allowed.calls[i].n; a++)
			write_docker_rules(f, &allowed.calls[i], &allowed.calls[i].alternatives[a]);
	write_docker_denials(f, &allowed, &denied, strict);
	fprintf(f, "]}\n");
}

static void write_literal(const char *text)
{
	printf("\t\t\"");
	for (; *text; text++)
		if (*text == '\n')
			printf("\"\n\t\t\"");
		else
			printf("%s%c", *text == '"' ? "\\" : "", *text);
	printf("\",\n");
}

static void write_profiles(const char *folder)
{
	printf("/* Made by gen-filters from data/syscalls: change those files, not this one. */\n"
	       "#include \"backend/docker/profile.h\"\n\nconst char *const docker_profile[FAMILY_COUNT][2] = {\n");
	for (unsigned i = 0; i < FAMILIES; i++) {
		printf("\t[%s] = {\n", families[i].constant);
		for (unsigned strict = 0; strict < 2; strict++) {
			char *text = NULL;
			size_t len = 0;
			FILE *f = open_memstream(&text, &len);

			if (!f)
				die("no memory");
			write_docker(f, folder, families[i].name, strict);
			fclose(f);
			write_literal(text);
			free(text);
		}
		printf("\t},\n");
	}
	printf("};\n");
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "c") == 0)
		write_c(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "profiles") == 0)
		write_profiles(argv[2]);
	else if ((argc == 4 || argc == 5) && strcmp(argv[1], "docker") == 0)
		write_docker(stdout, argv[2], argv[3], argc == 5 && strcmp(argv[4], "strict") == 0);
	else
		die("usage: gen-filters c|profiles FOLDER | gen-filters docker FOLDER FAMILY [strict]");
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
