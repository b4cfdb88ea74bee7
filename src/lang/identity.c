/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a toolchain: a cached output is reused only if it was made with the same one.
 *
 * A compiler is more than its program: headers, linkers and libraries decide the output too.  Hashing them all takes
 * longer than many compiles, and asking for a version runs the tool and misses a changed header.  So each file that a
 * row names is identified by inode, size, mode, and its times of modification and of change in nanoseconds.  A program
 * cannot set the time of change: a file that was replaced or edited has another one, whatever its modification time
 * says.  A new inode with the same bytes costs one compile and nothing else.
 *
 * Other packages of the host, which no row names, are covered by the package manager's database: any package that is
 * installed, removed or upgraded changes it.
 *
 * That identity holds on one machine only.  What machines exchange (executor/exchange.h) needs an identity that is the
 * same on every machine with the same toolchain: there a file is identified by the SHA-256 of its bytes, a folder by
 * the names in it and the bytes of its files.  That takes long, so each hash is remembered under the file's quick
 * identity.
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "lang/lang.h"
#include "sys/crypto.h"

#define PIECE           (64 * KiB)
#define REMEMBERED      1024 /* more files than toolchains have */
#define FOLDER_FILE_MAX (64 * MiB)

static const char *const package_databases[] = {
	"/var/lib/dpkg/status",  "/var/lib/rpm",          "/usr/lib/sysimage/rpm",
	"/lib/apk/db/installed", "/var/lib/pacman/local",
};

/* ---- on this machine ---------------------------------------------------------------------------- */

static void add_quick(const char *path, const struct stat *st, struct buf *out)
{
	buf_addf(out, "%s %llu %lld %o %lld.%09ld %lld.%09ld\n", path, (unsigned long long)st->st_ino,
		 (long long)st->st_size, (unsigned)st->st_mode, (long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		 (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

/* ---- on all machines ---------------------------------------------------------------------------- */

static bool hash_file(const char *path, uint8_t ret[SHA256_LEN])
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO_FREE char *piece = malloc(PIECE);
	struct sha256 h;
	ssize_t n = -1;

	sha256_begin(&h);
	while (fd >= 0 && piece && (n = fd_read_all(fd, piece, PIECE)) > 0)
		sha256_add(&h, piece, (size_t)n);
	sha256_end(&h, ret);
	return n == 0;
}

/* Hashes of files by quick identity.  All handles share them, because the files are the host's. */
static struct {
	pthread_mutex_t lock;
	size_t next, n;
	struct {
		uint8_t quick[SHA256_LEN], content[SHA256_LEN];
	} row[REMEMBERED];
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool remember(const uint8_t quick[SHA256_LEN], uint8_t ret[SHA256_LEN])
{
	bool is_known = false;

	(void)pthread_mutex_lock(&known.lock);
	for (size_t i = 0; i < known.n && !is_known; i++)
		if (memcmp(known.row[i].quick, quick, SHA256_LEN) == 0) {
			memcpy(ret, known.row[i].content, SHA256_LEN);
			is_known = true;
		}
	(void)pthread_mutex_unlock(&known.lock);
	return is_known;
}

static void note_content(const uint8_t quick[SHA256_LEN], const uint8_t content[SHA256_LEN])
{
	(void)pthread_mutex_lock(&known.lock);
	memcpy(known.row[known.next].quick, quick, SHA256_LEN);
	memcpy(known.row[known.next].content, content, SHA256_LEN);
	known.next = (known.next + 1) % REMEMBERED;
	known.n = known.n < REMEMBERED ? known.n + 1 : REMEMBERED;
	(void)pthread_mutex_unlock(&known.lock);
}

/* Like hash_file(), but hashes a file only if it has changed since the last time. */
static bool hash_once(const char *path, const struct stat *st, uint8_t ret[SHA256_LEN])
{
	AUTO_BUF text = BUF_INIT(2 * PATH_MAX);
	uint8_t quick[SHA256_LEN];

	add_quick(path, st, &text);
	(void)buf_addf(&text, "%llu", (unsigned long long)st->st_dev);
	sha256(text.data, text.len, quick);
	if (remember(quick, ret))
		return true;
	if (!hash_file(path, ret))
		return false;
	note_content(quick, ret);
	return true;
}

static bool hash_folder(const char *path, uint8_t ret[SHA256_LEN])
{
	struct dirent **list = NULL;
	int n = scandir(path, &list, NULL, alphasort);
	bool is_good = n >= 0;
	struct sha256 h;

	sha256_begin(&h);
	for (int i = 0; i < n; i++) {
		char file[2 * PATH_MAX];
		uint8_t content[SHA256_LEN] = { 0 };
		struct stat st;

		(void)snprintf(file, sizeof(file), "%s/%s", path, list[i]->d_name);
		sha256_add(&h, list[i]->d_name, strlen(list[i]->d_name) + 1);
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
			is_good &= st.st_size <= (off_t)FOLDER_FILE_MAX && hash_once(file, &st, content);
		sha256_add(&h, content, sizeof(content));
		free(list[i]);
	}
	free(list);
	sha256_end(&h, ret);
	return is_good;
}

static void add_content(const char *path, const struct stat *st, struct buf *out)
{
	uint8_t hash[SHA256_LEN];
	char hex[SHA256_HEX + 1];

	if (S_ISDIR(st->st_mode) ? !hash_folder(path, hash) : !hash_once(path, st, hash))
		out->full = true; /* marks the identity as unknown */
	else
		buf_addf(out, "%s %o %s\n", path, (unsigned)st->st_mode, hex_put(hex, hash, SHA256_LEN));
}

/* ---- files of a tool ------------------------------------------------------------------------------ */

typedef void (*add_fn)(const char *path, const struct stat *st, struct buf *out);

static add_fn adder(enum lang_identity of)
{
	return of == IDENTITY_ANYWHERE ? add_content : add_quick;
}

static void add_file(const char *path, add_fn add, struct buf *out)
{
	struct stat st;

	if (stat(path, &st) == 0) /* a missing file adds nothing, and so changes the identity as well */
		add(path, &st, out);
}

/* Adds every file that matches a pattern; "%r" at its start is the folder above the real tool's folder. */
static void add_pattern(const char *pattern, const char *root, add_fn add, struct buf *out)
{
	bool beside = strncmp(pattern, "%r/", 3) == 0;
	char text[2 * PATH_MAX];
	glob_t found = { 0 };

	(void)snprintf(text, sizeof(text), "%s%s", beside ? root : "", pattern + (beside ? 2 : 0));
	if (glob(text, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_file(found.gl_pathv[i], add, out);
	globfree(&found);
}

bool lang_program_identity(const char *program, enum lang_identity of, struct buf *out)
{
	char real[PATH_MAX];

	if (!realpath(program, real))
		return false;
	add_file(real, adder(of), out);
	return out->len > 0 && !out->full && !out->no_memory;
}

static void cut_last_part(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

bool lang_tool_identity(const struct lang_step *step, const char *tool, enum lang_identity of, struct buf *out)
{
	add_fn add = adder(of);
	char real[PATH_MAX];

	if (!realpath(tool, real))
		return false;
	add_file(real, add, out);
	cut_last_part(real);
	cut_last_part(real);
	for (size_t i = 0; i < ARRAY_LEN(step->companions) && step->companions[i]; i++)
		add_pattern(step->companions[i], real, add, out);
	for (size_t i = 0; i < ARRAY_LEN(package_databases); i++)
		add_file(package_databases[i], add, out);
	return out->len > 0 && !out->full && !out->no_memory;
}
