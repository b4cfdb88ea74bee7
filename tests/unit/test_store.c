/* SPDX-License-Identifier: Apache-2.0 */
/* The store: nothing comes out that did not go in, whatever happened to its files or its writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "store/entry.h"
#include "store/store.h"
#include "temp_folder.h"

#define DAY_NS  (86400 * NS_PER_SEC)
#define WAIT_MS 120000

static char folder[256];

static int make_folder(void **state)
{
	(void)state;
	return temp_folder_make(folder, sizeof(folder), "store");
}

static int remove_folder(void **state)
{
	(void)state;
	return temp_folder_remove(folder);
}

static struct store *open_store(uint64_t bytes)
{
	const struct store_limits limits = { .bytes = bytes, .ttl_ns = 30 * DAY_NS };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	struct store *s = NULL;

	if (statedir_open(folder, true, &dir, &err) < 0 || store_open(&dir, STORE_BYTES, true, &limits, &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static struct store_key key_of(const char *text)
{
	struct store_key_maker m;
	struct store_key key;

	store_key_begin(&m, "test");
	store_key_text(&m, "text", text);
	store_key_end(&m, &key);
	return key;
}

static void put(struct store *s, const char *name, const void *data, size_t len)
{
	const struct store_key key = key_of(name);
	struct brig_error err = BRIG_ERROR_INIT;

	if (store_put(s, &key, data, len, &err) != STORE_STORED)
		fail_msg("put: %s", err.msg);
}

/* The answer; on a hit the content is this one. */
static int get(struct store *s, const char *name, const void *data, size_t len)
{
	const struct store_key key = key_of(name);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF content = BUF_INIT(64 * MiB);
	struct store_info info;
	int rc = store_get(s, &key, &content, &info, &err);

	if (rc < 0)
		fail_msg("get: %s", err.msg);
	if (rc == STORE_HIT) {
		assert_int_equal(content.len, len);
		assert_memory_equal(buf_str(&content), data, len);
		assert_string_equal(info.key.kind, "test");
	} else {
		assert_int_equal(content.len, 0);
	}
	if (rc == STORE_DAMAGED)
		assert_true(*err.msg);
	return rc;
}

static const char *index_path(const char *name, char *dst, size_t size)
{
	struct store_key key = key_of(name);
	char hex[STORE_HEX_LEN + 1];

	store_hex(key.hash, hex);
	(void)snprintf(dst, size, "%s/store/index/%s", folder, hex);
	return dst;
}

static const char *content_path(const char *data, char *dst, size_t size)
{
	unsigned char hash[STORE_HASH_LEN];
	char hex[STORE_HEX_LEN + 1];

	sha256(data, strlen(data), hash);
	store_hex(hash, hex);
	(void)snprintf(dst, size, "%s/store/content/%s", folder, hex);
	return dst;
}

/* ---- keys and round trips --------------------------------------------------------------------- */

static void keys_differ(void **state)
{
	static const char *const lists[][2] = { { "ab", "c" }, { "a", "bc" }, { "abc", "" }, { "", "abc" } };
	struct store_key key[ARRAY_LEN(lists) + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(key); i++) {
		struct store_key_maker m;
		size_t row = i % ARRAY_LEN(lists);

		store_key_begin(&m,
				i < ARRAY_LEN(lists) ? "one" : "two"); /* the last one: the first, of another kind */
		store_key_text(&m, lists[row][0], lists[row][1]);
		store_key_end(&m, &key[i]);
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(key[i].hash, key[k].hash, STORE_HASH_LEN);
	}
}

static void contents_come_back(void **state)
{
	struct store *s = open_store(GiB);
	static char big[3 * 1024 * 1024 + 17];

	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 2654435761u >> 13);
	assert_int_equal(get(s, "none", "", 0), STORE_MISS);
	put(s, "empty", "", 0);
	put(s, "nul", "a\0b", 3);
	put(s, "big", big, sizeof(big));
	assert_int_equal(get(s, "empty", "", 0), STORE_HIT);
	assert_int_equal(get(s, "nul", "a\0b", 3), STORE_HIT);
	assert_int_equal(get(s, "big", big, sizeof(big)), STORE_HIT);
	put(s, "nul", "other", 5); /* replaces */
	assert_int_equal(get(s, "nul", "other", 5), STORE_HIT);
	store_close(s);
	s = open_store(GiB); /* and in another life */
	assert_int_equal(get(s, "big", big, sizeof(big)), STORE_HIT);
	assert_int_equal(store_events(s)->hit, 1);
	store_close(s);
}

static void kinds_are_kept_apart(void **state)
{
	struct store *s = open_store(GiB);
	struct store_key key = key_of("a");
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	put(s, "a", "1", 1);
	memcpy(key.kind, "other", sizeof("other"));
	assert_int_equal(store_get(s, &key, NULL, NULL, &err),
			 STORE_DAMAGED); /* the hash covers the kind: never by chance */
	store_close(s);
}

static void too_large_for_the_buffer(void **state)
{
	struct store *s = open_store(GiB);
	struct store_key key = key_of("a");
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF small = BUF_INIT(4);

	(void)state;
	put(s, "a", "12345678", 8);
	assert_int_equal(store_get(s, &key, &small, NULL, &err), STORE_MISS);
	assert_int_equal(small.len, 0);
	assert_int_equal(get(s, "a", "12345678", 8), STORE_HIT); /* nothing is wrong with it */
	store_close(s);
}

/* ---- tampering -------------------------------------------------------------------------------- */

#define CONTENT "what was kept"

static void write_at(const char *path, off_t at, const char *text)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), at), strlen(text));
	close(fd);
}

static void tamper_edit(const char *path)
{
	write_at(path, 3, "X");
}

static void tamper_cut(const char *path)
{
	assert_int_equal(truncate(path, 5), 0);
}

static void tamper_empty(const char *path)
{
	assert_int_equal(truncate(path, 0), 0);
}

static void tamper_append(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	write_at(path, st.st_size, "more");
}

static void tamper_remove(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static void tamper_hard_link(const char *path)
{
	char other[400];

	(void)snprintf(other, sizeof(other), "%s/other-name", folder);
	(void)unlink(other);
	assert_int_equal(link(path, other), 0);
}

/* The bytes are right, but somewhere else. */
static void tamper_symlink(const char *path)
{
	char other[400];

	(void)snprintf(other, sizeof(other), "%s/moved", folder);
	(void)unlink(other);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
}

static void tamper_fifo(const char *path)
{
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void tamper_directory(const char *path)
{
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
}

static void tamper_mode(const char *path)
{
	assert_int_equal(chmod(path, 0644), 0);
}

static void tamper_owner(const char *path)
{
	if (geteuid() == 0)
		assert_int_equal(chown(path, 1, 1), 0);
	else
		tamper_mode(path);
}

static void (*const tampers[])(const char *path) = {
	tamper_edit,    tamper_cut,  tamper_empty,     tamper_append, tamper_remove, tamper_hard_link,
	tamper_symlink, tamper_fifo, tamper_directory, tamper_mode,   tamper_owner,
};

/* Each way to spoil a file ends with a rebuilt entry. */
static void spoiled_files_are_rebuilt(void **state)
{
	struct store *s = open_store(GiB);
	char record[400], content[400];

	(void)state;
	put(s, "neighbour", "beside it", 9);
	for (size_t i = 0; i < 2 * ARRAY_LEN(tampers); i++) {
		bool of_record = i % 2;
		uint64_t damaged = store_events(s)->damaged;
		bool removed = of_record && tampers[i / 2] == tamper_remove;

		put(s, "a", CONTENT, strlen(CONTENT));
		index_path("a", record, sizeof(record));
		content_path(CONTENT, content, sizeof(content));
		tampers[i / 2](of_record ? record : content);
		if (get(s, "a", CONTENT, strlen(CONTENT)) != (removed ? STORE_MISS : STORE_DAMAGED))
			fail_msg("tampering %zu is not noticed", i);
		assert_int_equal(store_events(s)->damaged, damaged + !removed);
		assert_int_equal(get(s, "a", CONTENT, strlen(CONTENT)), STORE_MISS);
		put(s, "a", CONTENT, strlen(CONTENT));
		assert_int_equal(get(s, "a", CONTENT, strlen(CONTENT)), STORE_HIT);
	}
	assert_int_equal(get(s, "neighbour", "beside it", 9), STORE_HIT);
	store_close(s);
}

static void records_cannot_be_swapped(void **state)
{
	struct store *s = open_store(GiB);
	char a[400], b[400];

	(void)state;
	put(s, "a", "A", 1);
	put(s, "b", "B", 1);
	assert_int_equal(rename(index_path("a", a, sizeof(a)), index_path("b", b, sizeof(b))), 0);
	assert_int_equal(get(s, "b", "B", 1), STORE_DAMAGED);
	store_close(s);
}

static void folders_must_be_ours(void **state)
{
	const struct store_limits limits = { .bytes = MiB, .ttl_ns = DAY_NS };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	char path[400], other[400];
	struct store *s = NULL;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/store", folder);
	(void)snprintf(other, sizeof(other), "%s/elsewhere", folder);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(statedir_open(folder, true, &dir, &err), 0);
	assert_true(store_open(&dir, STORE_BYTES, true, &limits, &s, &err) < 0);
	assert_non_null(strstr(err.msg, "store"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_true(store_open(&dir, STORE_BYTES, true, &limits, &s, &err) < 0);
	assert_int_equal(rmdir(path), 0);
	assert_true(store_open(&dir, STORE_BYTES, false, &limits, &s, &err) < 0);
	assert_int_equal(err.sys, ENOENT);
}

/* ---- age and size ----------------------------------------------------------------------------- */

/* Rewrites the record of an entry as if it had been made at another time. */
static void set_created(const char *name, uint64_t created_ns)
{
	unsigned char bytes[STORE_RECORD_SIZE];
	struct store_entry e;
	char path[400];
	int fd = open(index_path(name, path, sizeof(path)), O_RDWR);

	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_true(store_entry_decode(bytes, sizeof(bytes), &e));
	e.created_ns = created_ns;
	store_entry_encode(&e, bytes);
	assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	close(fd);
}

static void set_used(const char *name, time_t when)
{
	const struct timespec times[2] = { { .tv_sec = when }, { .tv_sec = when } };
	char path[400];

	assert_int_equal(utimensat(AT_FDCWD, index_path(name, path, sizeof(path)), times, 0), 0);
}

static void old_entries_are_not_used(void **state)
{
	struct store *s = open_store(GiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_care care;

	(void)state;
	put(s, "old", "1", 1);
	put(s, "future", "2", 1);
	put(s, "young", "3", 1);
	put(s, "old too", "4", 1);
	set_created("old", clock_wall_ns() - 31 * DAY_NS);
	set_created("old too", clock_wall_ns() - 31 * DAY_NS);
	set_created("young", clock_wall_ns() - 29 * DAY_NS);
	set_created("future", clock_wall_ns() + 2 * DAY_NS); /* the clock went backwards */
	assert_int_equal(get(s, "old", "1", 1), STORE_EXPIRED);
	assert_int_equal(get(s, "old", "1", 1), STORE_MISS);
	assert_int_equal(get(s, "future", "2", 1), STORE_EXPIRED);
	assert_int_equal(get(s, "young", "3", 1), STORE_HIT);
	assert_int_equal(store_prune(s, false, &care, &err), 0);
	assert_int_equal(care.expired, 1);
	assert_int_equal(care.entries, 1);
	assert_int_equal(get(s, "old too", "4", 1), STORE_MISS);
	assert_int_equal(store_events(s)->expired, 2);
	store_close(s);
}

#define PIECE (200 * KiB)

static void least_recently_used_goes_first(void **state)
{
	struct store *s = open_store(MiB); /* five pieces */
	static char data[6][PIECE];
	struct brig_error err = BRIG_ERROR_INIT;
	const struct store_key large = key_of("large");

	(void)state;
	for (size_t i = 0; i < 6; i++)
		memset(data[i], 'a' + (int)i, PIECE);
	for (size_t i = 0; i < 5; i++) {
		char name[2] = { (char)('0' + i), 0 };

		put(s, name, data[i], PIECE);
		set_used(name, (time_t)(1000 + i));
	}
	assert_int_equal(get(s, "0", data[0], PIECE), STORE_HIT); /* now the most recently used one */
	put(s, "5", data[5], PIECE);
	assert_int_equal(get(s, "0", data[0], PIECE), STORE_HIT);
	assert_int_equal(get(s, "1", data[1], PIECE), STORE_MISS);
	assert_int_equal(get(s, "2", data[2], PIECE), STORE_HIT);
	assert_int_equal(get(s, "5", data[5], PIECE), STORE_HIT);
	assert_int_equal(store_events(s)->evicted, 1);
	assert_int_equal(store_put(s, &large, data, MiB / 4 + 1, &err), STORE_TOO_LARGE);
	assert_int_equal(get(s, "2", data[2], PIECE), STORE_HIT);
	store_close(s);
}

static void equal_contents_are_kept_once(void **state)
{
	struct store *s = open_store(GiB);
	struct store_list list = { .row = NULL };
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_care care;

	(void)state;
	put(s, "a", CONTENT, strlen(CONTENT));
	put(s, "b", CONTENT, strlen(CONTENT));
	assert_int_equal(store_list(s, &list, &err), 0);
	assert_int_equal(list.n, 2);
	assert_int_equal(list.bytes, strlen(CONTENT));
	store_list_release(&list);
	set_created("a", 1);
	assert_int_equal(store_prune(s, false, &care, &err), 0);
	assert_int_equal(care.removed, 1);
	assert_int_equal(care.bytes, strlen(CONTENT)); /* still b's */
	assert_int_equal(get(s, "b", CONTENT, strlen(CONTENT)), STORE_HIT);
	assert_int_equal(store_prune(s, true, &care, &err), 0);
	assert_int_equal(care.entries, 0);
	assert_int_equal(care.bytes, 0);
	assert_int_equal(get(s, "b", CONTENT, strlen(CONTENT)), STORE_MISS);
	store_close(s);
}

static void touch(const char *name)
{
	char path[400];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/store/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void strays_go(void **state)
{
	struct store *s = open_store(GiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_care care;
	char path[400];

	(void)state;
	put(s, "a", CONTENT, strlen(CONTENT));
	touch("new");
	touch("index/not-a-key");
	touch("index/0000000000000000000000000000000000000000000000000000000000000000");
	touch("content/1111111111111111111111111111111111111111111111111111111111111111");
	assert_int_equal(store_prune(s, false, &care, &err), 0);
	assert_int_equal(care.stray, 3);
	assert_int_equal(care.entries, 1);
	(void)snprintf(path, sizeof(path), "%s/store/new", folder);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(get(s, "a", CONTENT, strlen(CONTENT)), STORE_HIT);
	store_close(s);
}

static void count_bad(void *arg, const struct store_info *info, const char *why)
{
	assert_string_equal(info->key.kind, "test");
	assert_true(*why);
	++*(int *)arg;
}

static void verify_names_and_drops(void **state)
{
	struct store *s = open_store(GiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_list list = { .row = NULL };
	struct store_care care;
	char path[400];
	int bad = 0;

	(void)state;
	put(s, "a", CONTENT, strlen(CONTENT));
	put(s, "b", "B", 1);
	tamper_edit(content_path(CONTENT, path, sizeof(path)));
	assert_int_equal(store_verify(s, count_bad, &bad, &care, &err), 0);
	assert_int_equal(bad, 1);
	assert_int_equal(care.damaged, 1);
	assert_int_equal(care.entries, 1);
	assert_int_equal(store_list(s, &list, &err), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.row[0].hits, 0); /* looking after it is no use of it */
	store_list_release(&list);
	assert_int_equal(get(s, "b", "B", 1), STORE_HIT);
	assert_int_equal(store_list(s, &list, &err), 0);
	assert_int_equal(list.row[0].hits, 1);
	store_list_release(&list);
	store_close(s);
}

/* ---- trouble with the disk -------------------------------------------------------------------- */

static void failed_writes_leave_nothing(void **state)
{
	struct store *s = open_store(GiB);
	const struct store_key key = key_of("large");
	struct brig_error err = BRIG_ERROR_INIT;
	struct rlimit old, tight;
	static char data[PIECE];

	(void)state;
	put(s, "a", CONTENT, strlen(CONTENT));
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){ .rlim_cur = PIECE / 2, .rlim_max = old.rlim_max };
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_true(store_put(s, &key, data, sizeof(data), &err) < 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_true(*err.msg);
	assert_int_equal(store_events(s)->failed, 1);
	assert_int_equal(get(s, "large", data, sizeof(data)), STORE_MISS);
	assert_int_equal(get(s, "a", CONTENT, strlen(CONTENT)), STORE_HIT);
	put(s, "large", data, sizeof(data));
	store_close(s);
}

/* ---- several processes ------------------------------------------------------------------------ */

/* Ends the child without cmocka's handlers. */
static void child_end(bool good)
{
	_exit(good ? 0 : 1);
}

static void await_child(pid_t pid, int *status)
{
	assert_int_equal(waitpid(pid, status, 0), pid);
}

/* What is written under a name is made of the name: any reader can tell a torn or mixed one. */
static size_t fill(char *data, unsigned n)
{
	size_t len = 1000 + (size_t)n * 977 % 60000;

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(n * 31 + i * 7);
	return len;
}

static void write_for_ever(int report)
{
	struct store *s = open_store(2 * MiB);
	struct brig_error err = BRIG_ERROR_INIT;
	static char data[64 * 1024];

	for (unsigned n = 0;; n = (n + 1) % 64) {
		char name[16];
		struct store_key key;
		size_t len = fill(data, n);

		(void)snprintf(name, sizeof(name), "%u", n);
		key = key_of(name);
		(void)store_put(s, &key, data, len, &err);
		(void)!write(report, "w", 1);
	}
}

static void check_all(struct store *s)
{
	static char data[64 * 1024];

	for (unsigned n = 0; n < 64; n++) {
		char name[16];
		size_t len = fill(data, n);
		int answer;

		(void)snprintf(name, sizeof(name), "%u", n);
		answer = get(s, name, data, len);
		if (answer != STORE_HIT && answer != STORE_MISS)
			fail_msg("entry %u is torn", n);
	}
}

static void killed_writers_tear_nothing(void **state)
{
	struct store *s = open_store(2 * MiB);

	(void)state;
	for (int round = 0; round < 30; round++) {
		pid_t pid[2];
		int pipe_fd[2], status;
		char seen[64];

		assert_int_equal(pipe(pipe_fd), 0);
		for (int i = 0; i < 2; i++) {
			pid[i] = fork();
			assert_true(pid[i] >= 0);
			if (pid[i] == 0)
				write_for_ever(pipe_fd[1]);
		}
		assert_int_equal(fd_read_all(pipe_fd[0], seen, (size_t)(1 + round)), 1 + round);
		for (int i = 0; i < 2; i++)
			assert_int_equal(kill(pid[i], SIGKILL), 0);
		for (int i = 0; i < 2; i++)
			await_child(pid[i], &status);
		close(pipe_fd[0]);
		close(pipe_fd[1]);
		check_all(s);
	}
	assert_int_equal(store_events(s)->damaged, 0);
	assert_true(store_events(s)->hit > 0);
	store_close(s);
}

static void claims_exclude_and_end(void **state)
{
	struct store *s = open_store(MiB);
	const struct store_key key = key_of("a"), other = key_of("b");
	struct brig_error err = BRIG_ERROR_INIT;
	int ready[2], cancel[2], status;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(cancel), 0);
	pid = fork();
	if (pid == 0) {
		struct store *mine = open_store(MiB);

		if (store_claim(mine, &key, 0, -1, &err) != STORE_CLAIMED || write(ready[1], "r", 1) != 1)
			child_end(false);
		for (;;)
			pause();
	}
	assert_int_equal(fd_read_all(ready[0], &byte, 1), 1);
	assert_int_equal(store_claim(s, &other, 0, -1, &err), STORE_CLAIMED);
	assert_int_equal(store_claim(s, &key, 0, -1, &err), STORE_BUSY);
	assert_int_equal(write(cancel[1], "c", 1), 1);
	assert_int_equal(store_claim(s, &key, WAIT_MS, cancel[0], &err), STORE_CANCELLED);
	assert_int_equal(kill(pid, SIGKILL), 0);
	await_child(pid, &status);
	assert_int_equal(store_claim(s, &key, WAIT_MS, -1, &err), STORE_CLAIMED);
	store_release(s);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(cancel[i]);
	}
	store_close(s);
}

/* Claims, looks, and builds only if it must; each build leaves a byte. */
static bool build_once(int builds)
{
	struct store *s = open_store(MiB);
	const struct store_key key = key_of("a");
	struct brig_error err = BRIG_ERROR_INIT;
	bool good = store_claim(s, &key, WAIT_MS, -1, &err) == STORE_CLAIMED;

	if (good && store_get(s, &key, NULL, NULL, &err) != STORE_HIT)
		good = write(builds, "b", 1) == 1 && store_put(s, &key, CONTENT, strlen(CONTENT), &err) == STORE_STORED;
	store_close(s);
	return good;
}

static void one_of_many_builds(void **state)
{
	pid_t pid[6];
	int builds[2], status;
	char seen[8];

	(void)state;
	assert_int_equal(pipe(builds), 0);
	for (size_t i = 0; i < ARRAY_LEN(pid); i++) {
		pid[i] = fork();
		if (pid[i] == 0)
			child_end(build_once(builds[1]));
	}
	for (size_t i = 0; i < ARRAY_LEN(pid); i++) {
		await_child(pid[i], &status);
		assert_int_equal(status, 0);
	}
	close(builds[1]);
	assert_int_equal(fd_read_all(builds[0], seen, sizeof(seen)), 1);
	close(builds[0]);
}

/* ---- the record ------------------------------------------------------------------------------- */

static void records_are_read_strictly(void **state)
{
	struct store_entry e = { .key = key_of("a"), .created_ns = 5, .size = 7, .hits = 9 }, seen;
	unsigned char bytes[STORE_RECORD_SIZE];

	(void)state;
	store_entry_encode(&e, bytes);
	assert_true(store_entry_decode(bytes, sizeof(bytes), &seen));
	assert_memory_equal(&seen.key, &e.key, sizeof(e.key));
	assert_int_equal(seen.created_ns, 5);
	assert_int_equal(seen.size, 7);
	assert_int_equal(seen.hits, 9);
	assert_false(store_entry_decode(bytes, sizeof(bytes) - 1, &seen));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] ^= 1;
		/* Only the hits may change. */
		assert_int_equal(store_entry_decode(bytes, sizeof(bytes), &seen), i >= store_entry_hits_offset);
		bytes[i] ^= 1;
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_differ),
		TEST(contents_come_back),
		TEST(kinds_are_kept_apart),
		TEST(too_large_for_the_buffer),
		TEST(spoiled_files_are_rebuilt),
		TEST(records_cannot_be_swapped),
		TEST(folders_must_be_ours),
		TEST(old_entries_are_not_used),
		TEST(least_recently_used_goes_first),
		TEST(equal_contents_are_kept_once),
		TEST(strays_go),
		TEST(verify_names_and_drops),
		TEST(failed_writes_leave_nothing),
		TEST(killed_writers_tear_nothing),
		TEST(claims_exclude_and_end),
		TEST(one_of_many_builds),
		TEST(records_are_read_strictly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
