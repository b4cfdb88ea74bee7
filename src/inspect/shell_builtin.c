/* SPDX-License-Identifier: Apache-2.0 */
/* Builtins that change the meaning of later words, run a word as code, or evaluate a word a second time. */
#include <string.h>

#include "inspect/shell.h"

static struct sh_word join_from(struct shell *sh, const struct sh_word *words, size_t from, size_t n)
{
	struct sh_buf text = { 0 };
	uint32_t flags = 0;

	for (size_t i = from; i < n; i++) {
		sh_add(sh, &text, " ", i > from);
		sh_add(sh, &text, words[i].s, words[i].len);
		flags |= words[i].flags & (WORD_DYNAMIC | ORIGINS);
	}
	return (struct sh_word){ .s = text.p ? text.p : "", .len = (uint32_t)text.len, .flags = flags };
}

/*
 * Judges the code of eval.  Code that comes from a variable is hidden: a HIGH finding in it is reported as
 * evaluated-harm, too.
 */
static void run_evaluated(struct shell *sh, struct sh_command *cmd, const struct sh_word *code)
{
	size_t seen = sh->j->out->n;

	sh_run_word(sh, cmd, code, "eval");
	if (!(code->flags & ORIGIN_VARIABLE) || (code->flags & WORD_DYNAMIC))
		return;
	for (size_t i = seen; i < sh->j->out->n; i++)
		if (sh->j->out->row[i].severity == SEVERITY_HIGH && strncmp(sh->j->out->row[i].rule, "sh-", 3) == 0) {
			judge_check(sh->j, "evaluated-harm", cmd->span, "eval");
			return;
		}
}

static void do_eval(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	size_t from = n > 1 && sh_is(&words[1], "--") ? 2 : 1;
	struct sh_word code = join_from(sh, words, from, n);

	if (code.len)
		run_evaluated(sh, cmd, &code);
}

static void do_source(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	if (n < 2)
		return;
	if (words[1].flags & WORD_DYNAMIC)
		judge_check(sh->j, "dynamic-source", cmd->span, "the file's name");
	sh_run_file(sh, cmd, &words[1]);
}

static void do_trap(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	for (size_t i = 1; i + 1 < n; i++) {
		if (words[i].s[0] == '-' && words[i].len > 0)
			continue;
		/*
		 * The variable's value at the time of the trap is unknown: reports the milder check, unless the value
		 * was fetched.
		 */
		if (words[i].s[0] == MARK_HOLE && !(words[i].flags & ORIGIN_FETCHED))
			judge_check(sh->j, "parameter-code", cmd->span, "trap");
		else
			sh_run_word(sh, cmd, &words[i], "trap");
		return;
	}
}

static void do_alias(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		const char *eq = strchr(words[i].s, '=');
		struct sh_function *f;
		struct sh_word value;

		if (!eq)
			continue;
		value = (struct sh_word){ .s = eq + 1,
					  .len = (uint32_t)strlen(eq + 1),
					  .flags = words[i].flags & WORD_DYNAMIC };
		sh_run_word(sh, cmd, &value, "alias");
		f = sh_alloc(sh, sizeof(*f));
		if (!f)
			return;
		f->len = (uint32_t)(eq - words[i].s);
		f->name = sh_copy(sh, words[i].s, f->len);
		f->body = value.s;
		f->body_len = value.len;
		f->alias = true;
		sh_function_add(sh, f);
	}
}

/* set -- a b c; shift */
static void do_set(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_words *mine;
	size_t i = 1;

	(void)cmd;
	while (i < n && (words[i].s[0] == '-' || words[i].s[0] == '+') && !sh_is(&words[i], "--"))
		i += sh_is(&words[i], "-o") || sh_is(&words[i], "+o") ? 2 : 1;
	if (i >= n)
		return;
	i += sh_is(&words[i], "--");
	mine = sh_alloc(sh, sizeof(*mine));
	for (; mine && i < n; i++)
		sh_push(sh, mine, words[i].s, words[i].len, words[i].flags);
	if (mine)
		sh->parameters = mine;
}

static void do_shift(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	size_t by = n > 1 ? (size_t)strtoul(words[1].s, NULL, 10) : 1;
	struct sh_words *mine;

	(void)cmd;
	if (!sh->parameters || by > sh->parameters->n || sh->conditional)
		return;
	mine = sh_alloc(sh, sizeof(*mine));
	for (size_t i = by; mine && i < sh->parameters->n; i++)
		sh_push(sh, mine, sh->parameters->row[i].s, sh->parameters->row[i].len, sh->parameters->row[i].flags);
	if (mine)
		sh->parameters = mine;
}

/* The name argument of these builtins may be a[$(command)], which runs the command. */
static void evaluates_again(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (strchr(words[i].s, '['))
			sh_expand_again(sh, words[i].s, words[i].len, cmd->span);
}

static void forget(struct shell *sh, const struct sh_word *name, const struct sh_stream *in)
{
	uint32_t origins = ORIGIN_OUTPUT | (in ? sh_origins(in) : 0u);

	sh_var_set(sh, name->s, name->len, (struct sh_value){ .s = "\001", .len = 1, .origins = origins }, true);
}

/* read x <<< text: the first name gets the text if the text is known and there is no other name. */
static void do_read(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	size_t names = 0, last = 0;

	evaluates_again(sh, cmd, words, n);
	for (size_t i = 1; i < n; i++)
		if (words[i].s[0] != '-') {
			forget(sh, &words[i], &cmd->in);
			names++;
			last = i;
		}
	if (names == 1 && cmd->in.text) {
		size_t len = cmd->in.len;

		while (len && cmd->in.text[len - 1] == '\n')
			len--;
		sh_var_set(sh, words[last].s, words[last].len,
			   (struct sh_value){ .s = sh_copy(sh, cmd->in.text, len), .len = (uint32_t)len }, true);
	}
}

/* printf -v name format ... */
static void do_printf(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_stream out = { 0 };
	struct sh_words rest = { 0 };

	if (n < 4 || !sh_is(&words[1], "-v"))
		return;
	evaluates_again(sh, cmd, words, 3);
	sh_push(sh, &rest, "printf", 6, 0);
	for (size_t i = 3; i < n; i++)
		sh_push(sh, &rest, words[i].s, words[i].len, words[i].flags);
	sh_output(sh, cmd, "printf", rest.row, rest.n, &out);
	if (out.text)
		sh_var_set(sh, words[2].s, words[2].len, (struct sh_value){ .s = out.text, .len = (uint32_t)out.len },
			   true);
	else
		forget(sh, &words[2], NULL);
}

static void do_unset(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	evaluates_again(sh, cmd, words, n);
	for (size_t i = 1; i < n; i++) {
		struct sh_function *f = sh_function_find(sh, words[i].s, words[i].len);

		if (f)
			f->firm = false;
	}
}

/* mapfile name: the array gets the lines of the input. */
static void fill_array(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_buf text = { 0 };

	if (!cmd->in.text || n < 2)
		return;
	for (size_t i = 0; i < cmd->in.len; i++)
		sh_addc(sh, &text, cmd->in.text[i] == '\n' ? MARK_SPLIT : cmd->in.text[i]);
	sh_addc(sh, &text, MARK_SPLIT);
	sh_var_set(sh, words[n - 1].s, words[n - 1].len,
		   (struct sh_value){ .s = text.p ? text.p : "", .len = (uint32_t)text.len, .array = true }, true);
}

/* mapfile -C callback; complete -C / -F; bind -x; enable -f: all run or load code. */
static void do_callback(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_call call = { .program = "", .words = words, .n = n, .cmd = cmd };
	struct sh_word code;

	evaluates_again(sh, cmd, words, n);
	fill_array(sh, cmd, words, n);
	if (sh_has_option(&call, "-C", &code) || sh_has_option(&call, "-x", &code)) {
		const char *colon = strchr(code.s, ':');

		if (colon)
			code = (struct sh_word){ .s = colon + 1,
						 .len = (uint32_t)strlen(colon + 1),
						 .flags = code.flags };
		sh_run_word(sh, cmd, &code, sh_is(&words[0], "bind") ? "bind" : "a callback");
	}
}

/* cp and mv copy the known contents of the file; downloads mark the file that they write. */
static void do_copy(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_call call = { .program = "", .words = words, .n = n, .cmd = cmd };
	const struct sh_word *from = sh_operand(&call, 0), *to = sh_operand(&call, 1);
	const struct sh_file *f = from ? sh_file_find(sh, from->s) : NULL;
	struct sh_stream s;

	if (!f || !to)
		return;
	s = (struct sh_stream){ .text = f->text, .len = f->len, .flags = f->flags };
	sh_file_set(sh, to->s, &s);
}

static void do_tee(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_call call = { .program = "tee", .words = words, .n = n, .cmd = cmd };
	const struct sh_word *to;

	for (size_t i = 0; (to = sh_operand(&call, i)) != NULL; i++)
		if (cmd->in.flags & STREAM_HERE)
			sh->heredocs[cmd->in.heredoc].file = to->s;
		else if (sh_reads_caller(cmd))
			sh_file_set(sh, to->s, &(struct sh_stream){ .flags = STREAM_INPUT | STREAM_UNKNOWN });
		else
			sh_file_set(sh, to->s, &cmd->in);
}

/* cd: relative names refer to another folder from here on. */
static void do_cd(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	struct sh_call call = { .program = "cd", .words = words, .n = n, .cmd = cmd };
	const struct sh_word *to = sh_operand(&call, 0);
	struct sh_buf path = { 0 };

	if (!to) {
		sh->cwd = "~";
	} else if ((to->flags & WORD_DYNAMIC) || sh_is(to, "-")) {
		sh->cwd = NULL;
		sh->lost = true;
	} else if (to->s[0] == '/' || to->s[0] == '~') {
		sh->cwd = to->s;
	} else if (!sh->lost || sh->cwd) {
		sh_add(sh, &path, sh->cwd ? sh->cwd : sh_workspace(sh), strlen(sh->cwd ? sh->cwd : sh_workspace(sh)));
		sh_addc(sh, &path, '/');
		sh_add(sh, &path, to->s, to->len);
		sh->cwd = path.len < 256 ? path.p : NULL;
		sh->lost |= !sh->cwd;
	}
}

static void do_popd(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	(void)cmd;
	(void)words;
	(void)n;
	sh->cwd = NULL;
	sh->lost = true;
}

static const char *last_part(const char *url)
{
	const char *slash = strrchr(url, '/');

	return slash ? slash + 1 : url;
}

static void do_download(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n)
{
	static const char *const outputs[] = { "-o", "-O", "--output", "--output-document", "--out" };
	struct sh_call call = { .program = "", .words = words, .n = n, .cmd = cmd };
	struct sh_stream s = { .flags = STREAM_NETWORK | STREAM_UNKNOWN };
	struct sh_word file;

	for (size_t i = 0; i < ARRAY_LEN(outputs); i++)
		if (sh_has_option(&call, outputs[i], &file) && file.len && file.s[0] != '-')
			sh_file_set(sh, file.s, &s);
	for (size_t i = 1; i < n; i++)
		if (strchr(words[i].s, '/') && words[i].s[0] != '-')
			sh_file_set(sh, last_part(words[i].s), &s);
}

static const struct {
	const char *name;
	void (*act)(struct shell *, struct sh_command *, const struct sh_word *, size_t);
} builtins[] = {
	{ ".", do_source },
	{ "source", do_source },
	{ "eval", do_eval },
	{ "trap", do_trap },
	{ "alias", do_alias },
	{ "set", do_set },
	{ "shift", do_shift },
	{ "read", do_read },
	{ "let", evaluates_again },
	{ "test", evaluates_again },
	{ "[", evaluates_again },
	{ "declare", evaluates_again },
	{ "typeset", evaluates_again },
	{ "local", evaluates_again },
	{ "export", evaluates_again },
	{ "readonly", evaluates_again },
	{ "getopts", evaluates_again },
	{ "wait", evaluates_again },
	{ "unset", do_unset },
	{ "printf", do_printf },
	{ "mapfile", do_callback },
	{ "readarray", do_callback },
	{ "complete", do_callback },
	{ "compgen", do_callback },
	{ "bind", do_callback },
	{ "cp", do_copy },
	{ "mv", do_copy },
	{ "ln", do_copy },
	{ "install", do_copy },
	{ "tee", do_tee },
	{ "curl", do_download },
	{ "wget", do_download },
	{ "wget2", do_download },
	{ "fetch", do_download },
	{ "aria2c", do_download },
	{ "scp", do_download },
	{ "axel", do_download },
	{ "cd", do_cd },
	{ "pushd", do_cd },
	{ "popd", do_popd },
};

void sh_builtin(struct shell *sh, struct sh_command *cmd, const char *program, const struct sh_word *words, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		if (strcmp(builtins[i].name, program) == 0) {
			builtins[i].act(sh, cmd, words, n);
			return;
		}
}
