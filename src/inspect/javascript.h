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
	TRAIT_SKIPPED = 1,  /* nothing inside is executed: types, comments, ambient declarations */
	TRAIT_SCOPE = 2,    /* opens a scope for let and const */
	TRAIT_FUNCTION = 4, /* ... and for var */
	TRAIT_PATTERN = 8,  /* part of a binding pattern */
};

/* Maps a grammar's symbol and field numbers to node and field; built once per process. */
struct js_grammar {
	const TSLanguage *language;
	uint8_t *node;  /* by TSSymbol */
	uint8_t *field; /* by TSFieldId */
	uint16_t n_nodes, n_fields;
};
/* NULL: the parser library does not match, or no memory. */
const struct js_grammar *js_grammar(enum inspect_kind kind);
extern const uint8_t js_traits[NODE_COUNT];

/* --- values ---------------------------------------- */

enum js_kind {
	JS_UNKNOWN, /* s, n: the known beginning of a string, if any */
	JS_UNDEFINED,
	JS_NULL,
	JS_BOOL,
	JS_NUMBER,
	JS_STRING,
	JS_REGEX,    /* s: its source with slashes and flags */
	JS_ARRAY,    /* v[n] */
	JS_OBJECT,   /* v[2n]: key, value */
	JS_FUNCTION, /* n: its scope */
	JS_PATH,     /* s: a global of the engine or a member, by its path: "process.mainModule", "Function" */
	JS_MODULE,   /* s: a module or a member of it: "fs", "fs.promises" */
	JS_MEMBER,   /* v[2]: receiver and name (unknown if it cannot be folded) of a member of any other value */
	JS_BOUND,    /* v[n]: the function and the arguments that bind() fixed */
	JS_THIS,     /* `this` of a function whose caller is unknown */
	JS_ONE_OF,   /* v[n]: one of these */
	/* Exist only while a construct is being evaluated: */
	JS_SPREAD,         /* v[1] */
	JS_PAIR,           /* v[2] */
	JS_REF,            /* var: a variable to be bound */
	JS_PATTERN_OBJECT, /* v[2n]: key, target */
	JS_PATTERN_ARRAY,  /* v[n]: targets */
	JS_PATTERN_REST,   /* v[1]: target */
	JS_DEFAULT,        /* v[2]: target, default */
};

enum js_flag {
	JS_PENDING = 1, /* a mention that has not been judged */
	JS_MAYBE = 2,   /* or an unknown value */
	JS_WEAK = 4,    /* `this` at the top: the global object only in some engines */
	/* a string or reference that the source does not spell out: concatenated, escaped, reached through a chain */
	JS_BUILT = 8,
	JS_DECODED = 16,  /* result of a decoder, even if it is computed */
	JS_FETCHED = 32,  /* came from the network */
	JS_SECRET = 64,   /* contains the whole environment */
	JS_OUTSIDE = 128, /* an undeclared name: the embedder of the code defines it */
	/* The flags that a value passes on to every value made from it. */
	JS_ORIGIN = JS_DECODED | JS_FETCHED | JS_SECRET | JS_OUTSIDE,
};

struct js_value {
	uint8_t kind, flags;
	uint16_t unused;
	uint32_t n;
	union {
		double number;
		const char *s;
		struct js_value *v; /* the elements, and one more, which marks a list that was changed later */
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
#define JS_NESTING_MAX 16 /* maximum nesting depth of values that functions follow */
#define JS_ARENA_MAX   (48 * MiB)
#define JS_NO_VAR      UINT32_MAX

struct js_atom {
	const char *s;
	uint32_t len;
	uint32_t hash;
	uint32_t var; /* variable that the name refers to at this point of the walk; JS_NO_VAR: global */
};

struct js_var {
	uint32_t atom;
	uint32_t outer;   /* variable that the name refers to in the outer scope */
	uint32_t sibling; /* next variable of the same scope */
	uint32_t scope;
	bool pushed;          /* the name refers to it; false for a second declaration in the same scope */
	bool seen;            /* `ever` is valid */
	bool assigned;        /* `now` is valid in this pass */
	struct js_value now;  /* the last value in text order */
	struct js_value ever; /* all values seen, joined */
};

enum js_this { JS_THIS_OUTER, JS_THIS_GLOBAL, JS_THIS_OWN };

struct js_scope {
	uint32_t first_var;
	uint32_t function; /* the scope that holds its var declarations */
	enum js_this this;
	uint8_t n_params;
	bool returns, module_arguments, generator;
	uint32_t param[JS_PARAMS_MAX];
	struct js_value result;
};

enum js_bind { JS_BIND_NONE, JS_BIND_ASSIGN, JS_BIND_VAR, JS_BIND_LET, JS_BIND_PARAM, JS_BIND_IMPORT };

/* A node on the path from the root to the cursor. */
struct js_frame {
	uint8_t node, field;
	uint8_t bind;     /* how identifiers directly in this node are bound */
	uint8_t declares; /* kind of the declaration keyword */
	bool named, scope, type_only, of;
	uint16_t child; /* number of named children so far */
	uint32_t start, end;
	uint32_t kids; /* index of its first child on the kid stack */
	uint32_t outer_scope;
};

/* A finished child, kept for its parent. */
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
	bool judging;      /* true in the last pass, which reports findings */
	struct span where; /* span of the current assignment or call */
	bool exhausted;    /* memory or budget exhausted: reported once, the walk ends */
	uint64_t fold_left;
	uint32_t loops;      /* number of loops around the cursor */
	bool engine_changed; /* the program replaces functions that folding relies on */
	uint32_t forever;    /* number of endless loops around the cursor */
	uint32_t conditions; /* number of if statements around the cursor */
	/* What the program does anywhere in its text; complete before the last pass. */
	bool serves, opens_socket, fetches;
	bool learned; /* this pass found a new origin of a parameter after its function was walked */

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
	uint32_t next_scope, scope; /* the next scope in text order; the current one */

	struct js_frame *frames;
	uint32_t n_frames, cap_frames;
	struct js_kid *kids;
	uint32_t n_kids, cap_kids;

	/* Uses of fs: a program that only reads standard input is harmless. */
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
/* Allocates n elements (objects: pairs), uninitialized. */
bool js_list_new(struct js *js, enum js_kind kind, size_t n, struct js_value *ret);
/* The program changes the list: its contents become unknown, in every variable. */
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
/* decodes escapes; start and end exclude the quotes */
struct js_value js_literal(struct js *js, uint32_t start, uint32_t end);
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
/* atom of an identifier in the source, escapes decoded */
uint32_t js_atom_at(struct js *js, uint32_t start, uint32_t end);
uint32_t js_declare(struct js *js, uint32_t scope, uint32_t atom);
void js_scope_enter(struct js *js, struct js_frame *f);
void js_scope_leave(struct js *js, struct js_frame *f);
bool js_walk_scopes(struct js *js, TSNode root);
struct js_value js_read(struct js *js, uint32_t atom);
void js_set_parameter(struct js *js, uint32_t var, struct js_value value);
void js_assign(struct js *js, const struct js_value *target, struct js_value value, unsigned depth);

/* javascript_tree.c: the cursor walk that all passes use. */
struct js_visit {
	bool (*enter)(struct js *js, struct js_frame *f); /* false: skip its children */
	void (*leave)(struct js *js, struct js_frame *f); /* called with its kids still on the stack */
};
bool js_walk(struct js *js, TSNode root, const struct js_visit *visit);
struct js_frame *js_parent(struct js *js, unsigned up); /* up 1: the parent of the top frame; NULL: none */

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

/* javascript_import.c: imports and exports. */
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
/* a global name that has a rule or a meaning here */
bool js_is_engine_name(struct js *js, const char *name, size_t len);
void js_mention_kept(struct js *js, const struct js_value *v, struct span where);
void js_mention(struct js *js, const struct js_value *v, struct span where);
void js_check(struct js *js, const char *check, struct span where, const char *detail);

/* javascript_intent.c: what a program does, judged from several places of its text together. */
bool js_is_from_outside(struct js *js, const struct js_value *name);
unsigned js_origin(const struct js_value *v); /* flags of JS_ORIGIN, of v and the values that it contains */
unsigned js_origin_of_all(const struct js *js, const struct js_value *v, size_t n);
/* The functions among v[n] will be called with values of this origin. */
void js_taint_parameters(struct js *js, const struct js_value *v, size_t n, unsigned origin);
bool js_loops_forever(const struct js *js, const struct js_frame *f);
/* Judges text that is run as code in the program's own realm (eval, Function). */
void js_judge_run(struct js *js, const struct js_value *code, bool has_parameters, struct span where);
/* Judges a call of a network client; true if it connects to another machine. */
bool js_judge_client(struct js *js, const struct js_value *args, size_t n, struct span where);
/* Judges a call of a module's function; returns the origin of its result. */
unsigned js_judge_intent(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			 struct span where);
/* Judges object.name(args) where object came from the network. */
void js_judge_sent(struct js *js, const struct js_value *name, const struct js_value *args, size_t n,
		   struct span where);
/* Judges require() of a module if the name or the call of require() is not spelled out. */
void js_judge_way_to_module(struct js *js, const struct js_value *name, struct span where);
struct js_value js_import(struct js *js, const struct js_value *name, struct span where);
void js_judge_member(struct js *js, const char *path, size_t len, struct span where);
void js_judge_attribute(struct js *js, const char *name, size_t len, struct span where);
void js_judge_builtin(struct js *js, const char *name, size_t len, struct span where);
void js_judge_module_call(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			  struct span where);

/* Rounds towards zero.  Not trunc(): linking the math library would slow every start of brig. */
static inline double js_whole(double d)
{
	return d < 9e15 && d > -9e15 ? (double)(int64_t)d : d;
}

#endif
