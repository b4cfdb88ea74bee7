/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the JavaScript and TypeScript inspector share; see javascript.c for the theory of operation. */
#ifndef INSPECT_JAVASCRIPT_H
#define INSPECT_JAVASCRIPT_H

#include <tree_sitter/api.h>

#include "inspect/judge.h"

enum js_node {
	NODE_OTHER,
#define SYMBOL(id, name, traits) NODE_##id,
#include "inspect/javascript.def"
	NODE_COUNT
};

enum js_field {
	FIELD_NONE,
#define FIELD_NAME(id, name) FIELD_##id,
#include "inspect/javascript.def"
	FIELD_COUNT
};

enum js_trait {
	TRAIT_SKIPPED = 1,  /* nothing in there runs: types, comments, ambient declarations */
	TRAIT_SCOPE = 2,    /* opens a scope for let and const */
	TRAIT_FUNCTION = 4, /* ... and for var */
	TRAIT_PATTERN = 8,  /* part of a binding pattern */
};

/* One grammar's numbers turned into ours; made once per process. */
struct js_grammar {
	const TSLanguage *language;
	uint8_t *node;  /* by TSSymbol */
	uint8_t *field; /* by TSFieldId */
	uint16_t n_nodes, n_fields;
};
/* NULL: the parser library does not fit or no memory. */
const struct js_grammar *js_grammar(enum inspect_kind kind);
extern const uint8_t js_traits[NODE_COUNT];

/* --- values ---------------------------------------- */

enum js_kind {
	JS_UNKNOWN, /* s, n: how it begins, if that is known of a text */
	JS_UNDEFINED,
	JS_NULL,
	JS_BOOL,
	JS_NUMBER,
	JS_STRING,
	JS_REGEX,    /* s: its text with slashes and flags */
	JS_ARRAY,    /* v[n] */
	JS_OBJECT,   /* v[2n]: key, value */
	JS_FUNCTION, /* n: its scope */
	JS_PATH,     /* s: what the engine offers, by its global path: "process.mainModule", "Function" */
	JS_MODULE,   /* s: a module or a member of it: "fs", "fs.promises" */
	JS_MEMBER,   /* v[2]: receiver and name (unknown if it cannot be folded) of something else */
	JS_BOUND,    /* v[n]: function and arguments that bind() fixed */
	JS_THIS,     /* of a function that is called we know not how */
	JS_ONE_OF,   /* v[n]: any of these */
	/* Only while a construct is being put together: */
	JS_SPREAD,         /* v[1] */
	JS_PAIR,           /* v[2] */
	JS_REF,            /* var: a variable that is being bound */
	JS_PATTERN_OBJECT, /* v[2n]: key, target */
	JS_PATTERN_ARRAY,  /* v[n]: targets */
	JS_PATTERN_REST,   /* v[1]: target */
	JS_DEFAULT,        /* v[2]: target, default */
};

enum js_flag {
	JS_PENDING = 1,  /* a mention that has not been judged yet */
	JS_MAYBE = 2,    /* or something unknown */
	JS_WEAK = 4,     /* `this` at the top: the global object only in some engines */
	JS_BUILT = 8,    /* a text or a reference that is not written down: put together, escaped, reached by a chain */
	JS_DECODED = 16, /* came out of a decoder, known or not */
	JS_FETCHED = 32, /* came from the network */
	JS_SECRET = 64,  /* holds the whole environment */
	JS_OUTSIDE = 128, /* an undeclared name: the embedder of the code defines it */
	JS_ORIGIN =
		JS_DECODED | JS_FETCHED | JS_SECRET | JS_OUTSIDE, /* what goes along with whatever is made of a value */
};

struct js_value {
	uint8_t kind, flags;
	uint16_t unused;
	uint32_t n;
	union {
		double number;
		const char *s;
		struct js_value *v; /* one more than n: a mark that the list was changed later */
		struct {
			uint32_t var, atom;
		};
	};
};
_Static_assert(sizeof(struct js_value) == 16, "values are copied a lot");

#define JS_STRING_MAX  (64 * 1024)
#define JS_ARRAY_MAX   4096
#define JS_ONE_OF_MAX  12
#define JS_PARAMS_MAX  6
#define JS_NESTING_MAX 16 /* of values in values: a function that follows them gives up there */
#define JS_ARENA_MAX   (48 * MiB)
#define JS_NO_VAR      UINT32_MAX

struct js_atom {
	const char *s;
	uint32_t len;
	uint32_t hash;
	uint32_t var; /* what the name means at this point of the walk; JS_NO_VAR: global */
};

struct js_var {
	uint32_t atom;
	uint32_t outer;   /* what its name meant outside */
	uint32_t sibling; /* the next one of the same scope */
	uint32_t scope;
	bool pushed;          /* it is what its name means; a second declaration in the same scope is not */
	bool seen;            /* `ever` holds something */
	bool assigned;        /* ... and `now`, in this pass */
	struct js_value now;  /* the last value in the order of the text */
	struct js_value ever; /* all values that were seen */
};

enum js_this { JS_THIS_OUTER, JS_THIS_GLOBAL, JS_THIS_OWN };

struct js_scope {
	uint32_t first_var;
	uint32_t function; /* the scope that var belongs to */
	enum js_this this;
	uint8_t n_params;
	bool returns, module_arguments, generator;
	uint32_t param[JS_PARAMS_MAX];
	struct js_value result;
};

enum js_bind { JS_BIND_NONE, JS_BIND_ASSIGN, JS_BIND_VAR, JS_BIND_LET, JS_BIND_PARAM, JS_BIND_IMPORT };

/* A node on the way from the root to the cursor. */
struct js_frame {
	uint8_t node, field;
	uint8_t bind;     /* how identifiers directly in here are bound */
	uint8_t declares; /* what the keyword said */
	bool named, scope, type_only, of;
	uint16_t child; /* named children so far */
	uint32_t start, end;
	uint32_t kids; /* where its children start on the kid stack */
	uint32_t outer_scope;
};

/* A finished child, waiting for its parent. */
struct js_kid {
	struct js_value value;
	uint32_t start, end;
	uint8_t node, field;
};

struct js_chunk;

struct js {
	struct judge *judge;
	const struct js_grammar *grammar;
	enum inspect_kind source;
	const char *text;
	uint32_t len;
	bool judging;      /* the last pass: findings are reported */
	struct span where; /* of what is being assigned or called */
	bool exhausted;    /* memory or budget: said once, the walk ends */
	uint64_t fold_left;
	uint32_t loops;      /* around the cursor */
	bool engine_changed; /* the program replaces functions that texts are computed with */
	uint32_t forever;    /* loops without an end around the cursor */
	uint32_t conditions; /* if statements around the cursor */
	/* What the program does somewhere; complete before the last pass. */
	bool serves, opens_socket, fetches;
	bool learned; /* in this pass, of a parameter's origin, after the function was walked over */

	struct js_chunk *chunks;
	size_t arena_used;

	struct js_atom *atoms;
	uint32_t n_atoms, cap_atoms;
	uint32_t *atom_slots;
	uint32_t atom_mask;

	struct js_var *vars;
	uint32_t n_vars, cap_vars;
	struct js_scope *scopes;
	uint32_t n_scopes, cap_scopes;
	uint32_t next_scope, scope; /* the next to be entered in text order; the current one */

	struct js_frame *frames;
	uint32_t n_frames, cap_frames;
	struct js_kid *kids;
	uint32_t n_kids, cap_kids;

	/* Uses of fs: reading standard input alone is harmless. */
	uint32_t fs_members, fs_stdin, fs_other;
};

/* javascript_value.c */
void *js_alloc(struct js *js, size_t size);
void js_arena_release(struct js *js);
bool js_grow(struct js *js, void *array, uint32_t n, uint32_t *cap, size_t size);
struct js_value js_string(struct js *js, const char *s, size_t len);
struct js_value js_text(const char *s);
struct js_value js_number(double d);
struct js_value js_simple(enum js_kind kind);
struct js_value js_path(const char *s, size_t len);
/* Room for n elements (objects: pairs), not yet filled. */
bool js_list_new(struct js *js, enum js_kind kind, size_t n, struct js_value *ret);
/* The program changes it: nothing is known about it any more, in any variable. */
void js_list_spoil(const struct js_value *list);
bool js_list_intact(const struct js_value *list);
struct js_value js_list(struct js *js, enum js_kind kind, const struct js_value *v, size_t n);
struct js_value js_join(struct js *js, struct js_value a, struct js_value b);
bool js_same(const struct js_value *a, const struct js_value *b);
bool js_is(const struct js_value *v, enum js_kind kind, const char *text);
bool js_starts(const struct js_value *v, const char *prefix);
/* The value as a string; false if unknown.  *ret may point into v. */
bool js_to_string(struct js *js, const struct js_value *v, struct js_value *ret);
bool js_to_number(struct js *js, const struct js_value *v, double *ret);
/* Iterates over the alternatives of a value: itself unless it is JS_ONE_OF. */
size_t js_alternatives(const struct js_value *v, const struct js_value **ret);

/* javascript_string.c */
struct js_value js_literal(struct js *js, uint32_t start, uint32_t end); /* escapes decoded; the quotes are outside */
struct js_value js_concat(struct js *js, const struct js_value *a, const struct js_value *b);
bool js_string_method(struct js *js, const struct js_value *self, const char *name, size_t len,
		      const struct js_value *args, size_t n, struct js_value *ret);
bool js_array_method(struct js *js, const struct js_value *self, const char *name, size_t len,
		     const struct js_value *args, size_t n, struct js_value *ret);
struct js_value js_number_text(struct js *js, double d, int radix);
struct js_value js_code_units(struct js *js, const struct js_value *args, size_t n);

/* javascript_decode.c */
struct js_value js_decode(struct js *js, const char *how, const struct js_value *text);
struct js_value js_regex_replace(struct js *js, const struct js_value *self, const struct js_value *regex,
				 const struct js_value *with);
size_t js_utf8(char *dst, uint32_t code);

/* javascript_scope.c */
uint32_t js_atom_at(struct js *js, uint32_t start, uint32_t end); /* an identifier of the source, escapes decoded */
uint32_t js_declare(struct js *js, uint32_t scope, uint32_t atom);
void js_scope_enter(struct js *js, struct js_frame *f);
void js_scope_leave(struct js *js, struct js_frame *f);
bool js_walk_scopes(struct js *js, TSNode root);
struct js_value js_read(struct js *js, uint32_t atom);
void js_set_parameter(struct js *js, uint32_t var, struct js_value value);
void js_assign(struct js *js, const struct js_value *target, struct js_value value, unsigned depth);

/* javascript_tree.c: the cursor walk that both passes use. */
struct js_visit {
	bool (*enter)(struct js *js, struct js_frame *f); /* false: leave its children out */
	void (*leave)(struct js *js, struct js_frame *f); /* with its kids still on the stack */
};
bool js_walk(struct js *js, TSNode root, const struct js_visit *visit);
struct js_frame *js_parent(struct js *js, unsigned up); /* 1: the parent of the frame on top; NULL: none */

/* javascript_eval.c */
bool js_walk_values(struct js *js, TSNode root);

/* javascript_expr.c: operators, literals and patterns from the values of their children. */
struct js_value js_operator(struct js *js, const struct js_frame *f);
struct js_value js_template(struct js *js, const struct js_frame *f);
struct js_value js_collect(struct js *js, const struct js_frame *f, enum js_kind kind); /* its children, as a list */
struct js_value js_written(struct js *js, uint32_t start, uint32_t end);
struct js_value js_property_key(struct js *js, const struct js_kid *key);
struct js_value js_number_literal(struct js *js, const struct js_frame *f);
struct js_value js_augmented(struct js *js, const struct js_frame *f, struct js_value left, struct js_value right);
const struct js_kid *js_kid(const struct js *js, const struct js_frame *f, enum js_field field); /* NULL: none */
const struct js_kid *js_kid_at(const struct js *js, const struct js_frame *f, uint32_t i);
uint32_t js_kid_count(const struct js *js, const struct js_frame *f);
void js_mention_kids(struct js *js, const struct js_frame *f);

/* javascript_import.c: modules that come in and go out. */
struct js_value js_eval_specifier(struct js *js, const struct js_frame *f);
struct js_value js_eval_import_clause(struct js *js, const struct js_frame *f);
struct js_value js_eval_enum(struct js *js, const struct js_frame *f);
void js_eval_import(struct js *js, const struct js_frame *f);
void js_eval_import_require(struct js *js, const struct js_frame *f);
void js_eval_import_alias(struct js *js, const struct js_frame *f);
void js_eval_export(struct js *js, const struct js_frame *f);
void js_judge_export(struct js *js, const struct js_value *v, struct span where);

/* javascript_member.c */
void js_judge_subscript(struct js *js, const struct js_kid *object, const struct js_kid *index);
struct js_value js_member(struct js *js, struct js_value object, const struct js_value *name, struct span where);
void js_judge_all_members(struct js *js, const struct js_value *object, struct span where);
void js_judge_store(struct js *js, const struct js_value *target, const struct js_value *value, struct span where);

/* javascript_call.c */
struct js_value js_call(struct js *js, struct js_value callee, struct js_value args, bool is_new, struct span where);

/* javascript_judge.c */
bool js_is_engine_name(struct js *js, const char *name, size_t len); /* a global that matters here */
void js_mention_kept(struct js *js, const struct js_value *v, struct span where);
void js_mention(struct js *js, const struct js_value *v, struct span where);
void js_check(struct js *js, const char *check, struct span where, const char *detail);

/* javascript_intent.c: what a program is after, seen from several places of it at once. */
bool js_is_from_outside(struct js *js, const struct js_value *name);
unsigned js_origin(const struct js_value *v); /* of JS_ORIGIN, of it and what it holds */
unsigned js_origin_of_all(const struct js *js, const struct js_value *v, size_t n);
/* The functions among v[n] will be called with something of this origin. */
void js_taint_parameters(struct js *js, const struct js_value *v, size_t n, unsigned origin);
bool js_loops_forever(const struct js *js, const struct js_frame *f);
/* Text that is run as code in the program's own realm (eval, Function). */
void js_judge_run(struct js *js, const struct js_value *code, bool has_parameters, struct span where);
/* A client of the network; true if it talks to another machine than this one. */
bool js_judge_client(struct js *js, const struct js_value *args, size_t n, struct span where);
/* A call of a module's function: the origin of what it returns. */
unsigned js_judge_intent(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			 struct span where);
/* object.name(args) where object came from the network. */
void js_judge_sent(struct js *js, const struct js_value *name, const struct js_value *args, size_t n,
		   struct span where);
/* require() of a module whose name or whose require() is not written as such. */
void js_judge_way_to_module(struct js *js, const struct js_value *name, struct span where);
struct js_value js_import(struct js *js, const struct js_value *name, struct span where);
void js_judge_member(struct js *js, const char *path, size_t len, struct span where);
void js_judge_attribute(struct js *js, const char *name, size_t len, struct span where);
void js_judge_builtin(struct js *js, const char *name, size_t len, struct span where);
void js_judge_module_call(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			  struct span where);

/* Towards zero.  Not trunc(): loading the mathematics library would cost every start of brig. */
static inline double js_whole(double d)
{
	return d < 9e15 && d > -9e15 ? (double)(int64_t)d : d;
}

#endif
