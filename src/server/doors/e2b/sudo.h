/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVER_DOORS_E2B_SUDO_H
#define SERVER_DOORS_E2B_SUDO_H

#include "base/buf.h"

/* Copies a shell line to out, replacing `sudo CMD` with CMD wherever a command begins. */
void e2b_without_sudo(const char *line, struct buf *out);

#endif
