/* SPDX-License-Identifier: Apache-2.0 */
/* A list of nodes: each that is known has a role, a name that a label may have, and a key that is found again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "server/runner/peers.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int fd = memfd_create("list", MFD_CLOEXEC);
	char path[64];
	struct peers p;

	if (fd < 0 || fd_write_all(fd, data, len) < 0)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (peers_read(path, &p, &err) == 0) {
		for (size_t i = 0; i < p.n; i++) {
			const struct peer *one = &p.item[i];

			if (!one->roles || !one->name[0] || strpbrk(one->name, "\"\\\n") ||
			    !peers_find(&p, one->key, one->roles & PEER_FRONT ? PEER_FRONT : PEER_WORKER))
				abort();
		}
		peers_release(&p);
	}
	(void)close(fd);
	return 0;
}
