/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hidden files of a project the program opened.  Each is covered by an empty object of ours (root_project.c), so
 * inotify can report the first time that it is opened: one IN_ONESHOT watch for each.  So there are at most as many
 * events as hidden files, whatever the program does; no process is woken by them, and they are read when the last
 * process is dead.  Nothing but "opened" is recorded.
 */
#include "backend/native/masks.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/str.h"

struct masks_watch {
	int fd;
	bool incomplete; /* the user has no watch left, or the kernel no inotify */
	size_t n;
	struct {
		int wd; /* -1: the file did not exist, so it is not covered */
		bool opened;
	} row[];
};

struct masks_watch *masks_begin(int folder, size_t n)
{
	struct masks_watch *w = calloc(1, sizeof(*w) + n * sizeof(w->row[0]));
	char path[64];

	if (!w)
		return NULL;
	w->n = n;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	w->incomplete = w->fd < 0;
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%zu", folder, i);
		w->row[i].wd = w->fd < 0 ? -1 : inotify_add_watch(w->fd, path, IN_OPEN | IN_ONESHOT | IN_DONT_FOLLOW);
		w->incomplete = w->incomplete || (w->row[i].wd < 0 && errno != ENOENT);
	}
	return w;
}

static void note(struct masks_watch *w, const struct inotify_event *e)
{
	w->incomplete |= (e->mask & IN_Q_OVERFLOW) != 0; /* more hidden files than this host's queues hold events */
	for (size_t i = 0; e->mask & IN_OPEN && i < w->n; i++)
		w->row[i].opened |= w->row[i].wd == e->wd;
}

void masks_end(struct masks_watch *w)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	if (!w || w->fd < 0)
		return;
	/* Watches on files, not on directories: events have no names, so all have the same size. */
	while ((n = read(w->fd, events, sizeof(events))) > 0)
		for (size_t at = 0; at + sizeof(struct inotify_event) <= (size_t)n;) {
			struct inotify_event e;

			memcpy(&e, events + at, sizeof(e));
			note(w, &e);
			at += sizeof(e) + e.len;
		}
	fd_closep(&w->fd);
}

void masks_list(const struct masks_watch *w, const char *const *hidden, struct denied *ret)
{
	for (size_t i = 0; w && i < w->n; i++) {
		struct denied_row row = { .kind = DENIED_FILE,
					  .count = 1,
					  .why = "hidden by policy: it was shown empty" };

		if (!w->row[i].opened)
			continue;
		(void)snprintf(row.what, sizeof(row.what), "%s", hidden[i]);
		(void)snprintf(row.fix, sizeof(row.fix), "workspace_show: %s", hidden[i]);
		(void)denied_add(ret, &row); /* out of memory the list is incomplete, but the run is unaffected */
	}
	if (w && w->incomplete)
		ret->unseen = denied_without_watches;
}

void masks_free(struct masks_watch *w)
{
	if (w)
		fd_closep(&w->fd);
	free(w);
}
