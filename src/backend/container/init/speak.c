/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>

#include "backend/container/init/inside.h"
#include "backend/guest/confine.h"

_Noreturn void end(int code)
{
	guest_end(code);
}

void speak_bytes(int fd, const char *data, size_t len)
{
	while (len > 0) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (n < 0 && errno != EINTR)
			end(INIT_LOST); /* no reader is left */
		else if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
	}
}

void speak(struct inside *in)
{
	speak_bytes(STDERR_FILENO, in->out.data, in->out.len);
	in->out.len = 0;
}

_Noreturn void fail(struct inside *in, enum wire_step step, int rc)
{
	in->out.len = 0;
	wire_put_key(&in->out, in->job.key[0]);
	wire_put_failure(&in->out, step, -rc);
	wire_put(&in->out, WIRE_END, NULL, 0);
	speak(in);
	end(INIT_LOST);
}
