/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.c - the forms of what brig keeps: brig_state_upgrade().
 *
 * Each part of the state directory states its own format version.  All are checked before anything is changed, so that
 * a directory which a newer brig has used is left alone as a whole.  Writers migrate an old database automatically;
 * this does the same on request, and reports it.  Parts that have had only one format so far need no migration.
 */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>

#include "api/handle.h"
#include "api/request.h"
#include "audit/audit.h"
#include "base/fd.h"
#include "base/str.h"
#include "history/history.h"
#include "metrics/layout.h"
#include "model/json.h"
#include "packages/environment.h"
#include "sys/statedir.h"
#include "workspace/workspace.h"

#define HEAD_BYTES (64 * KiB) /* of a document, or of a log's first line */

struct part {
	const char *name, *where;
	uint64_t known;
	/* *ret: the highest version found; 0: none. */
	int (*look)(const struct statedir *state, uint64_t *ret, struct brig_error *err);
	int (*upgrade)(const struct statedir *state, struct brig_error *err); /* NULL: only one format so far */
};

/* ---- detection ------------------------------------------------------------------------------------- */

/* The number in a member of the object in the file's first line, or in the whole file. */
static int document_number(const struct statedir *dir, const char *file, const char *member, uint64_t *ret,
			   struct brig_error *err)
{
	AUTO_FREE char *text = malloc(HEAD_BYTES);
	AUTO_FD fd = statedir_open_file(dir, file, O_RDONLY, err);
	json_int_t number = 0;
	json_t *doc;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (!text)
		return err_nomem(err);
	n = fd_read_all(fd, text, HEAD_BYTES);
	doc = n < 0 ? NULL : json_loadb(text, (size_t)n, JSON_DISABLE_EOF_CHECK, NULL);
	if (doc)
		number = json_integer_value(json_object_get(doc, member));
	json_decref(doc);
	if (number <= 0)
		return err_set(err, BRIG_E_SYSTEM, 0,
			       "'%.200s/%.60s' does not say its %s: it is damaged, or no file of brig", dir->path, file,
			       member);
	*ret = max_u64(*ret, (uint64_t)number);
	return 0;
}

typedef int each_fn(const struct statedir *dir, const char *name, uint64_t *ret, struct brig_error *err);

/* Calls `each` for every name in the folder that does not begin with a dot. */
static int each_name(const struct statedir *dir, each_fn *each, uint64_t *ret, struct brig_error *err)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		rc = statedir_trouble(err, errno, "cannot list", dir->path, NULL);
		fd_closep(&fd);
		return rc;
	}
	for (const struct dirent *e; rc == 0 && (e = readdir(d));)
		if (e->d_name[0] != '.')
			rc = each(dir, e->d_name, ret, err);
	(void)closedir(d);
	return rc;
}

static int look_in(const struct statedir *state, const char *folder, each_fn *each, uint64_t *ret,
		   struct brig_error *err)
{
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int rc = statedir_open_if_there(state, folder, &dir, err);

	return rc <= 0 ? rc : each_name(&dir, each, ret, err);
}

static bool ends_in(const char *name, const char *ending)
{
	size_t len = strlen(name), tail = strlen(ending);

	return len > tail && str_eq(name + len - tail, ending);
}

static int each_log(const struct statedir *dir, const char *name, uint64_t *ret, struct brig_error *err)
{
	return ends_in(name, ".jsonl") ? document_number(dir, name, "format", ret, err) : 0;
}

static int look_audit(const struct statedir *state, uint64_t *ret, struct brig_error *err)
{
	return look_in(state, "audit", each_log, ret, err);
}

static int each_environment(const struct statedir *dir, const char *name, uint64_t *ret, struct brig_error *err)
{
	return ends_in(name, ".json") ? document_number(dir, name, "version", ret, err) : 0;
}

static int look_environments(const struct statedir *state, uint64_t *ret, struct brig_error *err)
{
	return look_in(state, "environments", each_environment, ret, err);
}

/* A file being written or removed has no header, and its name is no id. */
static int each_changeset(const struct statedir *dir, const char *name, uint64_t *ret, struct brig_error *err)
{
	AUTO_STATEDIR one = STATEDIR_INIT;
	int rc = statedir_open_if_there(dir, name, &one, err);

	if (rc <= 0 || faccessat(one.fd, "head.json", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return rc < 0 ? rc : 0;
	return document_number(&one, "head.json", "version", ret, err);
}

static int look_changes(const struct statedir *state, uint64_t *ret, struct brig_error *err)
{
	return look_in(state, "workspaces", each_changeset, ret, err);
}

static int look_history(const struct statedir *state, uint64_t *ret, struct brig_error *err)
{
	return history_version(&(struct history_place){ .dir = state }, ret, err);
}

static int upgrade_history(const struct statedir *state, struct brig_error *err)
{
	return history_upgrade(&(struct history_place){ .dir = state }, err);
}

static int look_metrics(const struct statedir *state, uint64_t *ret, struct brig_error *err)
{
	struct metrics_header head = { 0 };
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_FD fd = statedir_open_file(state, METRICS_FILE, O_RDONLY, &why);

	if (fd < 0 && why.sys == ENOENT)
		return 0;
	if (fd < 0) {
		if (err)
			*err = why;
		return fd;
	}
	if (fd_read_all(fd, head.magic, sizeof(head.magic)) != sizeof(head.magic) ||
	    memcmp(head.magic, "brigmtr", 7) != 0 || head.magic[7] < '1' || head.magic[7] > '9')
		return err_set(err, BRIG_E_SYSTEM, 0, "'%.200s/" METRICS_FILE "' is damaged, or no file of brig",
			       state->path);
	*ret = (uint64_t)(head.magic[7] - '0');
	return 0;
}

static const struct part parts[] = {
	{ "audit log", "audit", AUDIT_FORMAT, look_audit, NULL },
	{ "history", "history.db", HISTORY_VERSION, look_history, upgrade_history },
	{ "metrics", METRICS_FILE, METRICS_FORMAT - '0', look_metrics, NULL },
	{ "environments", "environments", ENVIRONMENT_VERSION, look_environments, NULL },
	{ "changes", "workspaces", CHANGES_VERSION, look_changes, NULL },
};

/* ---- upgrade --------------------------------------------------------------------------------------- */

struct found {
	uint64_t version;
	const char *state;
	struct brig_error problem; /* of "unreadable" */
};

static void look_at(const struct part *p, const struct statedir *dir, struct found *ret)
{
	*ret = (struct found){ .problem = BRIG_ERROR_INIT };
	if (p->look(dir, &ret->version, &ret->problem) < 0)
		ret->state = "unreadable";
	else if (ret->version == 0)
		ret->state = "absent";
	else
		ret->state = ret->version < p->known ? "old" : "current";
}

static int refuse_newer(const struct part *p, const struct statedir *dir, uint64_t version, struct brig_error *err)
{
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"'%.200s/%s' is of version %llu and this brig knows %llu: a newer brig has used this folder. Use that "
		"one, or name another folder with --state or $BRIG_STATE. Nothing was changed",
		dir->path, p->where, (unsigned long long)version, (unsigned long long)p->known);
}

static void bring_up(const struct part *p, const struct statedir *dir, struct found *f)
{
	if (!str_eq(f->state, "old") || !p->upgrade)
		return;
	f->state = p->upgrade(dir, &f->problem) < 0 ? "unreadable" : "upgraded";
}

static json_t *part_json(const struct part *p, const struct found *f)
{
	bool bad = str_eq(f->state, "unreadable");

	return json_pack("{s:s, s:s, s:o, s:I, s:s, s:o}", "part", p->name, "where", p->where, "found",
			 f->version ? json_integer((json_int_t)f->version) : json_null(), "known", (json_int_t)p->known,
			 "state", f->state, "problem", bad ? json_text(f->problem.msg) : json_null());
}

static int report(const struct statedir *dir, const struct found *found, char **ret, struct brig_error *err)
{
	json_t *rows = json_array(), *doc;
	bool ok = true;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		ok &= !str_eq(found[i].state, "unreadable");
		if (json_array_append_new(rows, part_json(&parts[i], &found[i])) < 0) {
			json_decref(rows);
			return err_nomem(err);
		}
	}
	doc = json_pack("{s:b, s:o, s:o}", "ok", ok, "folder", json_text(dir->path), "parts", rows);
	*ret = doc ? json_dumps(doc, JSON_INDENT(2)) : NULL;
	json_decref(doc);
	return *ret ? 0 : err_nomem(err);
}

/* A missing folder needs no upgrade. */
static int open_state(struct brig *b, struct statedir *dir, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	int rc = statedir_open(b->recorder.state, false, dir, &why);

	if (rc == 0)
		return 1;
	if (why.sys == ENOENT)
		return statedir_path(b->recorder.state, dir->path, sizeof(dir->path), err);
	if (err)
		*err = why;
	return rc;
}

int brig_state_upgrade(struct brig *b, uint32_t flags, char **ret, struct brig_error *err)
{
	struct found found[ARRAY_LEN(parts)];
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int there;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_state_upgrade needs a handle and a place for the text");
	if (flags & ~BRIG_STATE_LOOK)
		return err_set(err, BRIG_E_USAGE, 0, "flags has bits that mean nothing: 0x%x", flags);
	there = open_state(b, &dir, err);
	if (there < 0)
		return there;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		found[i] = (struct found){ .state = "absent" };
		if (there)
			look_at(&parts[i], &dir, &found[i]);
		if (found[i].version > parts[i].known)
			return refuse_newer(&parts[i], &dir, found[i].version, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(parts) && !(flags & BRIG_STATE_LOOK); i++)
		bring_up(&parts[i], &dir, &found[i]);
	return report(&dir, found, ret, err);
}
