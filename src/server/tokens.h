/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may use the service: the tokens of `brig serve`.
 *
 * A token is a secret that a client shows, and what the service lets its holder do.  STATE/serve/tokens holds one line of
 * JSON for each, with a hash of the secret: the secret itself is told once, when it is made, and stands nowhere.  It has
 * 160 random bits, so one plain hash is enough: there is nothing to guess.
 *
 *   - The file is ours, 0600, in a folder 0700, or it is refused with what to do.
 *   - It is replaced whole, under a lock, so a reader sees the old or the new one.
 *   - One bad line, and the whole file is refused: it could have been the one that takes a right away.  Nobody is known
 *     until it is fixed (TOKEN_UNREADABLE), whatever was read before.
 *   - A secret is compared with every entry, in time that does not depend on which one it is.
 *   - Revoked tokens stay as entries that only say so; a new token may take their name.
 */
#ifndef SERVER_TOKENS_H
#define SERVER_TOKENS_H

#include "base/err.h"
#include "server/quota.h"

#define TOKEN_NAME_MAX    64
#define TOKEN_PREFIX      "brig_"
#define TOKEN_RANDOM_LEN  32 /* characters of base32 */
#define TOKEN_SECRET_SIZE (sizeof(TOKEN_PREFIX) + TOKEN_RANDOM_LEN)
#define TOKEN_LIST_MAX    32 /* languages, backends, environments of one token */
#define TOKEN_WORD_MAX    64
#define TOKENS_MAX        1000 /* tokens of one file, revoked ones included */

/* In the order of what they allow; named as the policy names them. */
enum token_trust { TOKEN_UNTRUSTED, TOKEN_UNKNOWN, TOKEN_TRUSTED, TOKEN_TRUST_COUNT };
/* "untrusted", "unknown", "trusted". */
const char *token_trust_name(enum token_trust trust);
bool token_trust_parse(const char *name, enum token_trust *ret);

/* What may be named; none: everything. */
struct token_list {
	const char **item;
	size_t n;
};

struct token {
	char name[TOKEN_NAME_MAX + 1]; /* letters, digits, '.', '_' and '-', the first one no sign */
	enum token_trust max_trust;
	struct token_list languages, backends, environments;
	struct quota quota;
	/* Doors that it opens (server/doors.h), "api" among them for the API; none: the API and no door. */
	struct token_list doors;
	bool is_for_all;         /* of who needs no token: every door */
	bool makes_environments; /* those of its list; an administrator does anyway */
	bool admin;              /* sees what others run and ran, and may cancel it */
	int64_t created;         /* seconds since 1970 */
	int64_t expires;         /* 0: never */
	int64_t revoked;         /* 0: it is not */
};

/* Why a secret is nobody's. */
enum token_why { TOKEN_KNOWN, TOKEN_WRONG, TOKEN_EXPIRED, TOKEN_REVOKED, TOKEN_UNREADABLE };

struct tokens;

/*
 * Reads the tokens of a state folder (NULL: the usual one); makes STATE/serve if it is not there.  No file is no tokens.
 * Failures as of sys/statedir.h; a file with a bad line is -BRIG_E_REFUSED and the complaint names file and line.
 */
int tokens_open(const char *state_dir, struct tokens **ret, struct brig_error *err);
void tokens_close(struct tokens *t); /* NULL is fine */

/*
 * Reads the file anew if it is another one than before; costs one stat() if not.  1: it was read, 0: nothing is new.  Every
 * struct token handed out before a 1 or a failure is gone, as it is after tokens_create() and tokens_revoke().  After a
 * failure nobody is known until a later call succeeds.
 */
int tokens_refresh(struct tokens *t, struct brig_error *err);

/*
 * Whose secret this is, at the second now_s: belongs to t.  NULL: nobody's that may do anything, *why (may be NULL) says
 * why.  Secrets of any length and any bytes are fine.
 */
const struct token *tokens_find(const struct tokens *t, const char *secret, int64_t now_s, enum token_why *why);
/* By its name; revoked and expired ones too.  NULL: none. */
const struct token *tokens_named(const struct tokens *t, const char *name);
/* Those that are not revoked, expired ones included. */
size_t tokens_count(const struct tokens *t);
bool tokens_is_empty(const struct tokens *t); /* there never was one: not even a revoked one is there */

/*
 * Adds a token as described (what->revoked is not looked at) and fills in its secret, which is told nowhere else.
 * -BRIG_E_USAGE: the description is wrong; -BRIG_E_REFUSED: the name is taken, or there are too many.
 */
int tokens_create(struct tokens *t, const struct token *what, char secret[TOKEN_SECRET_SIZE], struct brig_error *err);
/* -BRIG_E_USAGE: there is none of that name that is not revoked. */
int tokens_revoke(struct tokens *t, const char *name, int64_t now_s, struct brig_error *err);

/*
 * { "tokens": [ { "name", "state": "active"|"expired"|"revoked", "max_trust", "languages", "backends", "environments",
 * "concurrent", "runs_per_minute", "cpu_seconds_per_hour", "memory_max", "makes_environments", "admin", "created", "expires", "revoked" } ] }: in
 * the order of their making; lists and quotas without bound are null, and so are moments that are none.  For free().
 */
int tokens_json(const struct tokens *t, int64_t now_s, char **ret, struct brig_error *err);
/* One of these objects, for `whoami`. */
int token_json(const struct token *token, int64_t now_s, char **ret, struct brig_error *err);

/* ---- what a request asks for ------------------------------------------------------------------- */

struct token_wish {
	const char *trust;       /* what it will run with; NULL counts as the highest */
	const char *language;    /* the language's own name, not an alias; NULL: it names none (a command) */
	const char *backend;     /* NULL: the policy chooses */
	const char *environment; /* NULL: none */
	bool packages;           /* it asks for packages of its own */
	uint64_t memory;         /* bytes of its memory limit; 0: not known */
};

/*
 * 0, or -BRIG_E_REFUSED with a sentence that names the token, what it may not, and what it may.  A token with a list of
 * languages runs no commands, one with a list of backends must name one, one with a list of environments installs no
 * packages of its own.
 */
int token_allows(const struct token *t, const struct token_wish *wish, struct brig_error *err);
/* Whether it may make and remove the environment of this name: an administrator, or who has the right and the name in its list. */
int token_makes(const struct token *t, const char *environment, struct brig_error *err);
/* Whether it may see and use it. */
bool token_sees_environment(const struct token *t, const char *environment);
/* Whether it opens the door of this name, or, of "api", the API. */
bool token_opens(const struct token *t, const char *door);
/* What a request runs with that names no trust: the policy's default, but not more than the token's. */
const char *token_trust_default(const struct token *t, const char *policy_default);
/* And the backend of one that names none: the first of the token's; NULL: the policy chooses. */
const char *token_backend_default(const struct token *t);

#endif
