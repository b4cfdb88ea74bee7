/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen-rules OUTPUT DEPFILE FOLDER - FOLDER/<area>.yaml as constant C tables with their index
 *
 * The same loader reads a user's file at run time.  Every file is optional; a bad one ends the build with its line.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/rules_internal.h"

#define FILES_MAX 64

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static int is_yaml(const struct dirent *d)
{
	size_t len = strlen(d->d_name);

	return d->d_name[0] != '.' && len > 5 && strcmp(d->d_name + len - 5, ".yaml") == 0;
}

static char *read_whole(const char *path, size_t *ret_len)
{
	char *text = malloc(RULES_FILE_MAX + 1);
	FILE *f = fopen(path, "re");

	if (!text || !f)
		die("%s: %s", path, strerror(errno));
	*ret_len = fread(text, 1, RULES_FILE_MAX + 1, f);
	fclose(f);
	return text;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

struct input {
	struct rule *row; /* of all files; their texts belong to the lists */
	size_t n;
	struct rule_list list[FILES_MAX];
	size_t n_lists;
};

static void add_list(struct input *in, const struct rule_list *list)
{
	in->row = reallocarray(in->row, in->n + list->n + 1, sizeof(*in->row));
	if (!in->row)
		die("no memory");
	for (size_t i = 0; i < list->n; i++) {
		if (list->row[i].extends)
			die("%s:%u: built-in rules are written out, not extended", list->row[i].file,
			    list->row[i].line);
		for (size_t k = 0; k < in->n; k++)
			if (strcmp(in->row[k].id, list->row[i].id) == 0)
				die("%s:%u: rule %s is in %s:%u already", list->row[i].file, list->row[i].line,
				    list->row[i].id, in->row[k].file, in->row[k].line);
		in->row[in->n++] = list->row[i];
	}
}

static void read_one(const char *folder, const char *name, FILE *deps, struct input *in)
{
	struct brig_error err = { 0 };
	struct rule_list *list;
	char path[4096];
	size_t len;
	char *text;

	if (in->n_lists == FILES_MAX)
		die("%s: more than %d files", folder, FILES_MAX);
	list = &in->list[in->n_lists];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fprintf(deps, " %s", path);
	text = read_whole(path, &len);
	if (rule_list_parse(name, text, len, list, &err) < 0)
		die("%s/%s", folder, err.msg);
	add_list(in, list);
	in->n_lists++;
	free(text);
}

/* The folder is a dependency too, so that a new file is noticed. */
static void read_folder(const char *folder, FILE *deps, struct input *in)
{
	struct dirent **name;
	int n = scandir(folder, &name, is_yaml, alphasort);

	if (n < 0)
		die("%s: %s", folder, strerror(errno));
	fprintf(deps, " %s", folder);
	for (int i = 0; i < n; i++) {
		read_one(folder, name[i]->d_name, deps, in);
		free(name[i]);
	}
	free(name);
	fputc('\n', deps);
}

/* For the sanitizers, which watch the tools of a build as well. */
static void forget(struct input *in, struct rule_table *table)
{
	free((void *)(uintptr_t)table->entry);
	free((void *)(uintptr_t)table->slot);
	free(in->row);
	for (size_t i = 0; i < in->n_lists; i++)
		rule_list_release(&in->list[i]);
}

/* ---- writing -------------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '?')
			fputc(c, out);
		else
			fprintf(out, "\\%03o", c);
	}
	fputc('"', out);
}

static void put_list(FILE *out, const char *what, size_t row, const char *const *item, size_t n)
{
	if (n == 0)
		return;
	fprintf(out, "static const char *const %s_%zu[] = {", what, row);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ", " : " ", out);
		put_text(out, item[i]);
	}
	fputs(" };\n", out);
}

static void put_list_name(FILE *out, const char *what, size_t row, size_t n)
{
	if (n)
		fprintf(out, " .%s = %s_%zu, .n_%s = %zu,", what, what, row, what, n);
}

static void put_row(FILE *out, const struct rule *r, size_t row)
{
	fputs("\t{ .id = ", out);
	put_text(out, r->id);
	fprintf(out, ", .languages = 0x%x, .kind = (enum rule_kind)%d,", r->languages, (int)r->kind);
	put_list_name(out, "names", row, r->n_names);
	put_list_name(out, "match", row, r->n_match);
	put_list_name(out, "no_match", row, r->n_no_match);
	fputs(" .severity = {", out);
	for (size_t t = 0; t < INSPECTION_COUNT; t++)
		fprintf(out, " SEVERITY_%s,", severity_name[r->severity[t]]);
	fputs(" },\n\t  .message = ", out);
	put_text(out, r->message);
	fputs(", .remedy = ", out);
	put_text(out, r->remedy);
	fputs(", .file = ", out);
	put_text(out, r->file);
	fprintf(out, ", .network = %s, .line = %u },\n", r->network ? "true" : "false", r->line);
}

static void put_rows(FILE *out, const struct rule_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		put_list(out, "names", i, t->row[i].names, t->row[i].n_names);
		put_list(out, "match", i, t->row[i].match, t->row[i].n_match);
		put_list(out, "no_match", i, t->row[i].no_match, t->row[i].n_no_match);
	}
	fputs("static const struct rule rows[] = {\n", out);
	for (size_t i = 0; i < t->n; i++)
		put_row(out, &t->row[i], i);
	fputs("\t{ 0 },\n};\n", out);
}

static void put_index(FILE *out, const struct rule_table *t)
{
	fputs("static const struct rule_entry entries[] = {\n", out);
	for (size_t i = 0; i < t->n_entries; i++) {
		const struct rule_entry *e = &t->entry[i];

		fprintf(out, "\t{ 0x%08xu, %u, %u, %u, %u },\n", e->hash, e->rule, e->name, e->language, e->kind);
	}
	fputs("\t{ 0 },\n};\nstatic const uint16_t slots[] = {", out);
	for (size_t i = 0; i <= t->slot_mask; i++)
		fprintf(out, "%s%u,", i % 20 ? " " : "\n\t", t->slot[i]);
	fputs("\n};\n", out);
}

static void put_table(FILE *out, const struct rule_table *t)
{
	fputs("/* Made by tools/gen-rules from data/rules; do not edit. */\n#include \"inspect/rules_internal.h\"\n\n",
	      out);
	put_rows(out, t);
	put_index(out, t);
	fprintf(out, "const struct rule_table rule_table_builtin = {\n\t.row = rows, .n = %zu,\n\t.kind_start = {",
		t->n);
	for (size_t k = 0; k <= RULE_KIND_COUNT; k++)
		fprintf(out, " %zu,", t->kind_start[k]);
	fprintf(out, " },\n\t.entry = entries, .n_entries = %zu, .slot = slots, .slot_mask = %u,\n};\n", t->n_entries,
		t->slot_mask);
}

int main(int argc, char **argv)
{
	struct brig_error err = { 0 };
	static struct input in;
	struct rule_table table;
	FILE *out, *deps;

	if (argc != 4)
		die("usage: gen-rules OUTPUT DEPFILE FOLDER");
	out = fopen(argv[1], "we");
	deps = fopen(argv[2], "we");
	if (!out || !deps)
		die("%s: %s", argv[1], strerror(errno));
	fprintf(deps, "%s:", argv[1]);
	read_folder(argv[3], deps, &in);
	if (rule_table_build(in.row, in.n, &table, &err) < 0)
		die("%s/%s", argv[3], err.msg);
	put_table(out, &table);
	if (fclose(out) || fclose(deps))
		die("%s: %s", argv[1], strerror(errno));
	forget(&in, &table);
	return 0;
}
