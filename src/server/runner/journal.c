/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/journal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

/* Number of the first invalid line; 0: none. */
static size_t read_lines(FILE *in, bool (*take)(void *arg, const char *line), void *arg)
{
	char line[JOURNAL_LINE_MAX];
	size_t number = 0;

	while (fgets(line, sizeof(line), in)) {
		size_t len = strlen(line);

		number++;
		if (len > 0 && line[len - 1] == '\n')
			line[len - 1] = '\0';
		else if (feof(in))
			/*
			 * Truncated.  A line with a NUL byte also seems to lack its newline; it is refused unless it is
			 * the last one
			 */
			return 0;
		else
			return number;
		if (!take(arg, line))
			return number;
	}
	return 0;
}

int journal_open_file(const struct statedir *dir, const char *name, FILE **ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_FD fd = statedir_open_file(dir, name, O_RDONLY, &why);

	if (fd < 0 && why.sys == ENOENT)
		return 0;
	if (fd < 0) {
		*err = why;
		return fd;
	}
	*ret = fdopen(fd, "r");
	if (!*ret)
		return err_nomem(err);
	(void)fd_move(&fd);
	return 0;
}

int journal_open(struct journal *j, const struct statedir *dir, const char *name, const char *loss,
		 bool (*take)(void *arg, const char *line), void *arg, struct brig_error *err)
{
	FILE *in = NULL;
	int rc = journal_open_file(dir, name, &in, err);
	size_t bad;

	j->dir = dir;
	j->name = name;
	if (rc < 0 || !in)
		return rc;
	bad = read_lines(in, take, arg);
	(void)fclose(in);
	if (bad == 0)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"'%.200s/%s' has been damaged: line %zu is none of brig's. Restore the file, or move it away: then %s",
		dir->path, name, bad, loss);
}

int journal_replace(struct journal *j, const struct buf *lines, struct brig_error *err)
{
	int rc;

	if (lines->no_memory || lines->full)
		return err_nomem(err);
	rc = statedir_replace(j->dir, j->name, buf_str(lines), lines->len, err);
	if (rc < 0)
		return rc;
	j->bytes = lines->len;
	fd_closep(&j->fd);
	j->fd = statedir_open_file(j->dir, j->name, O_WRONLY | O_APPEND, err);
	return j->fd < 0 ? j->fd : 0;
}

bool journal_has_grown(const struct journal *j)
{
	return j->bytes > JOURNAL_FILE_MAX;
}

int journal_commit(struct journal *j, bool to_disk, struct brig_error *err)
{
	bool is_whole = !j->pending.full && !j->pending.no_memory;
	int rc = j->pending.len > 0 ? fd_write_all(j->fd, j->pending.data, j->pending.len) : 0;

	if (rc < 0)
		/* remove a partial line, so that later ones start on a line of their own */
		(void)!ftruncate(j->fd, (off_t)j->bytes);
	else
		j->bytes += j->pending.len;
	j->pending.len = 0;
	j->pending.full = j->pending.no_memory = false;
	if (rc == 0 && to_disk && fdatasync(j->fd) < 0)
		rc = -errno;
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot write '%.200s/%s'", j->dir->path, j->name);
	return is_whole ? 0 : err_nomem(err);
}

void journal_close(struct journal *j)
{
	fd_closep(&j->fd);
	buf_release(&j->pending);
}
