/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that shares its parent's memory, as with vfork(2), but on its own stack and with a chosen pid.  libc has no
 * function for that: its clone() does not support set_tid.  The parent's stack is not touched, so both may continue.
 */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "backend/guest/wait/library.h"

/* The child never returns from the assembly: it calls run(arg) on its new, empty stack, then exits. */
static long clone_and_run(struct clone_args *args, void (*run)(void *arg), void *arg)
{
#if defined(__x86_64__)
	long rc;
	register void (*r8)(void *) __asm__("r8") = run;
	register void *r9 __asm__("r9") = arg;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%r9, %%rdi\n\t"
			 "call *%%r8\n\t"
			 "xor %%edi, %%edi\n\t"
			 "mov %[end], %%eax\n\t"
			 "syscall\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(rc)
			 : "a"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(r8), "r"(r9), [end] "i"(SYS_exit)
			 : "rcx", "r11", "memory", "cc");
	return rc;
#elif defined(__aarch64__)
	register long x0 __asm__("x0") = (long)(uintptr_t)args;
	register size_t x1 __asm__("x1") = sizeof(*args);
	register long x8 __asm__("x8") = SYS_clone3;
	register void (*x9)(void *) __asm__("x9") = run;
	register void *x10 __asm__("x10") = arg;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "mov x0, xzr\n\t"
			 "mov x8, %[end]\n\t"
			 "svc #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), "r"(x9), "r"(x10), [end] "i"(SYS_exit)
			 : "memory", "cc");
	return x0;
#else
	(void)args;
	(void)run;
	(void)arg;
	return -ENOSYS; /* no zygotes on this architecture: interpreters are started in their cells */
#endif
}

long clone_sharing(void *stack, size_t size, const int *pid_inside, void (*run)(void *arg), void *arg)
{
	const pid_t pid = pid_inside ? *pid_inside : 0;
	struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK,
				   .stack = (uintptr_t)stack,
				   .stack_size = size,
				   .set_tid = pid_inside ? (uintptr_t)&pid : 0,
				   .set_tid_size = pid_inside ? 1 : 0 };

	return clone_and_run(&args, run, arg);
}
