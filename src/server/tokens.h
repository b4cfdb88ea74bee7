/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of `brig serve`: who may use the service, and for what.
 *
 * A token is a secret that clients present, together with the permissions of its holder.  STATE/serve/tokens has one
 * line of JSON for each, with a hash of the secret; the secret itself is shown once, at creation, and stored nowhere.
 * It has 160 random bits, so a plain hash suffices: guessing is not feasible.
 *
 *   - The file must belong to this user with mode 0600, in a directory with mode 0700; otherwise it is refused, with
 *     advice.
 *   - It is replaced atomically, under a lock: a reader sees the old or the new version.
 *   - One invalid line refuses the whole file, since that line could be the one that revokes a permission.  Until it is
 *     fixed no token is valid (TOKEN_UNREADABLE), including those read before.
 *   - A secret is compared with every entry, in constant time.
 *   - A revoked token remains as an entry marked so; a new token may take its name.
 */
#ifndef SERVER_TOKENS_H
#define SERVER_TOKENS_H

#include "base/err.h"
#include "server/quota.h"

#define TOKEN_NAME_MAX    64
#define TOKEN_PREFIX      "brig_"
#define TOKEN_RANDOM_LEN  32 /* base32 characters */
#define TOKEN_SECRET_SIZE (sizeof(TOKEN_PREFIX) + TOKEN_RANDOM_LEN)
#define TOKEN_LIST_MAX    32 /* of each kind: languages, backends, environments, doors */
#define TOKEN_WORD_MAX    64
#define TOKENS_MAX        1000 /* including revoked ones */

/* In ascending order of what they permit. */
enum token_trust { TOKEN_UNTRUSTED, TOKEN_UNKNOWN, TOKEN_TRUSTED, TOKEN_TRUST_COUNT };
/* "untrusted", "unknown", "trusted". */
const char *token_trust_name(enum token_trust trust);
bool token_trust_parse(const char *name, enum token_trust *ret);

/* Permitted names; empty: all. */
struct token_list {
	const char **item;
	size_t n;
};

struct token {
	char name[TOKEN_NAME_MAX + 1]; /* letters, digits, '.', '_' and '-', beginning with a letter or digit */
	enum token_trust max_trust;
	struct token_list languages, backends, environments;
	struct quota quota;
	/* Doors (server/doors.h) that it may use, and "api" for the API; empty: only the API. */
	struct token_list doors;
	bool is_for_all;         /* of clients that need no token: every door */
	bool makes_environments; /* may create those in its list; an administrator may create any */
	bool admin;              /* may see and cancel executions of others */
	bool is_anonymous;       /* stands for every client of a service with --no-auth */
	int64_t created;         /* seconds since 1970 */
	int64_t expires;         /* 0: never */
	int64_t revoked;         /* 0: not revoked */
};

/* Why a secret is not valid. */
enum token_why { TOKEN_KNOWN, TOKEN_WRONG, TOKEN_EXPIRED, TOKEN_REVOKED, TOKEN_UNREADABLE };

struct tokens;

/*
 * Reads the tokens of a state directory (NULL: the default); creates STATE/serve if necessary.  A missing file means no
 * tokens.  Errors as of sys/statedir.h; with an invalid line -BRIG_E_REFUSED and a message with file and line.
 */
int tokens_open(const char *state_dir, struct tokens **ret, struct brig_error *err);
void tokens_close(struct tokens *t); /* NULL is allowed */

/*
 * Rereads the file if it has changed; otherwise costs one stat().  1: it was read; 0: unchanged.  A 1 or a failure
 * invalidates every struct token handed out before, as do tokens_create() and tokens_revoke().  After a failure no
 * token is valid until a later call succeeds.
 */
int tokens_refresh(struct tokens *t, struct brig_error *err);

/*
 * The token with this secret, valid at now_s (seconds since 1970); owned by t.  NULL: there is none, and *why (may be
 * NULL) is the reason.  The secret is any string.
 */
const struct token *tokens_find(const struct tokens *t, const char *secret, int64_t now_s, enum token_why *why);
/* By name, including revoked and expired ones.  NULL: none. */
const struct token *tokens_named(const struct tokens *t, const char *name);
/* Tokens that are not revoked, including expired ones. */
size_t tokens_count(const struct tokens *t);
bool tokens_is_empty(const struct tokens *t); /* no token was ever created: there is not even a revoked entry */

/*
 * Creates a token as described (what->revoked is ignored) and stores its secret, which cannot be obtained later.
 * -BRIG_E_USAGE: the description is invalid; -BRIG_E_REFUSED: the name is taken, or there are too many tokens.
 */
int tokens_create(struct tokens *t, const struct token *what, char secret[TOKEN_SECRET_SIZE], struct brig_error *err);
/* -BRIG_E_USAGE: there is no token of that name, or it is revoked already. */
int tokens_revoke(struct tokens *t, const char *name, int64_t now_s, struct brig_error *err);

/*
 * { "tokens": [ { "name", "state": "active"|"expired"|"revoked", "max_trust", "languages", "backends", "environments",
 * "doors", "concurrent", "runs_per_minute", "cpu_seconds_per_hour", "memory_max", "makes_environments", "admin",
 * "created", "expires", "revoked" } ] }: in order of creation; absent limits, lists and times are null.  The caller
 * frees *ret.
 */
int tokens_json(const struct tokens *t, int64_t now_s, char **ret, struct brig_error *err);
/* One such object, for `whoami`. */
int token_json(const struct token *token, int64_t now_s, char **ret, struct brig_error *err);

/* ---- what a request needs ---------------------------------------------------------------------- */

struct token_wish {
	const char *trust;       /* trust level it will run with; NULL counts as the highest */
	const char *language;    /* canonical name, not an alias; NULL: none (a command) */
	const char *backend;     /* NULL: the policy chooses */
	const char *environment; /* NULL: none */
	bool packages;           /* it installs packages */
	uint64_t memory;         /* bytes of its memory limit; 0: unknown */
};

/*
 * 0, or -BRIG_E_REFUSED with a sentence that names the token, what it may not do, and what it may.  A token with a list
 * of languages runs no commands, one with a list of backends requires requests to name one, and one with a list of
 * environments installs no packages.
 */
int token_allows(const struct token *t, const struct token_wish *wish, struct brig_error *err);
/*
 * Whether it may create and remove this environment: an administrator, or a token with that permission and the name in
 * its list.
 */
int token_makes(const struct token *t, const char *environment, struct brig_error *err);
/* Whether it may see and use this environment. */
bool token_sees_environment(const struct token *t, const char *environment);
/* Whether it may use this door, or with "api" the API. */
bool token_opens(const struct token *t, const char *door);
/* The trust level of a request that names none: the policy's default, but at most the token's. */
const char *token_trust_default(const struct token *t, const char *policy_default);
/* The backend of a request that names none: the first of the token's list; NULL: the policy chooses. */
const char *token_backend_default(const struct token *t);

#endif
