/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional calls at their corners: what test_seccomp.c expects, written by hand with the kernel's numbers so that a
 * mistake in the generator's names shows.  A case whose group the family does not have is refused.
 */
#ifndef TEST_SECCOMP_CASES_H
#define TEST_SECCOMP_CASES_H

#define NO_POINTER 7

struct call_case {
	const char *name;
	uint64_t args[6];
	uint32_t want;
	const char *group; /* needed besides the call itself, or NULL */
	unsigned pointer;  /* argument whose 64 bits all count */
};

#define YES(name, ...)                                         \
	{                                                      \
		name, { __VA_ARGS__ }, ALLOW, NULL, NO_POINTER \
	}
/* Not in a session, where 2 is the steward. */
#define NOT_STEWARD(group, name, ...)                           \
	{                                                       \
		name, { __VA_ARGS__ }, ALLOW, group, NO_POINTER \
	}
#define NO(name, ...)                                               \
	{                                                           \
		name, { __VA_ARGS__ }, ERR(EPERM), NULL, NO_POINTER \
	}

static const struct call_case cases[] = {
	/* clone: fork, vfork, pthread_create, Go thread, with pidfd; then each namespace and the others */
	YES("clone", 0x01200011),
	YES("clone", 0x00004111),
	YES("clone", 0x003d0f00),
	YES("clone", 0x00050f00),
	YES("clone", 0x01201011),
	YES("clone", 17),
	YES("clone", 0),
	NO("clone", 0x00020000 | 17), /* NEWNS */
	NO("clone", 0x02000000 | 17), /* NEWCGROUP */
	NO("clone", 0x04000000 | 17), /* NEWUTS */
	NO("clone", 0x08000000 | 17), /* NEWIPC */
	NO("clone", 0x10000000 | 17), /* NEWUSER */
	NO("clone", 0x20000000 | 17), /* NEWPID */
	NO("clone", 0x40000000 | 17), /* NEWNET */
	NO("clone", 0x00000080 | 17), /* NEWTIME */
	NO("clone", 0x00002000 | 17), /* PTRACE */
	NO("clone", 0x00008000 | 17), /* PARENT */
	NO("clone", 0x7e020000 | 17),
	NO("clone", 0xffffffff),

	/* socket: family, type, protocol; 0x80000 CLOEXEC, 0x800 NONBLOCK */
	YES("socket", 1, 1, 0),
	YES("socket", 1, 2 | 0x80000, 0),
	YES("socket", 1, 5 | 0x80800, 0),
	YES("socket", 1, 1, 1),
	NO("socket", 1, 3, 0),
	NO("socket", 1, 1, 2),
	YES("socket", 2, 1, 0),
	YES("socket", 2, 1 | 0x80800, 6),
	YES("socket", 2, 2 | 0x80000, 17),
	YES("socket", 10, 1, 6),
	YES("socket", 10, 2 | 0x800, 0),
	NO("socket", 2, 3, 0),   /* raw */
	NO("socket", 2, 3, 1),   /* raw ICMP */
	NO("socket", 2, 2, 1),   /* ping */
	NO("socket", 10, 2, 58), /* ping6 */
	NO("socket", 2, 1, 17),  /* mixed up */
	NO("socket", 2, 2, 6),   /* mixed up */
	NO("socket", 2, 1, 132), /* SCTP */
	NO("socket", 2, 5, 132), /* SCTP */
	NO("socket", 2, 6, 33),  /* DCCP */
	NO("socket", 2, 2, 136), /* UDP-Lite */
	NO("socket", 2, 1, 256), /* SMC */
	NO("socket", 2, 1, 262), /* MPTCP */
	NO("socket", 2, 1 | 0x100000, 0),
	NO("socket", 2, 10, 0),
	NO("socket", 2, 0xffffffff, 0),
	YES("socket", 16, 3 | 0x80000, 0), /* netlink route */
	YES("socket", 16, 2, 0),
	NO("socket", 16, 1, 0),
	NO("socket", 16, 3, 9),  /* audit */
	NO("socket", 16, 3, 12), /* netfilter */
	NO("socket", 16, 3, 15), /* uevent */
	NO("socket", 16, 3, 16), /* generic */
	NO("socket", 0, 1, 0),
	NO("socket", 3, 2, 0),    /* AX25 */
	NO("socket", 15, 3, 2),   /* KEY */
	NO("socket", 17, 3, 768), /* PACKET */
	NO("socket", 29, 3, 1),   /* CAN */
	NO("socket", 38, 5, 0),   /* ALG */
	NO("socket", 40, 1, 0),   /* VSOCK */
	NO("socket", 43, 1, 0),   /* SMC */
	NO("socket", 44, 3, 0),   /* XDP */
	NO("socket", 45, 1, 0),
	NO("socket", 0xffffffff, 1, 0),
	YES("socketpair", 1, 1, 0),
	YES("socketpair", 1, 1 | 0x80800, 0),
	YES("socketpair", 1, 2, 0),
	YES("socketpair", 1, 5, 1),
	NO("socketpair", 1, 3, 0),
	NO("socketpair", 1, 1, 6),
	NO("socketpair", 2, 1, 0),
	NO("socketpair", 30, 1, 0), /* TIPC */
	NO("socketpair", 0, 0, 0),

	/* setsockopt: descriptor, level, option */
	YES("setsockopt", 3, 1, 2),  /* SO_REUSEADDR */
	YES("setsockopt", 3, 1, 9),  /* SO_KEEPALIVE */
	YES("setsockopt", 3, 1, 15), /* SO_REUSEPORT */
	YES("setsockopt", 3, 1, 49), /* SO_INCOMING_CPU */
	NO("setsockopt", 3, 1, 26),  /* SO_ATTACH_FILTER */
	NO("setsockopt", 3, 1, 50),  /* SO_ATTACH_BPF */
	NO("setsockopt", 3, 1, 51),  /* SO_ATTACH_REUSEPORT_CBPF */
	NO("setsockopt", 3, 1, 52),  /* SO_ATTACH_REUSEPORT_EBPF */
	NO("setsockopt", 3, 1, 60),  /* SO_ZEROCOPY */
	NO("setsockopt", 3, 1, 0xffffffff),
	YES("setsockopt", 3, 6, 1),   /* TCP_NODELAY */
	YES("setsockopt", 3, 6, 4),   /* TCP_KEEPIDLE */
	YES("setsockopt", 3, 6, 18),  /* TCP_USER_TIMEOUT */
	YES("setsockopt", 3, 6, 30),  /* TCP_FASTOPEN_CONNECT */
	NO("setsockopt", 3, 6, 13),   /* TCP_CONGESTION */
	NO("setsockopt", 3, 6, 19),   /* TCP_REPAIR */
	NO("setsockopt", 3, 6, 31),   /* TCP_ULP */
	NO("setsockopt", 3, 6, 38),   /* TCP_AO_ADD_KEY */
	YES("setsockopt", 3, 0, 1),   /* IP_TOS */
	YES("setsockopt", 3, 0, 11),  /* IP_RECVERR */
	YES("setsockopt", 3, 0, 35),  /* IP_ADD_MEMBERSHIP */
	NO("setsockopt", 3, 0, 64),   /* IPT_SO_SET_REPLACE */
	NO("setsockopt", 3, 0, 4),    /* IP_OPTIONS */
	NO("setsockopt", 3, 0, 41),   /* IP_MSFILTER */
	YES("setsockopt", 3, 41, 26), /* IPV6_V6ONLY */
	YES("setsockopt", 3, 41, 16), /* IPV6_UNICAST_HOPS */
	NO("setsockopt", 3, 41, 64),  /* IP6T_SO_SET_REPLACE */
	NO("setsockopt", 3, 41, 1),   /* IPV6_ADDRFORM */
	NO("setsockopt", 3, 41, 57),  /* IPV6_RTHDR */
	NO("setsockopt", 3, 17, 103), /* UDP_SEGMENT */
	NO("setsockopt", 3, 255, 1),
	NO("setsockopt", 3, 263, 1), /* SOL_PACKET */
	NO("setsockopt", 3, 270, 1), /* SOL_NETLINK */
	NO("setsockopt", 3, 279, 1), /* SOL_ALG */
	NO("setsockopt", 3, 282, 1), /* SOL_TLS */

	/* ioctl: descriptor, request */
	YES("ioctl", 0, 0x5401),
	YES("ioctl", 0, 0x5402),
	YES("ioctl", 0, 0x5403),
	YES("ioctl", 0, 0x5404),
	YES("ioctl", 0, 0x802c542a),                              /* TCGETS2 */
	YES("ioctl", 0, 0x5413),                                  /* TIOCGWINSZ */
	YES("ioctl", 0, 0x540f),                                  /* TIOCGPGRP */
	YES("ioctl", 0, 0x540e),                                  /* TIOCSCTTY */
	YES("ioctl", 0, 0x40045431),                              /* TIOCSPTLCK */
	YES("ioctl", 0, 0x80045430),                              /* TIOCGPTN */
	YES("ioctl", 0, 0x5441),                                  /* TIOCGPTPEER */
	YES("ioctl", 0, 0x541b),                                  /* FIONREAD */
	YES("ioctl", 0, 0x5421),                                  /* FIONBIO */
	YES("ioctl", 0, 0x5450),                                  /* FIONCLEX */
	YES("ioctl", 0, 0x5451),                                  /* FIOCLEX */
	{ "ioctl", { 3, 0x8912 }, ALLOW, "network", NO_POINTER }, /* SIOCGIFCONF */
	{ "ioctl", { 3, 0x8927 }, ALLOW, "network", NO_POINTER }, /* SIOCGIFHWADDR */
	{ "ioctl", { 3, 0x8933 }, ALLOW, "network", NO_POINTER }, /* SIOCGIFINDEX */
	NO("ioctl", 0, 0x5412),                                   /* TIOCSTI */
	NO("ioctl", 0, 0x541c),                                   /* TIOCLINUX */
	NO("ioctl", 0, 0x541d),                                   /* TIOCCONS */
	NO("ioctl", 0, 0x5423),                                   /* TIOCSETD */
	NO("ioctl", 0, 0x40086602),                               /* FS_IOC_SETFLAGS */
	NO("ioctl", 0, 0xc0045877),                               /* FIFREEZE */
	NO("ioctl", 0, 0x40049409),                               /* FICLONE */
	NO("ioctl", 0, 0x5000940f),                               /* BTRFS_IOC_SNAP_CREATE */
	NO("ioctl", 0, 0x4c00),                                   /* LOOP_SET_FD */
	NO("ioctl", 0, 0xb701),                                   /* NS_GET_USERNS */
	NO("ioctl", 0, 0x4b4e),                                   /* KDSIGACCEPT */
	NO("ioctl", 0, 0xae01),                                   /* KVM_CREATE_VM */
	NO("ioctl", 3, 0x8914),                                   /* SIOCSIFFLAGS */
	NO("ioctl", 3, 0x8916),                                   /* SIOCSIFADDR */
	NO("ioctl", 3, 0x8946),                                   /* SIOCETHTOOL */
	NO("ioctl", 3, 0x89a0),                                   /* SIOCBRADDBR */
	NO("ioctl", 0, 0),
	NO("ioctl", 0, 0xffffffff),

	/* limits: 4 is RLIMIT_CORE */
	YES("setrlimit", 7, 1),
	YES("setrlimit", 0, 1),
	YES("setrlimit", 3, 1),
	YES("setrlimit", 5, 1),
	YES("setrlimit", 15, 1),
	NO("setrlimit", 4, 1),
	NO("setrlimit", 16, 1),
	NO("setrlimit", 0xffffffff, 1),
	{ "prlimit64", { 0, 7, 0x7fff00001000 }, ALLOW, NULL, 2 },
	{ "prlimit64", { 0, 3, 0x7fff00001000 }, ALLOW, NULL, 2 },
	{ "prlimit64", { 0, 4, 0, 0x7fff00001000 }, ALLOW, NULL, 2 }, /* reading */
	{ "prlimit64", { 0, 4, 0x7fff00001000 }, ERR(EPERM), NULL, 2 },
	{ "prlimit64", { 0, 4, 0x700000000 }, ERR(EPERM), NULL, 2 }, /* a pointer whose low half is zero */
	{ "prlimit64", { 0, 4, 0xffffffff }, ERR(EPERM), NULL, 2 },
	{ "prlimit64", { 0, 16, 0x7fff00001000 }, ERR(EPERM), NULL, 2 },

	/* r1: somebody else's limits can be read, not written; 1 is cell init */
	{ "prlimit64", { 1, 0, 0, 0x7fff00001000 }, ALLOW, NULL, 2 },
	{ "prlimit64", { 1, 0, 0x7fff00001000 }, ERR(EPERM), NULL, 2 },
	{ "prlimit64", { 1, 7, 0x7fff00001000 }, ERR(EPERM), NULL, 2 },
	{ "prlimit64", { 2, 0, 0x7fff00001000 }, ERR(EPERM), NULL, 2 },

	/* r1: cell init is out of reach, whoever it belongs to */
	YES("kill", 0, 15),
	NOT_STEWARD("signals", "kill", 2, 15),
	NOT_STEWARD("signals", "kill", 0xfffffffe, 15),
	YES("kill", 3, 15),
	YES("kill", 0xfffffffd, 15),
	NOT_STEWARD("signals", "kill", 0xffffffff, 15), /* -1 spares the init of a pid namespace */
	NO("kill", 1, 14),
	NOT_STEWARD("signals", "tkill", 2, 15),
	YES("tkill", 3, 15),
	NO("tkill", 1, 14),
	NOT_STEWARD("signals", "tgkill", 2, 3, 23),
	YES("tgkill", 3, 3, 23),
	NO("tgkill", 1, 1, 14),
	NOT_STEWARD("signals", "rt_sigqueueinfo", 2, 15),
	YES("rt_sigqueueinfo", 3, 15),
	NO("rt_sigqueueinfo", 1, 14),
	NOT_STEWARD("signals", "rt_tgsigqueueinfo", 2, 3, 23),
	YES("rt_tgsigqueueinfo", 3, 3, 23),
	NO("rt_tgsigqueueinfo", 1, 1, 14),
	/* fcntl: by F_SETOWN, F_SETSIG and F_SETOWN_EX the kernel sends signals */
	YES("fcntl", 3, 0),
	YES("fcntl", 3, 1),
	YES("fcntl", 3, 2),
	YES("fcntl", 3, 3),
	YES("fcntl", 3, 4),
	YES("fcntl", 3, 5),
	YES("fcntl", 3, 6),
	YES("fcntl", 3, 7),
	YES("fcntl", 3, 9),
	YES("fcntl", 3, 11),
	YES("fcntl", 3, 16),
	YES("fcntl", 3, 36),
	YES("fcntl", 3, 37),
	YES("fcntl", 3, 38),
	YES("fcntl", 3, 1024),
	YES("fcntl", 3, 1025),
	YES("fcntl", 3, 1026),
	YES("fcntl", 3, 1027),
	YES("fcntl", 3, 1028),
	YES("fcntl", 3, 1030),
	YES("fcntl", 3, 1031),
	YES("fcntl", 3, 1032),
	YES("fcntl", 3, 1033),
	YES("fcntl", 3, 1034),
	YES("fcntl", 3, 1035),
	YES("fcntl", 3, 1036),
	YES("fcntl", 3, 1037),
	YES("fcntl", 3, 1038),
	NOT_STEWARD("signals", "fcntl", 3, 8, 2),
	NOT_STEWARD("signals", "fcntl", 3, 8, 0xfffffffe),
	NOT_STEWARD("signals", "fcntl", 3, 10, 9),
	NOT_STEWARD("signals", "fcntl", 3, 12),
	NOT_STEWARD("signals", "fcntl", 3, 15),
	NOT_STEWARD("signals", "fcntl", 3, 17),
	NOT_STEWARD("signals", "fcntl", 3, 39),
	NOT_STEWARD("signals", "fcntl", 3, 1023),
	NOT_STEWARD("signals", "fcntl", 3, 1029),
	NOT_STEWARD("signals", "fcntl", 3, 1039),
	NOT_STEWARD("signals", "fcntl", 3, 0xffffffff),
	NOT_STEWARD("pidfds", "pidfd_open", 2),
	YES("pidfd_open", 3),
	NO("pidfd_open", 1),
	YES("sched_setaffinity", 0, 8),
	YES("sched_setaffinity", 2, 8),
	NO("sched_setaffinity", 1, 8),
	YES("sched_setscheduler", 0, 3),
	NO("sched_setscheduler", 1, 5),
	YES("sched_setparam", 0),
	NO("sched_setparam", 1),
	YES("setpriority", 0, 0, 10), /* PRIO_PROCESS */
	YES("setpriority", 0, 2, 10),
	YES("setpriority", 1, 0, 10), /* PRIO_PGRP */
	NO("setpriority", 0, 1, 10),
	NO("setpriority", 1, 1, 10),
	NO("setpriority", 2, 0, 10), /* PRIO_USER */

	/* prctl */
	YES("prctl", 15),         /* SET_NAME */
	YES("prctl", 16),         /* GET_NAME */
	YES("prctl", 1),          /* SET_PDEATHSIG */
	YES("prctl", 3),          /* GET_DUMPABLE */
	YES("prctl", 4),          /* SET_DUMPABLE */
	YES("prctl", 21),         /* GET_SECCOMP */
	YES("prctl", 23),         /* CAPBSET_READ */
	YES("prctl", 24),         /* CAPBSET_DROP */
	YES("prctl", 38),         /* SET_NO_NEW_PRIVS */
	YES("prctl", 47),         /* CAP_AMBIENT */
	YES("prctl", 0x53564d41), /* SET_VMA */
	NO("prctl", 0),
	NO("prctl", 22),         /* SET_SECCOMP */
	NO("prctl", 26),         /* SET_TSC */
	NO("prctl", 28),         /* SET_SECUREBITS */
	NO("prctl", 31),         /* TASK_PERF_EVENTS_DISABLE */
	NO("prctl", 35),         /* SET_MM */
	NO("prctl", 53),         /* SET_SPECULATION_CTRL */
	NO("prctl", 57),         /* SET_IO_FLUSHER */
	NO("prctl", 59),         /* SET_SYSCALL_USER_DISPATCH */
	NO("prctl", 62),         /* SCHED_CORE */
	NO("prctl", 78),         /* FUTEX_HASH */
	NO("prctl", 0x59616d61), /* SET_PTRACER */
	NO("prctl", 0xffffffff),
	YES("arch_prctl", 0x1002),
	YES("arch_prctl", 0x3001),
	NO("arch_prctl", 0x1012), /* SET_CPUID */
	NO("arch_prctl", 0x2003), /* MAP_VDSO_64 */
	NO("arch_prctl", 0x5001), /* SHSTK_ENABLE */
	NO("arch_prctl", 0),

	YES("personality", 0xffffffff),
	YES("personality", 0),
	NO("personality", 0x0040000), /* ADDR_NO_RANDOMIZE */
	NO("personality", 0x0100000), /* MMAP_PAGE_ZERO */
	NO("personality", 0x0400000), /* READ_IMPLIES_EXEC */
	NO("personality", 8),         /* PER_LINUX32 */
	NO("personality", 1),
	NO("personality", 0xfffffffe),

	/* mknod: path, mode; the kernel reads 16 bits of the mode */
	YES("mknod", 1, 0100644),
	YES("mknod", 1, 0644),
	YES("mknod", 1, 0010600),
	YES("mknod", 1, 0140600),
	NO("mknod", 1, 0020666),
	NO("mknod", 1, 0060666),
	NO("mknod", 1, 0040755),
	NO("mknod", 1, 0x10000 | 0020666),
	YES("mknodat", 3, 1, 0010600),
	YES("mknodat", 3, 1, 0x10000 | 0010600),
	NO("mknodat", 3, 1, 0020666),
	NO("mknodat", 3, 1, 0060666),
	NO("mknodat", 3, 1, 0120777),
};

/* No edit of data/syscalls may let these through, under whatever condition. */
static const char *const never_allowed[] = {
	"clone3",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"splice",
	"tee",
	"vmsplice",
	"sendfile",
	"copy_file_range",
	"userfaultfd",
	"bpf",
	"perf_event_open",
	"add_key",
	"request_key",
	"keyctl",
	"memfd_create",
	"memfd_secret",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"pidfd_getfd",
	"kcmp",
	"unshare",
	"setns",
	"mount",
	"umount2",
	"pivot_root",
	"chroot",
	"open_tree",
	"move_mount",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"open_by_handle_at",
	"name_to_handle_at",
	"fanotify_init",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"swapon",
	"swapoff",
	"acct",
	"quotactl",
	"iopl",
	"ioperm",
	"modify_ldt",
	"syslog",
	"settimeofday",
	"clock_settime",
	"adjtimex",
	"clock_adjtime",
	"mbind",
	"move_pages",
	"migrate_pages",
	"set_mempolicy",
	"seccomp",
	"vhangup",
	"sethostname",
	"sync",
	"syncfs",
	"io_setup",
	"io_submit",
	"lookup_dcookie",
	"setgroups",
	"remap_file_pages",
	"process_madvise",
};

#endif
