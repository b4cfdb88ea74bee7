/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter in a virtual environment is a link to one of the host, which may not exist in the cell; so the cell's
 * own python3 is told where the packages are.
 *
 * Of a folder that the request names, only bin, lib and pyvenv.cfg are visible: programs need nothing else in there
 * (such as a pip.conf with credentials). They appear at their host path, because the first lines of the programs in bin
 * name the interpreter by it; if the cell has something else at that path, they appear in /opt/venv, and only `python
 * -m` starts them.
 */
#include "executor/venv.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/idmap.h"
#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "files/place.h"

#define ELSEWHERE "/opt/venv"

static const char *const part_names[VENV_PARTS] = { "bin", "lib", "pyvenv.cfg" };

/* "python3.11": the folder below lib with the packages for that version. */
static bool is_version(const char *name)
{
	static const char front[] = "python3.";

	return strncmp(name, front, strlen(front)) == 0 && strlen(name) < strlen(front) + 4 &&
	       name[strlen(front)] != '\0' &&
	       strspn(name + strlen(front), "0123456789") == strlen(name + strlen(front));
}

/* Takes the descriptor of lib. */
static bool find_version(int lib, char dst[16])
{
	DIR *dir = lib < 0 ? NULL : fdopendir(lib);

	*dst = '\0';
	if (!dir && lib >= 0)
		(void)close(lib);
	if (!dir)
		return false;
	for (const struct dirent *e; !*dst && (e = readdir(dir));)
		if (is_version(e->d_name))
			(void)snprintf(dst, 16, "%.15s", e->d_name);
	(void)closedir(dir);
	return *dst;
}

/* top: its path in the cell. */
static void fill_env(struct venv *v, const char *top, const char *version)
{
	(void)snprintf(v->text[0], sizeof(v->text[0]), "VIRTUAL_ENV=%.*s", VENV_PATH_MAX, top);
	(void)snprintf(v->text[1], sizeof(v->text[1]), "PYTHONPATH=%.*s/lib/%s/site-packages", VENV_PATH_MAX, top,
		       version);
	(void)snprintf(v->text[2], sizeof(v->text[2]), "PATH=%.*s/bin:/usr/local/bin:/usr/bin:/bin:/run/brig/bin",
		       VENV_PATH_MAX, top);
	for (size_t k = 0; k < ARRAY_LEN(v->text); k++)
		v->env[k] = v->text[k];
}

/* folder: path below the project. */
static bool use_in_project(const struct workspace *project, const char *folder, struct venv *ret)
{
	char path[VENV_PATH_MAX], version[16];
	unsigned mode;

	if (snprintf(path, sizeof(path), "%s/pyvenv.cfg", folder) >= (int)sizeof(path) ||
	    workspace_at(project, path, NULL, 0, &mode) == WORKSPACE_ABSENT)
		return false;
	(void)snprintf(path, sizeof(path), "%s/lib", folder);
	if (!find_version(beneath_open_dir(workspace_plan(project)->fd, path), version))
		return false;
	(void)snprintf(path, sizeof(path), PLAN_WORKSPACE "/%.*s", VENV_PATH_MAX - 16, folder);
	fill_env(ret, path, version);
	return true;
}

bool venv_find(const struct workspace *project, struct venv *ret)
{
	static const char *const folders[] = { ".venv", "venv" };

	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (use_in_project(project, folders[i], ret))
			return true;
	return false;
}

/* ---- a folder that the request names ------------------------------------------------------------- */

/* "python3.11", the version of Python in native cells; "": none. */
static void find_python(char dst[16])
{
	static const char *const places[] = { "/usr/bin/python3", "/usr/local/bin/python3" };
	char path[PATH_MAX];

	*dst = '\0';
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *name = realpath(places[i], path) ? strrchr(path, '/') + 1 : "";

		if (!is_version(name))
			continue;
		(void)snprintf(dst, 16, "%.15s", name);
		return;
	}
}

static bool is_readable(const struct venv *v)
{
	struct stat st;

	if (geteuid() != 0 && idmap_find().kind == IDMAP_OWN) /* then the cell has the caller's user id */
		return true;
	for (size_t i = 0; i < VENV_PARTS; i++)
		if (fstat(v->part[i], &st) < 0 || !(st.st_mode & S_IROTH) ||
		    (S_ISDIR(st.st_mode) && !(st.st_mode & S_IXOTH)))
			return false;
	return true;
}

static int refuse_unreadable(const struct folder *f, struct brig_error *err)
{
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the virtual environment '%.200s' is not readable for cells, which have ids of their own: chmod -R "
		"go+rX makes it so",
		f->path);
}

static int open_parts(const struct folder *f, struct venv *v, char version[16], struct brig_error *err)
{
	char own[16];

	for (size_t i = 0; i < VENV_PARTS; i++) {
		v->part[i] =
			i < 2 ? beneath_open_dir(f->fd, part_names[i]) : beneath_open_file(f->fd, part_names[i], NULL);
		if (v->part[i] == -EACCES)
			return refuse_unreadable(f, err);
		if (v->part[i] < 0)
			return err_set(
				err, BRIG_E_REFUSED, -v->part[i],
				"'%.200s' is no virtual environment: cannot open its %s; python3 -m venv makes one",
				f->path, part_names[i]);
	}
	if (!is_readable(v))
		return refuse_unreadable(f, err);
	find_python(own);
	if (!find_version(openat(v->part[1], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), version))
		return err_set(err, BRIG_E_REFUSED, 0,
			       "'%.200s' is no virtual environment: its lib has no python3; python3 -m venv makes one",
			       f->path);
	if (!str_eq(own, version))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"the virtual environment '%.150s' is for %s, and cells have %s: make one with /usr/bin/python3 "
			"-m venv, or use --packages",
			f->path, version, *own ? own : "no Python");
	return 0;
}

/* True if the cell has nothing of its own at that path, and the path is not too long. */
static bool has_own_place(const char *path)
{
	static const char *const taken[] = { "/dev",      "/etc",  "/lib", "/lib32", "/lib64",
					     "/bin",      "/proc", "/run", "/sbin",  "/opt/packages",
					     "/opt/brig", "/sys",  "/tmp", "/usr",   PLAN_WORKSPACE };

	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		size_t len = strlen(taken[i]);

		if (strncmp(path, taken[i], len) == 0 && (path[len] == '/' || path[len] == '\0'))
			return false;
	}
	return strlen(path) < VENV_PATH_MAX;
}

static void show(const struct folder *f, const char *top, struct venv *v)
{
	for (size_t i = 0; i < VENV_PARTS; i++) {
		(void)snprintf(v->target[i], sizeof(v->target[i]), "%.*s/%s", VENV_PATH_MAX, top, part_names[i]);
		(void)snprintf(v->source[i], sizeof(v->source[i]), "%s/%s", f->path, part_names[i]);
		v->bind[i] = (struct plan_bind){
			.source = v->source[i], .target = v->target[i], .checked = true, .fd = v->part[i]
		};
	}
	v->n_binds = VENV_PARTS;
}

/* Warns of programs that cannot be started, and says what to do instead. */
static void warn_of_programs(const struct folder *f, bool own_place, struct venv *v)
{
	char link[PATH_MAX], python[PATH_MAX] = "";

	if (!own_place)
		(void)snprintf(v->warning, sizeof(v->warning),
			       "the virtual environment is shown at " ELSEWHERE
			       ", because cells have something else at "
			       "'%.100s': start its programs with python3 -m, not by their names",
			       f->path);
	else if (snprintf(link, sizeof(link), "%s/bin/python3", f->path) >= (int)sizeof(link) ||
		 !realpath(link, python) || strncmp(python, "/usr/", 5) != 0)
		(void)snprintf(
			v->warning, sizeof(v->warning),
			"the interpreter of the virtual environment, '%.150s', is not in the cell: its packages are "
			"used with the cell's own python3; start its programs with python3 -m, not by their names",
			*python ? python : link);
}

int venv_open(const char *path, const struct workspace *project, const char *state, struct venv *ret,
	      struct brig_error *err)
{
	static const char what[] = "virtual environment";
	AUTO_FOLDER f = FOLDER_INIT;
	char version[16];
	bool own_place;
	int rc = folder_open(path, what, false, &f, err);

	if (rc < 0)
		return rc;
	if (project) {
		size_t len = strlen(workspace_folder(project)->path);

		if (strncmp(f.path, workspace_folder(project)->path, len) == 0 && f.path[len] == '/' &&
		    use_in_project(project, f.path + len + 1, ret))
			return 0;
	}
	rc = place_check(&f, what, state, err);
	if (rc == 0)
		rc = open_parts(&f, ret, version, err);
	if (rc < 0)
		return rc;
	own_place = has_own_place(f.path);
	fill_env(ret, own_place ? f.path : ELSEWHERE, version);
	show(&f, own_place ? f.path : ELSEWHERE, ret);
	warn_of_programs(&f, own_place, ret);
	return 0;
}

void venv_close(struct venv *v)
{
	for (size_t i = 0; i < VENV_PARTS; i++)
		fd_closep(&v->part[i]);
}
