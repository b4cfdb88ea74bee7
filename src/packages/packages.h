/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Third-party packages, by ecosystem: what installs them, from where, from which files of a project, and how a program
 * finds them.  Everything here is data and file parsing; the executor creates the cells (executor/packages.c).
 */
#ifndef PACKAGES_PACKAGES_H
#define PACKAGES_PACKAGES_H

#include "base/buf.h"
#include "base/err.h"
#include "model/attempts.h"
#include "model/plan.h"

#define PACKAGES_DIR         "/opt/packages" /* in a cell that runs */
#define PACKAGES_OUT         "packages"      /* in the workspace of an install cell: what it leaves */
#define PACKAGES_WORDS_MAX   256
#define PACKAGES_WORD_MAX    256
#define PACKAGES_FILES_MAX   16                 /* of a project, that an install cell is given */
#define PACKAGES_TEXT_MAX    (8u << 20)         /* bytes of all of them */
#define PACKAGES_ENTRIES_MAX ((uint64_t)400000) /* files, folders and links of one set */

/* One way to install: ecosystems.def. */
struct ecosystem {
	const char *name;
	const char *languages[4]; /* names of rows of languages.def */
	const char *manifest;     /* the file of a project that says what it needs */
	const char *also[3];      /* files that travel with it if they are there */
	const char *tool[3];      /* the runtime that packages are for, first hit; its version decides with the rest */
	const char *needs[5];     /* patterns, one of which finds the installer */
	const char *install;      /* the command that installs the installer */
	/* For sh -euc in the workspace of the install cell, which holds the project's files; "$@" are the packages. */
	const char *script;
	const char *install_env[12]; /* beyond the common ones and the registry */
	const char *pass_env[3]; /* variables of the user's own environment that go along: no addresses, no secrets */
	const char *target;      /* where the set is shown */
	const char *run_env[8];  /* what makes programs find it */
	const char *beside;      /* a folder of the set that is shown at this name in the workspace, too; NULL: none */
	const char *staged[3];   /* files of the set that a compile step needs in its workspace */
	enum syscall_family family;
	bool deny_write_exec;
	const char *registry_env;     /* the variable that tells the installer which registry to ask */
	const char *setting;          /* the policy's, that names one */
	const char *default_registry; /* the default registry */
	bool is_list;                 /* several registries, with , or | between them */
	/* A program that does nothing, and what loads a module and says so: the parts around its name.  NULL: nothing can be
	 * loaded beforehand. */
	const char *nothing;
	const char *load[3];
};
extern const struct ecosystem ecosystems[];
extern const size_t ecosystem_count;

/* The one whose packages programs in this language use; NULL if there is none. */
const struct ecosystem *ecosystem_of_language(const char *language);
/* The first whose manifest this project has; NULL if none. */
const struct ecosystem *ecosystem_of_project(int project);
/* The host's tool, "" if there is none. */
void ecosystem_tool(const struct ecosystem *e, char *tool, size_t size);
/* The same, and whether its installer is there: BRIG_E_REFUSED with what to install. */
int ecosystem_find(const struct ecosystem *e, char *tool, size_t size, struct brig_error *err);
/* Whether a module, or the one that it is in, comes with the runtime. */
bool ecosystem_has_own(const struct ecosystem *e, const char *module);
/* Whether a word can be handed to an installer as the name of a package. */
int packages_check_word(const char *word, struct brig_error *err);

/* ---- files of a project -------------------------------------------------------------------------- */

struct package_files {
	struct plan_file file[PACKAGES_FILES_MAX];
	size_t n;
	size_t bytes;
};

/*
 * Reads, beneath the project's folder and without following anything, what an installation needs of it: the manifest,
 * the files next to it, and for pip what -r and -c lines name, under names of one component each.  What the workspace
 * hides is refused.
 */
int package_files_read(const struct ecosystem *e, const struct plan_workspace *project, struct package_files *ret,
		       struct brig_error *err);
void package_files_release(struct package_files *f);

/*
 * Whether the tree that an installer left holds each package that the words and the project's files name; what only the
 * installer can know from them is not asked for.  BRIG_E_REFUSED: the one that is missing.
 */
int packages_present(const struct ecosystem *e, const char *const *words, size_t n, const struct package_files *files,
		     int tree, struct brig_error *err);

/*
 * The names of the packages that the words and the project's files ask for, as they are written there and without
 * versions; those that only the installer could tell are left out.  Negative of each: it ends there, and is handed on.
 */
typedef int (*package_name_fn)(void *arg, const char *name);
int packages_each_name(const struct ecosystem *e, const char *const *words, size_t n, const struct package_files *files,
		       package_name_fn each, void *arg, struct brig_error *err);

/* ---- registries ---------------------------------------------------------------------------------- */

#define REGISTRY_URL_MAX 1024

struct registry {
	char url[REGISTRY_URL_MAX];   /* as the installer is told; may hold credentials: never shown */
	char shown[REGISTRY_URL_MAX]; /* the same without them */
	const char *from;             /* who said so: "the policy", "PIP_INDEX_URL", "~/.npmrc" ... */
};

/* policy: its setting, "" if it says nothing; then the user's own configuration, then the installer's default. */
int registry_find(const struct ecosystem *e, const char *policy, struct registry *ret, struct brig_error *err);
/* Adds its hosts as egress/ wants them, each once. */
int registry_hosts(const struct ecosystem *e, const struct registry *r, struct setting_list *hosts,
		   struct brig_error *err);
/* Replaces the credentials of the registry in what an installer wrote.  text is len bytes and keeps its length. */
void registry_hide(const struct registry *r, char *text, size_t len);

/* ---- why it failed ------------------------------------------------------------------------------- */

/* In one sentence with its remedy: from what the proxy saw, or from the installer's output.  False: neither helps. */
bool packages_trouble_of_hosts(const struct ecosystem *e, const struct network *net, char *dst, size_t size);
bool packages_trouble_of_words(const struct ecosystem *e, const char *text, size_t len, char *dst, size_t size);

/* ---- addresses ----------------------------------------------------------------------------------- */

/* One address, taken apart.  False: it is no http or https address that we would hand on. */
struct url {
	const char *user; /* user_len bytes: credentials */
	size_t user_len;
	const char *host; /* host_len bytes; an IPv6 address has its brackets */
	size_t host_len;
	uint16_t port; /* 0: the usual one */
	bool plain;    /* http */
};
bool url_parse(const char *text, size_t len, struct url *ret);

/* What the configuration files of installers say: the value into dst.  False: nothing, or nothing of use. */
bool pip_conf_index(const char *text, size_t len, char *dst, size_t size);
bool npmrc_registry(const char *text, size_t len, char *dst, size_t size);
bool go_env_proxy(const char *text, size_t len, char *dst, size_t size);

#endif
