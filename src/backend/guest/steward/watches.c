/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories that the owner watches, by inotify.  A recursive watch has a row for each directory below.  A directory
 * created later is added when its creation is reported; what has been created in it by then is found by reading it, and
 * told as if it had been reported.  What comes between adding and reading may be told twice.  A directory that is renamed
 * within the watched one keeps its row.  Directories that do not fit into the table are not watched.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "backend/guest/steward/inside.h"

#define WATCH_MASK \
	(IN_CREATE | IN_CLOSE_WRITE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR)

static const struct {
	uint32_t mask;
	enum steward_change change;
} changes[] = {
	{ IN_CREATE | IN_MOVED_TO, CHANGE_CREATE },
	{ IN_MODIFY | IN_CLOSE_WRITE, CHANGE_WRITE },
	{ IN_DELETE, CHANGE_REMOVE },
	{ IN_MOVED_FROM, CHANGE_RENAME },
	{ IN_ATTRIB, CHANGE_CHMOD },
};

static void forget(struct watched *w)
{
	free(w->path);
	free(w->name);
	*w = (struct watched){ .wd = -1 };
}

/* Another row of the same watch for the same directory, which inotify has given the same descriptor. */
static struct watched *twin_of(struct steward *s, const struct watched *w)
{
	for (size_t i = 0; i < STEWARD_WATCHES_MAX; i++)
		if (&s->watched[i] != w && s->watched[i].wd == w->wd && s->watched[i].tag == w->tag)
			return &s->watched[i];
	return NULL;
}

/* The directory of old, and those below it, have become those of now.  Without memory they keep their names. */
static void rename_rows(struct steward *s, const struct watched *old, const struct watched *now)
{
	size_t name_len = strlen(old->name), path_len = strlen(old->path);
	AUTO_FREE char *was = strdup(old->name);

	for (size_t i = 0; was && i < STEWARD_WATCHES_MAX; i++) {
		struct watched *w = &s->watched[i];
		char *name, *path;

		if (w == now || w->wd < 0 || w->tag != now->tag || strncmp(w->name, was, name_len) != 0)
			continue;
		name = path = NULL;
		if (asprintf(&name, "%s%s", now->name, w->name + name_len) < 0 ||
		    asprintf(&path, "%s%s", now->path, w->path + path_len) < 0) {
			free(name);
			continue;
		}
		free(w->name);
		free(w->path);
		w->name = name;
		w->path = path;
	}
}

/* 0 or -errno; -EEXIST: this watch has the directory already, perhaps by another name, which it had before. */
static int add(struct steward *s, const struct watched *like, const char *path, const char *name)
{
	struct watched *row = NULL, *twin;

	for (size_t i = 0; i < STEWARD_WATCHES_MAX && !row; i++)
		row = s->watched[i].wd < 0 ? &s->watched[i] : NULL;
	if (!row)
		return -ENOSPC;
	row->path = strdup(path);
	row->name = strdup(name);
	row->tag = like->tag;
	row->recursive = like->recursive;
	row->wd = row->path && row->name ? inotify_add_watch(s->inotify, path, WATCH_MASK) : -1;
	if (row->wd < 0) {
		int sys = row->path && row->name ? errno : ENOMEM;

		forget(row);
		return -sys;
	}
	twin = twin_of(s, row);
	if (twin) {
		if (strcmp(twin->name, name) != 0)
			rename_rows(s, twin, row);
		forget(row);
		return -EEXIST;
	}
	return 0;
}

static void tell_change(struct steward *s, uint64_t tag, enum steward_change change, const char *name)
{
	const char *const words[] = { name };
	const int64_t what = change;

	steward_tell(s, STEWARD_CHANGED, tag, &what, 1, words, 1, FD_NONE);
}

/* Tells of an entry of a new directory, whose creation nobody has reported. */
static void tell_found(struct steward *s, const struct watched *like, const char *folder, const char *name,
		       const struct stat *st)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s%s", folder, name) >= (int)sizeof(path))
		return;
	tell_change(s, like->tag, CHANGE_CREATE, path);
	if (S_ISREG(st->st_mode) && st->st_size > 0)
		tell_change(s, like->tag, CHANGE_WRITE, path);
}

/* Adds the directories below; if path itself is new, tells of everything below it. */
static void add_below(struct steward *s, const struct watched *like, const char *path, const char *name, bool is_new,
		      int depth)
{
	DIR *dir = depth > 0 ? opendir(path) : NULL;
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char below[PATH_MAX], relative[PATH_MAX];
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
		    snprintf(below, sizeof(below), "%s/%s", path, e->d_name) >= (int)sizeof(below) ||
		    snprintf(relative, sizeof(relative), "%s%s/", name, e->d_name) >= (int)sizeof(relative) ||
		    lstat(below, &st) < 0)
			continue;
		if (is_new)
			tell_found(s, like, name, e->d_name, &st);
		if (S_ISDIR(st.st_mode) && add(s, like, below, relative) == 0)
			add_below(s, like, below, relative, is_new, depth - 1);
	}
	if (dir)
		(void)closedir(dir);
}

void watches_begin(struct steward *s)
{
	const struct watched like = { .tag = s->asked.head.tag, .recursive = s->asked.head.number[0] };
	const char *path = s->asked.word[0];
	int rc;

	if (s->inotify < 0)
		s->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	rc = s->inotify < 0 ? -errno : add(s, &like, path, "");
	if (rc == 0 && like.recursive)
		add_below(s, &like, path, "", /* is_new= */ false, STEWARD_DEPTH_MAX);
	steward_done(s, -rc);
}

/* inotify gives two watches of one directory the same descriptor. */
static bool is_shared(const struct steward *s, const struct watched *w)
{
	for (size_t i = 0; i < STEWARD_WATCHES_MAX; i++)
		if (&s->watched[i] != w && s->watched[i].wd == w->wd)
			return true;
	return false;
}

void watches_end(struct steward *s)
{
	const uint64_t tag = (uint64_t)s->asked.head.number[0];
	bool found = false;

	for (size_t i = 0; i < STEWARD_WATCHES_MAX; i++) {
		struct watched *w = &s->watched[i];

		if (w->wd < 0 || w->tag != tag)
			continue;
		found = true;
		if (!is_shared(s, w))
			(void)inotify_rm_watch(s->inotify, w->wd);
		forget(w);
	}
	steward_done(s, found ? 0 : ENOENT);
}

static void tell(struct steward *s, const struct watched *w, const struct inotify_event *e, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(changes); i++)
		if (e->mask & changes[i].mask) {
			tell_change(s, w->tag, changes[i].change, name);
			break;
		}
}

static void serve_folder(struct steward *s, const struct watched *w, const struct inotify_event *e, const char *name)
{
	const struct watched like = { .tag = w->tag, .recursive = true };
	bool is_new = e->mask & IN_CREATE;
	char path[PATH_MAX], folder[PATH_MAX];
	int rc = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s/%s", w->path, e->name) < (int)sizeof(path) &&
	    snprintf(folder, sizeof(folder), "%s/", name) < (int)sizeof(folder))
		rc = add(s, &like, path, folder);
	if (rc != -EEXIST || !is_new) /* otherwise it was found when one above it was read, and told of */
		tell(s, w, e, name);
	if (rc == 0)
		add_below(s, &like, path, folder, is_new, STEWARD_DEPTH_MAX);
}

static void serve_row(struct steward *s, const struct watched *w, const struct inotify_event *e)
{
	char name[PATH_MAX];

	if (e->len == 0 || snprintf(name, sizeof(name), "%s%s", w->name, e->name) >= (int)sizeof(name))
		return;
	if (w->recursive && (e->mask & IN_ISDIR) && (e->mask & (IN_CREATE | IN_MOVED_TO)))
		serve_folder(s, w, e, name);
	else
		tell(s, w, e, name);
}

/* Reports to each row of the directory. */
static void serve_event(struct steward *s, const struct inotify_event *e)
{
	for (size_t i = 0; i < STEWARD_WATCHES_MAX; i++)
		if (s->watched[i].wd == e->wd && s->watched[i].wd >= 0) {
			if (e->mask & IN_IGNORED)
				forget(&s->watched[i]);
			else
				serve_row(s, &s->watched[i], e);
		}
}

void watches_serve(struct steward *s)
{
	char bytes[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(s->inotify, bytes, sizeof(bytes));

	for (const char *at = bytes; n > 0 && at < bytes + n;) {
		const struct inotify_event *e = (const void *)at;

		serve_event(s, e);
		at += sizeof(*e) + e->len;
	}
}
