/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/workspaces.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/archive.h"
#include "server/runner/access.h"
#include "server/runner/service.h"

#define FILE_NAME_MAX 40

static uint64_t now_s(void)
{
	return clock_wall_ns() / NS_PER_SEC;
}

static const char *tar_name(const char *id, char dst[FILE_NAME_MAX])
{
	(void)snprintf(dst, FILE_NAME_MAX, "%s.tar", id);
	return dst;
}

/* ---- the list --------------------------------------------------------------------------------------------- */

void workspaces_init(struct workspaces *w)
{
	TAILQ_INIT(&w->all);
	w->dir = (struct statedir)STATEDIR_INIT;
}

struct workspace *workspaces_find(const struct workspaces *all, const char *id)
{
	struct workspace *w;

	TAILQ_FOREACH(w, &all->all, in_age)
	if (str_eq(w->id, id))
		return w;
	return NULL;
}

static void forget(struct workspaces *all, struct workspace *w)
{
	TAILQ_REMOVE(&all->all, w, in_age);
	all->n--;
	all->bytes -= w->bytes;
	free(w);
}

void workspace_remove(struct service *s, struct workspace *w)
{
	char name[FILE_NAME_MAX];

	(void)unlinkat(s->workspaces.dir.fd, w->id, 0);
	(void)unlinkat(s->workspaces.dir.fd, tar_name(w->id, name), 0);
	forget(&s->workspaces, w);
}

void workspaces_sweep(struct service *s)
{
	struct workspace *w, *next;

	for (w = TAILQ_FIRST(&s->workspaces.all); w; w = next) {
		next = TAILQ_NEXT(w, in_age);
		if (w->used_s + WORKSPACE_UNUSED_S < now_s())
			workspace_remove(s, w);
	}
}

int workspaces_room(const struct service *s, const char *owner, uint64_t bytes, bool is_new, struct brig_error *err)
{
	uint64_t own = bytes;
	size_t n = is_new;
	const struct workspace *w;

	TAILQ_FOREACH(w, &s->workspaces.all, in_age)
	if (str_eq(w->owner, owner)) {
		own += w->bytes;
		n += !w->is_store;
	}
	if (n > WORKSPACES_OF_TOKEN || own > WORKSPACES_TOKEN_BYTES)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the token %s may have %d workspaces of %llu MB together: remove one", owner,
			       WORKSPACES_OF_TOKEN, (unsigned long long)(WORKSPACES_TOKEN_BYTES / MiB));
	if (s->workspaces.n + is_new > WORKSPACES_MAX || s->workspaces.bytes + bytes > WORKSPACES_BYTES_MAX)
		return err_set(err, BRIG_E_NOMEM, 0, "there is no room for more workspaces: try again later");
	return 0;
}

void workspaces_make_room(struct service *s, const char *owner, uint64_t bytes)
{
	for (;;) {
		struct workspace *w, *oldest = NULL;
		uint64_t own = bytes;
		size_t n = 1;

		TAILQ_FOREACH(w, &s->workspaces.all, in_age)
		if (str_eq(w->owner, owner)) {
			own += w->bytes;
			n += w->is_store;
			if (w->is_store && (!oldest || w->used_s < oldest->used_s))
				oldest = w;
		}
		if (!oldest || (n <= STORES_OF_TOKEN && own <= WORKSPACES_TOKEN_BYTES))
			return;
		workspace_remove(s, oldest);
	}
}

/* ---- files -------------------------------------------------------------------------------------------------- */

int workspace_read_all(int fd, uint64_t max, struct buf *out, struct brig_error *err)
{
	char piece[32 * KiB];
	off_t at = 0;
	ssize_t n;

	*out = (struct buf)BUF_INIT(max);
	while ((n = pread(fd, piece, sizeof(piece), at)) > 0) {
		if (buf_add(out, piece, (size_t)n) != (size_t)n)
			return out->no_memory ? err_nomem(err)
					      : err_set(err, BRIG_E_USAGE, 0, "an archive has more than %llu MB",
							(unsigned long long)(max / MiB));
		at += n;
	}
	return n < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot read an archive") : 0;
}

/* Written atomically but without fsync(), since the files are short-lived. */
int workspace_write(struct service *s, struct workspace *w, const char *bytes, size_t len, struct brig_error *err)
{
	struct workspaces *all = &s->workspaces;
	char name[FILE_NAME_MAX];
	AUTO_FD fd = statedir_open_file(&all->dir, "new", O_CREAT | O_TRUNC | O_WRONLY, err);

	if (fd < 0)
		return fd;
	if (fd_write_all(fd, bytes, len) < 0 || renameat(all->dir.fd, "new", all->dir.fd, tar_name(w->id, name)) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot write '%.200s/%s.tar'", all->dir.path, w->id);
	all->bytes = all->bytes - w->bytes + len;
	w->bytes = len;
	w->used_s = now_s();
	w->version++;
	return 0;
}

struct workspace *workspace_make(struct service *s, const char *owner, bool is_store, const char *bytes, size_t len,
				 struct brig_error *err)
{
	struct workspaces *all = &s->workspaces;
	struct workspace *w = calloc(1, sizeof(*w));
	char line[160];

	if (!w || id_random(w->id, EXECUTION_ID_LEN) < 0 || !str_copy(w->owner, sizeof(w->owner), owner)) {
		free(w);
		(void)err_nomem(err);
		return NULL;
	}
	w->is_store = is_store;
	w->created_s = w->used_s = now_s();
	TAILQ_INSERT_TAIL(&all->all, w, in_age);
	all->n++;
	(void)snprintf(line, sizeof(line), "workspace %s %llu%s\n", owner, (unsigned long long)w->created_s,
		       is_store ? " store" : "");
	if (workspace_write(s, w, bytes, len, err) < 0 ||
	    statedir_replace(&all->dir, w->id, line, strlen(line), err) < 0) {
		workspace_remove(s, w);
		return NULL;
	}
	return w;
}

int workspace_archive(const struct service *s, const struct workspace *w, struct brig_error *err)
{
	char name[FILE_NAME_MAX];

	return statedir_open_file(&s->workspaces.dir, tar_name(w->id, name), O_RDONLY, err);
}

/* ---- startup --------------------------------------------------------------------------------------------------- */

static void read_one(struct service *s, const char *id)
{
	struct workspaces *all = &s->workspaces;
	char line[160], owner[TOKEN_NAME_MAX + 2], name[FILE_NAME_MAX];
	unsigned long long created_s;
	struct workspace *w;
	struct stat st;

	if (strlen(id) != EXECUTION_ID_LEN || strspn(id, ID_ALPHABET) != EXECUTION_ID_LEN || all->n == WORKSPACES_MAX ||
	    statedir_read(&all->dir, id, line, sizeof(line), NULL) < 0 ||
	    sscanf(line, "workspace %65s %llu", owner, &created_s) != 2 ||
	    fstatat(all->dir.fd, tar_name(id, name), &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return;
	w = calloc(1, sizeof(*w));
	if (!w || !str_copy(w->owner, sizeof(w->owner), owner)) {
		free(w);
		return;
	}
	(void)str_copy(w->id, sizeof(w->id), id);
	w->is_store = strstr(line, " store\n") != NULL;
	w->created_s = created_s;
	w->used_s = (uint64_t)st.st_mtime;
	w->bytes = (uint64_t)st.st_size;
	TAILQ_INSERT_TAIL(&all->all, w, in_age);
	all->n++;
	all->bytes += w->bytes;
}

int workspaces_open(struct service *s, struct brig_error *err)
{
	struct workspaces *all = &s->workspaces;
	int rc = statedir_open_sub(&s->ledger.dir, "workspaces", true, &all->dir, err), fd;
	const struct dirent *entry;
	DIR *dir;

	if (rc < 0)
		return rc;
	fd = openat(all->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot list '%.200s'", all->dir.path);
		if (fd >= 0)
			(void)close(fd);
		return rc;
	}
	while ((entry = readdir(dir)))
		read_one(s, entry->d_name);
	(void)closedir(dir);
	workspaces_sweep(s);
	return 0;
}

void workspaces_close(struct service *s)
{
	struct workspace *w;

	while ((w = TAILQ_FIRST(&s->workspaces.all)))
		forget(&s->workspaces, w);
	statedir_close(&s->workspaces.dir);
}

/* ---- executions with a workspace ------------------------------------------------------------- */

int workspace_use(struct service *s, const struct token *token, const struct message *m, struct job_descriptors *beside,
		  struct brig_error *err)
{
	const char *id = message_text(m, FIELD_workspace);
	struct workspace *w = id ? workspaces_find(&s->workspaces, id) : NULL;
	int fd;

	if (!id)
		return message_number(m, FIELD_keep, 0)
			       ? err_set(err, BRIG_E_USAGE, 0, "keep is for executions on a workspace: name one")
			       : 0;
	if (beside->files >= 0)
		return err_set(err, BRIG_E_USAGE, 0,
			       "a workspace and files do not go together: put the files into one");
	if (!w || !access_owns(token, w->owner))
		return err_set(err, BRIG_E_USAGE, 0, "there is no workspace '%.20s'%s", id,
			       token->admin ? "" : " of this token");
	if (message_number(m, FIELD_keep, 0) &&
	    (message_count(m, FIELD_artifact) > 0 || message_number(m, FIELD_has_out_fd, 0)))
		return err_set(err, BRIG_E_USAGE, 0,
			       "with keep every file that was changed is fetched: leave artifacts out");
	fd = workspace_archive(s, w, err);
	if (fd < 0)
		return fd;
	(void)futimens(fd, NULL);
	w->used_s = now_s();
	beside->files = fd;
	return 0;
}
