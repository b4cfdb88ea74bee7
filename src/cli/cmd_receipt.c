/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_receipt.c - `brig receipt verify`: explains what a receipt proves; needs no state, no policy, no network. */
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/document.h"

#define RECEIPT_READ_MAX (1 * MiB + 1) /* one byte more than permitted, so that the library refuses it */

struct receipt_values {
	const char *key;
	bool json;
};

#define AT(member) offsetof(struct receipt_values, member)
static const struct option_row receipt_options[] = {
	{ "key", 'k', OPTION_TEXT, "PUBLIC", AT(key), NULL,
	  "the host's public key, as 'brig key show' prints it there; without it the receipt's own is used, which "
	  "proves less" },
	{ "json", 'j', OPTION_FLAG, NULL, AT(json), NULL, "print the document instead of words" },
};

static int read_receipt(const char *path, struct buf *ret, struct brig_error *err)
{
	AUTO_FD fd = request_open(str_eq(path, "-") ? "/dev/stdin" : path, FILE_STREAMS, err);
	char piece[16384];
	ssize_t n;

	if (fd < 0)
		return fd_move(&fd);
	do {
		n = fd_read_all(fd, piece, sizeof(piece));
		if (n < 0)
			return err_set(err, BRIG_E_USAGE, (int)-n, "cannot read '%.200s'", path);
		buf_add(ret, piece, (size_t)n);
	} while ((size_t)n == sizeof(piece) && !ret->full);
	return ret->no_memory ? err_nomem(err) : 0;
}

static void add_sentences(const json_t *list, const char *title, struct buf *text)
{
	const json_t *sentence;
	size_t i;

	if (json_array_size(list) == 0)
		return;
	buf_addf(text, "%s\n", title);
	json_array_foreach(list, i, sentence)
	{
		buf_adds(text, "  - ");
		ui_line(json_string_value(sentence), text); /* receipts are untrusted */
		buf_adds(text, "\n");
	}
}

static int verify_words(const json_t *doc, const void *values, int status)
{
	const char *name = values;
	AUTO_BUF text = BUF_INIT(UI_TEXT_MAX);
	char problem[512];

	if (status == EXIT_SUCCESS)
		buf_addf(&text, "%s: the signature holds\n", name);
	else
		buf_addf(&text, "%s: NOT VALID: %s\n", name, document_text(doc, "problem", problem, sizeof(problem)));
	add_sentences(json_object_get(doc, "proven"), "Proven:", &text);
	add_sentences(json_object_get(doc, "not_proven"), "Not proven:", &text);
	return ui_finish(&text, status);
}

static int verify_receipt(const struct command *self, const struct receipt_values *v, const char *path)
{
	AUTO_BUF text = BUF_INIT(RECEIPT_READ_MAX);
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_TEXT json = NULL;
	int rc = read_receipt(path, &text, &err);

	if (rc == 0)
		rc = brig_receipt_verify(buf_str(&text), text.len, v->key, &json, &err);
	if (rc < 0 && err.code == BRIG_E_USAGE)
		return ui_usage(self->name, &err);
	if (rc < 0)
		return ui_fail(&err);
	return document_show(&(struct document_view){ .show = verify_words, .values = path, .json = v->json }, json,
			     rc);
}

static int receipt_main(const struct command *self, int argc, char **argv)
{
	struct receipt_values v = { 0 };
	struct operands ops = { 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	int status;

	if (command_begin(self, argc, argv, &v, &ops, &status)) {
		if (ops.words.n == 1 && ops.rest.n == 0) {
			status = verify_receipt(self, &v, ops.words.item[0]);
		} else {
			(void)err_set(&err, BRIG_E_USAGE, 0,
				      "give the one file with the receipt, or '-' for standard input");
			status = ui_usage(self->name, &err);
		}
	}
	options_release(self, &v, &ops);
	return status;
}

const struct command command_receipt_verify = {
	.name = "receipt verify",
	.synopsis = "[OPTIONS] FILE",
	.summary = "check a receipt of 'brig run --receipt', offline, and say what it proves",
	.examples = "  brig run --receipt r.json hello.py && brig receipt verify r.json\n",
	.details = "Exit status: 0 the receipt holds, 1 it does not.\n",
	.options = receipt_options,
	.n_options = ARRAY_LEN(receipt_options),
	.run = receipt_main,
};
