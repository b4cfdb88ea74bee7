/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what an installer left holds what was asked for.
 *
 * Packages run code while they are installed, and the installer's exit status is all that is known: a set without its
 * packages would be kept, and be given to every later run that asks for the same.  So each package that the request or
 * the project names has to be there before the set is kept.
 *
 * Packages made the tree, so nothing in it is read: only the name and type of a folder or file are checked.  What
 * cannot be known from a name (an address, a marker that may exclude it here) is not asked for.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "files/beneath.h"
#include "packages/packages.h"

#define NAME_MAX_LEN 214 /* of a package; npm's limit, and longer than others have */

struct wanted {
	char name[PACKAGES_WORD_MAX + 1];
	char version[64]; /* "": any will do */
	size_t len;       /* bytes of the text that are its name */
};

/* ---- pip --------------------------------------------------------------------------------------------- */

/* As PEP 503 has it: small letters, and each run of "-", "_" and "." is one "-". */
static void normalise(const char *name, size_t len, char *dst, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		bool separates = strchr("-_.", name[i]) != NULL;

		if (!separates)
			dst[n++] = (char)tolower((unsigned char)name[i]);
		else if (n == 0 || dst[n - 1] != '-')
			dst[n++] = '-';
	}
	dst[n] = '\0';
}

/* Numbers and dots, without zeros at the end: "1.0" and "1.0.0" are one version.  False: it is another kind of version. */
static bool plain_version(const char *text, size_t len, char *dst, size_t size)
{
	if (len == 0 || len >= size || strspn(text, "0123456789.") < len)
		return false;
	memcpy(dst, text, len);
	dst[len] = '\0';
	while (len > 2 && strcmp(dst + len - 2, ".0") == 0)
		dst[len -= 2] = '\0';
	return true;
}

/* "Name[extra] == 1.0": false if its name is not known from it, or a marker decides whether it is wanted here. */
static bool pip_wanted(const char *text, size_t len, struct wanted *ret)
{
	size_t name = 0, at;

	while (name < len && (isalnum((unsigned char)text[name]) || strchr("-_.", text[name])))
		name++;
	if (name == 0 || name > NAME_MAX_LEN || memchr(text, ';', len) || memchr(text, '/', len))
		return false;
	for (at = name; at < len && text[at] == ' ';)
		at++;
	if (at < len && text[at] == '[')
		while (at < len && text[at++] != ']')
			;
	while (at < len && text[at] == ' ')
		at++;
	if (at < len && !strchr("=<>!~", text[at]))
		return false;
	normalise(text, name, ret->name, sizeof(ret->name));
	ret->len = name;
	ret->version[0] = '\0';
	if (len - at > 2 && strncmp(text + at, "==", 2) == 0) {
		for (at += 2; at < len && text[at] == ' ';)
			at++;
		if (!plain_version(text + at, len - at, ret->version, sizeof(ret->version)))
			ret->version[0] = '\0';
	}
	return true;
}

/* Whether the name of an entry, "Name-1.0.dist-info", is that of a package that is wanted. */
static bool pip_names(const char *entry, const struct wanted *w)
{
	static const char *const endings[] = { ".dist-info", ".egg-info" };
	char name[PACKAGES_WORD_MAX + 1], version[64];
	const char *dash = strchr(entry, '-');

	for (size_t i = 0; dash && i < ARRAY_LEN(endings); i++) {
		const char *end = strstr(dash, endings[i]);

		if (!end || end[strlen(endings[i])] != '\0')
			continue;
		normalise(entry, (size_t)(dash - entry), name, sizeof(name));
		return str_eq(name, w->name) &&
		       (!w->version[0] ||
			!plain_version(dash + 1, (size_t)(end - dash) - 1, version, sizeof(version)) ||
			str_eq(version, w->version));
	}
	return false;
}

static bool is_file(int dir, const char *path)
{
	struct stat st;
	AUTO_FD fd = beneath_look(dir, path, &st);

	return fd >= 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

/* Its metadata, and something besides metadata in the whole set. */
static bool pip_has(int tree, const struct wanted *w)
{
	bool described = false, anything = false;
	int copy = openat(tree, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	if (!dir && copy >= 0)
		(void)close(copy);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		char path[512];

		if (e->d_name[0] == '.')
			continue;
		if (!strstr(e->d_name, ".dist-info") && !str_eq(e->d_name, "__pycache__"))
			anything = true;
		if (!pip_names(e->d_name, w))
			continue;
		(void)snprintf(path, sizeof(path), "%s/METADATA", e->d_name);
		described = described || is_file(tree, path);
		(void)snprintf(path, sizeof(path), "%s/PKG-INFO", e->d_name);
		described = described || is_file(tree, path) || is_file(tree, e->d_name);
	}
	if (dir)
		(void)closedir(dir);
	return described && anything;
}

/* ---- npm --------------------------------------------------------------------------------------------- */

/* "name@1.2", "@scope/name": false for addresses, folders and repositories. */
static bool npm_wanted(const char *text, size_t len, struct wanted *ret)
{
	size_t start = len > 0 && text[0] == '@', end = start;
	const char *slash;

	while (end < len && text[end] != '@')
		end++;
	slash = memchr(text, '/', end);
	if (end == start || end > NAME_MAX_LEN || memchr(text, ':', end) || text[start] == '.' ||
	    (slash != NULL) != (start == 1) || (slash && memchr(slash + 1, '/', end - (size_t)(slash + 1 - text))))
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)end, text);
	ret->len = end;
	return true;
}

static bool npm_has(int tree, const struct wanted *w)
{
	char path[PACKAGES_WORD_MAX + 64];

	(void)snprintf(path, sizeof(path), "node_modules/%s/package.json", w->name);
	return is_file(tree, path);
}

/* ---- go ---------------------------------------------------------------------------------------------- */

/* A package or module with a host in its path; capital letters as the module cache writes them. */
static bool go_wanted(const char *text, size_t len, struct wanted *ret)
{
	const char *at = memchr(text, '@', len);
	size_t n = 0, end = at ? (size_t)(at - text) : len, host = 0;

	while (host < end && text[host] != '/')
		host++;
	if (!memchr(text, '.', host) || text[0] == '.')
		return false;
	for (size_t i = 0; i < end && n + 2 < sizeof(ret->name); i++) {
		if (isupper((unsigned char)text[i]))
			ret->name[n++] = '!';
		ret->name[n++] = (char)tolower((unsigned char)text[i]);
	}
	ret->name[n] = '\0';
	ret->len = end;
	return true;
}

/* Whether folder has "name@version", a folder. */
static bool has_version(int tree, const char *folder, const char *name, size_t len)
{
	int copy = beneath_open_dir(tree, folder);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	bool found = false;

	if (!dir && copy >= 0)
		(void)close(copy);
	for (struct dirent *e; dir && !found && (e = readdir(dir));)
		found = strncmp(e->d_name, name, len) == 0 && e->d_name[len] == '@' && e->d_type == DT_DIR;
	if (dir)
		(void)closedir(dir);
	return found;
}

/* The module may be any front part of the path. */
static bool go_has(int tree, const struct wanted *w)
{
	char folder[PACKAGES_WORD_MAX + 16];
	const char *part = w->name;

	for (;;) {
		size_t len = strcspn(part, "/");
		int front = (int)(part - w->name);

		(void)snprintf(folder, sizeof(folder), "mod%s%.*s", front ? "/" : "", front ? front - 1 : 0, w->name);
		if (len > 0 && has_version(tree, folder, part, len))
			return true;
		if (part[len] == '\0')
			return false;
		part += len + 1;
	}
}

/* ---- all --------------------------------------------------------------------------------------------- */

static const struct {
	const char *ecosystem;
	bool (*wanted)(const char *text, size_t len, struct wanted *ret);
	bool (*has)(int tree, const struct wanted *w);
} ways[] = {
	{ "pip", pip_wanted, pip_has },
	{ "npm", npm_wanted, npm_has },
	{ "go", go_wanted, go_has },
};

struct search {
	size_t way;
	int tree;
	struct brig_error *err;
	package_name_fn each; /* NULL: each has to be in the tree */
	void *arg;
};

static int tell_name(const struct search *s, const char *text, size_t len)
{
	const char *marker = memchr(text, ';', len);
	char name[PACKAGES_WORD_MAX + 1];
	struct wanted w;

	if (str_eq(ways[s->way].ecosystem, "pip") && marker)
		len = (size_t)(marker - text);
	if (len > PACKAGES_WORD_MAX || !ways[s->way].wanted(text, len, &w))
		return 0;
	(void)snprintf(name, sizeof(name), "%.*s", (int)w.len, text);
	return s->each(s->arg, name);
}

static int demand(const struct search *s, const char *text, size_t len)
{
	struct wanted w;

	if (s->each)
		return tell_name(s, text, len);
	if (len > PACKAGES_WORD_MAX || !ways[s->way].wanted(text, len, &w) || ways[s->way].has(s->tree, &w))
		return 0;
	return err_set(s->err, BRIG_E_REFUSED, 0,
		       "the installer ended well, but '%.*s' is not in what it left; nothing of it is kept", (int)len,
		       text);
}

/* The requirement of one line, without comment, options and blanks around it; 0: there is none. */
static size_t requirement(const char **line, size_t len)
{
	static const char *const ends[] = { " #", "\t#", " --", "\t--", "\\" };
	const char *text = *line;

	while (len > 0 && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const char *end = memmem(text, len, ends[i], strlen(ends[i]));

		len = end ? (size_t)(end - text) : len;
	}
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	*line = text;
	return len > 0 && (*text == '#' || *text == '-') ? 0 : len;
}

/* Only the first file is surely one of requirements: others may be constraints, and pip reads both. */
static int demand_requirements(const struct search *s, const struct plan_file *f)
{
	const char *text = f->data;
	bool continues = false;
	int rc = 0;

	for (size_t at = 0; at < f->len && rc == 0;) {
		const char *line = text + at, *end = memchr(line, '\n', f->len - at);
		size_t len = end ? (size_t)(end - line) : f->len - at, n = len;
		const char *wanted = line;

		n = requirement(&wanted, n);
		if (n > 0 && !continues)
			rc = demand(s, wanted, n);
		continues = len > 0 && line[len - 1] == '\\';
		at += len + 1;
	}
	return rc;
}

static int demand_dependencies(const struct search *s, const struct plan_file *f)
{
	json_t *doc = json_loadb(f->data, f->len, 0, NULL);
	const json_t *optional = json_object_get(doc, "optionalDependencies");
	const char *name;
	json_t *version;
	int rc = 0;

	json_object_foreach(json_object_get(doc, "dependencies"), name, version)
	{
		const char *text = json_string_value(version);

		/* What is outside the project is not in an install cell. */
		if (rc < 0 || !text || strncmp(text, "file:", 5) == 0 || strncmp(text, "link:", 5) == 0 ||
		    strncmp(text, "workspace:", 10) == 0 || json_object_get(optional, name))
			continue;
		rc = demand(s, name, strlen(name));
	}
	json_decref(doc);
	return rc;
}

/* "path version" of a line of go.mod, behind "require" or in its block. */
static int demand_module(const struct search *s, const char *line, size_t len, bool *in_block)
{
	static const char word[] = "require";
	size_t blanks = 0, n = 0;

	while (blanks < len && isspace((unsigned char)line[blanks]))
		blanks++;
	line += blanks;
	len -= blanks;
	if (*in_block && len > 0 && *line == ')')
		*in_block = false;
	if (!*in_block) {
		if (len <= strlen(word) || strncmp(line, word, strlen(word)) != 0 ||
		    !strchr(" \t(", line[strlen(word)]))
			return 0;
		for (n = strlen(word); n < len && isspace((unsigned char)line[n]);)
			n++;
		*in_block = n < len && line[n] == '(';
		if (*in_block)
			return 0;
		line += n;
		len -= n;
	}
	for (n = 0; n < len && !isspace((unsigned char)line[n]);)
		n++;
	return n > 0 ? demand(s, line, n) : 0;
}

/* What is replaced may be anywhere: then only go knows. */
static int demand_modules(const struct search *s, const struct plan_file *f)
{
	bool in_block = false;
	int rc = 0;

	if (!s->each && memmem(f->data, f->len, "replace", 7))
		return 0;
	for (size_t at = 0; at < f->len && rc == 0;) {
		const char *line = (const char *)f->data + at, *end = memchr(line, '\n', f->len - at);
		size_t len = end ? (size_t)(end - line) : f->len - at;

		rc = demand_module(s, line, len, &in_block);
		at += len + 1;
	}
	return rc;
}

/* By the name of the file that says what a project needs. */
static const struct {
	const char *name;
	int (*demand)(const struct search *s, const struct plan_file *f);
} manifests[] = {
	{ "requirements.txt", demand_requirements },
	{ "package.json", demand_dependencies },
	{ "go.mod", demand_modules },
};

static int search(struct search *s, const struct ecosystem *e, const char *const *words, size_t n,
		  const struct package_files *files)
{
	int rc = 0;

	while (s->way < ARRAY_LEN(ways) && !str_eq(ways[s->way].ecosystem, e->name))
		s->way++;
	if (s->way == ARRAY_LEN(ways))
		return err_set(s->err, BRIG_E_INTERNAL, 0, "brig cannot look up packages of %s", e->name);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = demand(s, words[i], strlen(words[i]));
	for (size_t i = 0; i < ARRAY_LEN(manifests) && files->n > 0 && rc == 0; i++)
		if (str_eq(files->file[0].name, manifests[i].name))
			rc = manifests[i].demand(s, &files->file[0]);
	return rc;
}

int packages_present(const struct ecosystem *e, const char *const *words, size_t n, const struct package_files *files,
		     int tree, struct brig_error *err)
{
	struct search s = { .tree = tree, .err = err };

	return search(&s, e, words, n, files);
}

int packages_each_name(const struct ecosystem *e, const char *const *words, size_t n, const struct package_files *files,
		       package_name_fn each, void *arg, struct brig_error *err)
{
	struct search s = { .tree = FD_NONE, .err = err, .each = each, .arg = arg };

	return search(&s, e, words, n, files);
}
