/* SPDX-License-Identifier: Apache-2.0 */
/* Where the command line finds the service by default. */
#ifndef SERVER_SOCKET_PATH_H
#define SERVER_SOCKET_PATH_H

#include "base/util.h"

#define SOCKET_PATH_MAX  108 /* sun_path */
#define SOCKET_NAME      "run.sock"
#define SOCKET_OF_SYSTEM "/run/brig/" SOCKET_NAME

/* The socket of this user's own service; for root that of the system's.  False: there is no suitable directory. */
bool socket_path_own(char dst[SOCKET_PATH_MAX]);

#endif
