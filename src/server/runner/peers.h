/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The known nodes of the queue, and this node's own key.
 *
 * The operator's file (--nodes) has a line for each node: its roles, its name, its public key in hex.
 *
 *	front  web-1   9f2c...
 *	worker cell-7  03aa...
 *	both   lab     77d0...
 *	worker cell-8  51c9...  gives
 *
 * Workers accept package sets, compiled programs and environments only from nodes marked "gives" (queue_exchange.c); a
 * front has only environments to give.
 *
 * This node's own key is in STATE/queue/key.  It differs from the key that signs receipts and checkpoints of the audit
 * log: only the recorder has that one, so it is safe from a compromised runner.
 */
#ifndef SERVER_RUNNER_PEERS_H
#define SERVER_RUNNER_PEERS_H

#include "base/err.h"
#include "server/message.h"
#include "sys/crypto.h"

#define PEERS_MAX     16384
#define PEER_NAME_MAX 64

enum peer_role { PEER_FRONT = 1, PEER_WORKER = 2 };

struct peer {
	unsigned roles; /* enum peer_role */
	bool gives;
	char name[PEER_NAME_MAX + 1];
	char key[SEAL_KEY_HEX + 1];
	uint8_t pub[SIGN_PUB_LEN];
};

struct peers {
	struct peer *item;
	size_t n;
};

int peers_read(const char *path, struct peers *ret, struct brig_error *err);
void peers_release(struct peers *p);
/* NULL: no node with this key has this role. */
const struct peer *peers_find(const struct peers *p, const char *key, enum peer_role role);

/* The seed, and the public key in hex; created on first use. */
int node_key_open(const char *state_dir, uint8_t seed[SIGN_SEED_LEN], char ret[SEAL_KEY_HEX + 1],
		  struct brig_error *err);

#endif
