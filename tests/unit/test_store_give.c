/* SPDX-License-Identifier: Apache-2.0 */
/* What one store gives to another: the same content, or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/pack.h"
#include "store/store.h"
#include "temp_folder.h"

static char temp_folder[256];

static int make_folder(void **state UNUSED)
{
	return temp_folder_make(temp_folder, sizeof(temp_folder), "give");
}

/* Folders of the store are closed to writing, which root does not mind, and others do. */
static int open_one(const char *path, const struct stat *st, int kind, struct FTW *at UNUSED)
{
	return kind == FTW_D ? chmod(path, st->st_mode | 0700) : 0;
}

static int remove_folder(void **state UNUSED)
{
	(void)nftw(temp_folder, open_one, 16, FTW_PHYS);
	return temp_folder_remove(temp_folder);
}

#define DAY_NS (86400 * NS_PER_SEC)
#define MOST   (1 * MiB)

static struct store *open_store(const char *name, enum store_form form)
{
	const struct store_limits limits = { .bytes = 8 * MiB, .ttl_ns = DAY_NS };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct store *s = NULL;
	char path[400];

	(void)snprintf(path, sizeof(path), "%s/%s", temp_folder, name);
	if (statedir_open(path, true, &dir, &err) < 0 || store_open(&dir, form, true, &limits, &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static struct store_key key_of(const char *text)
{
	struct store_key_maker m;
	struct store_key key;

	store_key_begin(&m, "shared-pip");
	store_key_text(&m, "text", text);
	store_key_end(&m, &key);
	return key;
}

static int memory_file(void)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A folder with a file, a program, a link and a folder. */
static void put_tree(struct store *s, const struct store_key *key)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_import im = { .entries = 100 };
	char path[400];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/source", temp_folder);
	assert_int_equal(mkdir(path, 0755), 0);
	im.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(im.dir, "lib", 0755), 0);
	fd = openat(im.dir, "lib/a.py", O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(write(fd, "a = 1\n", 6), 6);
	close(fd);
	assert_int_equal(symlinkat("lib/a.py", im.dir, "link"), 0);
	assert_int_equal(store_put_tree(s, key, &im, &err), STORE_STORED);
	close(im.dir);
}

static struct store_given packed(struct store *s, const struct store_key *key)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_given g = { .in = memory_file(), .max = MOST };
	struct store_info info;

	if (store_pack(s, key, MOST, g.in, &info, &err) != STORE_HIT)
		fail_msg("%s", err.msg);
	memcpy(g.content, info.content, sizeof(g.content));
	g.created_ns = info.created_ns;
	assert_int_equal(lseek(g.in, 0, SEEK_SET), 0);
	return g;
}

static void contents_travel(void **state UNUSED)
{
	static const enum store_form forms[] = { STORE_BYTES, STORE_TREES };
	const struct store_key key = key_of("k"), own = key_of("own"), none = key_of("none");
	struct brig_error err = BRIG_ERROR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct store *one = open_store("one", forms[i]), *two = open_store("two", forms[i]);
		struct store_tree tree = STORE_TREE_INIT;
		struct store_given g;
		struct store_info info;

		if (forms[i] == STORE_TREES)
			put_tree(one, &key);
		else
			assert_int_equal(store_put(one, &key, "bytes", 5, &err), STORE_STORED);
		g = packed(one, &key);
		g.created_ns -= 3600 * NS_PER_SEC; /* it is no younger by travelling */
		assert_int_equal(store_unpack(two, &key, &g, &err), STORE_STORED);
		assert_int_equal(store_also(two, &key, &own, 0, &err), STORE_HIT);
		assert_int_equal(store_also(two, &none, &own, 0, &err), STORE_MISS);
		if (forms[i] == STORE_TREES)
			assert_int_equal(store_get_tree(two, &own, false, &tree, &info, &err), STORE_HIT);
		else
			assert_int_equal(store_get(two, &own, NULL, &info, &err), STORE_HIT);
		assert_memory_equal(info.content, g.content, sizeof(g.content));
		assert_true(clock_wall_ns() - info.created_ns >= 3600 * NS_PER_SEC);
		store_tree_close(&tree);
		close(g.in);
		store_close(one);
		store_close(two);
	}
}

static void others_are_refused(void **state UNUSED)
{
	const struct store_key key = key_of("k"), other = key_of("other");
	struct brig_error err = BRIG_ERROR_INIT;
	struct store *one = open_store("one", STORE_TREES), *two = open_store("two", STORE_TREES);
	struct store_given g;
	struct store_info info;
	char byte;

	put_tree(one, &key);
	g = packed(one, &key);
	g.content[0] ^= 1;
	assert_int_equal(store_unpack(two, &key, &g, &err), -BRIG_E_REFUSED);
	g.content[0] ^= 1;
	assert_int_equal(pread(g.in, &byte, 1, 0), 1);
	for (off_t at = 0, n = lseek(g.in, 0, SEEK_END); at < n; at++) { /* each byte in turn is another one */
		assert_int_equal(pread(g.in, &byte, 1, at), 1);
		byte ^= 1;
		assert_int_equal(pwrite(g.in, &byte, 1, at), 1);
		(void)lseek(g.in, 0, SEEK_SET);
		if (store_unpack(two, &other, &g, &err) >=
		    0) { /* a byte that says nothing: permissions that are not kept */
			assert_int_equal(store_get(two, &other, NULL, &info, &err), STORE_HIT);
			assert_memory_equal(info.content, g.content, sizeof(g.content));
		}
		byte ^= 1;
		assert_int_equal(pwrite(g.in, &byte, 1, at), 1);
	}
	assert_int_equal(store_get(two, &key, NULL, &info, &err), STORE_MISS);
	assert_int_equal(ftruncate(g.in, 10), 0);
	(void)lseek(g.in, 0, SEEK_SET);
	assert_int_equal(store_unpack(two, &key, &g, &err), -BRIG_E_REFUSED);
	g.max = 1;
	assert_int_equal(store_unpack(two, &key, &g, &err), -BRIG_E_REFUSED);
	close(g.in);
	store_close(one);
	store_close(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(contents_travel, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(others_are_refused, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
