/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - the token file: rereading it when it has changed, and changing it under a lock
 *
 * A writer takes the lock, reads the current file, writes a complete new one beside it and renames it.  The new text is
 * parsed before it is written, exactly as a service would, so no change can produce a file that is refused later.
 */
#include "server/tokens.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/str.h"
#include "server/token_lines.h"
#include "sys/statedir.h"

#define SERVE_DIR       "serve"
#define TOKENS_FILE     "tokens"
#define TOKENS_LOCK     "tokens.lock"
#define TOKENS_PATIENCE (10 * NS_PER_SEC)
#define OTHERS          (S_IRWXG | S_IRWXO)

/* Identifies the version of the file that was read; a change of its mode counts as a change. */
struct stamp {
	bool is_there;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec written, changed;
};

struct tokens {
	struct statedir dir;
	char path[STATEDIR_PATH_MAX + sizeof(TOKENS_FILE)]; /* for messages */
	struct token_entries entries;
	struct stamp stamp;
	bool readable;
	struct brig_error refusal; /* if the version in stamp was refused; otherwise code is 0 */
};

/* ---- reading ----------------------------------------------------------------------------------- */

static struct stamp stamp_of(const struct stat *st)
{
	return (struct stamp){ true, st->st_dev, st->st_ino, st->st_size, st->st_mtim, st->st_ctim };
}

static bool same_moment(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_stamp(const struct stamp *a, const struct stamp *b)
{
	return a->is_there == b->is_there && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       same_moment(&a->written, &b->written) && same_moment(&a->changed, &b->changed);
}

/* The file has hashes of secrets, and permissions: other users may not read it either. */
static int check_private(int fd, const char *path, const char *mode, struct stat *st, struct brig_error *err)
{
	if (fstat(fd, st) < 0)
		return statedir_trouble(err, errno, "cannot look at", path, NULL);
	if ((st->st_mode & OTHERS) == 0)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"'%.200s' is open to others (mode %04o), and holds who may use this service: run 'chmod %s' on it, and "
		"check what it holds",
		path, (unsigned)st->st_mode & 07777, mode);
}

/* The file's text, for free(), and its stamp.  A missing file is an empty text. */
static int text_read(const struct tokens *t, char **ret, size_t *ret_len, struct stamp *ret_stamp,
		     struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	AUTO_FD fd = statedir_open_file(&t->dir, TOKENS_FILE, O_RDONLY, &local);
	AUTO_FREE char *text = NULL;
	struct stat st = { 0 };
	ssize_t n = 0;
	int rc;

	*ret_stamp = (struct stamp){ 0 };
	if (fd < 0 && local.sys != ENOENT) {
		*err = local;
		return fd;
	}
	if (fd >= 0) {
		rc = check_private(fd, t->path, "600", &st, err);
		if (rc < 0)
			return rc;
		if ((uint64_t)st.st_size > TOKENS_FILE_MAX)
			return statedir_trouble(err, EFBIG, "cannot read", t->path, NULL);
		*ret_stamp = stamp_of(&st);
	}
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_nomem(err);
	if (fd >= 0)
		n = fd_read_all(fd, text, (size_t)st.st_size);
	if (n < 0)
		return statedir_trouble(err, (int)-n, "cannot read", t->path, NULL);
	*ret_len = (size_t)n;
	*ret = MOVE_PTR(text);
	return 0;
}

/* No token is valid from here on, unless the file is. */
static int reread(struct tokens *t, struct brig_error *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;
	int rc;

	token_entries_release(&t->entries);
	t->readable = false;
	t->refusal = (struct brig_error)BRIG_ERROR_INIT;
	rc = text_read(t, &text, &len, &t->stamp, err);
	if (rc < 0)
		return rc;
	rc = token_lines_read(text, len, t->path, &t->entries, err);
	t->readable = rc == 0;
	if (rc == -BRIG_E_REFUSED)
		t->refusal = *err;
	return rc < 0 ? rc : 1;
}

int tokens_refresh(struct tokens *t, struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	struct stamp now = { 0 };
	struct stat st;
	int rc;

	if (fstatat(t->dir.fd, TOKENS_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		now = stamp_of(&st);
	if (same_stamp(&now, &t->stamp) && (t->readable || t->refusal.code)) {
		if (err && !t->readable)
			*err = t->refusal;
		return t->readable ? 0 : -t->refusal.code;
	}
	rc = reread(t, &local);
	if (rc < 0 && err)
		*err = local;
	return rc;
}

/* ---- life cycle -------------------------------------------------------------------------------- */

static int open_folder(const char *state_dir, struct statedir *ret, struct brig_error *err)
{
	AUTO_STATEDIR state = STATEDIR_INIT;
	struct stat st;
	int rc = statedir_open(state_dir, /* make= */ true, &state, err);

	if (rc == 0)
		rc = statedir_open_sub(&state, SERVE_DIR, /* make= */ true, ret, err);
	if (rc == 0)
		rc = check_private(ret->fd, ret->path, "700", &st, err);
	return rc;
}

int tokens_open(const char *state_dir, struct tokens **ret, struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	struct tokens *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_nomem(err);
	t->dir = (struct statedir)STATEDIR_INIT;
	rc = open_folder(state_dir, &t->dir, &local);
	if (rc == 0) {
		(void)snprintf(t->path, sizeof(t->path), "%s/" TOKENS_FILE, t->dir.path);
		rc = reread(t, &local);
	}
	if (rc < 0) {
		if (err)
			*err = local;
		tokens_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void tokens_close(struct tokens *t)
{
	if (!t)
		return;
	token_entries_release(&t->entries);
	statedir_close(&t->dir);
	free(t);
}

/* ---- lookup ------------------------------------------------------------------------------------ */

/* Compares every entry, so that the time does not reveal how close a secret came. */
static const struct token *find_hash(const struct tokens *t, const uint8_t hash[BLAKE2B_LEN])
{
	const struct token *found = NULL;

	for (size_t i = 0; i < t->entries.n; i++)
		if (crypto_same(t->entries.item[i].hash, hash, BLAKE2B_LEN))
			found = &t->entries.item[i].token;
	return found;
}

static enum token_why why_not(const struct token *found, int64_t now_s)
{
	if (!found)
		return TOKEN_WRONG;
	if (found->revoked)
		return TOKEN_REVOKED;
	return found->expires && now_s >= found->expires ? TOKEN_EXPIRED : TOKEN_KNOWN;
}

const struct token *tokens_find(const struct tokens *t, const char *secret, int64_t now_s, enum token_why *why)
{
	uint8_t hash[BLAKE2B_LEN];
	const struct token *found;
	enum token_why answer;

	blake2b(secret, strlen(secret), hash);
	found = find_hash(t, hash);
	crypto_wipe(hash, sizeof(hash));
	answer = t->readable ? why_not(found, now_s) : TOKEN_UNREADABLE;
	if (why)
		*why = answer;
	return answer == TOKEN_KNOWN ? found : NULL;
}

const struct token *tokens_named(const struct tokens *t, const char *name)
{
	for (size_t i = 0; i < t->entries.n; i++)
		if (str_eq(t->entries.item[i].token.name, name))
			return &t->entries.item[i].token;
	return NULL;
}

size_t tokens_count(const struct tokens *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->entries.n; i++)
		count += !t->entries.item[i].token.revoked;
	return count;
}

bool tokens_is_empty(const struct tokens *t)
{
	return t->readable && t->entries.n == 0;
}

/* Takes ownership of the document; *ret is for free(). */
static int dump(json_t *doc, char **ret, struct brig_error *err)
{
	char *text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;

	json_decref(doc);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}

int token_json(const struct token *token, int64_t now_s, char **ret, struct brig_error *err)
{
	return dump(token_object(token, now_s), ret, err);
}

int tokens_json(const struct tokens *t, int64_t now_s, char **ret, struct brig_error *err)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < t->entries.n; i++)
		if (json_array_append_new(list, token_object(&t->entries.item[i].token, now_s)) < 0) {
			json_decref(list);
			return err_nomem(err);
		}
	return dump(list ? json_pack("{s:o}", "tokens", list) : NULL, ret, err);
}

/* ---- changing ---------------------------------------------------------------------------------- */

/* Takes the lock, which the caller closes, and rereads the file under it. */
static int enter(struct tokens *t, int *ret_lock, struct brig_error *err)
{
	int rc;

	*ret_lock = statedir_open_file(&t->dir, TOKENS_LOCK, O_RDWR | O_CREAT, err);
	if (*ret_lock < 0)
		return *ret_lock;
	rc = fd_lock(*ret_lock, LOCK_EX, TOKENS_PATIENCE);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot lock", t->dir.path, TOKENS_LOCK);
	rc = reread(t, err);
	return rc < 0 ? rc : 0;
}

/* Writes all entries but `without` (NULL: none omitted), and `more` (NULL: nothing added); then rereads the file. */
static int rewrite(struct tokens *t, const struct token_entry *without, const struct token_entry *more,
		   struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(TOKENS_FILE_MAX);
	struct token_entries probe = { 0 };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < t->entries.n; i++)
		if (&t->entries.item[i] != without)
			rc = token_line_write(&t->entries.item[i], &text, err);
	if (rc == 0 && more)
		rc = token_line_write(more, &text, err);
	if (rc == 0 && text.full)
		rc = err_set(err, BRIG_E_REFUSED, 0,
			     "'%.200s' would be larger than %llu bytes: revoke tokens that nobody uses", t->path,
			     (unsigned long long)TOKENS_FILE_MAX);
	if (rc == 0)
		rc = token_lines_read(buf_str(&text), text.len, t->path, &probe, err);
	token_entries_release(&probe);
	if (rc == 0)
		rc = statedir_replace(&t->dir, TOKENS_FILE, buf_str(&text), text.len, err);
	if (rc == 0)
		rc = reread(t, err);
	return rc < 0 ? rc : 0;
}

static struct token_entry *entry_named(const struct tokens *t, const char *name)
{
	for (size_t i = 0; i < t->entries.n; i++)
		if (str_eq(t->entries.item[i].token.name, name))
			return &t->entries.item[i];
	return NULL;
}

/*
 * Selects the entry that a new one replaces: a revoked one of the same name, or, if the file is full, the first revoked
 * one.
 */
static int make_room(const struct tokens *t, const char *name, const struct token_entry **ret, struct brig_error *err)
{
	*ret = entry_named(t, name);
	if (*ret && !(*ret)->token.revoked)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "there is a token '%s' already: choose another name, or revoke that one with 'brig "
			       "token revoke'",
			       name);
	for (size_t i = 0; !*ret && t->entries.n == TOKENS_MAX && i < t->entries.n; i++)
		if (t->entries.item[i].token.revoked)
			*ret = &t->entries.item[i];
	if (!*ret && t->entries.n == TOKENS_MAX)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "there are %d tokens already, and none is revoked: revoke one that nobody uses",
			       TOKENS_MAX);
	return 0;
}

static int check_list(const struct token_list *list, const char *what, struct brig_error *err)
{
	if (list->n > TOKEN_LIST_MAX)
		return err_set(err, BRIG_E_USAGE, 0, "a token has at most %d %s, not %zu", TOKEN_LIST_MAX, what,
			       list->n);
	for (size_t i = 0; i < list->n; i++)
		if (!token_is_word(list->item[i]))
			return err_set(err, BRIG_E_USAGE, 0,
				       "'%.80s' cannot be among the %s of a token: names are of lower-case letters, "
				       "digits and "
				       "'._+-', at most %d of them",
				       list->item[i], what, TOKEN_WORD_MAX);
	return 0;
}

static int check_numbers(const struct token *what, struct brig_error *err)
{
	const struct {
		const char *name;
		uint64_t value, max;
	} checks[] = {
		{ "concurrent", what->quota.concurrent, QUOTA_CONCURRENT_MAX },
		{ "runs_per_minute", what->quota.runs_per_minute, QUOTA_RUNS_MAX },
		{ "cpu_seconds_per_hour", what->quota.cpu_seconds_per_hour, QUOTA_CPU_SECONDS_MAX },
		{ "memory_max", what->quota.memory, QUOTA_MEMORY_MAX },
		{ "expires", (uint64_t)what->expires, TOKEN_MOMENT_MAX },
	};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i].value > checks[i].max)
			return err_set(err, BRIG_E_USAGE, 0, "%s of a token is at most %llu, not %llu", checks[i].name,
				       (unsigned long long)checks[i].max, (unsigned long long)checks[i].value);
	if (what->created <= 0 || (uint64_t)what->created > TOKEN_MOMENT_MAX)
		return err_set(err, BRIG_E_USAGE, 0,
			       "a token needs the moment at which it is made: set the clock right");
	return 0;
}

static int check_description(const struct token *what, struct brig_error *err)
{
	int rc;

	if (!token_is_name(what->name))
		return err_set(
			err, BRIG_E_USAGE, 0,
			"'%.80s' cannot be the name of a token: it has 1 to %d letters, digits, '.', '_' and '-', and "
			"begins with a letter or digit",
			what->name, TOKEN_NAME_MAX);
	if ((unsigned)what->max_trust >= TOKEN_TRUST_COUNT)
		return err_set(err, BRIG_E_USAGE, 0, "max_trust of a token is untrusted, unknown or trusted");
	rc = check_list(&what->languages, "languages", err);
	if (rc == 0)
		rc = check_list(&what->backends, "backends", err);
	if (rc == 0)
		rc = check_list(&what->environments, "environments", err);
	if (rc == 0)
		rc = check_list(&what->doors, "doors", err);
	return rc == 0 ? check_numbers(what, err) : rc;
}

int tokens_create(struct tokens *t, const struct token *what, char secret[TOKEN_SECRET_SIZE], struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	struct token_entry entry = { .token = *what };
	const struct token_entry *without = NULL;
	char made[TOKEN_SECRET_SIZE] = TOKEN_PREFIX;
	AUTO_FD lock = FD_NONE;
	int rc = check_description(what, &local);

	entry.token.revoked = 0;
	if (rc == 0 && id_random(made + strlen(TOKEN_PREFIX), TOKEN_RANDOM_LEN) < 0)
		rc = err_set(&local, BRIG_E_SYSTEM, 0, "the kernel gives no random numbers");
	if (rc == 0)
		rc = enter(t, &lock, &local);
	if (rc == 0)
		rc = make_room(t, what->name, &without, &local);
	if (rc == 0) {
		blake2b(made, strlen(made), entry.hash);
		rc = rewrite(t, without, &entry, &local);
	}
	if (rc == 0)
		memcpy(secret, made, sizeof(made));
	else if (err)
		*err = local;
	crypto_wipe(made, sizeof(made));
	return rc;
}

static int mark_revoked(struct tokens *t, const char *name, int64_t now_s, struct brig_error *err)
{
	struct token_entry *entry = entry_named(t, name);

	if (!entry || entry->token.revoked)
		return err_set(err, BRIG_E_USAGE, 0, "there is no token '%.80s'%s: 'brig token list' shows them", name,
			       entry ? " any more, it was revoked" : "");
	entry->token.revoked = now_s > 0 ? now_s : 1;
	return rewrite(t, NULL, NULL, err);
}

int tokens_revoke(struct tokens *t, const char *name, int64_t now_s, struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	AUTO_FD lock = FD_NONE;
	int rc = enter(t, &lock, &local);

	if (rc == 0)
		rc = mark_revoked(t, name, now_s, &local);
	if (rc < 0 && err)
		*err = local;
	return rc;
}
