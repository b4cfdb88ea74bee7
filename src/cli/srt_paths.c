/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srt shows the whole host and removes parts; a cell shows the system's programs and one directory, the workspace.  So
 * only paths matter that relate to the workspace, or to what every cell shows:
 *
 *	denyRead	above the workspace: there is no workspace; below it: hidden; of the system: refused
 *	allowWrite	above the workspace: it is writable; below it: refused, since a workspace is writable as a whole
 *	denyWrite	above the workspace: it is read-only; below it: hidden, which is stricter
 *	other paths	are not in the cell: denied ones stay denied, allowed ones get a notice
 *
 * Links: each path is considered both as written and as resolved by the file system.  '..' is refused, because the two
 * ways of resolving it (by name, through links) lead to different places.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/srt.h"

#define PATTERN_MAX 95 /* length of an item in a list of the policy */

struct path {
	const char *place; /* "filesystem.denyRead[0]" */
	const char *text;  /* as written */
	char *form[2];     /* absolute: as written, and resolved */
	size_t fixed[2];   /* length before the first component with a wildcard; the full length if there is none */
	bool is_glob;
	bool is_final; /* allowRead does not override it */
};

struct path_list {
	struct path *item;
	size_t n;
};

struct judged {
	struct srt *s;
	struct json_reader *r;
	const struct srt_place *place;
	struct path_list deny_read, allow_read, allow_write, deny_write;
};

/* ---- one path -------------------------------------------------------------------------------- */

static int complain(struct json_reader *r, const struct path *p, const char *what)
{
	return err_set(r->err, BRIG_E_USAGE, 0, "%s '%.200s' %s", p->place, p->text, what);
}

static bool has_parent_part(const char *text)
{
	for (const char *at = text; (at = strstr(at, "..")); at += 2)
		if ((at == text || at[-1] == '/') && (at[2] == '/' || at[2] == '\0'))
			return true;
	return false;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

/* Adds the components of a path, without empty ones and '.'. */
static void add_parts(struct buf *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "/");

		if (len > 0 && !(len == 1 && *text == '.'))
			(void)buf_addf(out, "/%.*s", (int)len, text);
		text += len + (text[len] == '/');
	}
}

/* "/a/" followed by two stars is "/a". */
static void drop_tail(struct buf *out)
{
	while (out->len >= 3 && strcmp(out->data + out->len - 3, "/**") == 0) {
		out->len -= 3;
		out->data[out->len] = '\0';
	}
	if (out->len == 0)
		buf_adds(out, "/");
}

static int make_absolute(struct json_reader *r, const struct srt_place *place, const struct path *p, struct buf *out)
{
	const char *text = p->text;

	if (*text == '\0')
		return complain(r, p, "is empty");
	if (has_control(text) || strchr(text, '\\'))
		return complain(r, p, "has control characters or '\\' in it, which brig does not take");
	if (has_parent_part(text))
		return complain(r, p, "has '..' in it: write the path that it leads to");
	if (*text == '~' && text[1] != '\0' && text[1] != '/')
		return complain(r, p, "names the home of somebody: write its path; only '~/' is expanded");
	if (*text == '~' && (!place->home || *place->home != '/'))
		return complain(r, p, "cannot be expanded: $HOME is no absolute path");
	if (*text == '~')
		add_parts(out, place->home);
	else if (*text != '/')
		add_parts(out, place->cwd);
	add_parts(out, *text == '~' ? text + 1 : text);
	drop_tail(out);
	return out->full ? complain(r, p, "is too long") : 0;
}

/* Length up to the slash before the first wildcard. */
static size_t fixed_length(const char *path, bool *ret_glob)
{
	size_t len = strcspn(path, "*?[");

	*ret_glob = path[len] != '\0';
	while (*ret_glob && len > 0 && path[len] != '/')
		len--;
	return *ret_glob && len == 0 ? 1 : len;
}

/* Resolves the part without wildcards, as far as it exists; appends the rest unchanged. */
static void resolve(const char *path, size_t fixed, struct buf *out, size_t *ret_fixed)
{
	char head[PATH_MAX], real[PATH_MAX];
	size_t len = fixed;

	(void)str_copy(head, sizeof(head), path);
	head[len] = '\0';
	while (len > 1 && !realpath(head, real)) {
		while (len > 1 && head[len - 1] != '/')
			len--;
		if (len > 1)
			len--; /* the slash itself */
		head[len] = '\0';
	}
	if (len <= 1)
		len = 0; /* no part of it exists */
	else if (!str_eq(real, "/"))
		buf_adds(out, real);
	*ret_fixed = out->len + fixed - len;
	buf_adds(out, path + len);
	if (out->len == 0)
		buf_adds(out, "/");
	if (*ret_fixed == 0)
		*ret_fixed = 1;
}

static char *keep(struct json_reader *r, const struct buf *text)
{
	char *copy = json_blocks_alloc(r->blocks, text->len + 1, 1);

	if (copy)
		memcpy(copy, buf_str(text), text->len + 1);
	return copy;
}

static int read_path(struct json_reader *r, const struct srt_place *place, struct path *p)
{
	AUTO_BUF absolute = BUF_INIT(PATH_MAX - 1);
	AUTO_BUF real = BUF_INIT(2 * PATH_MAX);
	int rc = make_absolute(r, place, p, &absolute);

	if (rc < 0)
		return rc;
	p->fixed[0] = fixed_length(buf_str(&absolute), &p->is_glob);
	resolve(buf_str(&absolute), p->fixed[0], &real, &p->fixed[1]);
	p->form[0] = keep(r, &absolute);
	p->form[1] = keep(r, &real);
	if (!p->form[0] || !p->form[1] || absolute.no_memory || real.no_memory)
		return err_nomem(r->err);
	if (p->is_glob && access(p->form[0], F_OK) == 0)
		return complain(r, p,
				"is a file as well as a pattern: brig cannot tell what is meant; rename the file");
	return 0;
}

/* Appends to the list, which has room. */
static int read_paths(struct judged *j, const char *name, const struct json_strings *from, bool is_final,
		      struct path_list *ret)
{
	int rc = 0;

	for (size_t i = 0; i < from->n && rc == 0; i++) {
		struct path *p = &ret->item[ret->n++];
		char *place = json_blocks_alloc(j->r->blocks, 64, 1);

		if (!place)
			return err_nomem(j->r->err);
		(void)snprintf(place, 64, "%s[%zu]", name, i);
		*p = (struct path){ .place = place, .text = from->item[i], .is_final = is_final };
		rc = read_path(j->r, j->place, p);
	}
	return rc;
}

/* ---- relations between paths ----------------------------------------------------------------- */

/* Whether b is below or equal to the first len bytes of a. */
static bool is_below(const char *a, size_t len, const char *b)
{
	if (len == 1)
		return true; /* the root */
	return strncmp(a, b, len) == 0 && (b[len] == '/' || b[len] == '\0');
}

static bool covers(const struct path *a, const char *b)
{
	if (a->is_glob)
		return false;
	return is_below(a->form[0], a->fixed[0], b) || is_below(a->form[1], a->fixed[1], b);
}

/* A pattern that begins above the path may match it. */
static bool may_cover(const struct path *a, const char *b)
{
	for (int i = 0; a->is_glob && i < 2; i++)
		if (is_below(a->form[i], a->fixed[i], b) && strlen(b) > a->fixed[i])
			return true;
	return false;
}

/* The form that is below or equal to folder; -1: none. */
static int form_within(const struct path *a, const char *folder, int from)
{
	size_t len = strlen(folder);

	for (int i = from; i < 2; i++)
		if (is_below(folder, len, a->form[i]) && a->fixed[i] >= len)
			return i;
	return -1;
}

/* Whether an allowRead below the denied path permits this place again. */
static bool is_taken_back(const struct judged *j, const struct path *denied, const char *place)
{
	for (size_t i = 0; i < j->allow_read.n && !denied->is_final; i++) {
		const struct path *a = &j->allow_read.item[i];

		if (covers(a, place) && covers(denied, a->form[1]))
			return true;
	}
	return false;
}

/* ---- effects --------------------------------------------------------------------------------- */

static int hide(struct judged *j, const struct path *p)
{
	size_t len = strlen(j->place->workspace);

	for (int i = form_within(p, j->place->workspace, 0); i >= 0; i = form_within(p, j->place->workspace, i + 1)) {
		const char *pattern = p->form[i] + (len == 1 ? 0 : len);
		size_t size = strlen(pattern);

		if (i == 1 && str_eq(p->form[0], p->form[1]))
			break;
		if (strchr(pattern, ',') || pattern[size - 1] == ' ' || size > PATTERN_MAX)
			return complain(j->r, p,
					"cannot be hidden: patterns of brig's have at most 95 bytes, no comma and "
					"no blank at the end; name a folder above it");
		(void)buf_addf(&j->s->hide, "%s%s", j->s->hide.len ? "," : "", pattern);
	}
	return 0;
}

/* What every cell shows cannot be hidden. */
static int judge_shown(const struct judged *j, const struct path *p)
{
	static const char *const shown[] = {
#define SHOWN(path) path,
#include "cli/srt.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		bool is_above = covers(p, shown[i]) || may_cover(p, shown[i]);
		int form = form_within(p, shown[i], 0);

		if ((is_above && !is_taken_back(j, p, shown[i])) || (form >= 0 && !is_taken_back(j, p, p->form[form])))
			return err_set(
				j->r->err, BRIG_E_USAGE, 0,
				"%s '%.200s' cannot be honoured: every cell shows %s; take it out, or name what is "
				"meant outside of it, or allow that in filesystem.allowRead",
				p->place, p->text, shown[i]);
	}
	return 0;
}

static int judge_deny_read(struct judged *j, const struct path *p)
{
	const char *workspace = j->place->workspace;

	if (judge_shown(j, p) < 0)
		return -j->r->err->code;
	if (may_cover(p, workspace))
		return complain(j->r, p,
				"cannot be honoured: its wild-cards begin above the workspace; write it once for "
				"the workspace, beginning with './', and without them elsewhere");
	if (covers(p, workspace)) {
		if (is_taken_back(j, p, workspace))
			return 0;
		if (j->s->has_workspace)
			srt_notice(j->s, "%s: the workspace is not shown", p->place);
		j->s->has_workspace = false;
		return 0;
	}
	if (form_within(p, workspace, 0) < 0 || is_taken_back(j, p, p->form[1]))
		return 0;
	return hide(j, p);
}

static int judge_deny_write(struct judged *j, const struct path *p)
{
	const char *workspace = j->place->workspace;

	if (may_cover(p, workspace))
		return complain(j->r, p,
				"cannot be honoured: its wild-cards begin above the workspace; write it once for "
				"the workspace, beginning with './', and without them elsewhere");
	if (covers(p, workspace)) {
		j->s->may_write = false;
		return 0;
	}
	if (form_within(p, workspace, 0) < 0 || !j->s->may_write)
		return 0;
	srt_notice(j->s, "%s: '%.200s' cannot be read either: brig protects it by hiding it", p->place, p->text);
	return hide(j, p);
}

static int judge_allow_write(struct judged *j)
{
	const char *workspace = j->place->workspace;
	const struct path *part = NULL;

	for (size_t i = 0; i < j->allow_write.n; i++) {
		const struct path *p = &j->allow_write.item[i];

		if (p->is_glob)
			return complain(j->r, p, "cannot be honoured: wild-cards cannot allow; name the folder");
		if (covers(p, workspace)) {
			j->s->may_write = true;
			if (!str_eq(p->form[1], workspace))
				srt_notice(j->s, "%s: of '%.200s' only the workspace can be written", p->place,
					   p->text);
		} else if (form_within(p, workspace, 0) >= 0) {
			part = p;
		} else {
			srt_notice(j->s, "%s: '%.200s' is not in the cell, which has a /tmp of its own", p->place,
				   p->text);
		}
	}
	if (part && !j->s->may_write)
		return complain(j->r, part,
				"cannot be honoured: a workspace is writable as a whole; allow '.', or start "
				"brig in that folder");
	return 0;
}

/* Paths that an allowRead permits and that the cell does not have. */
static int judge_allow_read(struct judged *j)
{
	for (size_t i = 0; i < j->allow_read.n; i++) {
		const struct path *p = &j->allow_read.item[i];
		bool is_hidden = false;

		if (p->is_glob)
			return complain(j->r, p, "cannot be honoured: wild-cards cannot allow; name the folder");
		for (size_t k = 0; k < j->deny_read.n; k++)
			is_hidden |= covers(&j->deny_read.item[k], p->form[1]) &&
				     !is_taken_back(j, &j->deny_read.item[k], j->deny_read.item[k].form[1]) &&
				     !covers(p, j->place->workspace);
		if (is_hidden && j->s->has_workspace && form_within(p, j->place->workspace, 0) >= 0)
			srt_notice(j->s, "%s: '%.200s' stays hidden with the folder that denyRead names", p->place,
				   p->text);
		else if (form_within(p, j->place->workspace, 0) < 0 && !covers(p, j->place->workspace))
			srt_notice(j->s, "%s: '%.200s' is shown only if it is part of every cell", p->place, p->text);
	}
	return 0;
}

static void protect(struct srt *s)
{
	static const char *const patterns[] = {
#define PROTECTED(pattern) pattern,
#include "cli/srt.def"
	};

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		(void)buf_addf(&s->hide, "%s%s", s->hide.len ? "," : "", patterns[i]);
}

static int read_lists(struct judged *j, const struct srt_files *files)
{
	const struct {
		const char *name;
		const struct json_strings *from;
		bool is_final;
		struct path_list *into;
	} lists[] = {
		{ "filesystem.denyRead", &files->deny_read, false, &j->deny_read },
		{ "credentials.files", &files->credentials, true, &j->deny_read },
		{ "filesystem.allowRead", &files->allow_read, false, &j->allow_read },
		{ "filesystem.allowWrite", &files->allow_write, false, &j->allow_write },
		{ "filesystem.denyWrite", &files->deny_write, false, &j->deny_write },
	};
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(lists) && rc == 0; i++) {
		if (!lists[i].into->item)
			lists[i].into->item =
				json_blocks_alloc(j->r->blocks, (size_t)2 * SRT_ITEMS_MAX, sizeof(struct path));
		if (!lists[i].into->item)
			return err_nomem(j->r->err);
		rc = read_paths(j, lists[i].name, lists[i].from, lists[i].is_final, lists[i].into);
	}
	return rc;
}

int srt_paths(struct srt *s, struct json_reader *r, const struct srt_files *files, const struct srt_place *place)
{
	struct judged j = { .s = s, .r = r, .place = place };

	s->has_workspace = true;
	if (read_lists(&j, files) < 0 || judge_allow_write(&j) < 0)
		return -r->err->code;
	for (size_t i = 0; i < j.deny_write.n; i++)
		if (judge_deny_write(&j, &j.deny_write.item[i]) < 0)
			return -r->err->code;
	for (size_t i = 0; i < j.deny_read.n; i++)
		if (judge_deny_read(&j, &j.deny_read.item[i]) < 0)
			return -r->err->code;
	if (judge_allow_read(&j) < 0)
		return -r->err->code;
	if (s->has_workspace && s->may_write)
		protect(s);
	return 0;
}
