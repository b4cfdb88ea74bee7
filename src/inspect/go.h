/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the Go inspector; go.c explains how it works. */
#ifndef INSPECT_GO_H
#define INSPECT_GO_H

#include <tree_sitter/api.h>

#include "inspect/judge.h"

#define GO_STRING_MAX (64 * KiB) /* maximum length of a folded string */
#define GO_ARENA_MAX  (16 * MiB)
#define GO_LIST_MAX   4096 /* elements of a list that is folded */

/* The node types that the inspector handles; all others are GO_OTHER.  Sorted by name for binary search. */
enum go_symbol {
	GO_OTHER,
#define GO_SYMBOL(name) GO_##name,
#include "inspect/go_symbols.def"
	GO_SYMBOL_COUNT
};

enum go_value_kind {
	GO_UNKNOWN,
	GO_STRING,  /* text, len */
	GO_INT,     /* number */
	GO_LIST,    /* items, len: arguments, elements, or a list of expressions */
	GO_PACKAGE, /* text, len: import path of the package */
	GO_MEMBER,  /* text, len: e.g. "os/exec.Command" */
	GO_METHOD,  /* text, len: name of the method; receiver */
};

/* What is known about an expression. */
struct go_value {
	uint8_t kind;
	bool fresh;     /* a literal or computed here, not read from a variable */
	bool outside;   /* determined by the environment, a request or an archive */
	bool hidden;    /* decoded, or assembled so that a reader cannot see it; for a function: its result is */
	uint8_t symbol; /* enum go_symbol of the node */
	uint8_t field;  /* enum go_field of the node in its parent */
	uint32_t start, end;
	int32_t binding; /* binding of the identifier or of a method's receiver; -1: none */
	uint32_t len;
	union {
		const char *text;
		const struct go_value *items;
		int64_t number;
	};
	const struct go_value *receiver;
	int32_t maker; /* 1 + binding of the program's function that returned the value; 0: none */
};

enum go_field { GO_FIELD_NONE, GO_FIELD_START, GO_FIELD_END, GO_FIELD_CAPACITY };

struct go_binding {
	const char *name;
	uint32_t len, hash;
	int32_t next; /* older binding in the same bucket */
	struct go_value value;
};

struct go_frame {
	uint32_t start, end;
	uint32_t values;   /* number of values before its children */
	uint32_t bindings; /* number of bindings before its children, for a node that opens a scope */
	uint32_t token;    /* start of its first unnamed child, the operator; 0: none so far */
	uint16_t symbol;
	uint8_t field;
	bool scope;
};

/* A started program whose name is the result of a program's function, which may be defined further below. */
struct go_pending {
	int32_t maker;
	struct span where;
};

struct go_chunk;
#define GO_BUCKETS 1024
#define GO_PENDING 16

struct go {
	struct judge *j;
	const char *text;
	uint32_t len;
	uint8_t symbol_of[512]; /* by TSSymbol */
	TSFieldId field_start, field_end, field_capacity;
	bool judging;       /* false while package-level values are collected */
	bool stop;          /* budget or memory is exhausted */
	bool touches_files; /* imports a package that can open a path */
	bool reflects;
	bool cgo;
	/* What the program does anywhere in its text; complete when the walk is over. */
	bool serves, dials, reaches_out;
	struct span own_file, environment; /* where it starts a file of its own; where it reads the environment */
	struct span shell;                 /* where it starts a shell that gets its commands from elsewhere */
	bool unpacks;        /* reads archives; their entries have names that the program does not choose */
	bool wrote_hidden;   /* wrote a file whose content was hidden */
	uint32_t decoded_at; /* position of the last decoding */
	uint32_t comment_start, comment_end; /* of consecutive comments */
	int32_t package_bindings;            /* number of package-level bindings, which stay bound to the end */
	struct go_pending pending[GO_PENDING];
	unsigned n_pending;
	unsigned errors_reported;
	uint32_t scopes; /* number of open scopes */

	struct go_chunk *chunks;
	size_t arena_used;
	char *tail; /* end of the string joined last, and the free space after it: joining many pieces stays linear */
	size_t tail_room;

	struct go_frame *frame;
	size_t n_frames, cap_frames;
	struct go_value *value;
	size_t n_values, cap_values;
	struct go_binding *binding;
	size_t n_bindings, cap_bindings;
	int32_t bucket[GO_BUCKETS];

	/* Packages imported with ".", whose names are visible without a selector. */
	const char *dot_path[8];
	uint32_t dot_len[8];
	unsigned n_dots;
};

/* go_store.c: memory and names */
void *go_alloc(struct go *g, size_t size); /* NULL: budget used up, g->stop is set */
bool go_push_value(struct go *g, const struct go_value *value);
bool go_push_frame(struct go *g, const struct go_frame *frame);
void go_bind(struct go *g, const char *name, uint32_t len, const struct go_value *value);
int32_t go_lookup(const struct go *g, const char *name, uint32_t len);
void go_unbind(struct go *g, size_t down_to);
void go_release(struct go *g);
/* Ends the inspection here and reports that. */
void go_give_up(struct go *g, struct span where, const char *why);

/* go_text.c: literals, imports, comments */
struct go_value go_unquote(struct go *g, const char *s, size_t len);
struct go_value go_literal(struct go *g, uint32_t start, uint32_t end);
void go_import(struct go *g, const struct go_value *children, size_t n);
void go_comment(struct go *g, uint32_t start, uint32_t end);
void go_generate_lines(struct go *g);

/* go_fold.c: values of expressions */
struct go_value go_string(struct go *g, const char *text, size_t len); /* copies */
struct go_value go_list(struct go *g, const struct go_value *items, size_t n);
struct go_value go_concat(struct go *g, const struct go_value *a, const struct go_value *b);
struct go_value go_join_path(struct go *g, const struct go_value *parts, size_t n);
struct go_value go_fold_call(struct go *g, const struct go_value *function, const struct go_value *arguments);
/* A method of a string builder or of a strings.Replacer. */
struct go_value go_fold_method(struct go *g, const struct go_value *method, const struct go_value *arguments);
struct go_value go_fold_index(const struct go_value *operand, const struct go_value *index);
struct go_value go_fold_slice(struct go *g, const struct go_value *children, size_t n);
/* The string that a list of bytes or runes stands for. */
struct go_value go_fold_bytes(struct go *g, const struct go_value *list, bool runes);

/* go_call.c: what a call does */
void go_judge_call(struct go *g, const struct go_value *function, const struct go_value *arguments, struct span where);
void go_judge_string(struct go *g, const struct go_value *value);
/* True if this function's string arguments are routes or addresses, not paths. */
bool go_takes_routes(const struct go *g, const struct go_value *function);

/* go_intent.c: what the parts of a program mean in combination */
void go_intent_client(struct go *g, const struct go_value *address, bool listens, struct span where);
void go_intent_program(struct go *g, const struct go_value *arguments, size_t n, struct span where);
void go_intent_finish(struct go *g);
/* True if the result of this call is determined outside of the program. */
bool go_asks_outside(const struct go *g, const struct go_value *function, const struct go_value *arguments);
/* http.Server{Addr: ":8080"}: elements of the literal. */
void go_intent_server(struct go *g, const struct go_value *elements);
bool go_is_shell(const struct go_value *program);
void go_intent_input(struct go *g, const struct go_value *target, const struct go_value *text);
bool go_hides_import(const struct go *g, const struct go_value *children, size_t n);

/* go_hide.c: strings that a reader cannot see, and programs started by them */
bool go_splits_word(const struct go_value *a, const struct go_value *b);
void go_note_decoding(struct go *g, uint32_t at);
void go_mark_result(struct go *g, const struct go_value *function, const struct go_value *arguments,
		    struct go_value *v);
void go_mark_elements(struct go *g, char op, const struct go_value *left, const struct go_value *right);
void go_mark_function(struct go *g, const struct go_frame *f, const struct go_value *name);
void go_judge_hidden(struct go *g, const struct go_value *v);
void go_judge_alias(struct go *g, const struct go_value *name, const struct go_value *value);
void go_judge_reflected(struct go *g, const struct go_value *function, const struct go_value *arguments);
void go_judge_pointer(struct go *g, const struct go_value *function, const struct go_value *arguments,
		      struct span where);
void go_judge_pending(struct go *g);

static inline bool go_is(const struct go_value *v, const char *text)
{
	return v->len == __builtin_strlen(text) && __builtin_memcmp(v->text, text, v->len) == 0;
}

#endif
