/* SPDX-License-Identifier: Apache-2.0 */
/* Neither being killed nor damage loses or doubles anything of the history. */
#include "history_helpers.h"

/* ---- the spool ------------------------------------------------------------------------------------ */

static int count_record(void *arg, const void *record, size_t len)
{
	char id[RUN_ID_LEN + 1];

	assert_true(packed_check(record, len, id));
	++*(size_t *)arg;
	return 0;
}

static size_t scan(const char *data, size_t len, struct spool_report *ret)
{
	size_t n = 0;

	assert_int_equal(spool_scan(data, len, count_record, &n, ret), 0);
	assert_int_equal(n, ret->records);
	return n;
}

/* Wherever a spool was cut, what was whole before stays, and what comes later is found. */
static void test_torn_at_every_byte(void **state)
{
	struct world *w = *state;
	size_t len, first;
	AUTO_FREE char *spool = NULL;
	struct spool_report report;

	w->res.samples.n = 0; /* small records: this is tried at every byte */
	w->res.degraded = 0;
	add_many(w, 1);
	free(get_file(w, SPOOL_NAME, &first));
	add_many(w, 1);
	spool = get_file(w, SPOOL_NAME, &len);
	assert_int_equal(scan(spool, len, &report), 2);
	assert_int_equal(report.damaged_bytes, 0);
	for (size_t cut = 0; cut < len; cut++) {
		size_t now;
		AUTO_FREE char *after = NULL;

		put_file(w, SPOOL_NAME, spool, cut);
		add_many(w, 1);
		after = get_file(w, SPOOL_NAME, &now);
		assert_int_equal(scan(after, now, &report), cut < first ? 1 : 2);
		if (cut == first || cut < SPOOL_HEAD)
			assert_int_equal(report.damaged_bytes, 0);
	}
	assert_int_equal(w->notes.n, 0);
}

/* Whatever byte is wrong, the other records are found. */
static void test_any_byte_wrong(void **state)
{
	struct world *w = *state;
	size_t len;
	AUTO_FREE char *spool = NULL;
	struct spool_report report;

	w->res.samples.n = 0;
	add_many(w, 3);
	spool = get_file(w, SPOOL_NAME, &len);
	for (size_t i = 0; i < len; i++) {
		size_t n;

		spool[i] ^= 0x40;
		n = scan(spool, len, &report);
		assert_true(i < SPOOL_HEAD ? n == 0 : n == 2);
		assert_true(report.damaged_bytes > 0);
		spool[i] ^= 0x40;
	}
}

/* A program prints what looks like a record; the record of its run is torn: nothing is found inside the piece. */
static void test_no_forgery_from_inside(void **state)
{
	struct world *w = *state;
	size_t len, now;
	AUTO_FREE char *other = NULL, *spool = NULL;
	struct spool_report report;

	add_many(w, 1);
	other = get_file(w, SPOOL_NAME, &len);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, 0), 0);
	assert_true(len < RECORD_HEAD_MAX);
	say(w, &w->rec.out, other, len);
	add_many(w, 1);
	spool = get_file(w, SPOOL_NAME, &now);
	assert_non_null(memmem(spool, now, other, len));
	assert_int_equal(scan(spool, now - 1, &report), 0);
	assert_int_equal(report.damaged_bytes, now - 1 - SPOOL_HEAD);
}

static void test_damage_is_set_aside(void **state)
{
	struct world *w = *state;
	size_t len;
	AUTO_FREE char *spool = NULL;

	add_many(w, 3);
	spool = get_file(w, SPOOL_NAME, &len);
	spool[len - 1] ^= 1;
	put_file(w, SPOOL_NAME, spool, len);
	assert_int_equal(count(w, NULL), 2);
	assert_true(was_noted(w, "damaged"));
	assert_true(is_there(w, SPOOL_TAKEN_NAME ".bad-1"));
	assert_false(is_there(w, SPOOL_TAKEN_NAME));
	/* Nothing grows without end: the last of the names is used again. */
	for (int i = 0; i < 12; i++) {
		put_file(w, SPOOL_NAME, spool, len);
		assert_int_equal(count(w, NULL), 2);
	}
	assert_true(is_there(w, SPOOL_TAKEN_NAME ".bad-9"));
	assert_false(is_there(w, SPOOL_TAKEN_NAME ".bad-10"));
}

static void test_something_else_in_its_place(void **state)
{
	struct world *w = *state;
	static const char garbage[] = "these are 64 bytes of something that is not a spool at all......";

	put_file(w, SPOOL_NAME, garbage, sizeof(garbage));
	add(w);
	assert_true(was_noted(w, "no spool"));
	assert_true(is_there(w, SPOOL_NAME ".bad-1"));
	assert_int_equal(count(w, NULL), 1);
}

/* Neither followed nor waited for. */
static void test_no_regular_file(void **state)
{
	struct world *w = *state;

	assert_int_equal(symlinkat("/dev/null", w->dir.fd, SPOOL_NAME), 0);
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, 0), 0);
	assert_int_equal(mkfifoat(w->dir.fd, SPOOL_NAME, 0600), 0);
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, 0), 0);
	assert_int_equal(mkdirat(w->dir.fd, SPOOL_NAME, 0700), 0);
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, SPOOL_NAME, AT_REMOVEDIR), 0);
	add(w);
	assert_int_equal(count(w, NULL), 1);
}

static void test_full_spool(void **state)
{
	struct world *w = *state;
	AUTO_FD fd = FD_NONE;
	struct stat st;

	add(w);
	fd = openat(w->dir.fd, SPOOL_NAME, O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)SPOOL_MAX - 10), 0); /* a hole: takes no room */
	assert_true(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0);
	assert_non_null(strstr(w->err.msg, "full"));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, SPOOL_MAX - 10);
	/* It is not lost: a reader makes room again. */
	assert_int_equal(count(w, NULL), 1);
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 2);
}

/* A write that the kernel takes only a part of is taken back. */
static void test_no_room(void **state)
{
	struct world *w = *state;
	size_t len, after;
	AUTO_FREE char *spool = NULL, *now = NULL;
	int status;
	pid_t child;

	add(w);
	spool = get_file(w, SPOOL_NAME, &len);
	child = fork();
	if (child == 0) {
		const struct rlimit limit = { len + 100, len + 100 };

		(void)signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
			_exit(2);
		_exit(history_add(&w->place, &w->rec, &w->notes, &w->err) < 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	now = get_file(w, SPOOL_NAME, &after);
	assert_int_equal(after, len);
	assert_memory_equal(spool, now, len);
}

/* ---- being killed ---------------------------------------------------------------------------------- */

static struct {
	const char *point;
	int after; /* so many of them */
} death;

static void die_there(const char *point)
{
	if (str_eq(point, death.point) && death.after-- == 0)
		(void)kill(getpid(), SIGKILL);
}

/* Brings in until it dies at that point.  False: it never came there. */
static bool killed_at(struct world *w, const char *point, int after)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		death.point = point;
		death.after = after;
		w->place.at = die_there;
		_exit(history_ingest(&w->place, &keep_all, 60 * SECOND, &w->notes, &w->err) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static void test_killed_while_bringing_in(void **state)
{
	struct world *w = *state;
	static const struct {
		const char *point;
		int after;
	} points[] = {
		{ "taken", 0 },    { "record", 0 },    { "record", 2 },  { "record", 4 },
		{ "inserted", 0 }, { "committed", 0 }, { "removed", 0 }, { "taken", 1 },
	};
	size_t expected = 0;

	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		add_many(w, 5);
		expected += 5;
		assert_true(killed_at(w, points[i].point, points[i].after));
		/* And once more by the one who comes after. */
		(void)killed_at(w, points[i].point, points[i].after);
		add_many(w, 1);
		expected += 1;
		assert_int_equal(count(w, NULL), expected);
		assert_false(is_there(w, SPOOL_TAKEN_NAME));
	}
	assert_int_equal(w->notes.n, 0);
}

#define WRITERS    8
#define WRITES_MAX 60 /* some are killed while they write, some when they are done */

/* A writer tells of each record that is written; it is killed in the middle of the next ones. */
static pid_t start_writer(struct world *w, int *ret_fd)
{
	int ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		(void)close(ends[0]);
		for (int i = 0; i < WRITES_MAX; i++) {
			if (id_random(w->res.id, RUN_ID_LEN) < 0 ||
			    history_add(&w->place, &w->rec, &w->notes, &w->err) < 0 || write(ends[1], "x", 1) != 1)
				_exit(1);
		}
		for (;;)
			(void)pause(); /* until it is killed */
	}
	assert_true(child > 0);
	(void)close(ends[1]);
	*ret_fd = ends[0];
	return child;
}

static void test_killed_writers(void **state)
{
	struct world *w = *state;
	size_t told = 0, most = 0, found;

	for (int round = 0; round < 3; round++) {
		pid_t writer[WRITERS];
		int fd[WRITERS];
		char told_of[4096];

		for (int i = 0; i < WRITERS; i++)
			writer[i] = start_writer(w, &fd[i]);
		for (int i = 0; i < WRITERS; i++) {
			ssize_t n;

			assert_int_equal(fd_read_all(fd[i], told_of, 10 + (size_t)i), 10 + i);
			assert_int_equal(kill(writer[i], SIGKILL), 0);
			assert_int_equal(waitpid(writer[i], NULL, 0), writer[i]);
			told += 10 + (size_t)i;
			while ((n = read(fd[i], told_of, sizeof(told_of))) > 0)
				told += (size_t)n;
			most++; /* written, and not told of */
			(void)close(fd[i]);
		}
		found = count(w, NULL);
		if (found < told || found > told + most)
			fail_msg("%zu executions, %zu were told of by %zu writers", found, told, most);
	}
	/* The kernel ends the write of a process that is being killed between two pages: such a piece of a record, at most one
	 * for each writer, is the only damage there may be. */
	assert_in_range(w->notes.n, 0, most);
	for (size_t i = 0; i < w->notes.n; i++)
		assert_non_null(
			strstr(w->notes.text[i], "bytes of the spool are damaged and 0 records are not understood"));
}

/* Eight write while others bring in: each is there once. */
static void test_side_by_side(void **state)
{
	struct world *w = *state;
	pid_t child[WRITERS];
	int status;

	for (int i = 0; i < WRITERS; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			for (int k = 0; k < 25; k++) {
				if (id_random(w->res.id, RUN_ID_LEN) < 0 ||
				    history_add(&w->place, &w->rec, &w->notes, &w->err) < 0)
					_exit(1);
				if (k % 8 == i &&
				    history_ingest(&w->place, &keep_all, 60 * SECOND, &w->notes, &w->err) < 0)
					_exit(2);
			}
			_exit(w->notes.n > 0 ? 3 : 0);
		}
	}
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count(w, NULL), WRITERS * 25);
}

/* The one who writes past the mark brings in, unless somebody does already. */
static void test_writer_brings_in(void **state)
{
	struct world *w = *state;
	static char code[64 * KiB];
	size_t n = 0;

	memset(code, 'x', sizeof(code));
	w->set.keep_code = KEEP_ALL;
	w->rec.code = code;
	w->rec.code_len = sizeof(code);
	while (!is_there(w, DB_NAME)) {
		add_many(w, 1);
		assert_true(++n <= SPOOL_INGEST / sizeof(code) + 1);
	}
	assert_true(n >= SPOOL_INGEST / sizeof(code) - 1);
	assert_false(is_there(w, SPOOL_NAME));
	assert_int_equal(count(w, NULL), n);
}

static void test_lock_is_held(void **state)
{
	struct world *w = *state;
	AUTO_FD lock = history_lock(&w->place, 0, &w->err);

	assert_true(lock >= 0);
	add(w);
	assert_int_equal(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err), -BRIG_E_SYSTEM);
	assert_int_equal(w->err.sys, ETIMEDOUT);
	fd_closep(&lock);
	assert_int_equal(count(w, NULL), 1);
}

/* ---- a database that is no good --------------------------------------------------------------------- */

static void test_damaged_database(void **state)
{
	struct world *w = *state;
	static char garbage[8192];
	size_t len;
	AUTO_FREE char *good = NULL;

	add(w);
	assert_int_equal(count(w, NULL), 1);
	good = get_file(w, DB_NAME, &len);
	memset(garbage, 'g', sizeof(garbage));
	for (int kind = 0; kind < 3; kind++) {
		w->notes.n = 0;
		empty_folder(w->path);
		if (kind == 0) {
			put_file(w, DB_NAME, garbage, sizeof(garbage));
		} else if (kind == 1) {
			put_file(w, DB_NAME, good, len / 2); /* the end is missing */
		} else {
			AUTO_FREE char *bad = malloc(len);

			assert_non_null(bad);
			memcpy(bad, good, len);
			memset(bad + 4096, 0xee, len - 4096); /* all but the first page */
			put_file(w, DB_NAME, bad, len);
		}
		add_many(w, 2);
		assert_int_equal(count(w, NULL), 2);
		assert_true(was_noted(w, "history.db.bad-1"));
		assert_true(is_there(w, DB_NAME ".bad-1"));
		add_many(w, 1);
		assert_int_equal(count(w, NULL), 3);
	}
}

/* Damage that only a reader meets. */
static void test_damage_met_by_a_reader(void **state)
{
	struct world *w = *state;
	size_t len;
	AUTO_FREE char *db = NULL;
	json_t *doc;

	add_many(w, 20);
	assert_int_equal(count(w, NULL), 20);
	db = get_file(w, DB_NAME, &len);
	memset(db + 4096, 0xee, len - 4096);
	put_file(w, DB_NAME, db, len);
	doc = list(w, NULL);
	assert_int_equal(json_array_size(json_object_get(doc, "executions")), 0);
	json_decref(doc);
	assert_true(was_noted(w, "history.db.bad-1"));
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 1);
}

static void exec_sql(struct world *w, const char *sql)
{
	AUTO_DB db = { .handle = NULL };

	assert_int_equal(db_open(&db, &w->dir, DB_WRITE, &w->err), 0);
	assert_int_equal(db_exec(&db, sql, &w->err), 0);
}

static void test_others_databases(void **state)
{
	struct world *w = *state;

	/* A later version's is left alone, and what is spooled waits. */
	add(w);
	assert_int_equal(count(w, NULL), 1);
	exec_sql(w, "PRAGMA user_version = 99;");
	add_many(w, 1);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_non_null(strstr(w->err.msg, "newer"));
	assert_true(is_there(w, SPOOL_TAKEN_NAME));
	{
		struct db db = { .handle = NULL };

		assert_int_equal(db_open(&db, &w->dir, DB_READ, &w->err), 0);
		db_close(&db);
	}
	/* Another program's is set aside. */
	empty_folder(w->path);
	exec_sql(w, "PRAGMA application_id = 7;");
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 1);
	assert_true(is_there(w, DB_NAME ".bad-1"));
}

static void test_older_database_is_brought_up(void **state)
{
	struct world *w = *state;

	add(w);
	assert_int_equal(count(w, NULL), 1);
	exec_sql(w, "ALTER TABLE executions DROP COLUMN trust_source; ALTER TABLE executions DROP COLUMN environment;"
		    "ALTER TABLE executions DROP COLUMN door; PRAGMA user_version = 1;");
	add_many(w, 1);
	assert_int_equal(count(w, NULL), 2);
	exec_sql(w, "SELECT trust_source, environment, door FROM executions;");
}

static void test_database_is_no_file(void **state)
{
	struct world *w = *state;

	add(w);
	assert_int_equal(symlinkat("/etc/passwd", w->dir.fd, DB_NAME), 0);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, DB_NAME, 0), 0);
	assert_int_equal(mkfifoat(w->dir.fd, DB_NAME, 0600), 0);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, DB_NAME, 0), 0);
	assert_int_equal(mkdirat(w->dir.fd, DB_NAME, 0700), 0);
	assert_true(history_ingest(&w->place, &keep_all, 0, &w->notes, &w->err) < 0);
	assert_int_equal(unlinkat(w->dir.fd, DB_NAME, AT_REMOVEDIR), 0);
	/* Nothing was lost meanwhile. */
	assert_int_equal(count(w, NULL), 1);
}

/* Nobody else may read it, whatever the umask. */
static void test_modes(void **state)
{
	struct world *w = *state;
	mode_t was = umask(0);
	struct stat st;

	add(w);
	assert_int_equal(fstatat(w->dir.fd, SPOOL_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(count(w, NULL), 1);
	(void)umask(was);
	assert_int_equal(fstatat(w->dir.fd, DB_NAME, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_torn_at_every_byte),
		IN_WORLD(test_any_byte_wrong),
		IN_WORLD(test_no_forgery_from_inside),
		IN_WORLD(test_damage_is_set_aside),
		IN_WORLD(test_something_else_in_its_place),
		IN_WORLD(test_no_regular_file),
		IN_WORLD(test_full_spool),
		IN_WORLD(test_no_room),
		IN_WORLD(test_killed_while_bringing_in),
		IN_WORLD(test_killed_writers),
		IN_WORLD(test_side_by_side),
		IN_WORLD(test_writer_brings_in),
		IN_WORLD(test_lock_is_held),
		IN_WORLD(test_damaged_database),
		IN_WORLD(test_damage_met_by_a_reader),
		IN_WORLD(test_others_databases),
		IN_WORLD(test_older_database_is_brought_up),
		IN_WORLD(test_database_is_no_file),
		IN_WORLD(test_modes),
	};

	return cmocka_run_group_tests_name("history_trouble", tests, NULL, NULL);
}
