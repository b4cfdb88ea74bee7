/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With a registry, pip installs the packages while the image is built.  From this host, they are taken from the host's
 * own Python: a package is identified by its directory <name>-<version>.dist-info or .egg-info, whose top_level.txt
 * lists its modules, and whose METADATA or requires.txt lists the packages that it needs, which are included. Their
 * version conditions are assumed to hold on the host; only the conditions in docker_requirements are checked.
 */
#include "backend/docker/image_python.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "backend/docker/image_groups.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "model/requirement.h"

#define PACKAGES_MAX   256
#define TEXT_MAX_BYTES (256 * KiB)

/* @python@ is the name of the host's Python. */
static const char *const places[] = {
	"/usr/lib/python3/dist-packages",    "/usr/local/lib/@python@/dist-packages", "/usr/lib/@python@/site-packages",
	"/usr/lib64/@python@/site-packages", "/usr/local/lib/@python@/site-packages",
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void image_python_hash(struct sha256 *h, const struct setting_list *wanted)
{
	const char *sorted[SETTING_LIST_MAX];
	size_t n = 0;

	for (const char *item = NULL; wanted && n < ARRAY_LEN(sorted) && (item = setting_list_next(wanted, item));)
		sorted[n++] = item;
	if (n == 0)
		return;
	qsort(sorted, n, sizeof(sorted[0]), compare);
	for (size_t i = 0; i < n; i++)
		sha256_add(h, sorted[i], strlen(sorted[i]) + 1);
}

/* As a JSON list, so no shell is involved; requirement_parse() admits no characters that JSON would have to escape. */
void image_python_install(const struct setting_list *wanted, struct buf *dockerfile)
{
	if (!wanted || wanted->n == 0)
		return;
	(void)buf_adds(dockerfile, "\nUSER 0:0\nRUN [\"python3\", \"-m\", \"pip\", \"install\", \"--no-cache-dir\", "
				   "\"--disable-pip-version-check\", \"--no-input\", \"--\"");
	for (const char *item = NULL; (item = setting_list_next(wanted, item));)
		(void)buf_addf(dockerfile, ", \"%s\"", item);
	(void)buf_adds(dockerfile, "]\nUSER 1000:1000\n");
}

/* ---- the host's packages ------------------------------------------------------------------------------- */

/* Packages found and still to be found, each name once. */
struct queue {
	struct image_files *files;
	struct requirement want[PACKAGES_MAX];
	char needed_by[PACKAGES_MAX][REQUIREMENT_NAME_MAX + 1]; /* "": docker_requirements */
	bool optional[PACKAGES_MAX];
	size_t n, at;
};

static int enqueue(struct queue *q, const struct requirement *r, const char *by, bool optional, struct brig_error *err)
{
	for (size_t i = 0; i < q->n; i++)
		if (str_eq(q->want[i].name, r->name)) {
			q->optional[i] = q->optional[i] && optional;
			return 0;
		}
	if (q->n == PACKAGES_MAX)
		return err_set(err, BRIG_E_REFUSED, 0, "docker_requirements need more than %d packages", PACKAGES_MAX);
	q->want[q->n] = *r;
	q->optional[q->n] = optional;
	(void)str_copy(q->needed_by[q->n++], sizeof(q->needed_by[0]), by);
	return 0;
}

struct found {
	char place[PATH_MAX];
	char folder[NAME_MAX + 1]; /* numpy-1.24.2.egg-info */
	char version[REQUIREMENT_VERSION_MAX + 1];
};

/* "numpy-1.24.2.egg-info", "numpy-1.24.2-py3.11.egg-info" */
static bool is_package(const char *entry, const char *name, struct found *ret)
{
	static const char *const ends[] = { ".dist-info", ".egg-info" };
	char own[REQUIREMENT_NAME_MAX + 1];
	const char *dash = strchr(entry, '-');
	size_t len = strlen(entry), end = 0;

	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (len > strlen(ends[i]) && str_eq(entry + len - strlen(ends[i]), ends[i]))
			end = len - strlen(ends[i]);
	if (!dash || end <= (size_t)(dash + 1 - entry) || len > NAME_MAX)
		return false;
	requirement_name(entry, (size_t)(dash - entry), own);
	if (!str_eq(own, name))
		return false;
	end -= (size_t)(dash + 1 - entry);
	(void)snprintf(ret->version, sizeof(ret->version), "%.*s", (int)min_u64(end, strcspn(dash + 1, "-")), dash + 1);
	return str_copy(ret->folder, sizeof(ret->folder), entry);
}

static bool find_in(const char *place, const char *name, struct found *ret)
{
	const struct dirent *d;
	DIR *dir = opendir(place);
	bool found = false;

	while (dir && !found && (d = readdir(dir)))
		found = is_package(d->d_name, name, ret);
	if (dir)
		(void)closedir(dir);
	return found && str_copy(ret->place, sizeof(ret->place), place);
}

static bool find(const char *name, struct found *ret)
{
	char place[PATH_MAX];

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (image_group_expand(places[i], place, sizeof(place)) && find_in(place, name, ret))
			return true;
	return false;
}

/* A file in the package's directory; "" if missing or not a regular file. */
static char *read_text(const struct found *p, const char *name)
{
	char path[2 * PATH_MAX];
	struct stat st;
	AUTO_FD fd = FD_NONE;
	char *text = calloc(1, TEXT_MAX_BYTES + 1);
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", p->place, p->folder, name);
	fd = file_open(path, 0, &st);
	if (!text || fd < 0)
		return text;
	n = fd_read_all(fd, text, TEXT_MAX_BYTES);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* A requirement line: "numpy (>=1.2) ; python_version < '3'" or "numpy>=1.2". */
static int note_need(struct queue *q, const char *line, const char *by, struct brig_error *err)
{
	size_t len = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
	const char *marker = strchr(line, ';');
	struct requirement r = { .op = "" };

	if (len == 0 || (marker && strstr(marker, "extra")))
		return 0;
	requirement_name(line, len, r.name);
	return enqueue(q, &r, by, marker != NULL, err);
}

/* Handles lines that begin with word; if word is empty, all lines up to the first section heading. */
static int note_needs(struct queue *q, char *text, const char *word, const char *by, struct brig_error *err)
{
	char *save = NULL;
	int rc = 0;

	for (char *line = strtok_r(text, "\n", &save); line && rc == 0; line = strtok_r(NULL, "\n", &save)) {
		if (!*word && *line == '[')
			break; /* sections for extras, or for other systems */
		if (strncmp(line, word, strlen(word)) == 0)
			rc = note_need(q, line + strlen(word), by, err);
	}
	return rc;
}

static int add_needs(struct queue *q, const struct found *p, const char *name, struct brig_error *err)
{
	AUTO_FREE char *metadata = read_text(p, "METADATA"), *requires = read_text(p, "requires.txt");
	int rc;

	if (!metadata || !requires)
		return err_nomem(err);
	rc = note_needs(q, metadata, "Requires-Dist: ", name, err);
	return rc < 0 ? rc : note_needs(q, requires, "", name, err);
}

/* Adds a module in whatever form it exists; returns the number of matches. */
static int add_module(struct queue *q, const struct found *p, const char *module, struct brig_error *err)
{
	char pattern[2 * PATH_MAX];

	if (!*module || module[strspn(module, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")])
		return 0;
	(void)snprintf(pattern, sizeof(pattern), "%s/{%s,%s.py,%s.so,%s.*.so,%s.libs}", p->place, module, module,
		       module, module, module);
	return image_files_add(q->files, pattern, "__pycache__", err);
}

static int add_modules(struct queue *q, const struct found *p, const char *name, struct brig_error *err)
{
	AUTO_FREE char *text = read_text(p, "top_level.txt");
	char own[REQUIREMENT_NAME_MAX + 1], *save = NULL;
	int n, sum = 0;

	if (!text)
		return err_nomem(err);
	for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
		n = add_module(q, p, line, err);
		if (n < 0)
			return n;
		sum += n;
	}
	if (sum > 0)
		return sum;
	(void)str_copy(own, sizeof(own), name); /* most packages are named after their module */
	for (char *c = own; *c; c++)
		*c = (char)(*c == '-' ? '_' : *c);
	return add_module(q, p, own, err);
}

static int add_package(struct queue *q, const struct found *p, const char *name, struct brig_error *err)
{
	char folder[2 * PATH_MAX];
	int rc = add_modules(q, p, name, err);

	if (rc == 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "%s/%s names no module that is there: apt-get install --reinstall "
			       "python3-%s",
			       p->place, p->folder, name);
	(void)snprintf(folder, sizeof(folder), "%s/%s", p->place, p->folder);
	if (rc > 0)
		rc = image_files_add(q->files, folder, NULL, err);
	return rc < 0 ? rc : add_needs(q, p, name, err);
}

static int refuse(const struct queue *q, size_t i, const struct found *p, struct brig_error *err)
{
	const struct requirement *r = &q->want[i];
	char have[96] = "is not installed", by[96] = "";

	if (r->has_extras)
		(void)snprintf(have, sizeof(have), "has extras, which only pip installs");
	else if (p)
		(void)snprintf(have, sizeof(have), "is %.48s and not %s%s", p->version, r->op, r->version);
	if (q->needed_by[i][0])
		(void)snprintf(by, sizeof(by), " (which %s needs)", q->needed_by[i]);
	return err_set(err, BRIG_E_REFUSED, 0,
		       "docker_requirements: '%s'%s %s in the Python of this host, from which the image is packed: "
		       "apt-get install python3-%s, change the list, or build where the engine reaches a registry "
		       "(brig images build python --from registry)",
		       r->name, by, have, r->name);
}

int image_python_collect(const struct setting_list *wanted, struct image_files *f, struct brig_error *err)
{
	AUTO_FREE struct queue *q = calloc(1, sizeof(*q));
	AUTO_FREE struct found *p = calloc(1, sizeof(*p));
	struct requirement r;
	int rc = 0;

	if (!q || !p)
		return err_nomem(err);
	q->files = f;
	for (const char *item = NULL; rc == 0 && wanted && (item = setting_list_next(wanted, item));)
		rc = requirement_parse(item, &r) ? 0 : enqueue(q, &r, "", false, err);
	for (; q->at < q->n && rc >= 0; q->at++) {
		const struct requirement *want = &q->want[q->at];
		bool there = find(want->name, p);

		if (!there && q->optional[q->at])
			continue;
		if (!there || want->has_extras || !requirement_allows(want, p->version))
			return refuse(q, q->at, there ? p : NULL, err);
		rc = add_package(q, p, want->name, err);
	}
	return rc < 0 ? rc : 0;
}
