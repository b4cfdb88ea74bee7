/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A changeset against the project as it is now, or what a run has just left against what it was given, in the form that git
 * and patch read.  Texts up to DIFF_FILE_MAX are compared line by line; larger ones, and what has NULs in it, is only
 * named.  What would not be moved over is said in a line of its own.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "workspace/internal.h"
#include "workspace/lines.h"

#define DIFF_FILE_MAX (1 * MiB)
#define DIFF_READ_MAX (16 * MiB) /* of what a run left, together: it is read while others wait */

/* One side of a change. */
struct side {
	bool there;
	bool is_binary; /* or too large */
	unsigned mode;  /* as git writes it: 0100644, 0100755, 0120000; all permission bits are shown */
	struct buf content;
};

static void side_release(struct side *s)
{
	buf_release(&s->content);
}

#define AUTO_SIDE             \
	CLEANUP(side_release) \
	struct side

static unsigned git_mode(bool is_link, unsigned mode)
{
	return is_link ? 0120000 : 0100000 | (mode & 0777);
}

static void read_side(struct side *s, int fd)
{
	char piece[16 * 1024];
	ssize_t n;

	s->content.max = DIFF_FILE_MAX;
	while ((n = fd_read_all(fd, piece, sizeof(piece))) > 0 && !s->content.full)
		(void)buf_add(&s->content, piece, (size_t)n);
	s->is_binary = n < 0 || s->content.full || s->content.no_memory ||
		       (s->content.len && memchr(s->content.data, '\0', s->content.len));
}

static void look_at(int root, const char *path, struct side *s)
{
	char target[PATH_MAX];
	struct stat st;
	AUTO_FD seen = beneath_look(root, path, &st);
	AUTO_FD fd = FD_NONE;
	ssize_t n;

	if (seen < 0 || !(S_ISREG(st.st_mode) || S_ISLNK(st.st_mode)))
		return;
	s->there = true;
	s->mode = git_mode(S_ISLNK(st.st_mode), st.st_mode);
	if (S_ISLNK(st.st_mode)) {
		n = readlinkat(seen, "", target, sizeof(target));
		s->content.max = sizeof(target);
		(void)buf_add(&s->content, target, n > 0 ? (size_t)n : 0);
		return;
	}
	fd = beneath_open_file(root, path, NULL);
	if (fd < 0)
		s->is_binary = true;
	else
		read_side(s, fd);
}

static void look_after(const struct keeper *k, const struct kept_row *r, struct side *s)
{
	AUTO_FD fd = FD_NONE;

	if (r->change.kind == CHANGE_DELETED || (r->change.type != CHANGE_FILE && r->change.type != CHANGE_LINK))
		return;
	s->there = true;
	s->mode = git_mode(r->change.type == CHANGE_LINK, r->change.mode);
	if (r->change.type == CHANGE_LINK) {
		s->content.max = PATH_MAX;
		(void)buf_adds(&s->content, r->target ? r->target : "");
		return;
	}
	fd = keeper_content(k, r->change.sha256);
	if (fd < 0)
		s->is_binary = true;
	else
		read_side(s, fd);
}

/* A name as git writes it: in quotes if there is anything in it that a line cannot hold. */
static void put_name(struct buf *out, const char *prefix, const char *path)
{
	bool plain = str_is_utf8(path, strlen(path)) && !strpbrk(path, "\"\\");

	for (const char *p = path; *p && plain; p++)
		plain = (unsigned char)*p >= 0x20 && *p != 0x7f;
	if (plain) {
		(void)buf_addf(out, "%s%s", prefix, path);
		return;
	}
	(void)buf_addf(out, "\"%s", prefix);
	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		if (*p == '"' || *p == '\\')
			(void)buf_addf(out, "\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			(void)buf_addf(out, "\\%03o", *p);
		else
			(void)buf_add(out, p, 1);
	(void)buf_adds(out, "\"");
}

static void put_line(struct buf *out, const char *lead, const char *prefix, const char *path)
{
	(void)buf_adds(out, lead);
	if (prefix)
		put_name(out, prefix, path);
	(void)buf_adds(out, "\n");
}

static bool put_pair(struct buf *out, const char *path, const struct side *a, const struct side *b)
{
	bool same_content = a->there && b->there && !a->is_binary && !b->is_binary &&
			    a->content.len == b->content.len &&
			    (a->content.len == 0 || memcmp(a->content.data, b->content.data, a->content.len) == 0);

	(void)buf_adds(out, "diff --git ");
	put_name(out, "a/", path);
	put_line(out, " ", "b/", path);
	if (!a->there)
		(void)buf_addf(out, "new file mode %06o\n", b->mode);
	else if (!b->there)
		(void)buf_addf(out, "deleted file mode %06o\n", a->mode);
	else if (a->mode != b->mode)
		(void)buf_addf(out, "old mode %06o\nnew mode %06o\n", a->mode, b->mode);
	if (same_content || (!a->content.len && !b->content.len && !a->is_binary && !b->is_binary))
		return true;
	if (a->is_binary || b->is_binary) {
		(void)buf_adds(out, "Binary files ");
		put_name(out, a->there ? "a/" : "", a->there ? path : "/dev/null");
		(void)buf_adds(out, " and ");
		put_name(out, b->there ? "b/" : "", b->there ? path : "/dev/null");
		(void)buf_adds(out, " differ\n");
		return true;
	}
	put_line(out, "--- ", a->there ? "a/" : "", a->there ? path : "/dev/null");
	put_line(out, "+++ ", b->there ? "b/" : "", b->there ? path : "/dev/null");
	return lines_diff((struct text){ buf_str(&a->content), a->content.len },
			  (struct text){ buf_str(&b->content), b->content.len }, out);
}

/* Folders come and go with what is in them; only their permissions have no form that git has. */
static void put_folder(struct buf *out, const struct kept_row *r)
{
	const struct change *c = &r->change;

	if (c->type != CHANGE_DIR || c->kind == CHANGE_DELETED)
		return;
	if (r->before.kind == BEFORE_DIR)
		(void)buf_addf(out, "# folder, mode %04o before, %04o now: ", r->before.mode, c->mode);
	else
		(void)buf_addf(out, "# folder, mode %04o: ", c->mode);
	put_line(out, "", "", c->path);
}

/* Something of another type has taken its place: one is gone, and one is new. */
static bool put_sides(struct buf *out, const char *path, const struct side *a, const struct side *b)
{
	const struct side none = { .there = false };

	if (a->there && b->there && (a->mode & 0170000) != (b->mode & 0170000))
		return put_pair(out, path, a, &none) && put_pair(out, path, &none, b);
	return put_pair(out, path, a, b);
}

static bool put_row(struct buf *out, const struct keeper *k, int project, const struct kept_row *r)
{
	AUTO_SIDE a = { .there = false };
	AUTO_SIDE b = { .there = false };

	if (r->skip != SKIP_NOT) {
		put_line(out, "# not applied: ", "", r->change.path);
		(void)buf_addf(out, "#   %s\n", skip_reason[r->skip]);
		return true;
	}
	look_at(project, r->change.path, &a);
	look_after(k, r, &b);
	if (!a.there && !b.there) {
		put_folder(out, r);
		return true;
	}
	return put_sides(out, r->change.path, &a, &b);
}

bool workspace_diff(const struct workspace *w, const struct workspace_view *view, const struct changes *changes,
		    struct buf *ret)
{
	uint64_t read = 0;
	bool is_whole = true;

	for (size_t i = 0; i < changes->n; i++) {
		const struct change *c = &changes->row[i];
		AUTO_SIDE a = { .there = false };
		AUTO_SIDE b = { .there = false };
		size_t before = ret->len;

		if (c->kind != CHANGE_ADDED)
			look_at(w->fd, c->path, &a);
		if (c->kind != CHANGE_DELETED)
			look_at(view->fd, c->path, &b);
		if (!a.there && !b.there)
			continue; /* a folder, or what has no content */
		read += a.content.len + b.content.len;
		if (read > DIFF_READ_MAX || !put_sides(ret, c->path, &a, &b) || ret->no_memory)
			return false;
		if (ret->full) { /* files are there wholly or not at all; the next one may be smaller */
			ret->len = before;
			ret->full = false;
			is_whole = false;
		}
	}
	return is_whole;
}

int changeset_diff(const struct statedir *state, const char *id, struct buf *ret, struct brig_error *err)
{
	struct changeset set = { .row = NULL };
	AUTO_KEEPER k = KEEPER_INIT;
	AUTO_FOLDER project = FOLDER_INIT;
	bool ok = true;
	int rc = keeper_open(&k, state, id, err);

	if (rc == 0)
		rc = keeper_read(&k, &set, true, err);
	if (rc == 0)
		rc = changeset_project(&set, NULL, state->path, &project, err);
	if (rc == 0)
		rc = changeset_judge(&set, project.fd, err);
	for (size_t i = 0; i < set.n && rc == 0 && ok && !ret->full; i++)
		ok = put_row(ret, &k, project.fd, &set.row[i]);
	changeset_release(&set);
	return rc == 0 && !ok ? err_nomem(err) : rc;
}
