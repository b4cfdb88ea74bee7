/* SPDX-License-Identifier: Apache-2.0 */
/* Trees in the store: what comes out is what went in, and only what may go in does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "store/entry.h"
#include "store/store.h"

#define DAY_NS (86400 * NS_PER_SEC)

static char folder[256], source[300];

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)at;
	if (kind == FTW_DP)
		(void)!chmod(path, 0700);
	return remove(path);
}

static int open_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)at;
	return kind == FTW_D ? chmod(path, 0700) : 0;
}

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	(void)snprintf(folder, sizeof(folder), "%s/brig-tree-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(source, sizeof(source), "%s/source", folder);
	return mkdir(source, 0755);
}

static int remove_folder(void **state)
{
	(void)state;
	(void)nftw(folder, open_one, 16, FTW_PHYS);
	return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct store *open_store(uint64_t bytes, uint64_t ttl_ns)
{
	const struct store_limits limits = { .bytes = bytes, .ttl_ns = ttl_ns };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct store *s = NULL;
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/state", folder);
	if (statedir_open(path, true, &dir, &err) < 0 || store_open(&dir, STORE_TREES, true, &limits, &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static struct store_key key_of(const char *text)
{
	struct store_key_maker m;
	struct store_key key;

	store_key_begin(&m, "pip");
	store_key_text(&m, "text", text);
	store_key_end(&m, &key);
	return key;
}

/* A path below the source; two buffers, so that two may be used in one call. */
static const char *at(const char *name)
{
	static char text[2][500];
	static unsigned turn;

	turn = !turn;
	(void)snprintf(text[turn], sizeof(text[turn]), "%s/%s", source, name);
	return text[turn];
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void fill_source(void)
{
	assert_int_equal(mkdir(at("lib"), 0755), 0);
	assert_int_equal(mkdir(at("lib/deep"), 0700), 0);
	assert_int_equal(mkdir(at("empty"), 0777), 0);
	write_file(at("lib/a.py"), "a = 1\n", 0644);
	write_file(at("lib/deep/b.so"), "binary", 0755);
	write_file(at("set-uid"), "s", 04755);
	assert_int_equal(symlink("lib/a.py", at("link")), 0);
	assert_int_equal(symlink("../../lib/a.py", at("lib/deep/up")), 0);
}

static int put(struct store *s, const char *name, struct store_import *im, struct brig_error *err)
{
	const struct store_key key = key_of(name);
	int rc;

	*im = (struct store_import){ .dir = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .entries = 100 };
	assert_true(im->dir >= 0);
	rc = store_put_tree(s, &key, im, err);
	close(im->dir);
	return rc;
}

static void put_well(struct store *s, const char *name)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_import im;

	if (put(s, name, &im, &err) != STORE_STORED)
		fail_msg("put: %s", err.msg);
}

static int get(struct store *s, const char *name, struct store_tree *ret)
{
	const struct store_key key = key_of(name);
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_info info;
	int rc = store_get_tree(s, &key, false, ret, &info, &err);

	if (rc < 0)
		fail_msg("get: %s", err.msg);
	if (rc == STORE_DAMAGED)
		assert_true(*err.msg);
	return rc;
}

static int get_and_close(struct store *s, const char *name)
{
	struct store_tree tree = STORE_TREE_INIT;
	int rc = get(s, name, &tree);

	store_tree_close(&tree);
	return rc;
}

static void assert_mode(int dir, const char *path, mode_t mode)
{
	struct stat st;

	assert_int_equal(fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode & (S_IFMT | 07777), mode);
}

static void assert_link(int dir, const char *path, const char *leads_to)
{
	char text[100] = "";

	assert_true(readlinkat(dir, path, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, leads_to);
}

/* ---- what goes in, and what comes out ----------------------------------------------------------- */

static void trees_come_back(void **state)
{
	struct store *s = open_store(GiB, 30 * DAY_NS);
	struct store_tree tree = STORE_TREE_INIT;
	char text[16] = "";
	AUTO_FD fd = FD_NONE;

	(void)state;
	fill_source();
	assert_int_equal(get(s, "a", &tree), STORE_MISS);
	put_well(s, "a");
	store_close(s);
	s = open_store(GiB, 30 * DAY_NS); /* in another life */
	assert_int_equal(get(s, "a", &tree), STORE_HIT);
	assert_int_equal(tree.files, 5);
	assert_int_equal(tree.path[0], '/');
	assert_mode(tree.fd, "lib", S_IFDIR | 0555);
	assert_mode(tree.fd, "lib/deep", S_IFDIR | 0555);
	assert_mode(tree.fd, "empty", S_IFDIR | 0555);
	assert_mode(tree.fd, "lib/a.py", S_IFREG | 0444);
	assert_mode(tree.fd, "lib/deep/b.so", S_IFREG | 0555);
	assert_mode(tree.fd, "set-uid", S_IFREG | 0555); /* without the bit */
	assert_link(tree.fd, "link", "lib/a.py");
	assert_link(tree.fd, "lib/deep/up", "../../lib/a.py");
	fd = openat(tree.fd, "lib/a.py", O_RDONLY);
	assert_int_equal(fd_read_all(fd, text, sizeof(text)), 6);
	assert_string_equal(text, "a = 1\n");
	store_tree_close(&tree);
	store_close(s);
}

static void what_no_tree_has_is_left_out(void **state)
{
	static const char *const outside[] = { "/etc/passwd", "..", "../x", "lib/../..", "lib/../lib/a.py", "lib/.." };
	struct store *s = open_store(GiB, 30 * DAY_NS);
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_tree tree = STORE_TREE_INIT;
	struct store_import im;
	struct stat st;

	(void)state;
	fill_source();
	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "out%zu", i);
		assert_int_equal(symlink(outside[i], at(name)), 0);
	}
	assert_int_equal(symlink("../../..", at("lib/deep/out")), 0);
	assert_int_equal(mkfifo(at("pipe"), 0666), 0);
	assert_int_equal(mkdir(at("lib/.GIT"), 0777), 0);
	assert_int_equal(mkdir(at("lib/fixture"), 0777), 0);
	assert_int_equal(mkdir(at("lib/fixture/HEAD"), 0777), 0);
	assert_int_equal(mkdir(at("lib/fixture/objects"), 0777), 0);
	assert_int_equal(mkdir(at("lib/fixture/refs"), 0777), 0);
	assert_int_equal(put(s, "a", &im, &err), STORE_STORED);
	assert_int_equal(im.gits, 2);
	assert_int_equal(im.links_out, ARRAY_LEN(outside) + 1);
	assert_int_equal(im.special, 1);
	assert_int_equal(get(s, "a", &tree), STORE_HIT);
	assert_int_equal(tree.files, 5);
	assert_int_equal(fstatat(tree.fd, "out0", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(fstatat(tree.fd, "lib/.GIT", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(fstatat(tree.fd, "lib/fixture", &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(fstatat(tree.fd, "lib/deep/out", &st, AT_SYMLINK_NOFOLLOW), -1);
	store_tree_close(&tree);
	store_close(s);
}

static void ceilings_refuse(void **state)
{
	struct store *s = open_store(8 * KiB, 30 * DAY_NS);
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_import im;
	char big[4096];

	(void)state;
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	write_file(at("big"), big, 0644);
	assert_int_equal(put(s, "a", &im, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "packages_size"));
	assert_int_equal(unlink(at("big")), 0);
	for (int i = 0; i < 101; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "f%d", i);
		write_file(at(name), "", 0644);
	}
	assert_int_equal(put(s, "a", &im, &err), -BRIG_E_REFUSED);
	assert_int_equal(get_and_close(s, "a"), STORE_MISS);
	store_close(s);
}

/* ---- tampering ---------------------------------------------------------------------------------- */

static const char *inside(const struct store_tree *t, const char *name)
{
	static char text[PATH_MAX + 64];

	(void)snprintf(text, sizeof(text), "%s/%s", t->path, name);
	return text;
}

static void tamper_edit(const struct store_tree *t)
{
	assert_int_equal(chmod(inside(t, "lib/a.py"), 0600), 0);
	write_file(inside(t, "lib/a.py"), "a = 2\n", 0444);
}

static void tamper_add(const struct store_tree *t)
{
	assert_int_equal(chmod(inside(t, "lib"), 0755), 0);
	write_file(inside(t, "lib/evil.py"), "", 0444);
	assert_int_equal(chmod(inside(t, "lib"), 0555), 0);
}

static void tamper_remove(const struct store_tree *t)
{
	assert_int_equal(unlink(inside(t, "link")), 0);
}

static void tamper_mode(const struct store_tree *t)
{
	assert_int_equal(chmod(inside(t, "lib/a.py"), 0555), 0);
}

static void tamper_folder_mode(const struct store_tree *t)
{
	assert_int_equal(chmod(inside(t, "empty"), 0755), 0);
}

static void tamper_link(const struct store_tree *t)
{
	assert_int_equal(unlink(inside(t, "link")), 0);
	assert_int_equal(symlink("lib/b.py", inside(t, "link")), 0);
}

static void tamper_hard_link(const struct store_tree *t)
{
	char other[400];

	(void)snprintf(other, sizeof(other), "%s/other", folder);
	(void)unlink(other);
	assert_int_equal(link(inside(t, "set-uid"), other), 0);
}

static void tamper_fifo(const struct store_tree *t)
{
	assert_int_equal(unlink(inside(t, "set-uid")), 0);
	assert_int_equal(mkfifo(inside(t, "set-uid"), 0444), 0);
}

static void tamper_top(const struct store_tree *t)
{
	assert_int_equal(chmod(t->path, 0777), 0);
}

static void tamper_replace_top(const struct store_tree *t)
{
	char other[400];

	(void)snprintf(other, sizeof(other), "%s/moved", folder);
	assert_int_equal(rename(t->path, other), 0);
	assert_int_equal(symlink(other, t->path), 0);
}

static void (*const tampers[])(const struct store_tree *t) = {
	tamper_edit, tamper_add,       tamper_remove, tamper_mode, tamper_folder_mode,
	tamper_link, tamper_hard_link, tamper_fifo,   tamper_top,  tamper_replace_top,
};

/* Each way to spoil a tree ends with one that is made again. */
static void spoiled_trees_are_rebuilt(void **state)
{
	struct store *s = open_store(GiB, 30 * DAY_NS);

	(void)state;
	fill_source();
	put_well(s, "neighbour"); /* shares the content, and loses it along */
	for (size_t i = 0; i < ARRAY_LEN(tampers); i++) {
		struct store_tree tree = STORE_TREE_INIT;

		put_well(s, "a");
		assert_int_equal(get(s, "a", &tree), STORE_HIT);
		tampers[i](&tree);
		store_tree_close(&tree);
		if (get_and_close(s, "a") != STORE_DAMAGED)
			fail_msg("tampering %zu is not noticed", i);
		assert_int_equal(get_and_close(s, "a"), STORE_MISS);
	}
	assert_int_equal(get_and_close(s, "neighbour"), STORE_DAMAGED);
	put_well(s, "a");
	assert_int_equal(get_and_close(s, "a"), STORE_HIT);
	assert_int_equal(store_events(s)->damaged, ARRAY_LEN(tampers) + 1);
	store_close(s);
}

/* ---- what was hashed already -------------------------------------------------------------------- */

#define BIG (300 * KiB)

/* Bytes that this process has read; 0 if the kernel does not count them. */
static unsigned long long bytes_read(void)
{
	FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n = 0;

	if (f && fscanf(f, "rchar: %llu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

static bool is_seen(const struct store_tree *t)
{
	char path[PATH_MAX + 64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/state/packages/seen/%s", folder, strrchr(t->path, '/') + 1);
	return stat(path, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 07777) == 0600;
}

/* Uses it until it is remembered, which a tree that was changed just now is not. */
static void use_until_seen(struct store *s, const char *name, struct store_tree *ret)
{
	uint64_t end = clock_now_ns() + 60 * NS_PER_SEC;

	for (;;) {
		assert_int_equal(get(s, name, ret), STORE_HIT);
		if (is_seen(ret) || clock_now_ns() > end)
			return;
		(void)usleep(50000);
	}
}

static void tamper_and_restore_times(const struct store_tree *t)
{
	struct stat st;

	assert_int_equal(stat(inside(t, "lib/a.py"), &st), 0);
	tamper_edit(t);
	assert_int_equal(
		utimensat(AT_FDCWD, inside(t, "lib/a.py"), (const struct timespec[]){ st.st_atim, st.st_mtim }, 0), 0);
}

static void make_different(size_t i)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%zu", i);
	write_file(at("number"), number, 0644);
}

/* Nothing that changes a tree is missed because it was hashed before; and if nothing does, it is not read again. */
static void settled_trees_are_not_read_again(void **state)
{
	struct store *s = open_store(GiB, 30 * DAY_NS);
	struct store_tree tree[ARRAY_LEN(tampers) + 2];
	char *big = calloc(1, BIG + 1), name[8];
	const size_t edited = ARRAY_LEN(tampers), steady = edited + 1;
	unsigned long long before;

	(void)state;
	fill_source();
	assert_non_null(big);
	memset(big, 'x', BIG);
	write_file(at("big"), big, 0644);
	for (size_t i = 0; i < ARRAY_LEN(tree); i++) {
		tree[i] = (struct store_tree)STORE_TREE_INIT;
		make_different(i);
		(void)snprintf(name, sizeof(name), "t%zu", i);
		put_well(s, name);
	}
	for (size_t i = 0; i < ARRAY_LEN(tree); i++) {
		(void)snprintf(name, sizeof(name), "t%zu", i);
		use_until_seen(s, name, &tree[i]);
		assert_true(is_seen(&tree[i]));
	}
	before = bytes_read();
	assert_int_equal(get(s, name, &tree[steady]), STORE_HIT);
	assert_true(bytes_read() - before < BIG);
	assert_int_equal(tree[steady].files, 7);
	assert_true(tree[steady].bytes > BIG);
	for (size_t i = 0; i < steady; i++) {
		if (i == edited)
			tamper_and_restore_times(&tree[i]);
		else
			tampers[i](&tree[i]);
		store_tree_close(&tree[i]);
		(void)snprintf(name, sizeof(name), "t%zu", i);
		if (get_and_close(s, name) != STORE_DAMAGED)
			fail_msg("tampering %zu is not noticed", i);
		assert_false(is_seen(&tree[i]));
	}
	store_tree_close(&tree[steady]);
	store_close(s);
	free(big);
}

/* A record that is not whole, or says something else, is none: the tree is read. */
static void unsound_memories_are_none(void **state)
{
	struct store *s = open_store(GiB, 30 * DAY_NS);
	struct store_tree tree = STORE_TREE_INIT;
	char path[PATH_MAX + 64], bytes[256];
	AUTO_FD fd = FD_NONE;
	ssize_t len;

	(void)state;
	fill_source();
	put_well(s, "a");
	use_until_seen(s, "a", &tree);
	(void)snprintf(path, sizeof(path), "%s/state/packages/seen/%s", folder, strrchr(tree.path, '/') + 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	len = pread(fd, bytes, sizeof(bytes), 0);
	assert_true(len > 100);
	for (ssize_t i = 0; i < len; i += 7) {
		const char other = (char)~bytes[i];
		unsigned long long before;

		assert_int_equal(pwrite(fd, &other, 1, i), 1);
		before = bytes_read();
		assert_int_equal(get(s, "a", &tree), STORE_HIT);
		assert_true(before == 0 || bytes_read() > before);
		fd_closep(&fd);
		assert_true(is_seen(&tree)); /* and a sound one is written */
		fd = open(path, O_RDWR | O_CLOEXEC);
		assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), len);
	}
	assert_int_equal(ftruncate(fd, len - 1), 0);
	assert_int_equal(get(s, "a", &tree), STORE_HIT);
	tamper_edit(&tree);
	store_tree_close(&tree);
	assert_int_equal(get_and_close(s, "a"), STORE_DAMAGED);
	store_close(s);
}

/* ---- care --------------------------------------------------------------------------------------- */

static void fill_with(char letter)
{
	char text[1001];

	memset(text, letter, sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	write_file(at("file"), text, 0644);
}

static void least_recently_used_go(void **state)
{
	struct store *s = open_store(5000, 30 * DAY_NS);
	struct store_tree held = STORE_TREE_INIT;
	struct store_list list = { .row = NULL };
	struct brig_error err = BRIG_ERROR_INIT;
	const char *const names[] = { "a", "b", "c", "d", "e" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		fill_with(*names[i]);
		put_well(s, names[i]);
	}
	assert_int_equal(get_and_close(s, "a"), STORE_HIT);
	assert_int_equal(get(s, "b", &held), STORE_HIT); /* in use, so nobody removes it, */
	assert_int_equal(get_and_close(s, "c"), STORE_HIT);
	assert_int_equal(get_and_close(s, "a"), STORE_HIT);
	assert_int_equal(get_and_close(s, "d"), STORE_HIT);
	assert_int_equal(get_and_close(s, "e"), STORE_HIT);
	fill_with('f');
	put_well(s, "f");
	assert_int_equal(get_and_close(s, "c"), STORE_MISS); /* though it was used before this one */
	assert_int_equal(get_and_close(s, "b"), STORE_HIT);
	assert_int_equal(get_and_close(s, "a"), STORE_HIT);
	assert_int_equal(store_events(s)->evicted, 1);
	assert_int_equal(store_list(s, &list, &err), 0);
	assert_int_equal(list.n, 5);
	assert_int_equal(list.bytes, 5000);
	assert_string_equal(list.row[0].key.kind, "pip");
	store_list_release(&list);
	store_tree_close(&held);
	store_close(s);
}

static void old_ones_are_not_used(void **state)
{
	struct store *s = open_store(GiB, 1); /* a nanosecond */
	struct store_care care;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	fill_source();
	put_well(s, "a");
	assert_int_equal(get_and_close(s, "a"), STORE_EXPIRED);
	assert_int_equal(store_prune(s, false, &care, &err), 0);
	assert_int_equal(care.stray, 1); /* its tree */
	assert_int_equal(get_and_close(s, "a"), STORE_MISS);
	store_close(s);
}

static void verify_and_prune(void **state)
{
	struct store *s = open_store(GiB, 30 * DAY_NS);
	struct store_tree tree = STORE_TREE_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_care care;
	char path[400];

	(void)state;
	fill_source();
	put_well(s, "a");
	fill_with('b');
	put_well(s, "b");
	assert_int_equal(get(s, "a", &tree), STORE_HIT);
	tamper_edit(&tree);
	store_tree_close(&tree);
	/* What a writer that was killed has left. */
	(void)snprintf(path, sizeof(path), "%s/state/packages/new-killed", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(store_verify(s, NULL, NULL, &care, &err), 0);
	assert_int_equal(care.damaged, 1);
	assert_int_equal(care.entries, 1);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(store_prune(s, true, &care, &err), 0);
	assert_int_equal(care.removed, 1);
	assert_int_equal(care.entries, 0);
	assert_int_equal(care.bytes, 0);
	(void)snprintf(path, sizeof(path), "%s/state/packages/content", folder);
	assert_int_equal(rmdir(path), 0); /* nothing is in it */
	store_close(s);
}

/* ---- pins ------------------------------------------------------------------------------------------ */

static int pin(struct store *s, const char *name, const char *as)
{
	const struct store_key from = key_of(name), to = key_of(as);
	struct brig_error err = BRIG_ERROR_INIT;
	int rc = store_pin(s, &from, &to, &err);

	if (rc < 0)
		fail_msg("pin: %s", err.msg);
	return rc;
}

static bool unpin(struct store *s, const char *as)
{
	const struct store_key key = key_of(as);
	struct brig_error err = BRIG_ERROR_INIT;
	bool gone = false;

	if (store_unpin(s, &key, &gone, &err) < 0)
		fail_msg("unpin: %s", err.msg);
	return gone;
}

static void expect(struct store *s, const char *name, int answer)
{
	struct store_tree t = STORE_TREE_INIT;

	assert_int_equal(get(s, name, &t), answer);
	store_tree_close(&t);
}

static void pinned_ones_stay(void **state)
{
	struct store *s = open_store(1 * MiB, 1); /* whatever is there is too old */
	struct store_care care;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	fill_source();
	put_well(s, "one");
	assert_int_equal(pin(s, "nothing", "p"), STORE_PIN_ABSENT);
	assert_int_equal(pin(s, "one", "p"), STORE_PINNED);
	expect(s, "p", STORE_HIT);
	expect(s, "one", STORE_EXPIRED); /* and its entry is gone, the content is not */
	for (int all = 0; all < 2; all++) {
		assert_int_equal(store_prune(s, all, &care, &err), 0);
		assert_int_equal(care.entries, 1);
		expect(s, "p", STORE_HIT);
	}
	assert_int_equal(store_verify(s, NULL, NULL, &care, &err), 0);
	assert_int_equal(care.entries, 1);
	/* The entry is made anew with another content: the pin keeps its own. */
	write_file(at("lib/a.py"), "a = 2\n", 0644);
	put_well(s, "one");
	expect(s, "p", STORE_HIT);
	assert_true(unpin(s, "p"));
	expect(s, "p", STORE_MISS);
	assert_true(unpin(s, "p")); /* there is none: nothing happens */
	store_close(s);
}

static void pins_leave_what_others_have(void **state)
{
	struct store *s = open_store(1 * MiB, UINT64_MAX);
	struct store_tree used = STORE_TREE_INIT;
	struct store_care care;
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	fill_source();
	put_well(s, "one");
	assert_int_equal(pin(s, "one", "p"), STORE_PINNED);
	assert_int_equal(pin(s, "one", "q"), STORE_PINNED);
	assert_false(unpin(s, "p")); /* "one" and "q" have it */
	assert_int_equal(store_prune(s, true, &care, &err), 0);
	assert_int_equal(get(s, "q", &used), STORE_HIT);
	assert_false(unpin(s, "q")); /* a cell shows it */
	store_tree_close(&used);
	assert_int_equal(store_prune(s, false, &care, &err), 0);
	assert_int_equal(care.entries, 0);
	assert_int_equal(care.bytes, 0);
	store_close(s);
}

static void pins_have_a_ceiling(void **state)
{
	struct store *s = open_store(4 * MiB, UINT64_MAX);
	AUTO_FREE char *big = malloc(MiB);
	char name[2] = "a", as[2] = "A";

	(void)state;
	memset(big, 'x', MiB - 64);
	big[MiB - 64] = '\0';
	for (; *name <= 'c'; ++*name, ++*as) {
		*big = *name;
		write_file(at("big"), big, 0644);
		put_well(s, name);
		assert_int_equal(pin(s, name, as), STORE_PINNED);
	}
	*big = 'd';
	write_file(at("big"), big, 0644);
	put_well(s, "d");
	assert_int_equal(pin(s, "d", "D"), STORE_PIN_FULL);
	assert_int_equal(pin(s, "a", "again"), STORE_PINNED); /* takes no more room */
	store_close(s);
}

int main(void)
{
#define ROW(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		ROW(trees_come_back),
		ROW(what_no_tree_has_is_left_out),
		ROW(ceilings_refuse),
		ROW(spoiled_trees_are_rebuilt),
		ROW(settled_trees_are_not_read_again),
		ROW(unsound_memories_are_none),
		ROW(least_recently_used_go),
		ROW(old_ones_are_not_used),
		ROW(verify_and_prune),
		ROW(pinned_ones_stay),
		ROW(pins_leave_what_others_have),
		ROW(pins_have_a_ceiling),
	};
#undef ROW
	return cmocka_run_group_tests(tests, NULL, NULL);
}
