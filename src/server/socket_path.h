/* SPDX-License-Identifier: Apache-2.0 */
/* Where the command line finds a service that it was not told of. */
#ifndef SERVER_SOCKET_PATH_H
#define SERVER_SOCKET_PATH_H

#include "base/util.h"

#define SOCKET_PATH_MAX  108 /* sun_path */
#define SOCKET_NAME      "run.sock"
#define SOCKET_OF_SYSTEM "/run/brig/" SOCKET_NAME

/* That of a service of this user's own: root's is the system's.  False: there is no place for one. */
bool socket_path_own(char dst[SOCKET_PATH_MAX]);

#endif
