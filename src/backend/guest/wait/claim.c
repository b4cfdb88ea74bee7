/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait itself: reports that it waits, takes the program, writes it into the program file (guest/claim.c), and
 * returns when it may run.  Any error ends the process.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/guest/claim.h"
#include "backend/guest/wait.h"
#include "backend/guest/wait/library.h"
#include "base/fd.h"

/* Not exit(), which would run the interpreter's handlers. */
_Noreturn void wait_give_up(void)
{
	for (;;)
		(void)syscall(SYS_exit_group, GUEST_WAIT_FAILED);
}

bool wait_say(int sock, enum guest_word_kind kind, uint64_t value, int fd)
{
	struct guest_word word = { GUEST_WORD_MAGIC, kind, value };
	struct iovec whole = { &word, sizeof(word) };

	return fd_send_record(sock, &whole, 1, &fd, fd >= 0, 0) == 0;
}

static void say(const struct wait_order *o, enum guest_word_kind kind, uint64_t value)
{
	if (!wait_say(o->sock, kind, value, -1))
		wait_give_up();
}

_Noreturn void wait_report(const struct wait_order *o, enum guest_word_kind kind, size_t value)
{
	say(o, kind, value);
	wait_give_up();
}

void wait_for_claim(const struct wait_order *o)
{
	bool may_go;

	say(o, GUEST_WAITING, 0);
	if (guest_claim_take(o->sock, o->path[0], &may_go) < 0)
		wait_give_up();
	python_after(o);
	if ((!may_go && guest_claim_await_go(o->sock) < 0) || close(o->sock) < 0)
		wait_give_up();
}
