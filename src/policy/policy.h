/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many layers of intent in, one set of values out: built-in < preset < file < environment < trust
 * level < request.  Each value remembers the layer, and the place in it, that set it.
 *
 * Trust levels: what is built in for `untrusted` is taken only where it tightens the lower layers, what is
 * built in for `trusted` only where it loosens them; the file's trust_levels replace these key by key
 * (for `untrusted` still only where they tighten).
 *
 * What a file sets binds the layers above it: they can tighten it, and loosen only what costs resources.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "base/buf.h"
#include "base/err.h"
#include "model/settings.h"

enum policy_layer { LAYER_BUILTIN, LAYER_PRESET, LAYER_FILE, LAYER_ENV, LAYER_TRUST, LAYER_REQUEST, LAYER_COUNT };
extern const char *const policy_layer_name[LAYER_COUNT];

/* Complaints about one source, all of them, each with its place ("sandbox.yaml:12:7", "BRIG_TIMEOUT"). */
struct policy_diag {
	char place[160];
	unsigned line, column; /* 0 where there is none */
	char msg[320];
};
#define POLICY_DIAGS_MAX 100
struct policy_diags {
	struct policy_diag row[POLICY_DIAGS_MAX];
	size_t n;
	size_t dropped; /* further ones that did not fit */
};

struct policy;

struct policy_sources {
	const char *file;  /* NULL: none */
	bool is_users_own; /* found, not named: only the caller and root may be able to write it */
	const char *text;  /* not NULL: the file's contents, text_len bytes; file is then only its name */
	size_t text_len;
	const char *preset;         /* NULL: BRIG_PRESET, else the file's "preset:", else "standard" */
	const char *const *environ; /* NULL-terminated; NULL: none */
};

/* On a bad source: -BRIG_E_POLICY, every complaint in *diags (may be NULL), the first one in *err. */
int policy_load(const struct policy_sources *src, struct policy **ret, struct policy_diags *diags,
		struct brig_error *err);
void policy_free(struct policy *p); /* NULL is fine */
/* The values of all layers below the trust level: for what must be decided when a request could not be resolved. */
const struct settings *policy_base(const struct policy *p);
/* The file it was loaded from; "" if there was none, or one that has nothing but comments and is no policy. */
const char *policy_file(const struct policy *p);
/* { "users": [ { "place", "user" or "group", ... } ] }: rows of users.def as the file has them, in their order. */
int policy_users_json(const struct policy *p, char **ret, struct brig_error *err);
/* A policy file with every setting, its default and its meaning, all behind '#'; for free(). */
int policy_template(char **ret, struct brig_error *err);

struct policy_origin {
	enum policy_layer layer;
	char place[96]; /* "sandbox.yaml:12", "BRIG_TIMEOUT", "preset strict", "trust trusted", "request timeout" ... */
};

struct policy_resolved {
	struct settings set;
	enum trust trust;
	enum policy_layer trust_from; /* who chose it: the request, or the layer that set the default */
	char preset[16];
	/* Of set.rules the first n_policy_rules are the policy's, the others the request's. */
	size_t n_policy_rules;
	bool only_tighten; /* a request may not loosen how code is judged */
	struct policy_origin origin[SETTING_COUNT];
};

/* Names of the presets, for help texts and completion. */
extern const char *const preset_names[];
extern const size_t preset_count;

/*
 * Applies a trust level (NULL: default_trust) and the request's wishes.  A level above max_trust, or an option beyond
 * what the trust allows: -BRIG_E_REFUSED, naming key, value and ceiling; trust and trust_from are filled nevertheless.
 * A malformed wish: -BRIG_E_USAGE.
 */
int policy_resolve(const struct policy *p, const char *trust, const struct brig_option *options, size_t n,
		   struct policy_resolved *ret, struct brig_error *err);

/*
 * The most that a request of this trust can have: each number as high as it may wish, what the policy says of the rest.
 * *ret_any_degraded: it may wish to go without any protection.  False: the policy gives this trust to no request.
 */
bool policy_most(const struct policy *p, enum trust t, struct settings *ret, bool *ret_any_degraded);

/* One value as text in the file's spelling ("512m", "30s", "50%", "[a, b]"); returns dst. */
const char *policy_value_text(const struct settings *s, enum setting_key k, char *dst, size_t size);
/* The document behind brig_policy_json() and brig_policy_check(). */
int policy_to_json(const struct policy_resolved *r, char **ret, struct brig_error *err);
int policy_diags_to_json(const char *path, const struct policy_diags *d, char **ret, struct brig_error *err);

#endif
