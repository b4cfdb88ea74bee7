/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the Go inspector share; the theory is in go.c. */
#ifndef INSPECT_GO_H
#define INSPECT_GO_H

#include <tree_sitter/api.h>

#include "inspect/judge.h"

#define GO_STRING_MAX (64 * KiB) /* of one folded string */
#define GO_ARENA_MAX  (16 * MiB)
#define GO_LIST_MAX   4096 /* elements of a list that is folded */

/* The nodes the inspector knows; all others are GO_OTHER.  Sorted by name: the table is searched. */
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
	GO_LIST,    /* items, len: arguments, elements, a list of expressions */
	GO_PACKAGE, /* text, len: import path of what the name stands for */
	GO_MEMBER,  /* text, len: "os/exec.Command" */
	GO_METHOD,  /* text, len: its name; receiver */
};

/* What is known about an expression. */
struct go_value {
	uint8_t kind;
	bool fresh;     /* written or computed here, not read from a variable */
	bool outside;   /* the environment, a request or an archive decides about it */
	bool hidden;    /* decoded, or put together so that it cannot be read; of a function: what it gives is */
	uint8_t symbol; /* enum go_symbol of the node */
	uint8_t field;  /* enum go_field of the node in its parent */
	uint32_t start, end;
	int32_t binding; /* of the identifier, of a method's receiver; -1: none */
	uint32_t len;
	union {
		const char *text;
		const struct go_value *items;
		int64_t number;
	};
	const struct go_value *receiver;
	int32_t maker; /* binding of the function of the program that gave it, and 1; 0: none */
};

enum go_field { GO_FIELD_NONE, GO_FIELD_START, GO_FIELD_END, GO_FIELD_CAPACITY };

struct go_binding {
	const char *name;
	uint32_t len, hash;
	int32_t next; /* older one in the same bucket */
	struct go_value value;
};

struct go_frame {
	uint32_t start, end;
	uint32_t values;   /* how many there were before its children */
	uint32_t bindings; /* likewise, when it is a scope */
	uint32_t token;    /* where its first unnamed child starts: the operator; 0: none yet */
	uint16_t symbol;
	uint8_t field;
	bool scope;
};

/* A program whose name a function of the program gives, which may be written further below. */
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
	bool stop;          /* budget or memory is used up */
	bool touches_files; /* imports something that can open a path */
	bool reflects;
	bool cgo;
	/* What the program does somewhere: told by all of its text, so known once the walk is over. */
	bool serves, dials, reaches_out;
	struct span own_file, environment;   /* where a file of its own is started, where the environment is read */
	struct span shell;                   /* where a shell is started that reads its orders from elsewhere */
	bool unpacks;                        /* reads archives, whose entries have names of their own */
	bool wrote_hidden;                   /* a file whose content was hidden */
	uint32_t decoded_at;                 /* where something was decoded last */
	uint32_t comment_start, comment_end; /* of the comments that follow each other */
	int32_t package_bindings;            /* names of the package, which stay to the end */
	struct go_pending pending[GO_PENDING];
	unsigned n_pending;
	unsigned errors_reported;
	uint32_t scopes; /* open ones */

	struct go_chunk *chunks;
	size_t arena_used;
	char *tail; /* behind the text that was joined last, and the room there: joining many pieces stays linear */
	size_t tail_room;

	struct go_frame *frame;
	size_t n_frames, cap_frames;
	struct go_value *value;
	size_t n_values, cap_values;
	struct go_binding *binding;
	size_t n_bindings, cap_bindings;
	int32_t bucket[GO_BUCKETS];

	/* Packages whose names are visible without a selector. */
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
/* The inspection ends here and says so. */
void go_give_up(struct go *g, struct span where, const char *why);

/* go_text.c: literals, imports, comments */
struct go_value go_unquote(struct go *g, const char *s, size_t len);
struct go_value go_literal(struct go *g, uint32_t start, uint32_t end);
void go_import(struct go *g, const struct go_value *children, size_t n);
void go_comment(struct go *g, uint32_t start, uint32_t end);
void go_generate_lines(struct go *g);

/* go_fold.c: what an expression is worth */
struct go_value go_string(struct go *g, const char *text, size_t len); /* copies */
struct go_value go_list(struct go *g, const struct go_value *items, size_t n);
struct go_value go_concat(struct go *g, const struct go_value *a, const struct go_value *b);
struct go_value go_join_path(struct go *g, const struct go_value *parts, size_t n);
struct go_value go_fold_call(struct go *g, const struct go_value *function, const struct go_value *arguments);
/* A method of a text that is being built, or of a list of replacements. */
struct go_value go_fold_method(struct go *g, const struct go_value *method, const struct go_value *arguments);
struct go_value go_fold_index(const struct go_value *operand, const struct go_value *index);
struct go_value go_fold_slice(struct go *g, const struct go_value *children, size_t n);
/* The text of a list of bytes or runes. */
struct go_value go_fold_bytes(struct go *g, const struct go_value *list, bool runes);

/* go_call.c: what a call does */
void go_judge_call(struct go *g, const struct go_value *function, const struct go_value *arguments, struct span where);
void go_judge_string(struct go *g, const struct go_value *value);
/* A string among the arguments of this function is a route or an address, no path. */
bool go_takes_routes(const struct go *g, const struct go_value *function);

/* go_intent.c: what the parts of a program mean together */
void go_intent_client(struct go *g, const struct go_value *address, bool listens, struct span where);
void go_intent_program(struct go *g, const struct go_value *arguments, size_t n, struct span where);
void go_intent_finish(struct go *g);
/* What this call returns is decided outside of the program. */
bool go_asks_outside(const struct go *g, const struct go_value *function, const struct go_value *arguments);
/* http.Server{Addr: ":8080"}: the elements of the literal. */
void go_intent_server(struct go *g, const struct go_value *elements);
bool go_is_shell(const struct go_value *program);
void go_intent_input(struct go *g, const struct go_value *target, const struct go_value *text);
bool go_hides_import(const struct go *g, const struct go_value *children, size_t n);

/* go_hide.c: texts that cannot be read, and what is started by them */
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
