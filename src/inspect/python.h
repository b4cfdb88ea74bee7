/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python inspector, in five steps over one flat copy of the syntax tree:
 *
 *	python_tree.c	copies the tree into an array of nodes (preorder) and records the order in which CPython would
 *			evaluate them (postorder); from here on tree-sitter is not used, and nothing recurses
 *	python_scope.c	gives every node its scope and every scope its names, with the places that bind them
 *	python_eval.c	computes for every expression its possible values: modules and their members ("os.system"),
 *			builtins, constant strings, lists of these, functions of the text (python_function.c);
 *			python_fold*.c folds constants
 *	python_judge.c	checks every reference against the rules; python_calls.c checks the arguments of calls,
 *			python_files.c the files among them; python_intent.c and python_flow.c report what ordinary
 *			programs do not do: ways of hiding, and suspicious sources and destinations of data
 *
 * Values are small sets: a name that is bound to two values may be either, and `open` means "or something else". Sets
 * only grow, so evaluation terminates; it is also bounded by rounds and by the judge's steps.
 */
#ifndef INSPECT_PYTHON_H
#define INSPECT_PYTHON_H

#include <string.h>

#include "base/buf.h"
#include "inspect/judge.h"
#include "inspect/python_symbols.h"

#define PY_NONE    UINT32_MAX /* no node */
#define PY_UNKNOWN 0u         /* the set of all values */
#define PY_NOTHING 1u         /* the empty set: not bound yet */
/* the scope of all attributes of objects, which are distinguished by name only */
#define PY_POOL       (UINT32_MAX - 1)
#define PY_SET_MAX    6
#define PY_STRING_MAX (64 * 1024)
#define PY_ROUNDS_MAX 6
#define PY_MEMORY_MAX (96 * MiB) /* for atoms and sets */
#define PY_UNROLL_MAX 512        /* maximum number of elements of a comprehension that is folded */
#define PY_ARGS_MAX   32

struct py_node {
	uint16_t sym;  /* enum py_symbol */
	uint8_t field; /* enum py_field: position in the parent */
	uint8_t flags;
	uint32_t start, end;
	uint32_t parent, child, next; /* PY_NONE: none */
	uint32_t post_first, post;    /* its subtree is order[post_first..post], itself last */
	uint32_t name;                /* for identifiers: a string atom; for nodes that open a scope: that scope */
	uint32_t scope;
	uint32_t value; /* number of a set */
};
/* flags */
#define PY_STORE    1u /* an identifier that is bound here or that is not a reference */
#define PY_CONSUMED 2u /* examined by py_judge_call(): not an escape */

enum py_atom_kind {
	/* a module, its members, results of their calls: "os", "os.system", "pathlib.Path()", "builtins.eval" */
	PY_PATH,
	PY_STR,
	PY_BYTES,
	PY_PART, /* a string whose unknown parts are '*' */
	PY_INT,
	PY_LIST,  /* lists, tuples, sets, values of dictionaries */
	PY_FUNC,  /* a function or lambda defined in the text */
	PY_CLASS, /* a class defined in the text */
	PY_SPACE, /* the __dict__ of a path; "" means globals() */
};

/* One possible value.  Equal atoms have equal numbers. */
struct py_atom {
	enum py_atom_kind kind;
	uint32_t len; /* length of text, or number of items */
	uint32_t hash;
	bool decoded; /* a decoder or chr() of the text produced it; ignored when atoms are compared */
	union {
		const char *text;
		const uint32_t *item; /* LIST: sets */
		int64_t number;       /* INT; FUNC and CLASS: the node */
	};
};

struct py_set {
	uint8_t n;
	bool open;
	uint32_t hash;
	uint32_t atom[PY_SET_MAX];
};

enum py_scope_kind { PY_SCOPE_MODULE, PY_SCOPE_FUNCTION, PY_SCOPE_CLASS, PY_SCOPE_COMPREHENSION };

struct py_scope {
	enum py_scope_kind kind;
	uint32_t parent; /* PY_NONE for the module */
	uint32_t node;
	uint32_t result; /* set of the values that its return statements return */
	bool read;       /* result has been read */
};

/* A place that binds a name.  After it, within `suite`, the name is certainly bound. */
struct py_site {
	uint32_t node, suite, next;
};

enum py_binding_kind { PY_BOUND, PY_GLOBAL, PY_NONLOCAL };

struct py_binding {
	uint32_t scope, name;
	enum py_binding_kind kind;
	bool deleted;   /* a `del` statement removes it */
	bool read;      /* value has been read */
	uint32_t value; /* a set */
	uint32_t sites; /* PY_NONE: none */
};

struct py_table { /* open addressing; slots hold number + 1 */
	uint32_t *slot;
	uint32_t mask, used;
};

struct py_block;

struct py {
	struct judge *j;
	const char *text;
	uint32_t len;

	struct py_node *node;
	uint32_t n_nodes, cap_nodes;
	uint32_t *order; /* postorder */
	uint32_t first_error;

	struct py_scope *scope;
	uint32_t n_scopes, cap_scopes;
	struct py_binding *binding;
	uint32_t n_bindings, cap_bindings;
	struct py_site *site;
	uint32_t n_sites, cap_sites;
	struct py_table bindings;

	struct py_atom *atom;
	uint32_t n_atoms, cap_atoms;
	struct py_table atoms;
	struct py_set *set;
	uint32_t n_sets, cap_sets;
	struct py_table sets;

	struct py_block *blocks; /* memory for strings and items */
	size_t block_used, block_size, memory;

	const struct rule *imported[32]; /* rules that were reported for an import statement */
	unsigned n_imported;
	unsigned unrolling; /* nesting depth of the comprehensions being folded */
	unsigned searches;  /* number of searches through all calls of the text for the arguments of a parameter */
	int serves;         /* whether the program connects to a server of its own: 0 unknown, 1 no, 2 yes */
	bool changed;       /* a binding grew after it had been read */
	bool failed;        /* no memory or no steps left: earlier findings count, and the failure is reported */
};

/* python_tree.c */
bool py_read_tree(struct py *p);
struct span py_span(const struct py *p, uint32_t node);
uint32_t py_field(const struct py *p, uint32_t node, enum py_field field); /* PY_NONE: none */
uint32_t py_nth(const struct py *p, uint32_t node, unsigned n);            /* the n-th named child */
uint32_t py_unwrap(const struct py *p, uint32_t node); /* removes parentheses, stars and type wrappers */
bool py_steps(struct py *p, uint64_t n);               /* false: the budget is used up */
uint32_t py_ancestor(const struct py *p, uint32_t node, enum py_symbol sym);

/* python_value.c */
void *py_alloc(struct py *p, size_t size); /* NULL: p->failed is set */
uint32_t py_text_atom(struct py *p, enum py_atom_kind kind, const char *text, size_t len);
uint32_t py_number_atom(struct py *p, enum py_atom_kind kind, int64_t number);
uint32_t py_list_atom(struct py *p, const uint32_t *item, uint32_t n);
uint32_t py_set_intern(struct py *p, struct py_set *want);
uint32_t py_set_of(struct py *p, uint32_t atom); /* the set with only this atom */
uint32_t py_set_text(struct py *p, enum py_atom_kind kind, const char *text, size_t len);
uint32_t py_set_number(struct py *p, int64_t number);
uint32_t py_join(struct py *p, uint32_t a, uint32_t b);
uint32_t py_set_add(struct py *p, uint32_t set, uint32_t atom);
uint32_t py_set_open(struct py *p, uint32_t set);
/* The atom, if it is the only possible value and of this kind; NULL otherwise. */
const struct py_atom *py_only(const struct py *p, uint32_t set, enum py_atom_kind kind);
/* "base.name" as a path. */
uint32_t py_path_atom(struct py *p, const char *base, size_t base_len, const char *sep, const char *name, size_t len);
/* A copy of the set whose strings are marked as decoded. */
uint32_t py_mark_decoded(struct py *p, uint32_t set);
bool py_atom_is(const struct py_atom *a, enum py_atom_kind kind, const char *text);
bool py_table_grow(struct py *p, struct py_table *t, uint32_t entries);
void py_release(struct py *p);
bool py_reserve(struct py *p, void *array, uint32_t *cap, uint32_t n, size_t size);

/* python_names.c */
/* The identifier as CPython sees it (NFKC); the result belongs to p or is the text itself. */
const char *py_identifier(struct py *p, uint32_t start, uint32_t end, uint32_t *len);
uint32_t py_name(struct py *p, const char *text, size_t len); /* names are string atoms */
bool py_name_is(const struct py *p, uint32_t name, const char *text);

/* python_scope.c */
void py_scopes(struct py *p);
uint32_t py_find_binding(const struct py *p, uint32_t scope, uint32_t name); /* PY_NONE: none */
uint32_t py_make_binding(struct py *p, uint32_t scope, uint32_t name);
/* The binding that a reference means; *builtin: it may be the builtin of that name, also in addition. */
uint32_t py_resolve(const struct py *p, uint32_t node, uint32_t name, bool *builtin);
/* the scope that an assignment in `scope` binds the name in */
uint32_t py_owner(const struct py *p, uint32_t scope, uint32_t name);

/* python_eval.c */
void py_evaluate(struct py *p);
void py_eval_node(struct py *p, uint32_t node);
uint32_t py_attribute_of(struct py *p, uint32_t set, const char *name, size_t len);
/*
 * A module that another module exports along: glob.os, random._os.  Rules name them as members "*.os". Removes leading
 * underscores from *name.  NULL: not such a module.
 */
const struct rule *py_reexport(const struct py *p, const struct py_atom *path, const char **name, size_t *len);
void py_bind(struct py *p, uint32_t scope, uint32_t name, uint32_t value);
void py_bind_target(struct py *p, uint32_t target, uint32_t value);
uint32_t py_element_of(struct py *p, uint32_t set);

/* python_function.c */
void py_eval_parameters(struct py *p, uint32_t node);
void py_eval_definition(struct py *p, uint32_t node, enum py_atom_kind kind);
uint32_t py_call_function(struct py *p, uint32_t call, uint32_t callee, uint32_t function);
void py_call_class(struct py *p, uint32_t call, uint32_t node);
/* adds a value that a return statement in that scope returns */
void py_give_result(struct py *p, uint32_t scope, uint32_t value);

/* python_import.c */
void py_eval_import(struct py *p, uint32_t node);
void py_judge_import_statement(struct py *p, uint32_t node);

/* python_args.c */
struct py_args {
	uint32_t node[PY_ARGS_MAX]; /* positional arguments */
	unsigned n;
	bool spread; /* *args, or more than fit: positions are uncertain */
	uint32_t call;
};
void py_args(const struct py *p, uint32_t call, struct py_args *ret);
uint32_t py_keyword(const struct py *p, uint32_t call, const char *name); /* node of its value; PY_NONE */
uint32_t py_keyword_atom(const struct py *p, uint32_t call, uint32_t name);
uint32_t py_arg_value(const struct py *p, const struct py_args *a, unsigned i); /* a set */

/* python_fold.c */
void py_put_code(struct buf *out, uint32_t code, bool bytes); /* as UTF-8, or as one byte */
uint32_t py_fold_string(struct py *p, uint32_t node);
uint32_t py_fold_binary(struct py *p, uint32_t node);
uint32_t py_fold_operator(struct py *p, enum py_symbol op, uint32_t left, uint32_t right);
uint32_t py_fold_subscript(struct py *p, uint32_t node);
uint32_t py_fold_unary(struct py *p, uint32_t node);
/* python_fold_call.c: evaluates a builtin or library function on constants; PY_UNKNOWN if it is not known */
uint32_t py_fold_method(struct py *p, const struct py_args *a, uint32_t object, const char *name, size_t len);
uint32_t py_fold_function(struct py *p, const struct py_args *a, const struct py_atom *function);
/* python_fold_text.c: false: not possible; *part: the result is known in part only */
bool py_decode_text(const char *codec, size_t codec_len, const struct py_atom *in, struct buf *out);
bool py_format(struct py *p, const struct py_args *a, const struct py_atom *format, struct buf *out, bool *part);
bool py_percent(struct py *p, const struct py_atom *format, uint32_t args, struct buf *out, bool *part);
bool py_atom_text(const struct py_atom *a, struct buf *out); /* str(a) */

/* python_rules.c */
/* The rule for a module or the nearest enclosing package; *matched: the length of the path that the rule names. */
const struct rule *py_module_rule(const struct py *p, const char *path, size_t len, size_t *matched);
bool py_is_allowed(const struct py *p, const char *path, size_t len);
/* True if a module is judged by the members used, because some of them are allowed by name. */
bool py_by_attribute(const struct py *p, const char *module, size_t len);
/* Judges the import of a whole module; true: reported, so its members need not be. */
bool py_judge_import(struct py *p, const char *path, size_t len, struct span where);
/* Judges a reference to a member ("os.system", "builtins.eval"); true: reported. */
bool py_judge_path(struct py *p, const char *path, size_t len, struct span where);
/* Judges a module that is passed to a function or put into a list, where it is no longer followed. */
bool py_judge_escape(struct py *p, const char *path, size_t len, struct span where);
/* Judges x.name, where `object` is the set of x. */
bool py_judge_attribute_name(struct py *p, uint32_t object, const char *name, size_t len, struct span where);

/* python_judge.c */
void py_judge(struct py *p);
/* python_calls.c */
void py_judge_call(struct py *p, uint32_t node);
/* python_files.c */
void py_judge_file(struct py *p, uint32_t set, struct span where); /* strings that certainly name files */
void py_judge_files(struct py *p, const struct py_args *a, const struct py_atom *callee);
void py_judge_handed_on(struct py *p, const struct py_args *a);
void py_judge_file_method(struct py *p, const struct py_args *a, uint32_t callee, bool known);
bool py_opens_outside(const struct py *p, uint32_t node); /* a call that opens a file outside the program's places */
/* python_intent.c */
/* True for modules that run code or commands. */
bool py_is_inside(const char *path, size_t len);
void py_judge_hidden_import(struct py *p, const struct py_args *a, uint32_t node, const struct py_atom *name);
void py_judge_intent_of_call(struct py *p, const struct py_args *a, uint32_t callee);
void py_judge_intent_of_reference(struct py *p, uint32_t node); /* node: a name or an attribute */
void py_judge_intent_of_assignment(struct py *p, uint32_t node);
/* python_hide.c */
bool py_names_runner(const char *name, size_t len); /* a method of os that runs a command */
bool py_is_cut(const struct py *p, uint32_t node);  /* strings that are joined within a word */
bool py_is_hook(const struct py *p, uint32_t node);
void py_judge_cut_name(struct py *p, uint32_t node);
void py_judge_detour(struct py *p, const struct py_args *a, uint32_t callee);
/* python_flow.c */
void py_judge_origin(struct py *p, uint32_t node); /* of a node that is run as code or as a command */
void py_judge_flow(struct py *p, const struct py_args *a, const struct py_atom *callee);
bool py_is_own_peer(struct py *p);

#endif
