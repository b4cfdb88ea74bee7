/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `brig session files`: files of a session.
 *
 * The cell opens the session's files (server/runner/session_files.c); this file handles those of our own user.  A
 * directory of the session is written as a tar archive and never unpacked by us, since a program chose its names.  A
 * directory of ours is sent file by file, and so are the files of an archive of ours.  Links are left out, both ways.
 */
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/sealed.h"
#include "base/str.h"
#include "base/ustar.h"
#include "cli/request.h"
#include "cli/rows.h"
#include "cli/session.h"
#include "cli/write.h"
#include "server/archive.h"

#define FILE_MAX  (64 * MiB) /* maximum size that the service accepts */
#define DEPTH_MAX 64

#define AT(member) offsetof(struct session_values, member)
static const struct option_row files_options[] = {
	{ "tar", 0, OPTION_FLAG, NULL, AT(tar), NULL,
	  "get: PATH is a folder, and becomes a tar archive; put: FROM is a tar archive, whose files are put below "
	  "PATH" },
	{ "overwrite", 0, OPTION_FLAG, NULL, AT(overwrite), NULL, "get: replace a file of this host that is there" },
	{ "depth", 0, OPTION_TEXT, "COUNT", AT(depth), NULL, "ls: how many folders deep; without it 1" },
	ROW_JSON,
	ROW_NO_COLOR,
};

/* ---- requests ------------------------------------------------------------------------------------------------ */

static int ask_path(struct session_work *w, enum route route, const char *path, const char *to, json_t **ret,
		    struct brig_error *err)
{
	struct service_ask ask;

	cli_session_ask_begin(&ask, route, w->id);
	message_put_text(&ask.message, FIELD_path, path);
	message_put_text(&ask.message, FIELD_to, to);
	return cli_session_ask(w, &ask, ret, NULL, err);
}

static int ask_list(struct session_work *w, const char *path, uint64_t depth, json_t **ret, struct brig_error *err)
{
	struct service_ask ask;

	cli_session_ask_begin(&ask, ROUTE_session_files, w->id);
	message_put_text(&ask.message, FIELD_path, path);
	message_put_number(&ask.message, FIELD_depth, depth);
	return cli_session_ask(w, &ask, ret, NULL, err);
}

static int ask_bytes(struct session_work *w, const char *path, struct buf *ret, struct brig_error *err)
{
	struct service_ask ask;
	json_t *none = NULL;

	cli_session_ask_begin(&ask, ROUTE_session_file, w->id);
	message_put_text(&ask.message, FIELD_path, path);
	return cli_session_ask(w, &ask, &none, ret, err);
}

/* fd is a memfd. */
static int put_sealed(struct session_work *w, const char *path, int *fd, struct brig_error *err)
{
	struct service_ask ask;
	json_t *doc = NULL;
	int rc;

	rc = sealed_close(*fd);
	if (rc < 0)
		return err_set(err, BRIG_E_SYSTEM, -rc, "cannot seal a file in memory");
	cli_session_ask_begin(&ask, ROUTE_session_file_put, w->id);
	message_put_number(&ask.message, FIELD_has_files, 1);
	message_put_text(&ask.message, FIELD_path, path);
	ask.fds[ask.n_fds++] = fd_move(fd);
	rc = cli_session_ask(w, &ask, &doc, NULL, err);
	if (rc < 0)
		return err_wrap(err, "%.200s", path);
	json_decref(doc);
	return 0;
}

static int make_file(struct brig_error *err)
{
	int fd = memfd_create("brig-file", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot make a file in memory") : fd;
}

static int put_bytes(struct session_work *w, const char *path, const char *data, size_t len, struct brig_error *err)
{
	AUTO_FD fd = make_file(err);
	int rc = fd < 0 ? fd : 0;

	if (rc == 0 && fd_write_all(fd, data, len) < 0)
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot keep a file in memory");
	return rc < 0 ? rc : put_sealed(w, path, &fd, err);
}

static int put_from(struct session_work *w, const char *path, int from, const char *name, struct brig_error *err)
{
	AUTO_BUF bytes = BUF_INIT(FILE_MAX + 1);
	int rc = request_read_all(from, name, &bytes, err);

	if (rc == 0 && bytes.len > FILE_MAX)
		rc = err_set(err, BRIG_E_USAGE, 0, "'%.200s' has more than %llu MB, which a session does not take",
			     name, (unsigned long long)(FILE_MAX / MiB));
	return rc < 0 ? rc : put_bytes(w, path, buf_str(&bytes), bytes.len, err);
}

/* ---- ls ----------------------------------------------------------------------------------------------------- */

static void add_row(struct ui_table *table, const json_t *row)
{
	char text[4096], size[32], name[4200], target[4096];
	json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));

	(void)document_text(row, "type", text, sizeof(text));
	ui_table_add(table, text, str_eq(text, "folder") ? UI_BOLD : UI_PLAIN);
	ui_table_add(table, str_eq(text, "file") ? str_bytes(size, sizeof(size), bytes > 0 ? (uint64_t)bytes : 0) : "",
		     UI_PLAIN);
	ui_table_add(table, document_text(row, "changed", text, sizeof(text)), UI_PLAIN);
	(void)document_text(row, "path", text, sizeof(text));
	if (strncmp(text, "./", 2) == 0) /* relative to the workspace */
		memmove(text, text + 2, strlen(text + 2) + 1);
	if (*document_text(row, "target", target, sizeof(target)))
		(void)snprintf(name, sizeof(name), "%.2000s -> %.2000s", text, target);
	else
		(void)snprintf(name, sizeof(name), "%s", text);
	ui_table_add(table, name, UI_PLAIN);
}

static int list(struct session_work *w, const char *path, const char *none UNUSED, struct brig_error *err)
{
	static const char *const titles[] = { "TYPE", "SIZE", "CHANGED", "PATH" };
	const struct document_table how = { titles, ARRAY_LEN(titles), add_row };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	uint64_t depth;
	json_t *doc = NULL;
	int rc = cli_session_number(w->v.depth, "--depth", &depth, err);

	if (rc == 0)
		rc = ask_list(w, path ? path : ".", depth ? depth : 1, &doc, err);
	if (rc < 0)
		return rc;
	if (w->v.json)
		return cli_session_tell(w, doc, "%s", "");
	document_table(&how, json_object_get(doc, "files"), true, w->v.no_color, &text);
	if (document_true(doc, "truncated"))
		ui_say("there is more than is listed: name a folder further down");
	json_decref(doc);
	return ui_finish(&text, EXIT_SUCCESS);
}

/* ---- get ---------------------------------------------------------------------------------------------------- */

/* Opens the destination: "-" is standard output. */
static int open_to(const struct session_work *w, const char *to, struct brig_error *err)
{
	int fd;

	if (str_eq(to, "-")) {
		if (isatty(STDOUT_FILENO))
			return err_set(
				err, BRIG_E_USAGE, 0,
				"standard output is a terminal, which the bytes of a file may steer: name a file");
		fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		return fd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot write standard output") : fd;
	}
	fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | (w->v.overwrite ? O_TRUNC : O_EXCL), 0666);
	if (fd < 0 && errno == EEXIST)
		return err_set(err, BRIG_E_USAGE, 0, "'%.200s' is there already: --overwrite replaces it", to);
	return fd < 0 ? err_set(err, BRIG_E_USAGE, errno, "cannot write '%.200s'", to) : fd;
}

static int write_to(int fd, const char *name, const struct buf *bytes, struct brig_error *err)
{
	int rc = write_all(fd, buf_str(bytes), bytes->len, -1);

	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot write '%.200s'", name) : 0;
}

/* The last component of a path. */
static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Adds one file of a directory; path is the service's, name the one in the archive, relative to the directory. */
static int add_to_archive(struct session_work *w, const json_t *row, const char *name, int fd, struct brig_error *err)
{
	static const char zeroes[USTAR_BLOCK];
	AUTO_BUF bytes = BUF_INIT(0), head = BUF_INIT(64 * KiB);
	const char *path = json_string_value(json_object_get(row, "path"));
	json_int_t mode = json_integer_value(json_object_get(row, "mode"));
	int rc = ask_bytes(w, path, &bytes, err);

	if (rc < 0) {
		ui_say("left out: %s: %s", path, err->msg);
		return 0;
	}
	if (!ustar_add_head(&head, name, (unsigned)mode & 0777, bytes.len))
		return err_nomem(err);
	rc = write_to(fd, "the archive", &head, err);
	if (rc == 0)
		rc = write_to(fd, "the archive", &bytes, err);
	if (rc == 0 && write_all(fd, zeroes, ustar_padding(bytes.len), -1) < 0)
		rc = err_set(err, BRIG_E_SYSTEM, errno, "cannot write the archive");
	return rc;
}

/* The part of path after folder; NULL: it is not below it. */
static const char *below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	while (len > 0 && folder[len - 1] == '/')
		len--;
	if (len == 0)
		return path[0] == '/' ? path + 1 : path;
	if (str_eq(folder, "."))
		return strncmp(path, "./", 2) == 0 ? path + 2 : path;
	return strncmp(path, folder, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

/* Rejects names that could leave the directory where the archive is unpacked: they come from the cell. */
static bool stays_below(const char *name)
{
	for (const char *at = name; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
		size_t n = strcspn(at, "/");

		if (n == 0 || (n == 2 && at[0] == '.' && at[1] == '.'))
			return false;
	}
	return true;
}

static int get_tar(struct session_work *w, const char *path, int fd, size_t *ret_n, struct brig_error *err)
{
	AUTO_BUF end = BUF_INIT(64 * KiB);
	const json_t *row;
	json_t *doc = NULL;
	size_t i;
	int rc = ask_list(w, path, DEPTH_MAX, &doc, err);

	if (rc < 0)
		return rc;
	if (document_true(doc, "truncated"))
		rc = err_set(err, BRIG_E_REFUSED, 0,
			     "'%.200s' has more files than can be listed: get its folders one by one", path);
	json_array_foreach(json_object_get(doc, "files"), i, row)
	{
		const char *file = json_string_value(json_object_get(row, "path"));
		const char *name = file ? below(file, path) : NULL;
		const char *type = json_string_value(json_object_get(row, "type"));

		if (rc < 0 || !name || !stays_below(name) || !type || !str_eq(type, "file"))
			continue;
		rc = add_to_archive(w, row, name, fd, err);
		*ret_n += rc == 0;
	}
	json_decref(doc);
	if (rc == 0 && !ustar_add_end(&end))
		rc = err_nomem(err);
	return rc < 0 ? rc : write_to(fd, "the archive", &end, err);
}

static int get(struct session_work *w, const char *path, const char *to, struct brig_error *err)
{
	AUTO_BUF bytes = BUF_INIT(0);
	AUTO_FD fd = FD_NONE;
	uint64_t size = 0;
	size_t n = 0;
	int rc = 0;

	if (!to && w->v.tar)
		return err_set(err, BRIG_E_USAGE, 0,
			       "name the archive: brig session files get --tar SESSION DIR FILE|-");
	to = to ? to : name_of(path);
	if (!w->v.tar)
		rc = ask_bytes(w, path, &bytes, err); /* before the destination is created */
	if (rc < 0)
		return rc;
	fd = open_to(w, to, err);
	if (fd < 0)
		return fd_move(&fd);
	rc = w->v.tar ? get_tar(w, path, fd, &n, err) : write_to(fd, to, &bytes, err);
	size = w->v.tar ? 0 : bytes.len;
	if (rc < 0 || str_eq(to, "-"))
		return rc < 0 ? rc : EXIT_SUCCESS;
	return w->v.tar ? cli_session_tell(w, json_pack("{s:I}", "files", (json_int_t)n), "%zu file%s\n", n,
					   n == 1 ? "" : "s")
			: cli_session_tell(w, json_pack("{s:I}", "bytes", (json_int_t)size), "%llu bytes\n",
					   (unsigned long long)size);
}

/* ---- put ---------------------------------------------------------------------------------------------------- */

/* Stores a file below a directory of the session. */
static int put_below(struct session_work *w, const char *folder, const char *name, int fd, const char *data, size_t len,
		     struct brig_error *err)
{
	AUTO_BUF path = BUF_INIT(8 * KiB);

	(void)buf_addf(&path, "%s%s%s", str_eq(folder, ".") ? "" : folder, str_eq(folder, ".") ? "" : "/", name);
	if (path.full || path.no_memory)
		return err_set(err, BRIG_E_USAGE, 0, "the path of '%.200s' is too long", name);
	return fd >= 0 ? put_from(w, buf_str(&path), fd, name, err) : put_bytes(w, buf_str(&path), data, len, err);
}

/* "-" is standard input. */
static int open_from(const char *from, struct brig_error *err)
{
	int fd;

	if (!str_eq(from, "-"))
		return request_open(from, FILE_STREAMS, err);
	fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return fd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot read standard input") : fd;
}

static int put_tar(struct session_work *w, const char *from, const char *folder, size_t *ret_n, struct brig_error *err)
{
	AUTO_BUF bytes = BUF_INIT(ARCHIVE_BYTES_MAX + 1);
	AUTO_FD fd = open_from(from, err);
	AUTO_FREE struct archive_file *f = malloc(sizeof(*f));
	struct archive a;
	int rc;

	if (fd < 0 || !f)
		return fd < 0 ? fd_move(&fd) : err_nomem(err);
	rc = request_read_all(fd, from, &bytes, err);
	if (rc == 0 && bytes.full)
		rc = err_set(err, BRIG_E_USAGE, 0, "the archive has more than %llu MB",
			     (unsigned long long)(ARCHIVE_BYTES_MAX / MiB));
	a = (struct archive){ .bytes = buf_str(&bytes), .len = bytes.len };
	while (rc == 0) {
		int got = archive_next(&a, f, err);

		if (got <= 0) {
			rc = got;
			break;
		}
		rc = put_below(w, folder, f->path, FD_NONE, f->data, f->len, err);
		*ret_n += rc == 0;
	}
	return rc;
}

static int put_entry(struct session_work *w, const FTSENT *e, const char *name, const char *folder, size_t *ret_n,
		     struct brig_error *err)
{
	AUTO_FD fd = FD_NONE;
	int rc;

	if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS)
		return err_set(err, BRIG_E_USAGE, e->fts_errno, "cannot read '%.200s'", e->fts_path);
	if (e->fts_info == FTS_SL || e->fts_info == FTS_SLNONE)
		ui_say("left out: %s is a link", e->fts_path);
	if (e->fts_info != FTS_F)
		return 0;
	fd = open(e->fts_accpath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_set(err, BRIG_E_USAGE, errno, "cannot read '%.200s'", e->fts_path);
	rc = put_below(w, folder, name, fd, NULL, 0, err);
	*ret_n += rc == 0;
	return rc;
}

static int put_folder(struct session_work *w, const char *from, const char *folder, size_t *ret_n,
		      struct brig_error *err)
{
	AUTO_FREE char *root = strdup(from);
	char *const roots[] = { root, NULL };
	FTS *walk = root ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	size_t len = strlen(from);
	FTSENT *e;
	int rc = walk ? 0 : err_set(err, BRIG_E_USAGE, errno, "cannot read '%.200s'", from);

	while (len > 1 && from[len - 1] == '/')
		len--;
	while (rc == 0 && (e = fts_read(walk))) {
		const char *name = e->fts_path + min_u64(len, e->fts_pathlen);

		rc = put_entry(w, e, name + strspn(name, "/"), folder, ret_n, err);
	}
	if (walk)
		(void)fts_close(walk);
	return rc;
}

static int put_file(struct session_work *w, const char *from, const char *path, struct brig_error *err)
{
	AUTO_FD fd = open_from(from, err);

	return fd < 0 ? fd_move(&fd) : put_from(w, path, fd, from, err);
}

static int put(struct session_work *w, const char *from, const char *path, struct brig_error *err)
{
	struct stat st;
	bool is_folder = !w->v.tar && !str_eq(from, "-") && stat(from, &st) == 0 && S_ISDIR(st.st_mode);
	size_t n = 0;
	int rc;

	if (!path && str_eq(from, "-") && !w->v.tar)
		return err_set(err, BRIG_E_USAGE, 0,
			       "say what standard input is to be called: brig session files put "
			       "SESSION - PATH");
	if (w->v.tar) {
		rc = put_tar(w, from, path ? path : ".", &n, err);
	} else if (is_folder) {
		rc = put_folder(w, from, path ? path : name_of(from), &n, err);
	} else {
		rc = put_file(w, from, path ? path : name_of(from), err);
		n = 1;
	}
	return rc < 0 ? rc
		      : cli_session_tell(w, json_pack("{s:I}", "files", (json_int_t)n), "%zu file%s\n", n,
					 n == 1 ? "" : "s");
}

/* ---- other commands ------------------------------------------------------------------------------------------ */

static int change(struct session_work *w, enum route route, const char *path, const char *to, struct brig_error *err)
{
	json_t *doc = NULL;
	int rc = ask_path(w, route, path, to, &doc, err);

	return rc < 0 ? rc : cli_session_tell(w, doc, "%s", "");
}

static int rm(struct session_work *w, const char *path, const char *none UNUSED, struct brig_error *err)
{
	return change(w, ROUTE_session_file_delete, path, NULL, err);
}

static int make_folder(struct session_work *w, const char *path, const char *none UNUSED, struct brig_error *err)
{
	return change(w, ROUTE_session_folder, path, NULL, err);
}

static int move(struct session_work *w, const char *path, const char *to, struct brig_error *err)
{
	return change(w, ROUTE_session_move, path, to, err);
}

static const struct {
	const char *name;
	size_t min, max; /* operands after SESSION */
	int (*go)(struct session_work *w, const char *path, const char *to, struct brig_error *err);
	const char *usage;
} verbs[] = {
	{ "ls", 0, 1, list, "ls SESSION [DIR]" },
	{ "get", 1, 2, get, "get SESSION PATH [FILE|-]" },
	{ "put", 1, 2, put, "put SESSION FILE|DIR|- [PATH]" },
	{ "rm", 1, 1, rm, "rm SESSION PATH" },
	{ "mv", 2, 2, move, "mv SESSION PATH PATH" },
	{ "mkdir", 1, 1, make_folder, "mkdir SESSION DIR" },
};

static int files(struct session_work *w, struct brig_error *err)
{
	const struct words *words = &w->ops.words;
	const char *names[ARRAY_LEN(verbs)], *near;

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		names[i] = verbs[i].name;
		if (!str_eq(words->item[0], verbs[i].name))
			continue;
		if (words->n - 2 < verbs[i].min || words->n - 2 > verbs[i].max)
			return err_set(err, BRIG_E_USAGE, 0, "write it as: brig session files %s", verbs[i].usage);
		return verbs[i].go(w, words->n > 2 ? words->item[2] : NULL, words->n > 3 ? words->item[3] : NULL, err);
	}
	near = str_nearest(words->item[0], names, ARRAY_LEN(verbs));
	return err_set(err, BRIG_E_USAGE, 0, "'%.40s' is none of ls, get, put, rm, mv and mkdir%s%s%s", words->item[0],
		       near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static const struct session_shape shape = { 2, 4, 1, false,
					    "say what is to be done, and where: brig session files ls SESSION" };

const struct command command_session_files = {
	.name = "session files",
	.synopsis = "[OPTIONS] ls|get|put|rm|mv|mkdir SESSION [PATH] [PATH]",
	.summary = "list, fetch, send, remove and move its files",
	.examples = "  brig session files ls k7xq\n"
		    "  brig session files put k7xq data.csv           # or a folder\n"
		    "  brig session files get k7xq plot.png\n"
		    "  brig session files get --tar k7xq results results.tar\n"
		    "  brig session files mv k7xq a.txt old/a.txt\n",
	.details =
		"Paths of the session are below its workspace, unless they are absolute.  A file has at most 64 MB.\n"
		"Without a second PATH 'get' writes to this folder and 'put' to the workspace, under the same name.\n",
	SESSION_COMMAND(files_options, shape, files),
};
