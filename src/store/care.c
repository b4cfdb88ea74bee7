/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing, pruning and verifying: everything that looks at the whole store.
 *
 * There is no table of entries that could disagree with the files: a census reads the folders.  It is taken before each
 * write, which follows a compiler run of a second; with at most STORE_ENTRIES_MAX entries it takes milliseconds.  Stray
 * files are removed: names that are not hashes, unreadable records, contents that no record names.  That is safe under
 * the writer's lock, because no other writer can be between two renames.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "store/internal.h"

struct content {
	unsigned char hash[STORE_HASH_LEN];
	uint64_t size;
	size_t users; /* entries that name it */
};

struct census {
	struct store_list entries;
	size_t entries_cap;
	struct content *content;
	size_t n_content, content_cap;
	bool no_memory;
};

static void census_release(struct census *c)
{
	store_list_release(&c->entries);
	free(c->content);
}

static bool grow(void **rows, size_t *cap, size_t n, size_t row_size)
{
	size_t more = *cap ? 2 * *cap : 64;
	void *grown;

	if (n < *cap)
		return true;
	grown = reallocarray(*rows, more, row_size);
	if (!grown)
		return false;
	*rows = grown;
	*cap = more;
	return true;
}

/* ---- the census ------------------------------------------------------------------------------- */

struct visit {
	const struct store *s;
	struct census *c;
	struct store_care *care; /* NULL: look only */
};

static void discard(const struct visit *v, int dir, const char *name)
{
	if (!v->care)
		return;
	store_remove(dir, name);
	v->care->stray++;
}

static void visit_record(const struct visit *v, const char *name)
{
	struct store_key key = { .kind = "" }; /* of any kind */
	unsigned char bytes[STORE_RECORD_SIZE];
	struct store_entry e;
	struct census *c = v->c;
	AUTO_FD fd = FD_NONE;
	const char *why;
	uint64_t size, used = 0;

	if (store_unhex(name, key.hash))
		fd = store_open_file(v->s->index.fd, name, O_RDONLY, &size, &used, &why);
	if (fd < 0 || pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) || size != sizeof(bytes) ||
	    !store_entry_decode(bytes, sizeof(bytes), &e) || memcmp(e.key.hash, key.hash, STORE_HASH_LEN) != 0 ||
	    c->entries.n >= 2 * (size_t)STORE_ENTRIES_MAX) {
		discard(v, v->s->index.fd, name);
		return;
	}
	if (!grow((void **)&c->entries.row, &c->entries_cap, c->entries.n, sizeof(*c->entries.row))) {
		c->no_memory = true;
		return;
	}
	c->entries.row[c->entries.n] = (struct store_info){
		.key = e.key,
		.created_ns = e.created_ns,
		.used_ns = used,
		.size = e.size,
		.hits = e.hits,
		.pinned = e.pinned,
	};
	memcpy(c->entries.row[c->entries.n++].content, e.content, STORE_HASH_LEN);
}

static void visit_content(const struct visit *v, const char *name)
{
	struct content one = { .users = 0 };
	struct census *c = v->c;
	struct stat st;

	if (!store_unhex(name, one.hash) || fstatat(v->s->content.fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    c->n_content >= 2 * (size_t)STORE_ENTRIES_MAX) {
		discard(v, v->s->content.fd, name);
		return;
	}
	if (!grow((void **)&c->content, &c->content_cap, c->n_content, sizeof(*c->content))) {
		c->no_memory = true;
		return;
	}
	/* How much a tree is, only its record says. */
	one.size = v->s->form == STORE_BYTES ? (uint64_t)st.st_size : 0;
	c->content[c->n_content++] = one;
	c->entries.bytes += one.size;
}

static int walk(const struct visit *v, int folder, void (*visit)(const struct visit *v, const char *name),
		struct brig_error *err)
{
	AUTO_FD fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct dirent *e;
	DIR *d;

	if (fd < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot list the cache");
	d = fdopendir(fd);
	if (!d)
		return err_nomem(err);
	(void)fd_move(&fd);
	while ((e = readdir(d)) != NULL)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			visit(v, e->d_name);
	(void)closedir(d);
	return v->c->no_memory ? err_nomem(err) : 0;
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(((const struct content *)a)->hash, ((const struct content *)b)->hash, STORE_HASH_LEN);
}

/* The most recently used first. */
static int by_use(const void *a, const void *b)
{
	const struct store_info *x = a, *y = b;

	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? 1 : -1;
	return memcmp(x->key.hash, y->key.hash, STORE_HASH_LEN);
}

static struct content *content_of(struct census *c, const struct store_info *e)
{
	struct content want;

	memcpy(want.hash, e->content, sizeof(want.hash));
	return c->n_content ? bsearch(&want, c->content, c->n_content, sizeof(want), by_hash) : NULL;
}

static int take_census(const struct store *s, struct census *c, struct store_care *care, struct brig_error *err)
{
	const struct visit v = { .s = s, .c = c, .care = care };
	int rc = walk(&v, s->index.fd, visit_record, err);

	if (rc == 0)
		rc = walk(&v, s->content.fd, visit_content, err);
	if (rc < 0)
		return rc;
	if (c->entries.n)
		qsort(c->entries.row, c->entries.n, sizeof(*c->entries.row), by_use);
	if (c->n_content)
		qsort(c->content, c->n_content, sizeof(*c->content), by_hash);
	for (size_t i = 0; i < c->entries.n; i++) {
		struct content *content = content_of(c, &c->entries.row[i]);

		if (content && content->users++ == 0 && s->form == STORE_TREES) {
			content->size = c->entries.row[i].size;
			c->entries.bytes += content->size;
		}
	}
	return 0;
}

/* ---- removal ---------------------------------------------------------------------------------- */

/* False: a cell shows it just now. */
static bool remove_content(const struct store *s, struct census *c, struct content *content, struct store_care *care)
{
	char name[STORE_HEX_LEN + 1];

	store_hex(content->hash, name);
	if (!store_drop_content(s, name, false))
		return false;
	c->entries.bytes -= content->size;
	care->removed_bytes += content->size;
	content->size = 0;
	return true;
}

static bool remove_entry(const struct store *s, struct census *c, const struct store_info *e, struct store_care *care)
{
	struct content *content = content_of(c, e);
	char name[STORE_HEX_LEN + 1];

	if (content && content->users == 1 && !remove_content(s, c, content, care))
		return false;
	if (content)
		content->users--;
	store_hex(e->key.hash, name);
	store_remove(s->index.fd, name);
	care->removed++;
	care->entries--;
	return true;
}

/* An entry of the future counts as new here: only its use decides that it is not trusted. */
static bool is_old(const struct store *s, const struct store_info *e)
{
	uint64_t now = clock_wall_ns();

	return now > e->created_ns && now - e->created_ns > s->limits.ttl_ns;
}

static void remove_what_is_too_much(struct store *s, struct census *c, uint64_t more, bool all, struct store_care *care)
{
	for (size_t i = 0; i < c->n_content; i++)
		if (c->content[i].users == 0)
			care->stray += remove_content(s, c, &c->content[i], care);
	/* From the one that was used least recently. */
	for (size_t i = c->entries.n; i-- > 0;) {
		const struct store_info *e = &c->entries.row[i];
		bool old = is_old(s, e);
		bool too_much = i >= STORE_ENTRIES_MAX - 1 || c->entries.bytes + more > s->limits.bytes;

		if (e->pinned || (!all && !old && !too_much) || !remove_entry(s, c, e, care))
			continue;
		care->expired += old;
		s->events.evicted += !all && !old;
	}
}

int store_make_room(struct store *s, uint64_t more, bool all, struct store_care *care, struct brig_error *err)
{
	struct census c = { .content = NULL };
	int rc;

	store_remove(s->dir.fd, "new"); /* of a writer that was killed */
	if (s->form == STORE_TREES)
		store_tree_sweep(s);
	rc = take_census(s, &c, care, err);
	if (rc == 0) {
		care->entries = c.entries.n;
		remove_what_is_too_much(s, &c, more, all, care);
		care->bytes = c.entries.bytes;
	}
	census_release(&c);
	return rc;
}

/* ---- commands --------------------------------------------------------------------------------- */

int store_list(struct store *s, struct store_list *ret, struct brig_error *err)
{
	struct census c = { .content = NULL };
	int rc = take_census(s, &c, NULL, err);

	if (rc == 0) {
		*ret = c.entries;
		c.entries = (struct store_list){ .row = NULL };
	}
	census_release(&c);
	return rc;
}

void store_list_release(struct store_list *l)
{
	free(l->row);
	*l = (struct store_list){ .row = NULL };
}

int store_prune(struct store *s, bool all, struct store_care *ret, struct brig_error *err)
{
	int rc = store_writer_lock(s, err);

	*ret = (struct store_care){ .entries = 0 };
	if (rc < 0)
		return rc;
	rc = store_make_room(s, 0, all, ret, err);
	store_writer_unlock(s);
	return rc;
}

int store_verify(struct store *s, void (*on_bad)(void *arg, const struct store_info *info, const char *why), void *arg,
		 struct store_care *ret, struct brig_error *err)
{
	struct store_list list = { .row = NULL };
	uint64_t damaged = 0;
	int rc = store_list(s, &list, err);

	for (size_t i = 0; rc >= 0 && i < list.n; i++) {
		struct brig_error why = BRIG_ERROR_INIT;

		rc = store_find(s, &list.row[i].key, false, NULL, NULL, &why);
		if (rc < 0 && err)
			*err = why;
		if (rc != STORE_DAMAGED)
			continue;
		damaged++;
		if (on_bad)
			on_bad(arg, &list.row[i], why.msg);
	}
	store_list_release(&list);
	if (rc < 0)
		return rc;
	rc = store_prune(s, false, ret, err);
	ret->damaged = damaged;
	return rc;
}
