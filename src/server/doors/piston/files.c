/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - files of a Piston job, as the runner takes them
 *
 * The entry file is the code. If it is the only file, or the language needs no compiler, it need not be among the other
 * files: the runner stores it beside them. A compiler, however, gets the other files only if the code is among them. As
 * with Piston's own packages, the compilers of C and C++ get every file that could be a source, and that of Go every
 * file with its extension; the other languages find the files that a source names.
 */
#include <stdio.h>
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"
#include "base/ustar.h"
#include "server/doors/piston/job.h"

#define PATH_MAX_BYTES 512

/* ---- names --------------------------------------------------------------------------------------------------- */

enum piston_encoding piston_encoding_of(const json_t *file)
{
	const char *text = json_string_value(json_object_get(file, "encoding"));

	return !text                    ? PISTON_UTF8
	       : str_eq(text, "base64") ? PISTON_BASE64
	       : str_eq(text, "hex")    ? PISTON_HEX
					: PISTON_UTF8;
}

/* NULL: it has no name, or an invalid one. */
static const char *given_name(const json_t *file)
{
	const json_t *name = json_object_get(file, "name");
	const char *text = json_string_value(name);

	if (!text || !*text || strlen(text) != json_string_length(name))
		return NULL;
	while (strncmp(text, "./", 2) == 0)
		text += 2;
	return *text ? text : NULL;
}

/* The file's path in the archive; dst holds the default name for files without one. */
static const char *name_of(const json_t *file, size_t index, char dst[32])
{
	const char *name = given_name(file);

	(void)snprintf(dst, 32, "file%zu.code", index);
	return name ? name : dst;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), n = strlen(ending);

	return len > n && str_eq(name + len - n, ending);
}

static bool is_source(const json_t *language, const char *name)
{
	const json_t *extension;
	size_t i;

	json_array_foreach(json_object_get(language, "extensions"), i,
			   extension) if (has_ending(name, json_string_value(extension))) return true;
	return false;
}

/* True if the name does not tell the type of the file. */
static bool is_nameless(const char *name)
{
	return has_ending(name, ".code") || !strchr(base_of(name), '.');
}

/* Refuses names that lead out of the folder, which the original answers as an internal error. */
static int check_name(const json_t *file, struct brig_error *err)
{
	const char *name = given_name(file);

	for (const char *at = name; at && *at; at += strcspn(at, "/"), at += *at == '/')
		if (*at == '/' || (at[0] == '.' && at[1] == '.' && (at[2] == '/' || !at[2])))
			return err_set(err, BRIG_E_REFUSED, 0, "a file's name leads elsewhere");
	return 0;
}

const char *piston_usable_name(const json_t *language, const json_t *file)
{
	const char *name = given_name(file), *base = name ? base_of(name) : NULL;

	return base && is_source(language, base) && strlen(base) <= message_max_bytes(FIELD_file_name) ? base : NULL;
}

/* If several files have the same name, the last one is stored, or the entry if it is among them. */
static bool is_superseded(const struct piston_job *job, size_t index)
{
	const json_t *files = json_object_get(job->doc, "files"), *file;
	const char *name = given_name(json_array_get(files, index)), *other;
	size_t i;

	json_array_foreach(files, i, file)
	{
		other = given_name(file);
		if (index != job->entry && (i == job->entry || i > index) && name && other && str_eq(other, name))
			return true;
	}
	return false;
}

/* ---- contents -------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Like Node: stops at the first invalid character. */
static size_t read_hex(char *dst, const char *text, size_t len)
{
	size_t n = 0;

	while (2 * n + 1 < len && hex_digit(text[2 * n]) >= 0 && hex_digit(text[2 * n + 1]) >= 0) {
		dst[n] = (char)(hex_digit(text[2 * n]) << 4 | hex_digit(text[2 * n + 1]));
		n++;
	}
	return n;
}

/*
 * Like Node: ignores invalid characters, accepts both alphabets, with or without padding; dst may be as long as text.
 */
static size_t read_base64(char *dst, const char *text, size_t len)
{
	uint32_t bits = 0;
	size_t n = 0, digits = 0;

	for (size_t i = 0; i < len && text[i] != '='; i++) {
		char c = text[i];
		int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
			    : c >= 'a' && c <= 'z' ? c - 'a' + 26
			    : c >= '0' && c <= '9' ? c - '0' + 52
			    : c == '+' || c == '-' ? 62
			    : c == '/' || c == '_' ? 63
						   : -1;

		if (digit < 0)
			continue;
		bits = bits << 6 | (uint32_t)digit;
		if (++digits % 4 != 1) /* the first of four digits completes no byte */
			dst[n++] = (char)(bits >> (6 - 2 * ((digits - 1) % 4)));
	}
	return n;
}

static int add_file(struct buf *tar, const char *path, const json_t *file, struct brig_error *err)
{
	const json_t *content = json_object_get(file, "content");
	size_t len = json_string_length(content);
	AUTO_FREE char *bytes = malloc(len + 1);
	struct bytes what = { json_string_value(content), len };

	if (!bytes)
		return err_nomem(err);
	if (piston_encoding_of(file) == PISTON_BASE64)
		what = (struct bytes){ bytes, read_base64(bytes, what.data, len) };
	else if (piston_encoding_of(file) == PISTON_HEX)
		what = (struct bytes){ bytes, read_hex(bytes, what.data, len) };
	return ustar_add_file(tar, path, &what) ? 0 : err_set(err, BRIG_E_USAGE, 0, "files are too long");
}

/* ---- sources --------------------------------------------------------------------------------------------------- */

/* How a compiler learns of the other files. */
enum together { FINDS_THEM, TAKES_ALL, TAKES_NAMED };

static enum together together_of(const struct piston_job *job)
{
	const json_t *files = json_object_get(job->doc, "files"), *file;
	size_t i;

	if (str_eq(job->language, "c") || str_eq(job->language, "c++"))
		return TAKES_ALL;
	if (!str_eq(job->language, "go"))
		return FINDS_THEM;
	/* If there is a go.mod, it decides what belongs to the program. */
	json_array_foreach(files, i,
			   file) if (given_name(file) && str_eq(given_name(file), "go.mod")) return FINDS_THEM;
	return TAKES_NAMED;
}

static const char *extension_of(const struct piston_job *job)
{
	const char *text = json_string_value(json_array_get(json_object_get(job->row, "extensions"), 0));

	return text ? text : "";
}

/* Go compiles the files of one folder. */
static bool lies_beside(const char *a, const char *b)
{
	size_t n = (size_t)(base_of(a) - a);

	return n == (size_t)(base_of(b) - b) && memcmp(a, b, n) == 0;
}

/* Adds a file other than the entry for a compiler, and lists it as a source if it may be one. */
static int put_other(const struct piston_job *job, size_t i, const char *entry, struct buf *tar, struct buf *fields,
		     struct brig_error *err)
{
	const json_t *file = json_array_get(json_object_get(job->doc, "files"), i);
	enum together how = together_of(job);
	char usual[32], path[PATH_MAX_BYTES + 16];
	const char *name = name_of(file, i, usual);
	bool is_text = piston_encoding_of(file) == PISTON_UTF8;
	bool is_nothing = how == TAKES_ALL && is_text && is_nameless(name);

	if (strlen(name) > PATH_MAX_BYTES)
		return err_set(err, BRIG_E_USAGE, 0, "files[%zu].name is too long", i);
	(void)snprintf(path, sizeof(path), "%s%s", name, is_nothing ? extension_of(job) : "");
	if (is_nothing || (is_text && is_source(job->row, path) &&
			   (how == TAKES_ALL || (how == TAKES_NAMED && lies_beside(path, entry)))))
		message_put_text(fields, FIELD_source, path);
	return add_file(tar, path, file, err);
}

/* A name such as "main.c" that no other file has. */
static void free_name(const struct piston_job *job, char dst[32])
{
	static const char *const stems[] = { "main", "program", "entry", "first" };
	const json_t *files = json_object_get(job->doc, "files"), *file;
	bool is_taken = true;
	size_t i;

	for (size_t k = 0; k < ARRAY_LEN(stems) && is_taken; k++) {
		(void)snprintf(dst, 32, "%s%.16s", stems[k], extension_of(job));
		is_taken = false;
		json_array_foreach(files, i, file) is_taken |= given_name(file) && str_eq(given_name(file), dst);
	}
}

static int put_compiled(const struct piston_job *job, struct buf *tar, struct buf *fields, struct brig_error *err)
{
	const json_t *files = json_object_get(job->doc, "files"), *file, *entry = json_array_get(files, job->entry);
	char own[32];
	const char *path = given_name(entry);
	size_t i;
	int rc = 0;

	if (!job->file_name || !path || strlen(path) > PATH_MAX_BYTES) {
		free_name(job, own);
		path = own;
	}
	message_put_text(fields, FIELD_file_name, base_of(path));
	message_put_text(fields, FIELD_source_path, path);
	rc = add_file(tar, path, entry, err);
	json_array_foreach(files, i, file)
	{
		if (rc == 0)
			rc = check_name(file, err);
		if (rc == 0 && i != job->entry && !is_superseded(job, i))
			rc = put_other(job, i, path, tar, fields, err);
	}
	return rc;
}

/* "src/main.py": a path in a folder that needs no cleaning. */
static bool is_in_folder(const char *name)
{
	return strchr(name, '/') && strlen(name) <= PATH_MAX_BYTES && !strstr(name, "//") && !strstr(name, "/./");
}

/*
 * The entry is passed as the code; it is also stored as a file if its name differs from the code's file name. An entry
 * in a folder runs where it lies, because interpreters look beside it for what it imports.
 */
static int put_plain(const struct piston_job *job, struct buf *tar, struct buf *fields, struct brig_error *err)
{
	const json_t *files = json_object_get(job->doc, "files"), *file;
	const char *entry_name = given_name(json_array_get(files, job->entry));
	char usual[32];
	size_t i;

	message_put_text(fields, FIELD_file_name, job->file_name);
	if (job->file_name && is_in_folder(entry_name))
		message_put_text(fields, FIELD_source_path, entry_name);
	json_array_foreach(files, i, file)
	{
		const char *name = given_name(file);

		if (check_name(file, err) < 0)
			return -err->code;
		if (is_superseded(job, i) ||
		    (i == job->entry && (!name || (job->file_name && str_eq(name, job->file_name)))))
			continue;
		if (add_file(tar, name_of(file, i, usual), file, err) < 0)
			return -err->code;
	}
	return 0;
}

int piston_put_files(const struct piston_job *job, struct buf *fields, int *ret_files, struct brig_error *err)
{
	AUTO_BUF tar = BUF_INIT(JSON_FILES_MAX);
	bool is_together = job->compiles && json_array_size(json_object_get(job->doc, "files")) > 1;
	int rc = is_together ? put_compiled(job, &tar, fields, err) : put_plain(job, &tar, fields, err);

	return rc < 0 ? rc : door_files(&tar, ret_files, err);
}
