/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of the shell inspector.  Other folders call judge.h.
 *
 * Theory of operation.  One pass over the text finds every simple command that a POSIX shell or bash would run,
 * wherever it hides (shell_parse.c), and evaluates its words as far as they are constant (shell_expand.c,
 * shell_param.c).  A word is text in which some bytes are marks: a hole for an unknown part, active globs, field
 * boundaries.  Each command is stripped of wrappers (shell_wrap.c), compared with the rules (shell_pattern.c), and
 * folded to the output it would print, if that is constant (shell_stream.c), so that `echo ... | base64 -d | sh` is
 * judged as the code that it runs. A construct that is not understood is reported (check "shell-syntax"), never
 * skipped.
 *
 * The pattern language of RULE_COMMAND names, one pattern per name:
 *
 *	PROGRAM TERM...          all terms must hold
 *	PROGRAM                  base names joined by "|", with globs: "mkfs|mkfs.*"; "*" is every program that opens
 *	                         its operands (echo, test and the like do not)
 *	NAME=GLOB                instead of all that: an assignment to a variable: "LD_PRELOAD=*"
 *
 *	TERM is one or more of these joined by "|"; "!" in front negates the whole term
 *	-x                       a short option, also inside -axb
 *	-word  --word            an option spelled so; --word also abbreviated and with =value
 *	-x=VALUE  --word=VALUE   an option whose value, attached or next word, matches
 *	VALUE                    some operand matches;   ^VALUE  the first one;   $VALUE  the last one
 *	>VALUE  <VALUE           written or read by a redirection
 *	VALUE is a glob ("*" and "?", also across slashes), or @class (shell_path.c):
 *	@root      a whole tree that must not be removed: /, ~, system folders, a variable before /
 *	@system    in a system folder;   @startup  run at login, boot, or by cron or git
 *	@secret    keys, credentials;    @private  system files that programs have no reason to read
 *	@listed    system folders whose listing is reported;   @shown  those that are commonly listed
 *	@fact      facts about the system: processors, memory, release
 *	@own-secret  @secret inside the workspace, not written by the script itself
 *	@computed  everything in a folder that a variable of the script names
 *	@local     an address of the cell itself;   @own  a process that the script started
 *	@device    disks and memory;     @outside  leaves the workspace through ..
 *	@dynamic   contains a part that is unknown before run time
 *	@address   a URL;                @here     the current folder or all in it
 *
 * Programs are matched after wrappers are removed.  A rule reports once per command.
 */
#ifndef INSPECT_SHELL_H
#define INSPECT_SHELL_H

#include "inspect/judge.h"

/* Bytes of a word that are not text.  The same bytes in the source are replaced, so they cannot be forged. */
enum mark {
	MARK_HOLE = 1, /* a part that is unknown before run time */
	MARK_STAR,     /* active glob characters */
	MARK_QUERY,
	MARK_SET,
	MARK_OPEN, /* active braces */
	MARK_COMMA,
	MARK_CLOSE,
	MARK_SPLIT = 0x0e, /* end of a field */
	MARK_EMPTY = 0x0f, /* an empty quoted string, which makes an empty field */
};

enum { WORD_DYNAMIC = 1, WORD_GLOB = 2 };

/* Origin of the parts of a word that are not literal.  In sh_word.flags, above the other flags. */
enum origin {
	ORIGIN_FETCHED = 0x100,    /* decoded or downloaded */
	ORIGIN_PRIVATE = 0x200,    /* the environment, or the output of a shell */
	ORIGIN_OWN = 0x400,        /* number of a process that the script itself started */
	ORIGIN_UNSET = 0x800,      /* a variable that the script never sets */
	ORIGIN_PARAMETER = 0x1000, /* $1, $@ of the script or of a function */
	ORIGIN_OUTPUT = 0x2000,    /* output of a command, or input that the script reads */
	ORIGIN_VARIABLE = 0x4000,  /* any variable, even if its value is known */
	ORIGIN_SETTINGS = 0x8000,  /* output of a tool that is meant for eval, as of ssh-agent */
	ORIGIN_ENCODED = 0x10000,  /* encoded text, which a reader cannot read, even if it was decoded here */
};
#define ORIGINS 0x1ff00u

struct sh_word {
	const char *s; /* NUL-terminated; holes are MARK_HOLE */
	uint32_t len;
	uint32_t flags;
};

struct sh_words {
	struct sh_word *row;
	size_t n, cap;
};

/* Text under construction, in the arena. */
struct sh_buf {
	char *p;
	size_t len, cap;
};

enum {
	STREAM_NETWORK = 1,
	STREAM_DECODED = 2,
	STREAM_UNKNOWN = 4,
	STREAM_GIVEN = 8,
	STREAM_HERE = 16,
	STREAM_FUNCTION = 32,
	STREAM_INPUT = 64,     /* input that the caller will send */
	STREAM_PRIVATE = 128,  /* the environment, or the output of a shell */
	STREAM_OWN = 256,      /* numbers of processes that the script started */
	STREAM_SETTINGS = 512, /* assignments printed by a tool for eval */
	STREAM_ENCODED = 1024, /* base64, hex, reversed */
};

/* The data in a pipe or of a variable. */
struct sh_stream {
	const char *text; /* constant, or NULL */
	size_t len;
	unsigned flags;
	int heredoc; /* with STREAM_HERE: number of the here-document, whose text is not read yet */
};

enum redirect_kind { REDIRECT_READ, REDIRECT_WRITE, REDIRECT_BOTH, REDIRECT_STRING, REDIRECT_HERE, REDIRECT_FD };

struct sh_redirect {
	enum redirect_kind kind;
	struct sh_word target;
	int fd; /* -1: the default of the operator */
	int heredoc;
};

struct sh_assign {
	struct sh_word name, value;
	bool append, array, subscript, ref;
};

#define SH_REDIRECTS_MAX 16
#define SH_ASSIGNS_MAX   32

struct sh_command {
	struct sh_words words;
	struct sh_redirect redirect[SH_REDIRECTS_MAX];
	size_t n_redirect;
	struct sh_assign assign[SH_ASSIGNS_MAX];
	size_t n_assign;
	struct span span;
	struct sh_stream in;
	bool piped_in, piped_out, background;
};

enum here_use { HERE_DATA, HERE_SHELL, HERE_PYTHON, HERE_JAVASCRIPT, HERE_OTHER };

struct sh_heredoc {
	const char *delimiter;
	size_t delimiter_len;
	bool quoted, dash;
	enum here_use use;
	unsigned through; /* STREAM_DECODED: a decoder is between it and the shell */
	const char *file; /* written to this file by cat > file <<EOF */
	struct span where;
	int next;
};

#define SH_ALTERNATIVES 8

struct sh_value {
	const char *s;
	uint32_t len;
	uint32_t origins;
	bool array;
	bool ref; /* declare -n: the value is the name of another variable */
};

struct sh_var {
	struct sh_var *next;
	const char *name;
	uint32_t len;
	unsigned n;
	struct sh_value value[SH_ALTERNATIVES];
};

struct sh_function {
	struct sh_function *next;
	const char *name;
	uint32_t len;
	const char *body; /* text that contains it, and its position there */
	uint32_t body_len;
	uint32_t offset;
	bool uses_parameters, running, mapped;
	bool alias; /* body is the text of an alias */
	bool firm;  /* its definition is certainly executed */
};

/* A file that the script itself wrote, with the known part of its contents. */
struct sh_file {
	struct sh_file *next;
	const char *name;
	const char *text;
	size_t len;
	unsigned flags; /* STREAM_ */
};

/* One program of one pattern; indexed by its first character, so that a command is compared with few patterns only. */
struct sh_entry {
	struct sh_entry *next;
	const struct rule *rule;
	const char *program; /* or the name of a variable */
	uint32_t len;
	const char *terms; /* or the glob for the variable's value */
};

#define SH_BUCKETS    64
#define SH_SPAWNS_MAX 64

struct shell {
	struct judge *j;
	struct arena_chunk *chunks;
	size_t allocated;
	bool stop;                     /* out of memory, time or steps; already reported */
	unsigned depth;                /* nesting depth of substitutions and texts */
	unsigned braces;               /* nesting depth of ${ */
	unsigned calls;                /* number of calls of functions followed so far */
	bool guessing;                 /* the text may not be code at all */
	bool wants_input;              /* a program of the current group runs the caller's input */
	const char *cwd;               /* set by cd to a constant folder; NULL: the workspace */
	bool lost;                     /* after cd to an unknown folder: ".." may stay inside the workspace */
	uint32_t origins;              /* of the current word */
	unsigned processes;            /* number of <(command) so far */
	unsigned pick;                 /* index of the alternative of each variable that is examined */
	unsigned pick_max;             /* number of alternatives in the current command */
	bool substituted;              /* the current command contains a substitution */
	bool used_parameter;           /* $1, $@ ... were used since this was cleared */
	bool conditional;              /* the current assignment may not be executed */
	struct sh_entry *entries[256]; /* by first character; [0]: patterns for every program */
	struct sh_entry *assigns;
	bool indexed;
	struct sh_var *vars[SH_BUCKETS];
	struct sh_function *functions[SH_BUCKETS];
	struct sh_file *files;
	struct sh_words *parameters; /* parameters of the function or of set --; NULL: unknown */
	const char *function_name;   /* the function being defined */
	uint32_t function_len;
	struct {
		const char *from, *to;
		uint32_t from_len, to_len;
		struct span where;
	} spawn[SH_SPAWNS_MAX];
	size_t n_spawns;
	struct sh_heredoc *heredocs;
	size_t n_heredocs, cap_heredocs;
};

/* One text being parsed: the script, or a part found in it. */
struct sh_text {
	const char *s;
	size_t len, pos;
	size_t offset; /* position of s in the judge's text, unless mapped */
	bool mapped;   /* unescaped or assembled: offsets mean nothing, findings get `host` */
	struct span host;
	int here_first, here_last; /* pending here-documents, -1 none */
};

#define SH_DEPTH_MAX  8
#define SH_BRACES_MAX 32
#define SH_FRAMES_MAX 256
#define SH_MEMORY_MAX (64 * MiB)
#define SH_PROCESS    "/dev/fd/process-" /* file name of <(command), followed by a number */
#define SH_WORD_MAX   ((size_t)(64 * KiB))

/* shell_text.c: memory, buffers, words, variables. */
void *sh_alloc(struct shell *sh, size_t size); /* zeroed; NULL: sh->stop is set */
void sh_release(struct shell *sh);
bool sh_step(struct shell *sh); /* false: the budget is used up, reported once */
void sh_add(struct shell *sh, struct sh_buf *b, const char *s, size_t len);
void sh_addc(struct shell *sh, struct sh_buf *b, char c);
const char *sh_copy(struct shell *sh, const char *s, size_t len);
void sh_push(struct shell *sh, struct sh_words *list, const char *s, size_t len, uint32_t flags);
/* Splits marked text into words: braces, fields, globs. */
void sh_fields(struct shell *sh, const struct sh_buf *marked, struct sh_words *list);
/* Converts marked text to one word, as in assignments and redirections. */
struct sh_word sh_single(struct shell *sh, const char *marked, size_t len);
bool sh_is(const struct sh_word *w, const char *s);
bool sh_glob(const char *pattern, size_t plen, const char *s, size_t len); /* "*" and "?", also across slashes */
struct sh_var *sh_var_find(struct shell *sh, const char *name, size_t len);
void sh_var_set(struct shell *sh, const char *name, size_t len, struct sh_value value, bool replace);
/* The value to examine; false: never assigned here. */
bool sh_var_value(struct shell *sh, const char *name, size_t len, struct sh_value *ret);
struct sh_function *sh_function_find(struct shell *sh, const char *name, size_t len);
void sh_function_add(struct shell *sh, struct sh_function *f);
struct sh_file *sh_file_find(const struct shell *sh, const char *name);
void sh_file_set(struct shell *sh, const char *name, const struct sh_stream *contents);
struct span sh_span(const struct shell *sh, const struct sh_text *t, size_t start, size_t end);
void sh_check(struct shell *sh, const struct sh_text *t, const char *check, size_t start, const char *detail);

/* shell_expand.c: parsing and expanding words */
enum expand_mode { EXPAND_WORD, EXPAND_DOUBLE, EXPAND_HERE, EXPAND_BRACE, EXPAND_ARITHMETIC, EXPAND_PATTERN };
/* Reads one word at t->pos as marked text; *assign: length of "name=" if it is an assignment, else 0. */
void sh_read_word(struct shell *sh, struct sh_text *t, struct sh_buf *out, size_t *assign);
/* Expands up to the closing character(s) of the mode; false: they are missing. */
bool sh_expand(struct shell *sh, struct sh_text *t, enum expand_mode mode, bool quoted, struct sh_buf *out);
/* Expands substitutions in text that a builtin evaluates again ('a[$(x)]'). */
void sh_expand_again(struct shell *sh, const char *s, size_t len, struct span where);
void sh_add_value(struct shell *sh, struct sh_buf *out, const char *s, size_t len, bool quoted, bool array);
bool sh_is_arithmetic(const struct sh_text *t, size_t open, size_t *close);
/* Adds the character of one escape of $'..' or printf; s[*i] is the character after the backslash. */
void sh_add_escape(struct shell *sh, struct sh_buf *out, const char *s, size_t *i);

/* shell_param.c: expands ${...}; t->pos is after "${". */
void sh_parameter(struct shell *sh, struct sh_text *t, bool quoted, struct sh_buf *out);
void sh_parameter_plain(struct shell *sh, const char *name, size_t len, bool quoted, struct sh_buf *out);

/*
 * shell_heredoc.c: records a here-document at its operator (returns its number, -1: no memory); reads all pending ones.
 */
int sh_add_heredoc(struct shell *sh, struct sh_text *t, bool dash, size_t start);
void sh_read_heredocs(struct shell *sh, struct sh_text *t);

/* shell_read.c: one simple command. */
bool sh_ends_word(char c);
void sh_skip_blanks(struct sh_text *t);
bool sh_at_redirect(const struct sh_text *t, size_t *prefix);
void sh_read_redirect(struct shell *sh, struct sh_text *t, struct sh_command *cmd, size_t prefix);
void sh_read_simple(struct shell *sh, struct sh_text *t, struct sh_command *cmd);

/* shell_parse.c: lists of commands.  term: ')', or 0 for the end of the text. */
void sh_parse(struct shell *sh, struct sh_text *t, char term, struct sh_stream *out);
/* Parses a text inside the text: eval, sh -c, backticks, function bodies. */
void sh_parse_text(struct shell *sh, const char *s, size_t len, struct span where, struct sh_stream *out);

/* shell_command.c: judges one simple command; out: its output. */
void sh_command(struct shell *sh, struct sh_command *cmd, struct sh_stream *out);
void sh_judge_words(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n, unsigned level,
		    struct sh_stream *out);
#define SH_WRAP_MAX 12
/* Judges data that a shell or interpreter will run as code. */
void sh_run_stream(struct shell *sh, const struct sh_command *cmd, const struct sh_stream *in, enum here_use use,
		   const char *who);
void sh_run_word(struct shell *sh, const struct sh_command *cmd, const struct sh_word *code, const char *who);
/* Judges the script of an interpreter: its origin only, unless its text is known and is for a shell or Python. */
void sh_run_download(struct shell *sh, const struct sh_command *cmd, const struct sh_word *file, enum here_use use);
void sh_run_file(struct shell *sh, const struct sh_command *cmd, const struct sh_word *file);

/* shell_wrap.c: true if the program runs another one, which was then judged. */
bool sh_unwrap(struct shell *sh, struct sh_command *cmd, const struct sh_word *words, size_t n, unsigned level,
	       struct sh_stream *out);
/* shell_inline.c: programs with code in their arguments */
void sh_inline(struct shell *sh, struct sh_command *cmd, const char *program, const struct sh_word *words, size_t n,
	       unsigned level);

struct sh_call {
	const char *program;
	const struct sh_word *words; /* [0] is the program */
	size_t n;
	const struct sh_command *cmd;
};

/* shell_stdin.c: programs that run their input as code */
void sh_stdin(struct shell *sh, const struct sh_command *cmd, const struct sh_call *call);
/* Judges a program that runs its input as code. */
void sh_run_input(struct shell *sh, const struct sh_command *cmd, enum here_use use, const char *who);
/* True if its input comes from the caller, not from a pipe, file or text of the script. */
bool sh_reads_caller(const struct sh_command *cmd);
/* True if it prints its version or the like and reads nothing. */
bool sh_only_tells(const struct sh_call *call);
bool sh_names_stdin(const struct sh_word *w);
const struct sh_word *sh_script(const struct sh_call *call); /* script of an interpreter; NULL: none */

/* shell_builtin.c: builtins that change the meaning of later words, or evaluate a word again */
void sh_builtin(struct shell *sh, struct sh_command *cmd, const char *program, const struct sh_word *words, size_t n);

/* shell_stream.c: the output of a command, as far as it is constant */
uint32_t sh_origins(const struct sh_stream *s); /* origins for a word that contains the stream's text */
void sh_output(struct shell *sh, const struct sh_command *cmd, const char *program, const struct sh_word *words,
	       size_t n, struct sh_stream *out);

/* shell_pattern.c */
/*
 * Reports every rule that matches; returns the worst severity.  CRITICAL: the call's files need not be judged as well.
 */
enum severity sh_match_rules(struct shell *sh, const struct sh_call *call);
/* Likewise for an assignment. */
void sh_match_assign(struct shell *sh, const char *name, const struct sh_word *value, struct span where);
/* value may be NULL */
bool sh_has_option(const struct sh_call *call, const char *spelling, struct sh_word *value);
/* The i-th word that is not an option; NULL after the last. */
const struct sh_word *sh_operand(const struct sh_call *call, size_t i);
bool sh_opens_operands(const char *program);

/* shell_path.c */
enum path_class {
	PATH_ROOT = 1,
	PATH_SYSTEM = 2,
	PATH_STARTUP = 4,
	PATH_SECRET = 8,
	PATH_PRIVATE = 16,
	PATH_LISTED = 32,
	PATH_DEVICE = 64,
	PATH_OUTSIDE = 128,
	PATH_DYNAMIC = 256,
	PATH_ADDRESS = 512,
	PATH_HERE = 1024,
	PATH_SHOWN = 2048,
	PATH_FACT = 4096,
	PATH_OWN_SECRET = 8192,
	PATH_COMPUTED = 16384,
	PATH_LOCAL = 32768,
	PATH_OWN = 65536,
};
const char *sh_workspace(const struct shell *sh);
unsigned sh_path_classes(const struct shell *sh, const struct sh_word *w);
unsigned sh_path_class_by_name(const char *name, size_t len); /* 0: no such class */

#endif
