/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that calls name.  The severity depends on the kind of access: reading a common file, reading another one, or
 * changing one.  Only functions that are known to take file names are considered, because "/admin/login" is a route to
 * Flask and "/pub" a remote folder to FTP.
 */
#include "inspect/python.h"

#include "inspect/paths.h"

/* CREATES: creates or fills a file, which is harmless in the home of a cell; CHANGES: may also destroy one. */
enum access { IGNORES, NAMES, READS, CREATES, CHANGES };

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_below_any(const char *path, const char *const *folder, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_below(path, folder[i]))
			return true;
	return false;
}

/* Places outside the workspace that count as inside. */
static const char *const open_places[] = { "/tmp",        "/var/tmp",  "/dev/null",    "/dev/stdin",  "/dev/stdout",
					   "/dev/stderr", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/shm",
					   "/dev/tty",    "/dev/full", "/dev/fd",      "/mnt/data",   "/workspace" };
/* Files that ordinary programs read to learn about the system; they contain nothing about people. */
static const char *const common_places[] = {
	"/etc/os-release",  "/etc/hostname",       "/etc/hosts",        "/etc/timezone",       "/etc/localtime",
	"/etc/mime.types",  "/etc/debian_version", "/etc/lsb-release",  "/etc/services",       "/etc/protocols",
	"/etc/resolv.conf", "/etc/machine-info",   "/usr/share/dict",   "/usr/share/zoneinfo", "/usr/share/fonts",
	"/usr/share/mime",  "/usr/share/i18n",     "/usr/bin",          "/usr/local/bin",      "/bin",
	"/usr/lib/python3", "/proc/cpuinfo",       "/proc/meminfo",     "/proc/loadavg",       "/proc/uptime",
	"/proc/version",    "/proc/stat",          "/proc/self/status",
};

/*
 * In a cell, home is the workspace.  Files that begin with a dot are excluded: they are settings, which control other
 * programs.
 */
static bool is_plain_file_of_home(const char *path)
{
	return is_below(path, HOME_READING) && path[sizeof(HOME_READING) - 1] && !strstr(path, "/.");
}

/* Judges a string that certainly names a file, so the boundary of the workspace applies. */
static void judge_file_name(struct py *p, const char *text, size_t len, enum access access, struct span where)
{
	char path[PATH_READING_MAX];
	bool climbs;
	const char *check = "file-outside";

	if (len == 0 || len >= PATH_READING_MAX)
		return;
	judge_path(p->j, text, len, where);
	path_resolve(p->j->workspace, text, len, path, sizeof(path), &climbs);
	if (is_below(path, p->j->workspace) || is_below_any(path, open_places, ARRAY_LEN(open_places)))
		return;
	if (access == CREATES && is_plain_file_of_home(path))
		return;
	if (access >= CREATES)
		check = "file-change";
	else if (access == NAMES || is_below_any(path, common_places, ARRAY_LEN(common_places)))
		check = "file-common";
	judge_check(p->j, check, where, "%s", path);
}

/* "/etc" is a path; "//a" and "/ or so" are other things, and "/" is a path only if something is changed there. */
static bool is_absolute_path(const struct py_atom *a, enum access access)
{
	if (access >= CREATES && a->len == 1 && (a->text[0] == '/' || a->text[0] == '~'))
		return true;
	if (a->len < 2 || a->text[0] != '/' || a->text[1] == '/')
		return false;
	for (uint32_t i = 0; i < a->len; i++)
		if (memchr(" \t\n<>|&;,()[]{}\"'`", a->text[i], 19))
			return false;
	return true;
}

static bool is_path(const struct py_atom *a, enum access access)
{
	if (a->kind != PY_STR && a->kind != PY_PART && a->kind != PY_BYTES)
		return false;
	return is_absolute_path(a, access) || judge_looks_like_path(a->text, a->len) ||
	       (access >= CREATES && a->len >= 2 && memcmp(a->text, "..", 2) == 0);
}

/* Judges every path that a value may be; `sure`: it names a file whatever it looks like. */
static void judge_set(struct py *p, uint32_t set, enum access access, bool sure, struct span where)
{
	struct py_set s = p->set[set];

	for (unsigned i = 0; i < s.n; i++) {
		struct py_atom a = p->atom[s.atom[i]];

		if (is_path(&a, access) || (sure && (a.kind == PY_STR || a.kind == PY_PART || a.kind == PY_BYTES)))
			judge_file_name(p, a.text, a.len, access, where);
		else if (access >= CREATES && py_atom_is(&a, PY_PATH, "pathlib.Path.home()"))
			judge_file_name(p, "~", 1, access, where);
		for (uint32_t k = 0; a.kind == PY_LIST && k < a.len && k < PY_ARGS_MAX; k++) {
			const struct py_atom *item = py_only(p, a.item[k], PY_STR);

			if (item && sure)
				judge_file_name(p, item->text, item->len, access, where);
		}
	}
}

void py_judge_file(struct py *p, uint32_t set, struct span where)
{
	judge_set(p, set, NAMES, true, where);
}

/* ---- functions ------------------------------------------------------------------------------------------ */

struct file_function {
	const char *path;   /* "a.*": all paths with this prefix */
	enum access access; /* for arguments before `changes` */
	uint8_t changes;    /* first argument that is created or changed; 9: none */
};

/* The first match applies.  os.path only computes names; commands are judged as commands. */
static const struct file_function file_functions[] = {
	{ "os.path.", IGNORES, 9 },
	{ "os.environ*", IGNORES, 9 },
	{ "os.getenv*", IGNORES, 9 },
	{ "os.putenv", IGNORES, 9 },
	{ "os.remove", CHANGES, 0 },
	{ "os.unlink", CHANGES, 0 },
	{ "os.rmdir", CHANGES, 0 },
	{ "os.removedirs", CHANGES, 0 },
	{ "os.rename", CHANGES, 0 },
	{ "os.renames", CHANGES, 0 },
	{ "os.replace", CHANGES, 0 },
	{ "os.truncate", CHANGES, 0 },
	{ "os.chmod", CHANGES, 0 },
	{ "os.lchmod", CHANGES, 0 },
	{ "os.chown", CHANGES, 0 },
	{ "os.lchown", CHANGES, 0 },
	{ "os.mkdir", CREATES, 0 },
	{ "os.makedirs", CREATES, 0 },
	{ "os.mkfifo", CHANGES, 0 },
	{ "os.utime", CHANGES, 0 },
	{ "os.symlink", READS, 1 },
	{ "os.link", READS, 1 },
	{ "os.exec*", IGNORES, 9 },
	{ "os.spawn*", IGNORES, 9 },
	{ "os.*", READS, 9 },
	{ "shutil.rmtree", CHANGES, 0 },
	{ "shutil.move", CHANGES, 0 },
	{ "shutil.chown", CHANGES, 0 },
	{ "shutil.make_archive", CHANGES, 0 },
	{ "shutil.unpack_archive", READS, 1 },
	{ "shutil.which", NAMES, 9 },
	{ "shutil.disk_usage", NAMES, 9 },
	{ "shutil.*", READS, 1 },
	{ "builtins.open", READS, 9 },
	{ "io.open", READS, 9 },
	{ "codecs.open", READS, 9 },
	{ "io.FileIO", READS, 9 },
	{ "io.open_code", READS, 9 },
	{ "gzip.open", READS, 9 },
	{ "bz2.open", READS, 9 },
	{ "lzma.open", READS, 9 },
	{ "tarfile.open", READS, 9 },
	{ "zipfile.ZipFile", READS, 9 },
	{ "wave.open", READS, 9 },
	{ "logging.FileHandler", CREATES, 0 },
	{ "logging.handlers.", CREATES, 0 },
	{ "sqlite3.connect", CREATES, 0 },
	{ "shelve.open", CREATES, 0 },
	{ "dbm.open", CREATES, 0 },
	{ "pathlib.", NAMES, 9 },
	{ "glob.", READS, 9 },
	{ "fileinput.", READS, 9 },
	{ "filecmp.", READS, 9 },
	{ "linecache.", READS, 9 },
	{ "numpy.save*", CREATES, 0 },
	{ "numpy.*", READS, 9 },
	{ "pandas.*", READS, 9 },
	{ "matplotlib.*", CREATES, 0 },
	{ "PIL.*", READS, 9 },
	{ "cv2.*", READS, 9 },
	{ "torch.*", READS, 9 },
	{ "h5py.*", READS, 9 },
	{ "joblib.*", READS, 9 },
	{ "openpyxl.*", READS, 9 },
	{ "configparser.*", READS, 9 },
	{ "csv.*", READS, 9 },
	{ "netrc.*", READS, 9 },
	{ "mailbox.*", READS, 9 },
	{ "runpy.run_path", READS, 9 },
	{ "tokenize.open", READS, 9 },
	{ "mimetypes.*", NAMES, 9 },
	{ "unittest.*", NAMES, 9 },
};

static const struct file_function *find_function(const struct py_atom *callee)
{
	for (size_t i = 0; i < ARRAY_LEN(file_functions); i++) {
		const char *path = file_functions[i].path;
		size_t n = strlen(path);
		bool begins = path[n - 1] == '*' || path[n - 1] == '.';

		n -= path[n - 1] == '*';
		if ((begins ? callee->len >= n : callee->len == n) && memcmp(callee->text, path, n) == 0)
			return &file_functions[i];
	}
	return NULL;
}

/* open(x, "w"): the mode argument tells whether the file is written. */
static bool opens_to_write(const struct py *p, const struct py_args *a, unsigned place)
{
	uint32_t keyword = py_keyword(p, a->call, "mode"), set = PY_UNKNOWN;
	const struct py_atom *mode;

	if (keyword != PY_NONE)
		set = p->node[keyword].value;
	else if (a->n > place)
		set = p->node[a->node[place]].value;
	mode = py_only(p, set, PY_STR);
	if (!mode || mode->len > 4)
		return false;
	for (uint32_t i = 0; i < mode->len; i++)
		if (strchr("wax+", mode->text[i]))
			return true;
	return false;
}

static bool is_opener(const struct py_atom *callee)
{
	static const char *const opener[] = { "builtins.open",   "io.open",  "codecs.open", "io.FileIO",
					      "gzip.open",       "bz2.open", "lzma.open",   "tarfile.open",
					      "zipfile.ZipFile", "wave.open" };

	for (size_t i = 0; i < ARRAY_LEN(opener); i++)
		if (py_atom_is(callee, PY_PATH, opener[i]))
			return true;
	return false;
}

void py_judge_files(struct py *p, const struct py_args *a, const struct py_atom *callee)
{
	const struct file_function *f = find_function(callee);
	bool opens = is_opener(callee);
	enum access access, changed;
	static const char *const keywords[] = { "file", "path", "filename", "src", "dst", "name" };

	if (!f || f->access == IGNORES)
		return;
	access = opens && opens_to_write(p, a, 1) ? CREATES : f->access;
	changed = f->access == CREATES ? CREATES : CHANGES;
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		uint32_t value = py_keyword(p, a->call, keywords[i]);

		if (value != PY_NONE)
			judge_set(p, p->node[value].value,
				  f->changes == 0 || strcmp(keywords[i], "dst") == 0 ? changed : access, opens,
				  py_span(p, value));
	}
	for (unsigned i = 0; i < a->n && (i == 0 || !opens); i++)
		judge_set(p, p->node[a->node[i]].value, i >= f->changes ? changed : access, opens && i == 0,
			  py_span(p, a->node[i]));
}

bool py_opens_outside(const struct py *p, uint32_t node)
{
	uint32_t callee = p->node[node].sym == PY_CALL ? py_unwrap(p, py_field(p, node, PY_F_FUNCTION)) : PY_NONE;
	const struct py_atom *f = callee == PY_NONE ? NULL : py_only(p, p->node[callee].value, PY_PATH), *name;
	char path[PATH_READING_MAX];
	struct py_args a;
	bool climbs;

	if (!f || !is_opener(f))
		return false;
	py_args(p, node, &a);
	name = py_only(p, py_arg_value(p, &a, 0), PY_STR);
	if (!name || name->len == 0 || name->len >= PATH_READING_MAX)
		return false;
	path_resolve(p->j->workspace, name->text, name->len, path, sizeof(path), &climbs);
	return !is_below(path, p->j->workspace) && !is_below_any(path, open_places, ARRAY_LEN(open_places)) &&
	       !is_below_any(path, common_places, ARRAY_LEN(common_places));
}

/* map(open, ["/etc/passwd"]): a function that opens files, passed on together with their names. */
void py_judge_handed_on(struct py *p, const struct py_args *a)
{
	bool files = false;

	for (unsigned i = 0; i < a->n; i++) {
		struct py_set s = p->set[p->node[a->node[i]].value];

		for (unsigned k = 0; k < s.n; k++) {
			struct py_atom f = p->atom[s.atom[k]];

			files |= py_atom_is(&f, PY_PATH, "builtins.open") || py_atom_is(&f, PY_PATH, "io.open");
		}
	}
	for (unsigned i = 0; files && i < a->n; i++)
		judge_set(p, p->node[a->node[i]].value, READS, true, py_span(p, a->node[i]));
}

/* ---- methods -------------------------------------------------------------------------------------------- */

struct file_method {
	const char *name;
	enum access access;
	bool of_object; /* the object is the path: pathlib */
};

static const struct file_method file_methods[] = {
	{ "chmod", CHANGES, true },      { "extract", CHANGES, false },    { "extractall", CHANGES, false },
	{ "glob", READS, true },         { "hardlink_to", CHANGES, true }, { "iterdir", READS, true },
	{ "mkdir", CREATES, true },      { "open", READS, true },          { "read_bytes", READS, true },
	{ "read_csv", READS, false },    { "read_text", READS, true },     { "rename", CHANGES, true },
	{ "rglob", READS, true },        { "rmdir", CHANGES, true },       { "save", CREATES, false },
	{ "savefig", CREATES, false },   { "symlink_to", CHANGES, true },  { "to_csv", CREATES, false },
	{ "to_excel", CREATES, false },  { "to_html", CREATES, false },    { "to_json", CREATES, false },
	{ "to_pickle", CREATES, false }, { "touch", CREATES, true },       { "unlink", CHANGES, true },
	{ "walk", READS, true },         { "write_bytes", CREATES, true }, { "write_image", CREATES, false },
	{ "write_text", CREATES, true },
};

/* Judges methods of paths, which are strings here, and methods of unknown objects that write or read a file. */
void py_judge_file_method(struct py *p, const struct py_args *a, uint32_t callee, bool known)
{
	uint32_t name = py_field(p, callee, PY_F_ATTRIBUTE), object = py_unwrap(p, py_field(p, callee, PY_F_OBJECT));

	if (name == PY_NONE || object == PY_NONE)
		return;
	for (size_t i = 0; i < ARRAY_LEN(file_methods); i++) {
		const struct file_method *m = &file_methods[i];

		if (!py_name_is(p, p->node[name].name, m->name))
			continue;
		if (m->of_object)
			judge_set(p, p->node[object].value,
				  strcmp(m->name, "open") == 0 && opens_to_write(p, a, 0) ? CREATES : m->access, false,
				  py_span(p, callee));
		/*
		 * x.open("/a/b") may belong to a web client; at the strict level it is judged as a file all the same.
		 */
		if ((!m->of_object || p->j->level == INSPECTION_STRICT) && !known && a->n)
			judge_set(p, p->node[a->node[0]].value, m->access, false, py_span(p, a->node[0]));
	}
}
