/* SPDX-License-Identifier: Apache-2.0 */
/* `brig doctor`: what this host can enforce, row by row, and what to do about the rest. */
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/host_policy.h"
#include "cli/rows.h"
#include "cli/service.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

struct doctor_values {
	const char *policy, *preset;
	bool json, no_color, write_policy;
	const char *file; /* the operand: path for the policy; NULL: the default */
};

#define AT(member) offsetof(struct doctor_values, member)
static const struct option_row doctor_options[] = {
	{ "policy", 'p', OPTION_TEXT, "FILE", AT(policy), NULL, "the policy that has to be kept" },
	{ "preset", 0, OPTION_TEXT, "NAME", AT(preset), NULL, "standard or strict" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of a table" },
	{ "write-policy", 0, OPTION_FLAG, NULL, AT(write_policy), NULL,
	  "write the smallest policy that this host can keep to FILE, '-' for standard output; without FILE to "
	  "~/.config/brig/sandbox.yaml" },
	ROW_NO_COLOR,
};

static enum ui_color status_color(const char *status, bool required)
{
	if (str_eq(status, "ok"))
		return UI_GREEN;
	if (str_eq(status, "missing"))
		return required ? UI_RED : UI_YELLOW;
	return UI_DIM;
}

/* The area is shown once, in its first row. */
static void add_row(struct ui_table *table, const json_t *row, char *area, size_t area_size)
{
	char name[128], status[64], detail[8192], this_area[64];

	document_text(row, "area", this_area, sizeof(this_area));
	ui_table_add(table, str_eq(this_area, area) ? "" : this_area, UI_BOLD);
	(void)str_copy(area, area_size, this_area);
	ui_table_add(table, document_text(row, "name", name, sizeof(name)), UI_PLAIN);
	document_text(row, "status", status, sizeof(status));
	ui_table_add(table, status, status_color(status, document_true(row, "required")));
	ui_table_add(table, document_text(row, "detail", detail, sizeof(detail)), UI_PLAIN);
}

/* The fix for a row; "" if nothing needs fixing. */
static const char *fix_of(const json_t *row, char *dst, size_t size)
{
	char status[64];

	*dst = '\0';
	if (str_eq(document_text(row, "status", status, sizeof(status)), "missing"))
		(void)document_text(row, "fix", dst, size);
	return dst;
}

/* Collects the names of all rows from at on that have this fix; false if an earlier row has listed them. */
static bool names_of_fix(const json_t *rows, size_t at, const char *fix, struct buf *names)
{
	char name[128], other[4096];
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (!str_eq(fix_of(row, other, sizeof(other)), fix))
			continue;
		if (i < at)
			return false;
		buf_addf(names, "%s%s%s", names->len ? ", " : "", document_text(row, "name", name, sizeof(name)),
			 document_true(row, "required") ? "" : " (not needed)");
	}
	return true;
}

/* Fixes are sentences and commands, too long for a column.  Each is printed once, with everything that it fixes. */
static void add_fixes(struct buf *out, const json_t *rows, bool has_color)
{
	char fix[4096];
	bool first = true;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		AUTO_BUF names = BUF_INIT(4096);

		if (!*fix_of(row, fix, sizeof(fix)) || !names_of_fix(rows, i, fix, &names))
			continue;
		if (first)
			ui_paint(out, has_color, UI_BOLD, "\nWhat to do\n");
		first = false;
		buf_addf(out, "  %s: %s\n", buf_str(&names), fix);
	}
}

/* A service that answers creates the cells of commands, so it matters besides what this user could do. */
static void add_service(struct buf *out, bool ok)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct service_place place;
	AUTO_FD sock = FD_NONE;

	if (service_is_likely() && service_find(false, &place, &err) == 1 && service_reach(&place, &sock, &err) == 0)
		buf_addf(out,
			 "Commands go through the service at %s, which makes their cells: the rows above are for "
			 "--local.\n",
			 place.path);
	else if (!ok && geteuid() != 0)
		buf_adds(out,
			 "Or have root run 'brig serve' on this machine: your commands then go through it, with every "
			 "protection that root can give.\n");
}

static int doctor_table(const json_t *doc, const struct doctor_values *v, int status)
{
	struct ui_table table = { .n_columns = 4 };
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	bool ok = document_true(doc, "ok");
	bool has_color = ui_has_color(STDOUT_FILENO, v->no_color);
	const json_t *row, *rows = json_object_get(doc, "rows");
	char area[64] = "";
	size_t i;

	json_array_foreach(rows, i, row) add_row(&table, row, area, sizeof(area));
	ui_table_show(&table, has_color, &text);
	ui_table_release(&table);
	add_fixes(&text, rows, has_color);
	buf_adds(&text, "\n");
	ui_paint(&text, has_color, ok ? UI_GREEN : UI_RED,
		 ok ? "This host can keep the policy." : "This host cannot keep the policy.");
	buf_adds(&text, "\n");
	if (!v->policy && !v->preset) /* these are this user's own */
		add_service(&text, ok);
	return ui_finish(&text, status);
}

static int show_host(const json_t *doc, const void *values, int status)
{
	const struct doctor_values *v = values;

	return v->write_policy ? host_policy_write(json_object_get(doc, "rows"), v->file)
			       : doctor_table(doc, v, status);
}

static int ask_host(struct brig *b, const void *values UNUSED, char **ret, struct brig_error *err)
{
	return brig_doctor_json(b, ret, err);
}

static bool check_operands(const struct command *self, const struct doctor_values *v, const struct operands *ops)
{
	struct brig_error err = BRIG_ERROR_INIT;

	if (!v->write_policy)
		return command_no_operands(self, ops);
	if (ops->words.n <= 1 && ops->rest.n == 0)
		return true;
	(void)err_set(&err, BRIG_E_USAGE, 0, "--write-policy takes one file");
	(void)ui_usage(self->name, &err);
	return false;
}

static int doctor_main(const struct command *self, int argc, char **argv)
{
	struct doctor_values v = { 0 };
	struct operands ops = { 0 };
	int status = EXIT_USAGE;

	if (command_begin(self, argc, argv, &v, &ops, &status) && check_operands(self, &v, &ops)) {
		v.file = ops.words.n ? ops.words.item[0] : NULL;
		status = document_view(&(struct document_view){
			.opts = { .size = sizeof(struct brig_open_opts), .policy_file = v.policy, .preset = v.preset },
			.ask = ask_host,
			.show = show_host,
			.values = &v,
			.json = v.json && !v.write_policy,
			.not_ok = EXIT_FAILURE });
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_doctor = {
	.name = "doctor",
	.synopsis = "[OPTIONS] [--write-policy [FILE]]",
	.summary = "show what this host can enforce, and the fix for what it cannot",
	.examples = "  brig doctor\n"
		    "  brig doctor --write-policy     # run without what is missing here, and say so in every result\n",
	.details = "Exit status: 0 if the policy can be kept here, 1 if it cannot.\n",
	.options = doctor_options,
	.n_options = ARRAY_LEN(doctor_options),
	.run = doctor_main,
};
