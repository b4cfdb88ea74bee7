/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_files.c - batches in the state directory
 *
 *	batch OWNER SECONDS COUNT
 *	ID NAME                       of each job; a name has no control characters, so it ends at the newline
 *
 * A file is written once and never changed.  One older than the ledger's memory is removed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "server/runner/service.h"

#define FILE_BYTES_MAX (BATCH_JOBS_MAX * (EXECUTION_ID_LEN + BATCH_NAME_MAX + 2) + 256)

int batch_write(const struct batches *all, const struct batch *b, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(FILE_BYTES_MAX);

	buf_addf(&text, "batch %s %llu %zu\n", b->owner, (unsigned long long)(b->created_ns / NS_PER_SEC), b->n);
	for (size_t i = 0; i < b->n; i++)
		buf_addf(&text, "%s %s\n", b->job[i].id, b->job[i].name);
	if (text.full || text.no_memory)
		return err_nomem(err);
	return statedir_replace(&all->dir, b->id, buf_str(&text), text.len, err);
}

void batch_unlink(const struct batches *all, const struct batch *b)
{
	(void)unlinkat(all->dir.fd, b->id, 0);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

static bool is_id(const char *text, size_t len)
{
	return len == EXECUTION_ID_LEN && strspn(text, ID_ALPHABET) >= EXECUTION_ID_LEN;
}

/* From the ledger, or, if that has no line any more, from the history. */
static void read_outcome(struct service *s, struct batch_job *j)
{
	const struct ledger_past *p = ledger_find(&s->ledger, j->id);
	char *text = NULL;

	if (p && !str_eq(p->verdict, LEDGER_LOST)) {
		j->state = JOB_ENDED;
		(void)str_copy(j->verdict, sizeof(j->verdict), p->verdict);
	} else if (!p && brig_show_json(s->host->b, j->id, &text, NULL) == 0) {
		j->state = JOB_ENDED;
	} else {
		j->state = JOB_LOST;
	}
	brig_free(text);
}

/* Parses one line and returns the start of the next; NULL: invalid. */
static char *read_job(struct service *s, struct batch *b, char *line)
{
	struct batch_job *j = &b->job[b->n];
	char *end = strchr(line, '\n');

	if (!end || !is_id(line, strcspn(line, " ")) || end - line <= EXECUTION_ID_LEN + 1)
		return NULL;
	*end = line[EXECUTION_ID_LEN] = '\0';
	(void)str_copy(j->id, sizeof(j->id), line);
	j->name = strdup(line + EXECUTION_ID_LEN + 1);
	if (!j->name)
		return NULL;
	b->n++;
	read_outcome(s, j);
	return end + 1;
}

static struct batch *read_text(struct service *s, const char *id, char *text)
{
	char owner[TOKEN_NAME_MAX + 2];
	unsigned long long at_s;
	struct batch *b;
	size_t n;
	char *line = strchr(text, '\n');

	if (!line || sscanf(text, "batch %65s %llu %zu", owner, &at_s, &n) != 3 || n == 0 || n > BATCH_JOBS_MAX)
		return NULL;
	b = batch_new(n, owner);
	if (!b)
		return NULL;
	(void)str_copy(b->id, sizeof(b->id), id);
	b->created_ns = b->ended_ns = at_s * NS_PER_SEC;
	line++;
	while (line && b->n < n)
		line = read_job(s, b, line);
	if (line)
		return b;
	batch_free(b);
	return NULL;
}

static bool is_old(const struct batch *b)
{
	return b->created_ns / NS_PER_SEC + LEDGER_PAST_S < clock_wall_ns() / NS_PER_SEC;
}

static void insert_by_age(struct service *s, struct batch *b)
{
	struct batch *before = TAILQ_LAST(&s->batches.all, batch_list);

	while (before && before->created_ns > b->created_ns)
		before = TAILQ_PREV(before, batch_list, in_age);
	if (before)
		TAILQ_INSERT_AFTER(&s->batches.all, before, b, in_age);
	else
		TAILQ_INSERT_HEAD(&s->batches.all, b, in_age);
	s->batches.n++;
}

/* Foreign and truncated files are left alone. */
static void read_one(struct service *s, const char *name, char *text)
{
	struct batch *b;

	if (!is_id(name, strlen(name)) || statedir_read(&s->batches.dir, name, text, FILE_BYTES_MAX, NULL) < 0)
		return;
	b = read_text(s, name, text);
	if (!b)
		return;
	if (is_old(b) || !batches_make_room(s)) {
		batch_unlink(&s->batches, b);
		batch_free(b);
		return;
	}
	insert_by_age(s, b);
}

int batches_read(struct service *s, struct brig_error *err)
{
	AUTO_FREE char *text = malloc(FILE_BYTES_MAX);
	int fd = openat(s->batches.dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && fd >= 0)
		(void)close(fd);
	if (!dir || !text) {
		if (dir)
			(void)closedir(dir);
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot list '%.200s'", s->batches.dir.path);
	}
	while ((entry = readdir(dir)))
		read_one(s, entry->d_name, text);
	(void)closedir(dir);
	return 0;
}
