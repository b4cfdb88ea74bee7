/* SPDX-License-Identifier: Apache-2.0 */
/* The table of doors (doors.def), for options, tokens, runner and front. */
#ifndef SERVER_DOORS_H
#define SERVER_DOORS_H

#include "base/err.h"
#include "server/tokens.h"

/* DOOR_api is the service's own API: not a door, but a token's list may contain it. */
enum door {
	DOOR_api,
#define DOOR(name, title, keys, trust, move) DOOR_##name,
#include "server/doors.def"
	DOOR_COUNT
};

enum door_key { DOOR_KEY_BEARER = 1, DOOR_KEY_BASIC = 2, DOOR_KEY_HEADER = 4 };
enum door_access { DOOR_ACCESS_KEY, DOOR_ACCESS_OPEN, DOOR_ACCESS_SESSION };
enum door_body { DOOR_BODY_NONE, DOOR_BODY_BODY, DOOR_BODY_SOCKET };

struct door_row {
	const char *name, *title;
	unsigned keys; /* enum door_key */
	enum token_trust trust;
};
extern const struct door_row door_rows[DOOR_COUNT];

/* The doors that are open, and the highest trust level for code that comes through each. */
struct door_set {
	bool is_open[DOOR_COUNT];
	enum token_trust trust[DOOR_COUNT];
};

/* DOOR_COUNT: there is no such door. */
enum door door_find(const char *name);
/*
 * Parses "piston,dify:untrusted", "all" or "all:untrusted"; words are separated by commas or blanks.  0 or
 * -BRIG_E_USAGE.
 */
int doors_parse(const char *text, struct door_set *ret, struct brig_error *err);
bool doors_any(const struct door_set *set);
bool doors_have_sockets(const struct door_set *set); /* whether an open door uses WebSockets */

#endif
