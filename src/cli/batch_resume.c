/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is written front to back, so whatever ended a batch, all lines of its file except possibly the last are
 * complete.  A partial one is cut off; its job runs again.  The file is read once, line by line; of each only the id is
 * kept.
 */
#include "cli/batch_resume.h"

#include <fcntl.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cli/batch_lines.h"

#define SLOTS_FIRST 1024
#define IDS_MAX     (4 * GiB)
#define RESULT_MAX  (1 * GiB) /* of a line: in JSON, output may be ten times as long */

/* ---- the set of ids ------------------------------------------------------------------------------- */

static size_t hash(const char *id)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 1099511628211u;
	return (size_t)h;
}

/* The slot of an id, or the free one where it belongs. */
static size_t *find(const struct batch_finished *f, const char *id)
{
	size_t i = hash(id) & (f->slots - 1);

	while (f->place[i] && !str_eq(f->ids.data + f->place[i] - 1, id))
		i = (i + 1) & (f->slots - 1);
	return &f->place[i];
}

static bool grow(struct batch_finished *f)
{
	struct batch_finished larger = { .ids = f->ids, .slots = f->slots ? 2 * f->slots : SLOTS_FIRST };

	larger.place = calloc(larger.slots, sizeof(*larger.place));
	if (!larger.place)
		return false;
	for (size_t i = 0; i < f->slots; i++)
		if (f->place[i])
			*find(&larger, f->ids.data + f->place[i] - 1) = f->place[i];
	free(f->place);
	f->place = larger.place;
	f->slots = larger.slots;
	return true;
}

static bool add(struct batch_finished *f, const char *id)
{
	size_t at = f->ids.len, len = strlen(id) + 1, *place;

	if (2 * f->n >= f->slots && !grow(f))
		return false;
	place = find(f, id);
	if (*place)
		return true;
	if (buf_add(&f->ids, id, len) < len)
		return false;
	*place = at + 1;
	f->n++;
	return true;
}

bool batch_finished_has(const struct batch_finished *f, const char *id)
{
	return f->n > 0 && *find(f, id) != 0;
}

void batch_finished_release(struct batch_finished *f)
{
	free(f->place);
	buf_release(&f->ids);
	*f = (struct batch_finished){ .n = 0 };
}

/* ---- the file --------------------------------------------------------------------------------------- */

/* A file with anything but batch results is not changed. */
static int take_line(struct batch_finished *f, const char *line, size_t len, uint64_t number, struct brig_error *err)
{
	json_t *doc = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
	const char *id = json_string_value(json_object_get(doc, "job"));
	int rc = 0;

	if (!id || !json_object_get(doc, "verdict"))
		rc = err_set(err, BRIG_E_USAGE, 0, "its line %llu is no result of a batch", (unsigned long long)number);
	else if (!add(f, id))
		rc = err_nomem(err);
	json_decref(doc);
	return rc;
}

/* Reads everything up to the last newline; *ret_end is the offset after that. */
static int read_results(int fd, struct batch_finished *f, off_t *ret_end, struct brig_error *err)
{
	struct batch_lines lines = BATCH_LINES_INIT(fd, RESULT_MAX);
	const char *line;
	size_t len;
	int rc = 0;

	while (rc == 0) {
		enum batch_line got = batch_lines_next(&lines, &line, &len);

		if (got == BATCH_LINE_END || lines.is_torn)
			break;
		*ret_end = (off_t)lines.offset;
		if (got == BATCH_LINE_WAIT) {
			rc = batch_lines_read(&lines);
			if (rc < 0 && rc != -EAGAIN)
				rc = err_set(err, BRIG_E_SYSTEM, -rc, "cannot read it");
			else
				rc = 0;
		} else if (got == BATCH_LINE_GOOD) {
			rc = take_line(f, line, len, lines.number, err);
		} else {
			rc = err_set(err, BRIG_E_USAGE, 0, "its line %llu is too long for a result",
				     (unsigned long long)lines.number);
		}
	}
	batch_lines_release(&lines);
	return rc;
}

static int go_on(int fd, bool resume, struct batch_finished *f, struct brig_error *err)
{
	off_t end = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot look at it");
	if (st.st_size == 0)
		return 0;
	if (!resume)
		return err_set(err, BRIG_E_USAGE, 0, "there is something in it: --resume goes on with it");
	if (read_results(fd, f, &end, err) < 0)
		return -err->code;
	if (ftruncate(fd, end) < 0 || lseek(fd, end, SEEK_SET) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot cut off its last line");
	return 0;
}

int batch_resume_open(const char *path, bool resume, struct batch_finished *ret, struct brig_error *err)
{
	AUTO_FD fd = open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0644);
	/*
	 * A lock of this process: flock() would be inherited, and outlive a batch that is killed until its last cell is
	 * gone.
	 */
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat st;

	*ret = (struct batch_finished){ .ids = BUF_INIT(IDS_MAX) };
	if (fd < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot open '%.200s' for the results", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, BRIG_E_USAGE, 0,
			       "'%.200s' is no regular file: results go to standard output without --out", path);
	if (fcntl(fd, F_SETLK, &all) < 0)
		return err_set(err, BRIG_E_REFUSED, 0, "another batch writes to '%.200s'", path);
	if (go_on(fd, resume, ret, err) < 0)
		return err_wrap(err, "'%.200s'", path);
	return fd_move(&fd);
}
