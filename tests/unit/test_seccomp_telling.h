/* SPDX-License-Identifier: Apache-2.0 */
/* The part of test_seccomp.c about filters in the form that tells of refused calls. */
static bool is_connect(const struct subject *s, int nr)
{
	return nr == (s->arch->audit_arch == AUDIT_ARCH_X86_64 ? 42 : 203);
}

/*
 * The same answer, or word to the supervisor: of every refusal with EPERM, of what the strict profile would kill for,
 * and of connect().  Never of anything else, so that what libraries probe costs no detour, and never an allowance
 * of something that the plain form refuses.
 */
static void check_telling(const struct subject *s, const struct seccomp_data *data, uint32_t plain)
{
	uint32_t told = run_program(s->telling, s->told_seen, data);
	const struct entry *e = NULL;
	bool wanted;

	if (plain == ERR(EPERM) ? told == SECCOMP_RET_USER_NOTIF
				: told == plain && plain == ALLOW && !is_connect(s, data->nr))
		return; /* the common cases need no name */
	if (data->nr >= 0 && data->nr < SECCOMP_CALLS && s->arch->call[data->nr].name)
		e = entry_of(s->arch->names + s->arch->call[data->nr].name);
	wanted = plain == ERR(EPERM) || (plain == ALLOW && e && str_eq(e->name, "connect")) ||
		 ((plain & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && e && e->how == DENIED &&
		  e->answer[1] == KILL);
	if (told != (wanted ? SECCOMP_RET_USER_NOTIF : plain))
		fail_msg("%s, telling: %s (0x%x): 0x%08x where the plain form says 0x%08x", label(s), e ? e->name : "?",
			 (unsigned)data->nr, told, plain);
}

static void check_telling_form(const struct subject *s)
{
	struct subject telling = *s;

	telling.filter = s->telling;
	check_form(&telling);
}

static void telling_programs_are_well_formed(void **state)
{
	(void)state;
	for_each_family_program(check_telling_form);
}

static void every_number_has_its_name(void **state)
{
	(void)state;
	for (size_t arch = 0; arch < seccomp_arch_filter_count; arch++)
		for (int nr = 0; nr < SECCOMP_CALLS; nr++) {
			const struct seccomp_arch_filters *a = &seccomp_arch_filters[arch];
			AUTO_FREE char *name = seccomp_syscall_resolve_num_arch(a->audit_arch, nr);
			const struct entry *e = name ? entry_of(name) : NULL;

			assert_true((name == NULL) == (a->call[nr].name == 0));
			if (name)
				assert_string_equal(a->names + a->call[nr].name, name);
			for (unsigned f = 0; f < FAMILY_COUNT; f++)
				assert_int_equal(a->call[nr].partly >> f & 1,
						 e && (e->groups & family_groups[f]) != 0 &&
							 (e->plain & family_groups[f]) == 0);
		}
}

static void calls_of_this_machine_have_names(void **state)
{
	(void)state;
	assert_string_equal(seccomp_call_name(SYS_ptrace), "ptrace");
	assert_null(seccomp_call_name(-1));
	assert_null(seccomp_call_name(SECCOMP_CALLS));
	assert_true(seccomp_call_is_partly_allowed(FAMILY_GENERIC, SYS_prctl));
	assert_false(seccomp_call_is_partly_allowed(FAMILY_GENERIC, SYS_ptrace));
	assert_false(seccomp_call_is_partly_allowed(FAMILY_TOOLCHAIN, SYS_setsockopt));
	assert_false(seccomp_call_is_partly_allowed(FAMILY_GENERIC, -1));
}

/* A filter that nobody checked must not turn a refusal into an allowance. */
static void a_foreign_program_kills(void **state)
{
	static const struct sock_filter foreign[] = { BPF_STMT(BPF_LD | BPF_IMM, 0),
						      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	static const struct sock_filter far[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data) - 3),
						  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	const struct seccomp_data data = { .nr = 0 };

	(void)state;
	assert_int_equal(seccomp_decide((struct seccomp_filter){ foreign, 2 }, &data), KILL);
	assert_int_equal(seccomp_decide((struct seccomp_filter){ far, 2 }, &data), KILL);
	assert_int_equal(seccomp_decide((struct seccomp_filter){ .n = 0 }, &data), KILL);
}
