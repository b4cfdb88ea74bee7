/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simple command: its assignments, its redirections, and the program that finally runs.  The same program may be
 * reached through wrappers, functions, aliases and empty words; all ways end in sh_judge_words().
 */
#include <ctype.h>
#include <string.h>

#include "inspect/shell.h"

#define CALLS_MAX 64

/* --- code for a shell ------------------------------------------------------------------------------------------ */

static void run_text(struct shell *sh, const struct sh_command *cmd, const char *text, size_t len, enum here_use use)
{
	struct sh_stream ignored;
	unsigned depth = sh->j->depth;

	if (use == HERE_SHELL) {
		sh_parse_text(sh, text, len, cmd->span, &ignored);
	} else if (use == HERE_PYTHON || use == HERE_JAVASCRIPT) {
		if (sh->depth >= JUDGE_DEPTH_MAX)
			return;
		sh->j->depth = sh->depth + 1;
		judge_code(sh->j, use == HERE_PYTHON ? INSPECT_PYTHON : INSPECT_JAVASCRIPT, text, len, cmd->span);
		sh->j->depth = depth;
	}
}

void sh_run_stream(struct shell *sh, const struct sh_command *cmd, const struct sh_stream *in, enum here_use use,
		   const char *who)
{
	if (in->flags & STREAM_HERE) {
		struct sh_heredoc *h = &sh->heredocs[in->heredoc];

		h->use = use;
		h->through |= in->flags & ~(unsigned)STREAM_HERE;
		return;
	}
	if (in->flags & STREAM_NETWORK)
		judge_check(sh->j, "download-run", cmd->span, "%s runs what was downloaded", who);
	else if (in->text && *in->text == MARK_HOLE)
		judge_check(sh->j, "dynamic-code", cmd->span, "%s runs text that is known only at run time", who);
	else if (in->text)
		run_text(sh, cmd, in->text, in->len, use);
	else if (!(in->flags & STREAM_DECODED))
		judge_check(sh->j, "dynamic-code", cmd->span, "%s runs what another command prints", who);
	/*
	 * The script does not show what the decoded text does, so this is reported whether or not the text is harmful.
	 */
	if (in->text ? in->flags & STREAM_ENCODED : (in->flags & STREAM_DECODED) && !(in->flags & STREAM_NETWORK))
		judge_check(sh->j, "decoded-run", cmd->span, "%s runs what was decoded", who);
	if (in->text && memchr(in->text, MARK_HOLE, in->len) && use == HERE_SHELL)
		judge_check(sh->j, "partly-dynamic-code", cmd->span, "%s", who);
}

/* True if the first command word of the code is known. */
static bool starts_constant(const struct sh_word *code)
{
	size_t i = 0;

	while (code->s[i] == ' ' || code->s[i] == '\n' || code->s[i] == '\t')
		i++;
	/* name_$i=value: an assignment, of which a part of the name is unknown */
	if (isalpha((unsigned char)code->s[i]) || code->s[i] == '_') {
		size_t end = i;

		while (isalnum((unsigned char)code->s[end]) || code->s[end] == '_' || code->s[end] == MARK_HOLE)
			end++;
		if (code->s[end] == '=')
			return true;
	}
	for (; code->s[i] && code->s[i] != ' ' && code->s[i] != '\n' && code->s[i] != '='; i++)
		if (code->s[i] == MARK_HOLE)
			return false;
	return true;
}

/*
 * True if only the output of a tool meant for eval is unknown, or only parameters of a function that is being defined,
 * whose calls are judged with their arguments.
 */
static bool is_handed_over(const struct shell *sh, const struct sh_word *code)
{
	if (code->flags & ORIGIN_SETTINGS)
		return !(code->flags & (ORIGIN_FETCHED | ORIGIN_UNSET | ORIGIN_PARAMETER));
	return sh->function_name && (code->flags & ORIGIN_PARAMETER) &&
	       !(code->flags & ORIGINS & ~(uint32_t)(ORIGIN_PARAMETER | ORIGIN_VARIABLE | ORIGIN_OWN));
}

void sh_run_word(struct shell *sh, const struct sh_command *cmd, const struct sh_word *code, const char *who)
{
	if (code->flags & WORD_DYNAMIC)
		judge_check(sh->j,
			    starts_constant(code)      ? "partly-dynamic-code"
			    : is_handed_over(sh, code) ? "parameter-code"
						       : "dynamic-code",
			    cmd->span, "%s runs text that is known only at run time", who);
	else if (code->flags & ORIGIN_ENCODED)
		judge_check(sh->j, "decoded-run", cmd->span, "%s runs what was decoded", who);
	run_text(sh, cmd, code->s, code->len, HERE_SHELL);
}

void sh_run_download(struct shell *sh, const struct sh_command *cmd, const struct sh_word *file, enum here_use use)
{
	const struct sh_file *f;
	struct sh_stream s;

	if (file->flags & WORD_DYNAMIC)
		return;
	if (strncmp(file->s, "/dev/tcp/", 9) == 0 || strstr(file->s, "://"))
		judge_check(sh->j, "download-run", cmd->span, "%s", file->s);
	if (sh_names_stdin(file) && !sh_is(file, "-")) {
		sh_run_input(sh, cmd, use, file->s);
		return;
	}
	f = sh_file_find(sh, file->s);
	if (f && (f->flags & STREAM_INPUT) && sh->j->has_input)
		judge_check(sh->j, "stdin-code", cmd->span, "%s was written from it", file->s);
	/* for <(command) the command's output is the script, known or not */
	if (f && (f->text || (f->flags & (STREAM_NETWORK | STREAM_DECODED)) ||
		  strncmp(file->s, SH_PROCESS, strlen(SH_PROCESS)) == 0)) {
		s = (struct sh_stream){ .text = f->text,
					.len = f->len,
					.flags = f->flags & (STREAM_NETWORK | STREAM_DECODED | STREAM_ENCODED) };
		sh_run_stream(sh, cmd, &s, use, file->s);
	}
}

void sh_run_file(struct shell *sh, const struct sh_command *cmd, const struct sh_word *file)
{
	sh_run_download(sh, cmd, file, HERE_SHELL);
}

/* --- assignments and redirections ------------------------------------------------------------------------------ */

static void assign_value(struct shell *sh, const struct sh_assign *a)
{
	struct sh_value v = { .s = a->value.s,
			      .len = a->value.len,
			      .origins = a->value.flags & ORIGINS,
			      .array = a->array,
			      .ref = a->ref };
	struct sh_value old;
	struct sh_buf text = { 0 };

	if ((a->append || a->subscript) && sh_var_value(sh, a->name.s, a->name.len, &old)) {
		sh_add(sh, &text, old.s, old.len);
		if (a->subscript && old.len && old.s[old.len - 1] != MARK_SPLIT)
			sh_addc(sh, &text, MARK_SPLIT);
		sh_add(sh, &text, v.s, v.len);
		v = (struct sh_value){ .s = text.p ? text.p : "",
				       .len = (uint32_t)text.len,
				       .origins = v.origins | old.origins,
				       .array = a->array || old.array || a->subscript };
	}
	sh_var_set(sh, a->name.s, a->name.len, v, !sh->conditional || a->append);
}

static bool runs_its_value(const char *name)
{
	static const char *const names[] = {
		"PROMPT_COMMAND", "GIT_SSH_COMMAND", "GIT_PAGER",           "PAGER",     "EDITOR",
		"VISUAL",         "GIT_EDITOR",      "GIT_EXTERNAL_DIFF",   "LESSOPEN",  "LESSCLOSE",
		"MANPAGER",       "BROWSER",         "GIT_PROXY_COMMAND",   "RSYNC_RSH", "GIT_ASKPASS",
		"SSH_ASKPASS",    "SUDO_ASKPASS",    "GIT_SEQUENCE_EDITOR", "PERL5DB",   "FCEDIT"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void judge_assigns(struct shell *sh, const struct sh_command *cmd, bool keep)
{
	for (size_t i = 0; i < cmd->n_assign && !sh->stop; i++) {
		const struct sh_assign *a = &cmd->assign[i];

		sh_match_assign(sh, a->name.s, &a->value, cmd->span);
		/* Arithmetic evaluates a[$(x)] again; prompts expand their text. */
		if (strstr(a->value.s, "[$(") || strstr(a->value.s, "[`") || strncmp(a->name.s, "PS", 2) == 0)
			sh_expand_again(sh, a->value.s, a->value.len, cmd->span);
		if (runs_its_value(a->name.s) && !(a->value.flags & WORD_DYNAMIC))
			sh_run_word(sh, cmd, &a->value, a->name.s);
		if (keep)
			assign_value(sh, a);
	}
}

static void connect_input(struct shell *sh, struct sh_command *cmd)
{
	for (size_t i = 0; i < cmd->n_redirect; i++) {
		const struct sh_redirect *r = &cmd->redirect[i];
		const struct sh_file *f;

		if (r->kind == REDIRECT_HERE && r->heredoc >= 0) {
			cmd->in = (struct sh_stream){ .flags = STREAM_HERE, .heredoc = r->heredoc };
		} else if (r->kind == REDIRECT_STRING) {
			cmd->in =
				(struct sh_stream){ .text = r->target.s, .len = r->target.len, .flags = STREAM_GIVEN };
			cmd->in.flags |= r->target.flags & ORIGIN_ENCODED ? STREAM_ENCODED : 0u;
		} else if (r->kind == REDIRECT_READ || r->kind == REDIRECT_BOTH) {
			if (sh_names_stdin(&r->target) && !sh_is(&r->target, "-"))
				continue; /* /dev/stdin: the same input as before */
			f = sh_file_find(sh, r->target.s);
			cmd->in = (struct sh_stream){ .flags = STREAM_GIVEN | STREAM_UNKNOWN };
			if (f)
				cmd->in = (struct sh_stream){ .text = f->text,
							      .len = f->len,
							      .flags = f->flags | STREAM_GIVEN };
		} else {
			continue;
		}
		cmd->piped_in = true;
	}
}

/* Output that is redirected to a file is stored as the file's contents and not passed on. */
static void divert_output(struct shell *sh, const struct sh_command *cmd, struct sh_stream *out)
{
	for (size_t i = 0; i < cmd->n_redirect; i++) {
		const struct sh_redirect *r = &cmd->redirect[i];

		if (r->kind != REDIRECT_WRITE || (r->fd >= 0 && r->fd != 1) ||
		    strncmp(r->target.s, "/dev/std", 8) == 0 || strncmp(r->target.s, "/dev/fd/", 8) == 0 ||
		    (r->target.flags & WORD_DYNAMIC))
			continue;
		if ((out->flags & STREAM_PRIVATE) &&
		    (strncmp(r->target.s, "/dev/tcp/", 9) == 0 || strncmp(r->target.s, "/dev/udp/", 9) == 0))
			judge_check(sh->j, "send-away", cmd->span, "%s", r->target.s);
		if (out->flags & STREAM_HERE)
			sh->heredocs[out->heredoc].file = r->target.s;
		else
			sh_file_set(sh, r->target.s, out);
		*out = (struct sh_stream){ .text = "" };
	}
}

/* --- the program ----------------------------------------------------------------------------------------------- */

static void add_spawn(struct shell *sh, const struct sh_command *cmd, const char *to)
{
	const char *from = sh->function_name ? sh->function_name : "$0";

	if (sh->n_spawns == SH_SPAWNS_MAX)
		return;
	sh->spawn[sh->n_spawns].from = from;
	sh->spawn[sh->n_spawns].to = to;
	sh->spawn[sh->n_spawns].where = cmd->span;
	sh->n_spawns++;
}

/* Records a function that starts itself in the background, or into its own pipe: its processes multiply without end. */
static void note_spawn(struct shell *sh, const struct sh_command *cmd, const struct sh_word *w, struct sh_stream *out)
{
	bool self = sh->function_name && sh->function_len == w->len && memcmp(sh->function_name, w->s, w->len) == 0;

	if (!self && !sh_function_find(sh, w->s, w->len) && !sh_is(w, "$0"))
		return;
	out->flags |= STREAM_FUNCTION;
	if (cmd->background || (cmd->piped_in && (cmd->in.flags & STREAM_FUNCTION)))
		add_spawn(sh, cmd, w->s);
}

static void call_alias(struct shell *sh, const struct sh_command *cmd, struct sh_function *f,
		       const struct sh_word *words, size_t n, struct sh_stream *out)
{
	struct sh_buf text = { 0 };

	sh_add(sh, &text, f->body, f->body_len);
	for (size_t i = 1; i < n; i++) {
		bool quote = !(words[i].flags & (WORD_DYNAMIC | WORD_GLOB)) && !strchr(words[i].s, '\'');

		sh_addc(sh, &text, ' ');
		sh_add(sh, &text, "'", quote);
		sh_add(sh, &text, words[i].s, words[i].len);
		sh_add(sh, &text, "'", quote);
	}
	f->running = true;
	sh_parse_text(sh, text.p ? text.p : "", text.len, cmd->span, out);
	f->running = false;
}

static void call_function(struct shell *sh, const struct sh_command *cmd, struct sh_function *f,
			  const struct sh_word *words, size_t n, struct sh_stream *out)
{
	struct sh_text t = { .s = f->body,
			     .len = f->body_len,
			     .offset = f->offset,
			     .mapped = f->mapped,
			     .host = cmd->span,
			     .here_first = -1,
			     .here_last = -1 };
	struct sh_words *outer = sh->parameters;
	struct sh_words mine = { 0 };
	bool used = sh->used_parameter;

	for (size_t i = 1; i < n; i++)
		sh_push(sh, &mine, words[i].s, words[i].len, words[i].flags);
	f->running = true;
	sh->calls++;
	sh->depth++;
	sh->parameters = &mine;
	sh_parse(sh, &t, '\0', out);
	sh->parameters = outer;
	sh->used_parameter = used;
	sh->depth--;
	f->running = false;
}

/* True: the name is a function or alias of the script, and no program need be judged. */
static bool call_own(struct shell *sh, const struct sh_command *cmd, const struct sh_word *words, size_t n,
		     struct sh_stream *out)
{
	struct sh_function *f = sh_function_find(sh, words[0].s, words[0].len);

	if (!f)
		return false;
	if (f->running || sh->calls >= CALLS_MAX || sh->depth + 1 >= SH_DEPTH_MAX)
		return f->firm && !f->alias;
	if (f->alias) {
		sh->calls++;
		call_alias(sh, cmd, f, words, n, out);
		return true;
	}
	call_function(sh, cmd, f, words, n, out);
	return f->firm;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool is_strict(const struct shell *sh)
{
	return sh->j->strict_commands || sh->j->level == INSPECTION_STRICT;
}

/* The allow-list: a program that is in no list is reported with the rule of the list. */
static void judge_strict(struct shell *sh, const struct sh_command *cmd, const char *program,
			 const struct sh_word *words, size_t n)
{
	size_t at = 0;
	const struct rule *list = rules_next(sh->j->rules, RULE_SHELL, RULE_COMMAND_ALLOW, &at), *allowed;

	if (!is_strict(sh))
		return;
	allowed = rules_find(sh->j->rules, RULE_SHELL, RULE_COMMAND_ALLOW, program, strlen(program));
	if (list && (!allowed || allowed->severity[sh->j->level] == SEVERITY_NONE) &&
	    !(sh->j->allowed_commands && setting_list_has(sh->j->allowed_commands, program)))
		judge_report(sh->j, list, program, cmd->span);
	for (size_t i = 0; i < n && sh->j->strict_commands; i++)
		if (words[i].flags & WORD_DYNAMIC) {
			judge_check(sh->j, "strict-dynamic", cmd->span, "%s", program);
			return;
		}
}

/* Judges the operands of any program that opens files by the rules for paths. */
static void judge_files(struct shell *sh, const struct sh_call *call)
{
	const struct sh_word *w;

	for (size_t i = 0; sh_opens_operands(call->program) && i < 64 && (w = sh_operand(call, i)) != NULL; i++)
		if (!(w->flags & WORD_DYNAMIC) && !strchr(w->s, ' ') && !strstr(w->s, "://") &&
		    strncmp(w->s, "/dev/", 5) != 0 && judge_looks_like_path(w->s, w->len) &&
		    !(sh_path_classes(sh, w) & PATH_STARTUP)) /* writers are covered by a rule for commands */
			judge_path(sh->j, w->s, w->len, call->cmd->span);
}

static struct sh_word without_holes(struct shell *sh, const struct sh_word *w)
{
	struct sh_buf text = { 0 };

	for (size_t i = 0; i < w->len; i++)
		if (w->s[i] != MARK_HOLE)
			sh_addc(sh, &text, w->s[i]);
	return (struct sh_word){ .s = text.p ? text.p : "", .len = (uint32_t)text.len };
}

/* Reports an unknown command word, then judges the command as if the unknown part were empty. */
static void judge_dynamic(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n,
			  unsigned level, struct sh_stream *out)
{
	struct sh_call call = { .program = "$", .words = words, .n = n, .cmd = cmd };
	struct sh_words rest = { 0 };
	struct sh_word bare = without_holes(sh, &words[0]);

	judge_check(sh->j, sh->j->strict_commands ? "strict-dynamic" : "dynamic-command", cmd->span,
		    "the program's name");
	/* In "$folder"/run the program's own name is known. */
	if ((words[0].flags & ORIGIN_FETCHED) && strchr(base_name(words[0].s), MARK_HOLE))
		judge_check(sh->j, "fetched-command", cmd->span, "the program's name");
	(void)sh_match_rules(sh, &call);
	if (bare.len && strcmp(bare.s, "/") != 0)
		sh_push(sh, &rest, bare.s, bare.len, 0);
	for (size_t i = 1; i < n; i++)
		sh_push(sh, &rest, words[i].s, words[i].len, words[i].flags);
	if (rest.n)
		sh_judge_words(sh, cmd, rest.row, rest.n, level + 1, out);
	*out = (struct sh_stream){ .flags = STREAM_UNKNOWN };
}

/* Reports the output of a shell, or the environment, as input or argument of a network program. */
static void judge_sending(struct shell *sh, const struct sh_call *call)
{
	static const char *const senders[] = { "nc",  "ncat", "netcat",   "socat", "telnet", "curl", "wget",
					       "ssh", "mail", "sendmail", "http",  "https",  "ftp",  "openssl" };
	bool private = (call->cmd->in.flags & STREAM_PRIVATE) != 0;

	for (size_t i = 1; i < call->n; i++)
	private |= (call->words[i].flags & ORIGIN_PRIVATE) != 0;
	for (size_t i = 0; private && i < ARRAY_LEN(senders); i++)
		if (strcmp(senders[i], call->program) == 0 &&
		    (strcmp(call->program, "openssl") != 0 || (call->n > 1 && sh_is(&call->words[1], "s_client"))))
			judge_check(sh->j, "send-away", call->cmd->span, "%s", call->program);
}

static void judge_program(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n,
			  unsigned level, struct sh_stream *out)
{
	struct sh_call call = { .program = base_name(words[0].s), .words = words, .n = n, .cmd = cmd };
	bool tells = sh_only_tells(&call);

	judge_strict(sh, cmd, call.program, words, n);
	judge_sending(sh, &call);
	/* sh $0 & */
	if (cmd->background && n > 1 && sh_is(&words[n - 1], "$0"))
		add_spawn(sh, cmd, "$0");
	if (!(tells && !cmd->n_redirect && !is_strict(sh)) && sh_match_rules(sh, &call) < SEVERITY_CRITICAL)
		judge_files(sh, &call);
	sh_builtin(sh, cmd, call.program, words, n);
	if (!tells)
		sh_stdin(sh, cmd, &call);
	if (sh_unwrap(sh, cmd, words, n, level, out))
		return;
	if (!tells)
		sh_inline(sh, cmd, call.program, words, n, level);
	if (strchr(words[0].s, '/'))
		sh_run_file(sh, cmd, &words[0]);
	sh_output(sh, cmd, call.program, words, n, out);
}

/* A relative path with a folder and without "..". */
static bool is_own_file(const struct sh_word *w)
{
	return w->s[0] != '/' && w->s[0] != '~' && strchr(w->s, '/') && !strstr(w->s, "..");
}

void sh_judge_words(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n, unsigned level,
		    struct sh_stream *out)
{
	*out = (struct sh_stream){ .flags = STREAM_UNKNOWN };
	if (!n || !sh_step(sh))
		return;
	if (level > SH_WRAP_MAX) {
		judge_check(sh->j, "too-deep", cmd->span, "too many wrappers around a command");
		return;
	}
	if (words[0].flags & WORD_DYNAMIC) {
		judge_dynamic(sh, cmd, words, n, level, out);
		return;
	}
	if (!words[0].len) {
		sh_judge_words(sh, cmd, words + 1, n - 1, level + 1, out);
		return;
	}
	if (words[0].flags & ORIGIN_ENCODED)
		judge_check(sh->j, "decoded-run", cmd->span, "the program's name");
	if ((words[0].flags & WORD_GLOB) && !sh_is(&words[0], "["))
		judge_check(sh->j, is_own_file(&words[0]) ? "globbed-own-command" : "globbed-command", cmd->span, "%s",
			    words[0].s);
	if (level == 0) {
		note_spawn(sh, cmd, &words[0], out);
		if (call_own(sh, cmd, words, n, out)) {
			out->flags |= STREAM_FUNCTION;
			return;
		}
	}
	judge_program(sh, cmd, words, n, level, out);
	if (sh_is(&words[0], "$0"))
		out->flags |= STREAM_FUNCTION;
}

void sh_command(struct shell *sh, struct sh_command *cmd, struct sh_stream *out)
{
	bool declares = cmd->n_assign && cmd->words.n;
	struct sh_call call = { .program = "", .n = 0, .cmd = cmd };

	connect_input(sh, cmd);
	if (cmd->words.n)
		declares = sh_is(&cmd->words.row[0], "declare") || sh_is(&cmd->words.row[0], "typeset") ||
			   sh_is(&cmd->words.row[0], "local") || sh_is(&cmd->words.row[0], "export") ||
			   sh_is(&cmd->words.row[0], "readonly");
	for (size_t i = 1; declares && i < cmd->words.n; i++)
		if (cmd->words.row[i].s[0] == '-' && strchr(cmd->words.row[i].s, 'n'))
			for (size_t k = 0; k < cmd->n_assign; k++)
				cmd->assign[k].ref = true;
	judge_assigns(sh, cmd, !cmd->words.n || declares);
	if (cmd->words.n) {
		sh_judge_words(sh, cmd, cmd->words.row, cmd->words.n, 0, out);
	} else if (cmd->n_redirect) {
		(void)sh_match_rules(sh, &call);
		if (sh->wants_input && (cmd->in.flags || cmd->in.text))
			sh_run_stream(sh, cmd, &cmd->in, HERE_SHELL, "a shell in the group");
		if (!out->text && !out->flags)
			out->text = "";
	} else if (!out->flags) {
		out->text = "";
	}
	divert_output(sh, cmd, out);
}
