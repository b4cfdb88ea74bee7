/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's filter, which its cells have behind their own: a part of test_seccomp.c. */
#ifndef TEST_SECCOMP_KEEPER_H
#define TEST_SECCOMP_KEEPER_H

static uint32_t ask_keeper(const struct seccomp_arch_filters *arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch->audit_arch };

	memcpy(data.args, args, sizeof(data.args));
	return seccomp_decide(arch->keeper, &data);
}

/* Whatever some program's filter lets through. */
static void keeper_refuses_nothing_of_a_program(void **state)
{
	(void)state;
	for (size_t i = 0; i < seccomp_arch_filter_count * FAMILY_COUNT; i++) {
		struct subject s = subject_of(i / FAMILY_COUNT, (unsigned)(i % FAMILY_COUNT), false);

		for (uint32_t nr = 0; nr < NR_KNOWN_BELOW; nr++)
			for (size_t a = 0; a < ARRAY_LEN(corner_args); a++)
				if (decide(&s, nr, corner_args[a]) == ALLOW)
					assert_int_equal(ask_keeper(s.arch, nr, corner_args[a]), ALLOW);
		for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
			int nr = seccomp_syscall_resolve_name_arch(s.arch->audit_arch, cases[c].name);

			if (nr >= 0 && decide(&s, (uint32_t)nr, cases[c].args) == ALLOW)
				assert_int_equal(ask_keeper(s.arch, (uint32_t)nr, cases[c].args), ALLOW);
		}
	}
}

/* Its refusal gives way to any of theirs: only SECCOMP_RET_LOG and SECCOMP_RET_ALLOW are weaker. */
static void keeper_refuses_in_nobodys_way(void **state)
{
	static const char *const refused[] = { "ptrace",
					       "process_vm_writev",
					       "process_madvise",
					       "bpf",
					       "perf_event_open",
					       "userfaultfd",
					       "io_uring_setup",
					       "init_module",
					       "finit_module",
					       "delete_module",
					       "kexec_load",
					       "kexec_file_load",
					       "open_by_handle_at",
					       "name_to_handle_at",
					       "reboot",
					       "swapon",
					       "quotactl",
					       "iopl",
					       "clock_settime",
					       "settimeofday",
					       "acct",
					       "chroot",
					       "add_key",
					       "kcmp",
					       "pidfd_getfd",
					       "syslog" };
	static const uint64_t raw_socket[6] = { 2, 3, 1 }, packet_socket[6] = { 17, 3, 3 }, read_key[6] = { 11 };

	(void)state;
	for (size_t a = 0; a < seccomp_arch_filter_count; a++) {
		const struct seccomp_arch_filters *arch = &seccomp_arch_filters[a];
		int sock = seccomp_syscall_resolve_name_arch(arch->audit_arch, "socket");
		int key = seccomp_syscall_resolve_name_arch(arch->audit_arch, "keyctl");

		assert_true(arch->keeper.n > 0);
		for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
			int nr = seccomp_syscall_resolve_name_arch(arch->audit_arch, refused[i]);

			if (nr >= 0 && ask_keeper(arch, (uint32_t)nr, corner_args[0]) != SECCOMP_RET_TRACE)
				fail_msg("%s: %s is let through", arch->name, refused[i]);
		}
		assert_int_equal(ask_keeper(arch, (uint32_t)sock, raw_socket), SECCOMP_RET_TRACE);
		assert_int_equal(ask_keeper(arch, (uint32_t)sock, packet_socket), SECCOMP_RET_TRACE);
		assert_int_equal(ask_keeper(arch, (uint32_t)key, read_key), SECCOMP_RET_TRACE);
		assert_int_equal(ask_keeper(arch, 1023, corner_args[0]), SECCOMP_RET_TRACE);
	}
}

#endif
