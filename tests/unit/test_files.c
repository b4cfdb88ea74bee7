/* SPDX-License-Identifier: Apache-2.0 */
/* Trees that somebody else filled: nothing outside is touched, nothing waits, nothing grows beyond its cap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/glob.h"
#include "files/overlay.h"
#include "files/pack.h"
#include "files/pack_format.h"
#include "files/walk.h"
#include "tree_bed.h"

#define DEEP 60

static void put_dir(int dir, const char *path)
{
	assert_int_equal(mkdirat(dir, path, 0755), 0);
}

static void assert_text(int dir, const char *path, const char *want)
{
	char text[256];
	AUTO_FD fd = beneath_open_file(dir, path, NULL);
	ssize_t n;

	assert_true(fd >= 0);
	n = fd_read_all(fd, text, sizeof(text) - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, want);
}

/* Everything that a program can leave behind. */
static void make_hostile(int dir)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX };
	AUTO_FD sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_FD big = FD_NONE;

	put_file(outside, "secret", "canary");
	put_dir(outside, "inner");
	put_file(dir, "plain", "text");
	assert_int_equal(symlinkat("../outside/secret", dir, "to-file"), 0);
	assert_int_equal(symlinkat("../outside", dir, "to-dir"), 0);
	assert_int_equal(symlinkat("/proc/self/fd/0", dir, "magic"), 0);
	assert_int_equal(symlinkat("loop", dir, "loop"), 0);
	assert_int_equal(linkat(dir, "plain", dir, "hard", 0), 0);
	assert_int_equal(mkfifoat(dir, "fifo", 0644), 0);
	put_file(dir, "two\nlines", "newline");
	put_file(dir, "not\xff\xfeutf8", "bytes");
	put_file(dir, "setuid", "bits");
	assert_int_equal(fchmodat(dir, "setuid", 06755, 0), 0);
	(void)snprintf(where.sun_path, sizeof(where.sun_path), "%s/tree/socket", folder);
	assert_int_equal(bind(sock, (struct sockaddr *)&where, sizeof(where)), 0);
	big = openat(dir, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(big >= 0);
	assert_int_equal(ftruncate(big, (off_t)1 << 40), 0);
	if (mknodat(dir, "device", S_IFCHR | 0666, makedev(1, 3)) < 0)
		print_message("[ skipped ] no device nodes for this user\n");
}

static void make_deep(int dir, int levels)
{
	AUTO_FD at = dup(dir);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0755), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fd_closep(&at);
		at = next;
	}
	put_file(at, "bottom", "deep");
}

/* ---- beneath ----------------------------------------------------------------------------------- */

static void test_beneath_stays_inside(void **state)
{
	static const struct {
		const char *path;
		int want;
	} files[] = {
		{ "plain", 0 },
		{ "hard", 0 },
		{ "to-file", -ELOOP },
		{ "to-dir/secret", -ELOOP },
		{ "magic", -ELOOP },
		{ "loop", -ELOOP },
		{ "fifo", -EINVAL },
		{ "socket", -EINVAL },
		{ "../outside/secret", -EXDEV },
		{ "/etc/passwd", -EXDEV },
		{ "absent", -ENOENT },
		{ "plain/x", -ENOTDIR },
		{ "", -EINVAL },
	};
	struct stat st;

	(void)state;
	make_hostile(tree);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO_FD fd = beneath_open_file(tree, files[i].path, &st);

		if ((fd < 0 ? fd : 0) != files[i].want)
			fail_msg("'%s' gives %d, not %d", files[i].path, fd, files[i].want);
	}
	if (faccessat(tree, "device", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		assert_int_equal(beneath_open_file(tree, "device", NULL), -EINVAL);
	assert_int_equal(beneath_open_dir(tree, "to-dir"), -ELOOP);
	assert_int_equal(beneath_open_dir(tree, "plain"), -ENOTDIR);
	assert_int_equal(beneath_open_dir(tree, "to-dir/inner"), -ELOOP);
}

static void test_beneath_look_opens_links_themselves(void **state)
{
	struct stat st;
	AUTO_FD fd = FD_NONE;

	(void)state;
	make_hostile(tree);
	fd = beneath_look(tree, "to-file", &st);
	assert_true(fd >= 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(beneath_look(tree, "to-dir/secret", NULL), -ELOOP);
}

static void test_beneath_makes_only_new_things(void **state)
{
	AUTO_FD made = FD_NONE, parent = FD_NONE;
	const char *name;

	(void)state;
	make_hostile(tree);
	assert_int_equal(beneath_create(tree, "to-file", 0600), -EEXIST);
	assert_int_equal(beneath_create(tree, "plain", 0600), -EEXIST);
	assert_int_equal(beneath_create(tree, "to-dir/new", 0600), -ELOOP);
	assert_int_equal(faccessat(outside, "new", F_OK, 0), -1);
	assert_int_equal(beneath_make_dirs(tree, "a/b/c"), 0);
	assert_int_equal(beneath_make_dirs(tree, "a/b/c"), 0);
	assert_int_equal(beneath_make_dirs(tree, "to-dir/x"), -ELOOP);
	assert_int_equal(beneath_make_dirs(tree, "a/../../outside/x"), -EXDEV);
	assert_int_equal(faccessat(outside, "x", F_OK, 0), -1);
	made = beneath_create(tree, "a/b/new", 0600);
	assert_true(made >= 0);
	parent = beneath_open_parent(tree, "a/b/new", &name);
	assert_true(parent >= 0);
	assert_string_equal(name, "new");
	assert_int_equal(faccessat(parent, name, F_OK, 0), 0);
}

static void test_beneath_is_path(void **state)
{
	static const char *const good[] = { "a", "a/b", ".a", "...", "a..b/..c", "\xff\n" };
	static const char *const bad[] = { "", "/", "/a", "a/", "a//b", ".", "..", "a/..", "a/./b", "../a" };
	char long_name[NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(beneath_is_path(good[i], strlen(good[i])));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(beneath_is_path(bad[i], strlen(bad[i])));
	assert_false(beneath_is_path("a\0b", 3));
	memset(long_name, 'x', sizeof(long_name));
	assert_true(beneath_is_path(long_name, NAME_MAX));
	assert_false(beneath_is_path(long_name, NAME_MAX + 1));
}

/* ---- glob -------------------------------------------------------------------------------------- */

static void test_glob(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool is_dir, want;
	} cases[] = {
		{ "*.png", "a.png", false, true },
		{ "*.png", "a/b/c.png", false, true },
		{ "*.png", "a.png/c", false, false },
		{ "*.png", ".png", false, true },
		{ "/*.png", "a/b.png", false, false },
		{ "/*.png", "b.png", false, true },
		{ "a/*.png", "a/b.png", false, true },
		{ "a/*.png", "a/b/c.png", false, false },
		{ "a/*.png", "x/a/b.png", false, false },
		{ "a/**/c", "a/c", false, true },
		{ "a/**/c", "a/b/b/c", false, true },
		{ "a/**/c/d", "a/c/c/d", false, true },
		{ "a/**/c/d", "a/c/d/c", false, false },
		{ "**/c", "c", false, true },
		{ "**/c", "a/b/c", false, true },
		{ "a/**", "a/b/c", false, true },
		{ "a/**", "a", true, false },
		{ "**", "a/b", false, true },
		{ "dist/", "dist", true, true },
		{ "dist/", "dist", false, false },
		{ "dist/", "dist/a/b", false, true },
		{ "dist/", "x/dist/a", false, true },
		{ "dist/", "distx/a", false, false },
		{ "a/dist/", "a/dist/b/c", false, true },
		{ "a/dist/", "a/dist", true, true },
		{ "a/dist/", "a/dist", false, false },
		{ "a/dist/", "b/a/dist/c", false, false },
		{ "/dist/", "dist/a", false, true },
		{ "/dist/", "x/dist/a", false, false },
		{ "a/**/", "a/b/c", false, true },
		{ "?", "a", false, true },
		{ "?", "\xc3\xa9", false, true },
		{ "?", "ab", false, false },
		{ "??", "\xff\xfe", false, true },
		{ "a?b", "a/b", false, false },
		{ "[a-c]x", "bx", false, true },
		{ "[!a-c]x", "bx", false, false },
		{ "[^a-c]x", "dx", false, true },
		{ "[]]x", "]x", false, true },
		{ "[a-", "[a-", false, true },
		{ "[", "[", false, true },
		{ "\\*", "*", false, true },
		{ "\\*", "a", false, false },
		{ "*.py[co]", "x/m.pyc", false, true },
		{ "*a*b*c", "xxaxxbxxc", false, true },
		{ "*a*b*c", "xxaxxcxxb", false, false },
		{ "", "a", false, false },
		{ "/", "a", true, false },
		{ "a", "", true, false },
		{ "a\nb", "a\nb", false, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (glob_matches(cases[i].pattern, cases[i].path, cases[i].is_dir) != cases[i].want)
			fail_msg("'%s' and '%s'%s: not %s", cases[i].pattern, cases[i].path,
				 cases[i].is_dir ? " (a folder)" : "", cases[i].want ? "matched" : "passed over");
}

/* Patterns that take other matchers exponential time: this ends, or the test does not. */
static void test_glob_does_not_explode(void **state)
{
	char path[4096], pattern[512] = "";

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	for (int i = 0; i < 100; i++)
		(void)strcat(pattern, "*a");
	(void)strcat(pattern, "b");
	assert_false(glob_matches(pattern, path, false));
	for (size_t i = 1; i < sizeof(path) - 1; i += 2)
		path[i] = '/';
	*pattern = '\0';
	for (int i = 0; i < 60; i++)
		(void)strcat(pattern, "**/a/");
	(void)strcat(pattern, "b");
	assert_false(glob_matches(pattern, path, false));
}

static void test_glob_is_pattern(void **state)
{
	static const char *const good[] = { "*.png", "dist/", "/a", "a/b/", "**/x", "..." };
	static const char *const bad[] = { "", "/", "//", "../x", "a/../b", "a//b", ".", "./a", "..", "/../" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(glob_is_pattern(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(glob_is_pattern(bad[i]));
}

/* ---- walk -------------------------------------------------------------------------------------- */

struct seen {
	struct buf paths;
	const char *skip, *stop;
};

static enum walk_next see(void *arg, const struct walk_entry *e)
{
	struct seen *s = arg;

	(void)buf_addf(&s->paths, "%s%s|", e->path, S_ISDIR(e->st->st_mode) ? "/" : "");
	if (s->stop && str_eq(s->stop, e->path))
		return WALK_STOP;
	return s->skip && str_eq(s->skip, e->path) ? WALK_SKIP : WALK_ON;
}

static struct walk_outcome walk_all(struct seen *s, uint64_t entries)
{
	const struct walk_caps caps = { .entries = entries };
	struct brig_error err = BRIG_ERROR_INIT;
	struct walk_outcome out;

	if (walk_tree(tree, &caps, see, s, &out, &err) < 0)
		fail_msg("%s", err.msg);
	return out;
}

static void test_walk_order(void **state)
{
	struct seen s = { .paths = BUF_INIT(4096) };
	struct walk_outcome out;

	(void)state;
	put_dir(tree, "b");
	put_file(tree, "b/2", "");
	put_file(tree, "b/10", "");
	put_file(tree, "a", "");
	put_file(tree, "c", "");
	out = walk_all(&s, 100);
	assert_string_equal(buf_str(&s.paths), "a|b/|b/10|b/2|c|");
	assert_int_equal(out.entries, 5);
	assert_false(out.cut || out.stopped || out.vanished);
	buf_release(&s.paths);
	s.skip = "b";
	out = walk_all(&s, 100);
	assert_string_equal(buf_str(&s.paths), "a|b/|c|");
	buf_release(&s.paths);
	s.stop = "b";
	out = walk_all(&s, 100);
	assert_true(out.stopped);
	assert_string_equal(buf_str(&s.paths), "a|b/|");
	buf_release(&s.paths);
}

static void test_walk_does_not_follow(void **state)
{
	struct seen s = { .paths = BUF_INIT(65536) };
	struct walk_outcome out;

	(void)state;
	make_hostile(tree);
	make_deep(tree, DEEP);
	out = walk_all(&s, 10000);
	assert_false(out.cut);
	assert_null(strstr(buf_str(&s.paths), "secret"));
	assert_null(strstr(buf_str(&s.paths), "inner"));
	assert_non_null(strstr(buf_str(&s.paths), "bottom"));
	assert_non_null(strstr(buf_str(&s.paths), "two\nlines"));
	buf_release(&s.paths);
}

static void test_walk_ends_at_its_caps(void **state)
{
	struct seen s = { .paths = BUF_INIT(65536) };
	struct walk_outcome out;
	char name[16];

	(void)state;
	for (int i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		put_file(tree, name, "");
	}
	out = walk_all(&s, 50);
	assert_false(out.cut);
	out = walk_all(&s, 49);
	assert_true(out.cut);
	assert_int_equal(out.entries, 49);
	make_deep(tree, WALK_DEPTH_MAX + 3);
	out = walk_all(&s, 10000);
	assert_true(out.cut);
	assert_int_equal(out.entries, 50 + WALK_DEPTH_MAX);
	buf_release(&s.paths);
}

static void test_walk_kinds_only(void **state)
{
	const struct walk_caps caps = { .entries = 1000, .kinds_only = true };
	struct seen s = { .paths = BUF_INIT(65536) };
	struct brig_error err = BRIG_ERROR_INIT;
	struct walk_outcome out;

	(void)state;
	make_hostile(tree);
	make_deep(tree, 3);
	assert_int_equal(walk_tree(tree, &caps, see, &s, &out, &err), 0);
	assert_non_null(strstr(buf_str(&s.paths), "d/d/d/bottom|"));
	assert_null(strstr(buf_str(&s.paths), "secret"));
	buf_release(&s.paths);
}

/* Somebody exchanges a folder and a link to the outside, over and over, while it is walked. */
static atomic_bool swapping;

static void *swap(void *arg)
{
	(void)arg;
	while (atomic_load(&swapping))
		(void)renameat2(tree, "x", tree, "y", RENAME_EXCHANGE);
	return NULL;
}

static void test_walk_while_entries_are_swapped(void **state)
{
	pthread_t thread;

	(void)state;
	put_file(outside, "secret", "canary");
	put_dir(tree, "x");
	put_file(tree, "x/inside", "");
	assert_int_equal(symlinkat("../outside", tree, "y"), 0);
	atomic_store(&swapping, true);
	assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		struct seen s = { .paths = BUF_INIT(4096) };
		AUTO_FD fd = FD_NONE;

		(void)walk_all(&s, 100);
		assert_null(strstr(buf_str(&s.paths), "secret"));
		buf_release(&s.paths);
		fd = beneath_open_file(tree, "x/secret", NULL);
		assert_true(fd < 0);
	}
	atomic_store(&swapping, false);
	(void)pthread_join(thread, NULL);
}

/* ---- pack and unpack --------------------------------------------------------------------------- */

static const struct pack_caps roomy = { .entries = 10000, .bytes = 64 * MiB };
static const struct unpack_options into = { .caps = { .entries = 10000, .bytes = 64 * MiB },
					    .uid = UINT32_MAX,
					    .gid = UINT32_MAX };

/* The stream of a tree, in memory. */
static int packed(int dir, pack_skip_fn skip, struct pack_counts *counts)
{
	struct brig_error err = BRIG_ERROR_INIT;
	int fd = memfd_create("stream", MFD_CLOEXEC);

	assert_true(fd >= 0);
	if (pack_tree(dir, &roomy, skip, NULL, fd, counts, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static bool skip_sparse(void *arg, const char *path, bool is_dir)
{
	(void)arg;
	(void)is_dir;
	return str_eq(path, "sparse");
}

static void test_pack_there_and_back(void **state)
{
	struct pack_counts sent, got;
	char target[64] = "";
	struct stat st;
	AUTO_FD stream = FD_NONE, copy = fresh("copy");

	(void)state;
	make_hostile(tree);
	make_deep(tree, DEEP);
	put_dir(tree, "closed");
	put_file(tree, "closed/in", "in");
	put_dir(tree, "closed/sub");
	assert_int_equal(fchmodat(tree, "closed/sub", 0, 0), 0);
	assert_int_equal(fchmodat(tree, "closed", 0555, 0), 0);
	stream = packed(tree, skip_sparse, &sent);
	assert_true(sent.left_out >= 2); /* FIFO, socket; a device */
	assert_int_equal(unpack_tree(copy, stream, &into, &got), 0);
	assert_int_equal(got.entries, sent.entries);
	assert_int_equal(got.bytes, sent.bytes);
	assert_text(copy, "plain", "text");
	assert_text(copy, "two\nlines", "newline");
	assert_text(copy, "not\xff\xfeutf8", "bytes");
	assert_text(copy, "closed/in", "in");
	assert_int_equal(readlinkat(copy, "to-dir", target, sizeof(target) - 1), 10);
	assert_string_equal(target, "../outside");
	assert_int_equal(fstatat(copy, "setuid", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(fstatat(copy, "closed", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_int_equal(fstatat(copy, "closed/sub", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	assert_int_equal(fstatat(copy, "fifo", &st, AT_SYMLINK_NOFOLLOW), -1);
	for (size_t i = 0; i < 4; i++) /* so that it can be removed */
		assert_int_equal(fchmodat(i & 1 ? tree : copy, i & 2 ? "closed/sub" : "closed", 0700, 0), 0);
}

static void test_pack_large_and_holes(void **state)
{
	AUTO_FREE char *data = malloc(3 * MiB), *back = malloc(3 * MiB);
	struct pack_counts sent, got;
	struct stat st;
	AUTO_FD stream = FD_NONE, fd = FD_NONE, copy = fresh("copy");

	(void)state;
	assert_true(data && back);
	memset(data, 0, 3 * MiB);
	for (size_t i = 0; i < MiB; i++)
		data[MiB + i] = (char)(i * 7);
	fd = openat(tree, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, 3 * MiB), 0);
	put_file(tree, "empty", "");
	stream = packed(tree, NULL, &sent);
	assert_int_equal(sent.bytes, 3 * MiB);
	assert_int_equal(unpack_tree(copy, stream, &into, &got), 0);
	fd_closep(&fd);
	fd = beneath_open_file(copy, "large", &st);
	assert_true(fd >= 0);
	assert_int_equal(st.st_size, 3 * MiB);
	assert_true((uint64_t)st.st_blocks * 512 < 2 * MiB + 512 * KiB);
	assert_int_equal(fd_read_all(fd, back, 3 * MiB), 3 * MiB);
	assert_memory_equal(data, back, 3 * MiB);
	assert_text(copy, "empty", "");
}

static void test_pack_refuses_beyond_caps(void **state)
{
	const struct pack_caps few = { .entries = 3, .bytes = MiB }, small = { .entries = 100, .bytes = 3 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;
	AUTO_FD out = memfd_create("stream", MFD_CLOEXEC);

	(void)state;
	make_hostile(tree);
	assert_int_equal(pack_tree(tree, &few, skip_sparse, NULL, out, &counts, &err), -BRIG_E_REFUSED);
	assert_int_equal(pack_tree(tree, &small, skip_sparse, NULL, out, &counts, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "workspace_hide"));
	assert_int_equal(pack_measure(tree, &roomy, skip_sparse, NULL, &counts, &err), 0);
	assert_true(counts.bytes < KiB);
	/* A terabyte that takes no room: refused by its size, not by reading it. */
	assert_int_equal(pack_tree(tree, &roomy, NULL, NULL, out, &counts, &err), -BRIG_E_REFUSED);
	assert_int_equal(pack_measure(tree, &roomy, NULL, NULL, &counts, &err), -BRIG_E_REFUSED);
}

/* f1: a tree that a program left is packed as far as the caps reach, and the stream is sound. */
static void test_f1_pack_in_part(void **state)
{
	const struct pack_caps exact = { 3, 7, false }, small = { 9, 3, true };
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts, got;
	AUTO_FD out = memfd_create("stream", MFD_CLOEXEC);
	AUTO_FD copy = fresh("copy");

	(void)state;
	put_file(tree, "a", "12");
	put_file(tree, "b", "1234");
	put_file(tree, "c", "1");
	for (char name[] = "f0"; name[1] < '9'; name[1]++) /* these do not travel, and do not count */
		assert_int_equal(mkfifoat(tree, name, 0600), 0);
	assert_int_equal(pack_tree(tree, &exact, NULL, NULL, out, &counts, &err), 0);
	assert_false(counts.cut);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	assert_int_equal(pack_tree(tree, &small, NULL, NULL, out, &counts, &err), 0);
	assert_true(counts.cut);
	assert_int_equal(counts.entries, 2);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	assert_int_equal(unpack_tree(copy, out, &into, &got), 0);
	assert_text(copy, "a", "12");
	assert_text(copy, "c", "1");
	assert_int_equal(faccessat(copy, "b", F_OK, 0), -1);
}

/* The marks of an overlay's upper layer travel for who wants them, and nobody else can be sent any. */
static void test_pack_upper_layer(void **state)
{
	struct pack_caps upper = roomy;
	struct unpack_options as_upper = into;
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;
	struct stat st;
	AUTO_FD out = memfd_create("stream", MFD_CLOEXEC);
	AUTO_FD copy = fresh("copy"), plain = fresh("plain"), dir = FD_NONE;
	bool has_marks;

	(void)state;
	upper.upper = as_upper.caps.upper = true;
	put_dir(tree, "emptied");
	put_file(tree, "emptied/new", "n");
	dir = openat(tree, "emptied", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	has_marks = fsetxattr(dir, OVERLAY_OPAQUE, "y", 1, 0) == 0;
	if (mknodat(tree, "gone", S_IFCHR, 0) < 0)
		skip();
	assert_int_equal(pack_tree(tree, &upper, NULL, NULL, out, &counts, &err), 0);
	assert_int_equal(counts.left_out, 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	assert_int_equal(unpack_tree(copy, out, &as_upper, &counts), 0);
	assert_int_equal(fstatat(copy, "gone", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(overlay_is_gone(&st));
	assert_int_equal(overlay_is_opaque(copy, "emptied"), has_marks);
	assert_text(copy, "emptied/new", "n");
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	assert_int_equal(unpack_tree(plain, out, &into, &counts), -EPROTO);
	assert_int_equal(ftruncate(out, 0), 0);
	assert_int_equal(lseek(out, 0, SEEK_SET), 0);
	assert_int_equal(pack_tree(tree, &roomy, NULL, NULL, out, &counts, &err), 0);
	assert_int_equal(counts.left_out, 1);
}

static void test_pack_to_nobody(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;
	int pair[2];

	(void)state;
	put_file(tree, "a", "a");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	(void)close(pair[1]);
	assert_int_equal(pack_tree(tree, &roomy, NULL, NULL, pair[0], &counts, &err), -BRIG_E_SYSTEM);
	(void)close(pair[0]);
}

/* One record of a stream that nobody honest would write. */
struct record {
	char type;
	const char *path, *content;
	unsigned mode;
};

static int unpack_records(int dir, const struct record *r, size_t n, const struct unpack_options *o)
{
	AUTO_BUF b = BUF_INIT(PACK_BLOCK);
	AUTO_FD in = memfd_create("stream", MFD_CLOEXEC);
	uint64_t numbers[2] = { 0, 0 };
	struct pack_counts counts;
	uint32_t len;

	for (size_t i = 0; i < n; i++) {
		const char *content = r[i].content ? r[i].content : "";
		struct pack_head h = { .type = (uint8_t)r[i].type,
				       .mode = (uint16_t)r[i].mode,
				       .path_len = (uint32_t)strlen(r[i].path),
				       .content_len = strlen(content) };

		numbers[0] += r[i].type != PACK_MODE;
		numbers[1] += h.content_len;
		if (r[i].type == PACK_END_RECORD)
			h.content_len = sizeof(numbers);
		(void)buf_add(&b, &h, sizeof(h));
		(void)buf_adds(&b, r[i].path);
		if (r[i].type == PACK_END_RECORD) {
			numbers[0]--;
			(void)buf_add(&b, numbers, sizeof(numbers));
		} else {
			(void)buf_adds(&b, content);
		}
	}
	len = (uint32_t)b.len;
	assert_int_equal(fd_write_all(in, &len, sizeof(len)), 0);
	assert_int_equal(fd_write_all(in, b.data, b.len), 0);
	assert_int_equal(lseek(in, 0, SEEK_SET), 0);
	return unpack_tree(dir, in, o, &counts);
}

#define UNPACK(...)                                                  \
	unpack_records(copy, (const struct record[]){ __VA_ARGS__ }, \
		       ARRAY_LEN(((const struct record[]){ __VA_ARGS__ })), &into)
#define END                      \
	{                        \
		'e', "", NULL, 0 \
	}

static void test_unpack_trusts_nothing(void **state)
{
	const struct unpack_options tight = { .caps = { .entries = 1, .bytes = 3 },
					      .uid = UINT32_MAX,
					      .gid = UINT32_MAX };
	AUTO_FD copy = fresh("copy");

	(void)state;
	put_file(copy, "there", "old");
	assert_int_equal(UNPACK({ 'f', "a", "x", 0644 }, END), 0);
	assert_int_equal(UNPACK({ 'f', "b", "x", 0644 }), -EPROTO); /* no end */
	assert_int_equal(UNPACK({ 'f', "../x", "x", 0644 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'f', "/x", "x", 0644 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'f', "", "x", 0644 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'f', "q//x", "x", 0644 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'f', ".", "x", 0644 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'f', "s", "x", 04755 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'd', "e", "x", 0755 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'l', "l0", "", 0777 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'c', "dev", NULL, 0644 }, END), -EPROTO);
	assert_int_equal(UNPACK({ 'f', "there", "new", 0644 }, END), -EEXIST);
	assert_int_equal(UNPACK({ 'f', "no/such", "x", 0644 }, END), -ENOENT);
	assert_text(copy, "there", "old");
	/* Through a link that the stream itself made, as a folder and as a file. */
	assert_int_equal(UNPACK({ 'l', "out", "../outside", 0777 }, { 'f', "out/x", "x", 0644 }, END), -ELOOP);
	assert_int_equal(UNPACK({ 'l', "out2", "../outside/x", 0777 }, { 'f', "out2", "x", 0644 }, END), -EEXIST);
	assert_int_equal(UNPACK({ 'l', "out3", "../outside", 0777 }, { 'd', "out3", NULL, 0755 }, END), -EEXIST);
	assert_int_equal(UNPACK({ 'l', "out4", "../outside", 0777 }, { 'm', "out4", NULL, 0 }, END), -ELOOP);
	assert_int_equal(faccessat(outside, "x", F_OK, 0), -1);
	assert_int_equal(unpack_records(copy, (const struct record[]){ { 'f', "t1", "four", 0644 }, END }, 2, &tight),
			 -E2BIG);
	assert_int_equal(
		unpack_records(copy,
			       (const struct record[]){ { 'd', "t2", NULL, 0755 }, { 'd', "t3", NULL, 0755 }, END }, 3,
			       &tight),
		-E2BIG);
}

static void test_unpack_owner(void **state)
{
	struct unpack_options o = into;
	struct pack_counts counts;
	struct stat st;
	AUTO_FD stream = FD_NONE, copy = fresh("copy");

	(void)state;
	if (geteuid() != 0)
		skip();
	put_dir(tree, "d");
	put_file(tree, "d/f", "x");
	assert_int_equal(symlinkat("f", tree, "d/l"), 0);
	o.uid = 1234;
	o.gid = 4321;
	stream = packed(tree, NULL, &counts);
	assert_int_equal(unpack_tree(copy, stream, &o, &counts), 0);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fstatat(copy, ((const char *[]){ "d", "d/f", "d/l" })[i], &st, AT_SYMLINK_NOFOLLOW),
				 0);
		assert_int_equal(st.st_uid, 1234);
		assert_int_equal(st.st_gid, 4321);
	}
}

/* What follows the tree on the same channel is not taken. */
static void test_unpack_takes_no_byte_more(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct pack_counts counts;
	AUTO_FD copy = fresh("copy");
	char after[8] = "";
	int pair[2];

	(void)state;
	put_file(tree, "a", "a");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pack_tree(tree, &roomy, NULL, NULL, pair[0], &counts, &err), 0);
	assert_int_equal(fd_write_all(pair[0], "after", 5), 0);
	assert_int_equal(unpack_tree(copy, pair[1], &into, &counts), 0);
	assert_int_equal(fd_read_all(pair[1], after, 5), 5);
	assert_string_equal(after, "after");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_beneath_stays_inside),
		TEST(test_beneath_look_opens_links_themselves),
		TEST(test_beneath_makes_only_new_things),
		cmocka_unit_test(test_beneath_is_path),
		cmocka_unit_test(test_glob),
		cmocka_unit_test(test_glob_does_not_explode),
		cmocka_unit_test(test_glob_is_pattern),
		TEST(test_walk_order),
		TEST(test_walk_does_not_follow),
		TEST(test_walk_ends_at_its_caps),
		TEST(test_walk_kinds_only),
		TEST(test_walk_while_entries_are_swapped),
		TEST(test_pack_there_and_back),
		TEST(test_pack_large_and_holes),
		TEST(test_pack_refuses_beyond_caps),
		TEST(test_f1_pack_in_part),
		TEST(test_pack_upper_layer),
		TEST(test_pack_to_nobody),
		TEST(test_unpack_trusts_nothing),
		TEST(test_unpack_owner),
		TEST(test_unpack_takes_no_byte_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
