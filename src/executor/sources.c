/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/sources.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/walk.h"

#define ENTRIES_MAX 100000

struct search {
	const struct sources *s;
	struct findings *found;
	struct brig_error *err;
	size_t n;
	int rc;
};

static bool has_ending(const struct language *lang, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_LEN(lang->extensions) && lang->extensions[i]; i++) {
		size_t n = strlen(lang->extensions[i]);

		if (len > n && strcasecmp(name + len - n, lang->extensions[i]) == 0)
			return true;
	}
	return false;
}

static int read_source(const struct walk_entry *e, struct buf *ret, struct brig_error *err)
{
	AUTO_FD fd = openat(e->dir, e->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char piece[16 * KiB];
	ssize_t n = fd < 0 ? -errno : 1;

	while (n > 0) {
		n = fd_read_all(fd, piece, sizeof(piece));
		if (n > 0)
			(void)buf_add(ret, piece, (size_t)n);
	}
	if (n < 0)
		return err_set(err, BRIG_E_SYSTEM, (int)-n, "%.200s cannot be read to be inspected", e->path);
	if (ret->no_memory)
		return err_nomem(err);
	return ret->full
		       ? err_set(err, BRIG_E_REFUSED, 0,
				 "%.200s is compiled with the code and too long to be inspected: it may have %zu bytes",
				 e->path, ret->max)
		       : 0;
}

/* The positions belong to another file than the code: the message names that file. */
static bool add_findings(const struct findings *of_file, const char *path, struct findings *ret)
{
	bool whole = true;

	for (size_t i = 0; whole && i < of_file->n; i++) {
		struct finding one = of_file->row[i];

		(void)snprintf(one.message, sizeof(one.message), "in %.60s: %.170s", path, of_file->row[i].message);
		whole = findings_add(ret, &one);
	}
	ret->dropped += of_file->dropped;
	ret->worst = of_file->worst > ret->worst ? of_file->worst : ret->worst;
	return whole;
}

static int inspect_one(struct search *f, const struct walk_entry *e)
{
	const struct sources *s = f->s;
	struct inspect_request what = *s->like;
	AUTO_BUF text = BUF_INIT(BRIG_CODE_MAX);
	struct inspect_job *job = NULL;
	struct findings found = { 0 };
	int rc;

	if (!inspection_kind(s->lang, e->path, &what.kind))
		return 0;
	if (++f->n > SOURCES_MAX)
		return err_set(f->err, BRIG_E_REFUSED, 0,
			       "more than %d files are compiled with the code, which are more than are inspected: send "
			       "fewer, or have what they bring as packages",
			       SOURCES_MAX);
	rc = read_source(e, &text, f->err);
	what.text = buf_str(&text);
	what.len = text.len;
	if (rc == 0)
		rc = inspect_begin(s->spares, s->rules, &what, &job, f->err);
	if (rc == 0)
		rc = inspect_finish(job, &found, f->err);
	if (rc == 0 && !add_findings(&found, e->path, f->found))
		rc = err_nomem(f->err);
	findings_release(&found);
	return rc;
}

static enum walk_next visit(void *arg, const struct walk_entry *e)
{
	struct search *f = arg;

	if (S_ISREG(e->st->st_mode) && has_ending(f->s->lang, e->name) && !str_eq(e->path, f->s->inspected))
		f->rc = inspect_one(f, e);
	return f->rc < 0 ? WALK_STOP : WALK_ON;
}

int sources_inspect(const struct sources *s, struct findings *ret, struct brig_error *err)
{
	const struct walk_caps caps = { .entries = ENTRIES_MAX, .kinds_only = true };
	struct search f = { .s = s, .found = ret, .err = err };
	struct walk_outcome outcome = { 0 };
	int rc = walk_tree(s->folder, &caps, visit, &f, &outcome, err);

	if (rc == 0)
		rc = f.rc;
	if (rc == 0 && (outcome.cut || outcome.unreadable))
		rc = err_set(err, BRIG_E_REFUSED, 0,
			     "the files that are compiled with the code cannot all be looked through: send fewer, or "
			     "in fewer folders");
	return rc;
}
