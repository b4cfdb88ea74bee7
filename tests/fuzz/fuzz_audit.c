/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_audit - hostile log files.
 *
 * An input is the text of a log.  Line by line it goes through the reader of entries; as a file it goes through
 * `audit verify`, `audit show` and a writer that has to go on behind it.  What must hold: nothing crashes, no line is
 * taken for true without the log's key, verify answers, and the writer either goes on or says why not.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/internal.h"
#include "base/fd.h"
#include "../unit/temp_folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void read_lines(const char *text, size_t len)
{
	static const uint8_t key_bytes[SHA256_LEN] = { 1, 2, 3 };
	struct log_key key = { .id = "" };
	struct entry e;
	char value[64];

	hmac256_key(&key.mac, key_bytes);
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;
		char *copy = malloc(n ? n : 1); /* exactly as long as the line: reading past it is seen */

		memcpy(copy, text, n);
		if (entry_read(copy, n, &e)) {
			must(!entry_is_true(&e, &key), "a line is true without the key");
			(void)entry_member(&e, "verdict", value, sizeof(value));
			(void)entry_member(&e, "file", value, sizeof(value));
		}
		free(copy);
		text += n + (end != NULL);
		len -= n + (end != NULL);
	}
}

static int ignore_line(void *arg, const char *line, size_t len)
{
	(void)arg;
	(void)line;
	(void)len;
	return 0;
}

static void remove_log(const struct statedir *dir)
{
	static const char *const names[] = { "000001.jsonl", "000002.jsonl", "head", "log.key", "log.key.new" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)unlinkat(dir->fd, names[i], 0);
}

/* A log of which the first file is the input; its key is there, its head is not. */
static void use_log(const struct statedir *state, const uint8_t *data, size_t size)
{
	static struct settings set = {
		.audit = AUDIT_REQUIRED, .audit_file_size = 1 << 20, .audit_file_days = 30, .audit_fsync_ms = 3600000
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct statedir dir = STATEDIR_INIT;
	struct audit_filter filter = { .verdict = "ok" };
	struct audit_log *log = NULL;
	char *json = NULL;
	int fd, rc;

	must(statedir_open_sub(state, AUDIT_DIR, true, &dir, &err) == 0, "the folder can be opened");
	remove_log(&dir);
	must(statedir_replace(&dir, "log.key", "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20\n", 65,
			      &err) == 0,
	     "the key can be written");
	fd = statedir_open_file(&dir, "000001.jsonl", O_WRONLY | O_CREAT | O_TRUNC, &err);
	must(fd >= 0 && fd_write_all(fd, data, size) == 0, "the log can be written");
	(void)close(fd);
	rc = audit_verify(state, &json, &err);
	must(rc == 1 || (rc == 0 && size == 0), "a log of somebody else is not whole");
	free(json);
	must(audit_read(state, &filter, ignore_line, NULL, &err) == 0, "it can be shown");
	must(audit_open(state, &log, &err) == 0, "it can be opened");
	must(audit_ready(log, &set, &err) == 0 || err.msg[0], "the writer goes on or says why not");
	audit_close(log);
	remove_log(&dir);
	statedir_close(&dir);
}

static char folder[] = "/dev/shm/fuzz-audit-XXXXXX";

static void remove_folder(void)
{
	(void)temp_folder_remove(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct statedir state = STATEDIR_INIT;
	struct brig_error err = BRIG_ERROR_INIT;

	if (state.fd < 0) {
		must(mkdtemp(folder) != NULL && statedir_open(folder, true, &state, &err) == 0, "a folder can be made");
		(void)atexit(remove_folder);
	}
	read_lines((const char *)data, size);
	use_log(&state, data, size);
	return 0;
}
