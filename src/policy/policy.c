/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers over each other.  policy_load() reads every source once and keeps what does not depend on a request: the base
 * (built-in < preset < file < environment) and one layer per trust level. policy_resolve() adds a trust level and the
 * request's options, and is where INV-5 is enforced: an option is compared with the value of the trust level, in the
 * direction that keys.def states.  The trust level itself is bounded by max_trust, and what a file sets binds the
 * layers above it (binding.c).
 */
#include "policy/internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

const char *const policy_layer_name[] = {
	[LAYER_BUILTIN] = "built-in", [LAYER_PRESET] = "preset", [LAYER_FILE] = "file",
	[LAYER_ENV] = "environment",  [LAYER_TRUST] = "trust",   [LAYER_REQUEST] = "request",
};
static_assert(ARRAY_LEN(policy_layer_name) == LAYER_COUNT, "policy_layer_name[] misses a layer");

struct policy {
	struct settings base;
	struct policy_origin origin[SETTING_COUNT];
	struct layer trust[TRUST_COUNT];      /* built in */
	struct layer file_trust[TRUST_COUNT]; /* trust_levels of the file */
	bool bound[SETTING_COUNT];            /* the file sets it for every level */
	bool has_file;
	json_t *users; /* NULL: the file names none */
	char preset[16];
	char file[SETTING_TEXT_MAX]; /* cut if it is longer; only for records */
};

/* Sources as they were read; gone when loading ends. */
struct sources {
	struct layer builtin, preset;
	struct env_layer env, env_file;
	struct file_layers file;
	union slot scratch;
};

static void sources_freep(struct sources **s)
{
	if (!*s)
		return;
	layer_release(&(*s)->builtin);
	layer_release(&(*s)->preset);
	layer_release(&(*s)->env.layer);
	layer_release(&(*s)->env_file.layer);
	layer_release(&(*s)->file.base);
	for (enum trust t = 0; t < TRUST_COUNT; t++)
		layer_release(&(*s)->file.trust[t]);
	json_decref((*s)->file.users);
	free(*s);
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	for (enum trust t = 0; t < TRUST_COUNT; t++) {
		layer_release(&p->trust[t]);
		layer_release(&p->file_trust[t]);
	}
	json_decref(p->users);
	free(p);
}

const struct settings *policy_base(const struct policy *p)
{
	return &p->base;
}

int policy_users_json(const struct policy *p, char **ret, struct brig_error *err)
{
	return users_to_json(p->users, ret, err);
}

const char *policy_file(const struct policy *p)
{
	return p->file;
}

static void policy_freep(struct policy **p)
{
	policy_free(*p);
}

/* ---- loading ------------------------------------------------------------------------------------- */

/* Whether there is nothing but comments and blank lines in it. */
static bool is_comments_only(const char *text, size_t len)
{
	bool in_comment = false;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n')
			in_comment = false;
		else if (text[i] == '#')
			in_comment = true;
		else if (!in_comment && text[i] != ' ' && text[i] != '\r')
			return false;
	}
	return true;
}

/*
 * A file as `brig init` and packages bring it, in which everything is behind '#', is no policy: it binds nothing, and a
 * run does not pay for a YAML parser.
 */
static int parse_text(const struct policy_sources *src, const char *text, size_t len, struct policy *p,
		      struct file_layers *ret, struct policy_diags *diags, struct brig_error *err)
{
	p->has_file = !is_comments_only(text, len);
	if (!p->has_file) {
		p->file[0] = '\0';
		return 0;
	}
	return yaml_parse(src->file ? src->file : "policy", text, len, ret, diags, err);
}

static int read_file(const struct policy_sources *src, struct policy *p, struct file_layers *ret,
		     struct policy_diags *diags, struct brig_error *err)
{
	AUTO_BUF text = BUF_INIT(POLICY_FILE_MAX);
	int rc;

	if (src->text)
		return parse_text(src, src->text, src->text_len, p, ret, diags, err);
	if (!src->file)
		return 0;
	rc = yaml_file_read(src->file, src->is_users_own, &text, diags, err);
	if (rc == 0)
		rc = parse_text(src, buf_str(&text), text.len, p, ret, diags, err);
	return rc == -BRIG_E_NOMEM ? rc : 0; /* other complaints are in diags, and the next source is read too */
}

static const char *choose_preset(const struct policy_sources *src, const struct sources *all,
				 struct policy_diags *diags)
{
	const char *name = "standard", *place = "preset";
	char shown[POLICY_WORD_MAX], hint[96];

	if (src->preset)
		name = src->preset;
	else if (*all->env.preset || *all->env_file.preset) {
		name = *all->env.preset ? all->env.preset : all->env_file.preset;
		place = "BRIG_PRESET";
	} else if (*all->file.preset)
		name = all->file.preset;
	if (name_index(preset_names, preset_count, name) < preset_count)
		return name;
	diag_add(diags, &(struct place){ .name = place }, "unknown preset '%s'; there are standard and strict%s",
		 printable(name, shown, sizeof(shown)), suggest(name, preset_names, preset_count, hint, sizeof(hint)));
	return "standard";
}

static const char *file_shown(const struct policy_sources *src, char *dst, size_t size)
{
	return printable(src->file ? src->file : "policy", dst, size);
}

/*
 * A file whose `untrusted` is looser than its own base, or than the built-in value where it has none,
 * is a mistake.  The preset is left out: choosing another one must not turn a good file into a bad one.
 */
static void check_untrusted(const struct policy_sources *src, struct sources *all, const struct settings *below,
			    struct policy_diags *diags)
{
	const struct layer *level = &all->file.trust[TRUST_UNTRUSTED];
	union slot *wish = &all->scratch;
	char name[128], asked[128], base[128];

	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		const void *ref = setting_at_const(below, k);
		const struct layer_entry *e = level->at[k];
		struct place at = { .name = name };

		if (!layer_has(level, k) || setting_info[k].stricter == STRICTER_SAME)
			continue;
		at.line = e->line;
		at.column = e->column;
		value_unpack_slot(k, &e->val, wish);
		if (value_compare(k, wish, ref) != VALUE_LOOSER)
			continue;
		(void)file_shown(src, name, sizeof(name));
		diag_add(diags, &at, "untrusted would loosen %s to %s from %s; it can only tighten",
			 setting_info[k].name, value_text(k, wish, asked, sizeof(asked)),
			 value_text(k, ref, base, sizeof(base)));
	}
}

static int fail_with_first(const struct policy_diags *d, struct brig_error *err)
{
	char more[48] = "";

	if (d->n + d->dropped > 1)
		(void)snprintf(more, sizeof(more), " (and %zu more)", d->n + d->dropped - 1);
	return err_set(err, BRIG_E_POLICY, 0, "%s: %s%s", d->row[0].place, d->row[0].msg, more);
}

/* Labels of the layers that come from outside, and the room all of them read values into. */
static void prepare(const struct policy_sources *src, struct policy *p, struct sources *all)
{
	struct layer *fixed[] = { &all->builtin, &all->preset, &all->env.layer, &all->env_file.layer, &all->file.base };
	const char *slash = src->file ? strrchr(src->file, '/') : NULL;
	const char *file = slash ? slash + 1 : src->file ? src->file : "policy";

	p->has_file = src->file || src->text;
	(void)str_copy(p->file, sizeof(p->file), src->file ? src->file : "");
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		fixed[i]->scratch = &all->scratch;
	all->env.layer.kind = all->env_file.layer.kind = LAYER_ENV;
	all->file.base.kind = LAYER_FILE;
	(void)printable(file, all->file.base.label, sizeof(all->file.base.label));
	for (enum trust t = 0; t < TRUST_COUNT; t++) {
		p->trust[t].scratch = all->file.trust[t].scratch = &all->scratch;
		all->file.trust[t].kind = LAYER_TRUST;
		(void)printable(file, all->file.trust[t].label, sizeof(all->file.trust[t].label));
	}
}

static bool out_of_memory(const struct policy *p, const struct sources *all)
{
	bool bad = all->builtin.no_memory || all->preset.no_memory || all->env.layer.no_memory ||
		   all->env_file.layer.no_memory || all->file.base.no_memory;

	for (enum trust t = 0; t < TRUST_COUNT; t++)
		bad |= p->trust[t].no_memory || all->file.trust[t].no_memory;
	return bad;
}

static void imply_all(const struct policy_sources *src, struct sources *all, struct policy_diags *diags)
{
	char name[128];

	(void)file_shown(src, name, sizeof(name));
	layer_imply(&all->file.base, name, diags);
	for (enum trust t = 0; t < TRUST_COUNT; t++)
		layer_imply(&all->file.trust[t], name, diags);
	layer_imply(&all->env_file.layer, all->env_file.layer.label, diags);
	layer_imply(&all->env.layer, "", diags);
}

/* The environment over the file, as far as that lets it. */
static void bind(const struct policy_sources *src, struct policy *p, struct sources *all, struct policy_diags *diags)
{
	const struct binding b = { .bound = p->bound, .set = &p->base, .origin = p->origin };
	char name[128];

	binding_settle_trust(&all->file.base, file_shown(src, name, sizeof(name)), &p->base, p->origin, diags);
	binding_collect(&all->file.base, *all->file.preset ? &all->preset : NULL, p->bound);
	/* Both are judged by what the file says, and not by each other. */
	binding_check_environment(&all->env_file.layer, &b, diags);
	binding_check_environment(&all->env.layer, &b, diags);
	layer_apply(&all->env_file.layer, &p->base, p->origin);
	binding_settle_trust(&all->env_file.layer, all->env_file.layer.label, &p->base, p->origin, diags);
	layer_apply(&all->env.layer, &p->base, p->origin);
	binding_settle_trust(&all->env.layer, "", &p->base, p->origin, diags);
}

/* Every source into *all and its place in the policy; complaints into *diags. */
static int build(const struct policy_sources *src, struct policy *p, struct sources *all, struct policy_diags *diags,
		 struct brig_error *err)
{
	const char *preset;
	char name[72];

	if (read_file(src, p, &all->file, diags, err) == -BRIG_E_NOMEM)
		return -BRIG_E_NOMEM;
	(void)snprintf(all->env_file.layer.label, sizeof(all->env_file.layer.label), "env_file %.70s",
		       printable(all->file.env_file, name, sizeof(name)));
	if (env_file_read(src, &all->file, &all->env_file, diags, err) == -BRIG_E_NOMEM)
		return -BRIG_E_NOMEM;
	env_read(src->environ, &all->env, diags);
	preset = choose_preset(src, all, diags);
	(void)str_copy(p->preset, sizeof(p->preset), preset);
	binding_check_preset(preset, all->file.preset, src->preset ? "preset" : "BRIG_PRESET", diags);
	builtin_layer(&all->builtin);
	preset_layer(preset, &all->preset);
	for (enum trust t = 0; t < TRUST_COUNT; t++)
		trust_layer(t, &p->trust[t]);
	imply_all(src, all, diags);
	if (out_of_memory(p, all))
		return err_nomem(err);

	layer_apply(&all->builtin, &p->base, p->origin);
	layer_apply(&all->file.base, &p->base, p->origin);
	check_untrusted(src, all, &p->base, diags);
	layer_apply(&all->preset, &p->base, p->origin);
	layer_apply(&all->file.base, &p->base, p->origin);
	bind(src, p, all, diags);
	return diags->n ? fail_with_first(diags, err) : 0;
}

/* What the file says of trust levels outlives the other sources. */
static void keep_file_trust(struct policy *p, struct sources *all)
{
	for (enum trust t = 0; t < TRUST_COUNT; t++) {
		p->file_trust[t] = all->file.trust[t];
		memset(&all->file.trust[t], 0, sizeof(all->file.trust[t]));
		p->trust[t].scratch = p->file_trust[t].scratch = NULL;
		for (enum setting_key k = 0; k < SETTING_COUNT; k++)
			if (p->file_trust[t].at[k])
				p->file_trust[t].at[k]->only_stricter = t == TRUST_UNTRUSTED;
	}
}

int policy_load(const struct policy_sources *src, struct policy **ret, struct policy_diags *diags,
		struct brig_error *err)
{
	AUTO_FREE struct policy_diags *own_diags = NULL;
	CLEANUP(sources_freep)
	struct sources *all = calloc(1, sizeof(*all));
	CLEANUP(policy_freep)
	struct policy *p = calloc(1, sizeof(*p));
	int rc;

	if (!diags)
		diags = own_diags = malloc(sizeof(*own_diags));
	if (!all || !p || !diags)
		return err_nomem(err);
	diags->n = diags->dropped = 0;
	prepare(src, p, all);
	rc = build(src, p, all, diags, err);
	if (rc < 0)
		return rc;
	keep_file_trust(p, all);
	p->users = MOVE_PTR(all->file.users);
	*ret = MOVE_PTR(p);
	return 0;
}

/* ---- resolving ------------------------------------------------------------------------------------- */

/*
 * Setting a timeout should not require thinking about CPU time as well: unless some layer says otherwise, there is
 * enough of it to keep the granted cpus busy until the wall clock ends the run.  One cpu more than the share, so that
 * the two limits never race.
 */
static void follow_timeout(struct policy_resolved *r)
{
	const struct setting_info *info = &setting_info[SET_cpu_time_ms];
	struct policy_origin *o = &r->origin[SET_cpu_time_ms];
	uint64_t cpus = r->set.cpu_quota_percent / 100 + 1;

	if (o->layer != LAYER_BUILTIN)
		return;
	r->set.cpu_time_ms = max_u64(info->min, min_u64(info->max, r->set.execution_timeout_ms * cpus));
	(void)str_copy(o->place, sizeof(o->place), "follows execution_timeout_ms");
}

static int refuse_trust(const struct policy *p, enum trust t, struct brig_error *err)
{
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"trust '%s' is more than the policy allows a request: max_trust is '%s' (%s); leave --trust out, "
		"or change max_trust in the policy",
		trust_name[t], trust_name[p->base.max_trust], p->origin[SET_max_trust].place);
}

/* A refused level is nevertheless recorded as the request's. */
static int find_trust(const struct policy *p, const char *name, struct policy_resolved *ret, struct brig_error *err)
{
	char shown[POLICY_WORD_MAX], hint[96];
	size_t t;

	ret->trust = (enum trust)p->base.default_trust;
	ret->trust_from = p->origin[SET_default_trust].layer;
	if (!name)
		return 0;
	t = name_index(trust_name, TRUST_COUNT, name);
	if (t == TRUST_COUNT)
		return err_set(err, BRIG_E_USAGE, 0,
			       "unknown trust level '%s'; there are untrusted, unknown and trusted%s",
			       printable(name, shown, sizeof(shown)),
			       suggest(name, trust_name, TRUST_COUNT, hint, sizeof(hint)));
	ret->trust = (enum trust)t;
	ret->trust_from = LAYER_REQUEST;
	return (int)t <= p->base.max_trust ? 0 : refuse_trust(p, ret->trust, err);
}

/* Whether the file says it to requests of this trust. */
static bool is_bound(const struct policy *p, enum trust t, enum setting_key k)
{
	return setting_info[k].loosen != LOOSEN_TRUSTED && (p->bound[k] || layer_has(&p->file_trust[t], k));
}

/* Whether the file says how code is judged at this trust, or who is trusted. */
static bool file_judges(const struct policy *p, enum trust t)
{
	return binding_judges(p->bound) || layer_has(&p->file_trust[t], SET_inspection) ||
	       layer_has(&p->file_trust[t], SET_rules);
}

static bool may_loosen(const struct policy *p, enum trust t, enum setting_key k)
{
	enum setting_loosen who = setting_info[k].loosen;

	if (who == LOOSEN_PERSON)
		return !p->has_file || (t == TRUST_TRUSTED && !file_judges(p, t));
	if (who == LOOSEN_NO_FILE)
		return !p->has_file;
	return t == TRUST_TRUSTED && who != LOOSEN_NOBODY && !is_bound(p, t, k);
}

/* Limits that a request of trust `unknown` may raise, and how far. */
static const struct {
	enum setting_key key, max;
} maxima[] = {
	{ SET_cpu_quota_percent, SET_max_cpu_quota_percent },
	{ SET_mem_limit, SET_max_mem_limit },
	{ SET_pids_limit, SET_max_pids_limit },
	{ SET_disk_limit, SET_max_disk_limit },
	{ SET_output_limit, SET_max_output_limit },
	{ SET_execution_timeout_ms, SET_max_execution_timeout_ms },
};

/* Whether the policy's file or the environment says it. */
static bool is_stated(const struct policy *p, enum trust t, enum setting_key k)
{
	return p->bound[k] || layer_has(&p->file_trust[t], k) || p->origin[k].layer == LAYER_FILE ||
	       p->origin[k].layer == LAYER_ENV;
}

/* How far a request may raise a limit by itself; false: not at all.  A limit without a maximum is its own maximum. */
static bool find_maximum(const struct policy *p, const struct policy_resolved *r, enum setting_key k, uint64_t *ret)
{
	size_t i = 0;

	while (i < ARRAY_LEN(maxima) && maxima[i].key != k)
		i++;
	if (i == ARRAY_LEN(maxima) || r->trust != TRUST_UNKNOWN)
		return false;
	if (is_stated(p, r->trust, k) && !is_stated(p, r->trust, maxima[i].max))
		return false;
	*ret = *(const uint64_t *)setting_at_const(&r->set, maxima[i].max);
	return *ret > *(const uint64_t *)setting_at_const(&r->set, k);
}

/* What would help against a refusal, as the end of its sentence. */
static const char *remedy(const struct policy *p, const struct policy_resolved *r, enum setting_key k, char *dst,
			  size_t size)
{
	enum setting_loosen who = setting_info[k].loosen;

	if ((who == LOOSEN_UNSET || who == LOOSEN_PERSON) && is_bound(p, r->trust, k))
		(void)snprintf(dst, size, "change the policy: %s sets it, and a request can only tighten that",
			       r->origin[k].place);
	else if (who == LOOSEN_PERSON)
		(void)snprintf(dst, size, "set %s in the policy file that is in force", setting_info[k].name);
	else if (p->base.max_trust == TRUST_TRUSTED && may_loosen(p, TRUST_TRUSTED, k))
		(void)str_copy(dst, size, "use --trust trusted");
	else
		(void)str_copy(dst, size, "change the policy: only the policy can loosen it");
	return dst;
}

static int refuse(const struct policy *p, const struct policy_resolved *r, const struct layer_entry *e,
		  enum setting_key k, const union slot *wish, struct brig_error *err)
{
	const struct setting_info *info = &setting_info[k];
	char asked[160], allowed[160], help[192];
	uint64_t most;

	(void)value_text(k, wish, asked, sizeof(asked));
	(void)policy_value_text(&r->set, k, allowed, sizeof(allowed));
	(void)remedy(p, r, k, help, sizeof(help));
	if (find_maximum(p, r, k, &most))
		(void)value_text(k, &most, allowed, sizeof(allowed));
	if (info->kind == KIND_NUM && info->stricter != STRICTER_SAME) {
		bool less = info->stricter == STRICTER_LESS;

		return err_set(err, BRIG_E_REFUSED, 0, "%s %s is %s than trust '%s' allows (%s); %s it, or %s",
			       e->spelling, asked, less ? "more" : "less", trust_name[r->trust], allowed,
			       less ? "lower" : "raise", help);
	}
	return err_set(err, BRIG_E_REFUSED, 0, "%s '%s' is looser than trust '%s' allows ('%s'); leave it out, or %s",
		       e->spelling, asked, trust_name[r->trust], allowed, help);
}

/*
 * A request chooses among `backends`, at any trust, since all of them isolate.  The exception is `direct`: it has to
 * be listed, and the request has to be trusted.
 */
static int check_backend(const struct policy_resolved *r, int wish, struct brig_error *err)
{
	const char *place = r->origin[SET_backends].place;
	char allowed[128];

	if (wish == r->set.backend)
		return 0;
	(void)policy_value_text(&r->set, SET_backends, allowed, sizeof(allowed));
	if (!backend_within(&r->set.backends, wish))
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"backend '%s' is none of those that the policy lets a request choose: %s (%s)%s; leave it "
			"out, or change the policy, as in backend: [native, %s]",
			backend_kind_name[wish], allowed, place,
			wish == BACKEND_DIRECT ? ". direct isolates nothing" : "", backend_kind_name[wish]);
	if (wish == BACKEND_DIRECT && r->trust != TRUST_TRUSTED)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"backend 'direct' isolates nothing and is not for trust '%s'; leave it out, or use --trust "
			"trusted",
			trust_name[r->trust]);
	return 0;
}

/* How high trust goes is no wish. */
static int check_trust_wish(const struct layer_entry *e, enum setting_key k, const union slot *wish,
			    const struct policy_resolved *r, struct brig_error *err)
{
	if (value_compare(k, wish, setting_at_const(&r->set, k)) == VALUE_SAME)
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0,
		       "only the policy sets %s; a request names its own trust level with --trust", e->spelling);
}

/* --rule may be repeated: its items are one list. */
static int read_more_rules(const struct spelling *sp, const struct raw_value *raw, struct layer *wishes,
			   struct brig_error *err)
{
	struct layer_entry *e = wishes->at[SET_rules];
	struct setting_list all = { 0 };
	struct packed more = { 0 };
	char why[POLICY_WHY_MAX];

	value_unpack(SET_rules, &e->val, &all);
	if (!value_read(sp, raw, wishes->scratch, why))
		return err_set(err, BRIG_E_USAGE, 0, "%s", why);
	for (const char *item = NULL; (item = setting_list_next(&wishes->scratch->list, item));)
		if (!setting_list_add(&all, item))
			return err_set(err, BRIG_E_USAGE, 0, "rules has more than %d items", SETTING_LIST_MAX);
	if (!value_pack(SET_rules, &all, &more))
		return err_nomem(err);
	free(e->val.text);
	e->val = more;
	return 0;
}

/* One wish into *wishes; whether it is allowed is asked later, when all of them are known to be sound. */
static int read_wish(const struct brig_option *o, struct layer *wishes, struct policy_diags *complaint,
		     struct brig_error *err)
{
	struct raw_value raw = { .text = o->value };
	struct place at = { .name = "request" };
	char shown[POLICY_WORD_MAX], hint[96];
	struct spelling sp;

	if (!o->key || !o->value)
		return err_set(err, BRIG_E_USAGE, 0, "an option of the request has no key or no value");
	if (!spelling_find(o->key, &sp))
		return err_set(err, BRIG_E_USAGE, 0, "unknown option '%s'%s", printable(o->key, shown, sizeof(shown)),
			       suggest_key(o->key, hint, sizeof(hint)));
	if (sp.key == SET_rules && layer_has(wishes, SET_rules))
		return read_more_rules(&sp, &raw, wishes, err);
	if (!layer_put(wishes, &sp, sp.name, &raw, &at, &at, complaint))
		return wishes->no_memory ? err_nomem(err) : err_set(err, BRIG_E_USAGE, 0, "%s", complaint->row[0].msg);
	return 0;
}

/* INV-5: a request can tighten; it can loosen only what its trust level lets it. */
static int check_wish(const struct policy *p, const struct layer_entry *e, enum setting_key k, const union slot *wish,
		      const struct policy_resolved *r, struct brig_error *err)
{
	uint64_t most;

	if (k == SET_backend)
		return check_backend(r, wish->choice, err);
	if (k == SET_default_trust || k == SET_max_trust)
		return check_trust_wish(e, k, wish, r, err);
	if (find_maximum(p, r, k, &most) && wish->num <= most)
		return 0;
	if (!may_loosen(p, r->trust, k) && value_compare(k, wish, setting_at_const(&r->set, k)) == VALUE_LOOSER)
		return refuse(p, r, e, k, wish, err);
	return 0;
}

/* After the policy's own.  Whether one of them loosens is decided where the rules are known. */
static int add_rules(struct policy_resolved *r, const struct setting_list *wish, struct brig_error *err)
{
	for (const char *item = NULL; (item = setting_list_next(wish, item));)
		if (!setting_list_add(&r->set.rules, item))
			return err_set(err, BRIG_E_USAGE, 0,
				       "rules: there is no room for those of the request beside those of the policy: "
				       "%d items and %d bytes are the most",
				       SETTING_LIST_MAX, SETTING_LIST_BYTES);
	return 0;
}

static int apply_wish(const struct policy *p, const struct layer_entry *e, enum setting_key k, union slot *scratch,
		      struct policy_resolved *r, struct brig_error *err)
{
	int rc;

	value_unpack_slot(k, &e->val, scratch);
	rc = k == SET_rules ? add_rules(r, &scratch->list, err) : check_wish(p, e, k, scratch, r, err);
	if (rc < 0)
		return rc;
	if (k != SET_rules)
		value_copy(k, setting_at(&r->set, k), scratch);
	r->origin[k].layer = LAYER_REQUEST;
	(void)snprintf(r->origin[k].place, sizeof(r->origin[k].place), "request %s", e->spelling);
	return 0;
}

struct wish_room {
	struct layer wishes;
	struct policy_diags complaint;
	union slot scratch;
};

static void wish_room_freep(struct wish_room **w)
{
	if (*w)
		layer_release(&(*w)->wishes);
	free(*w);
}

static int resolve_wishes(const struct policy *p, const struct brig_option *options, size_t n,
			  struct policy_resolved *r, struct brig_error *err)
{
	CLEANUP(wish_room_freep)
	struct wish_room *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return err_nomem(err);
	w->wishes.scratch = &w->scratch;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = read_wish(&options[i], &w->wishes, &w->complaint, err);
	if (rc == 0)
		layer_imply(&w->wishes, "", &w->complaint);
	if (rc == 0 && w->complaint.n)
		rc = err_set(err, BRIG_E_USAGE, 0, "%s", w->complaint.row[0].msg);
	for (enum setting_key k = 0; k < SETTING_COUNT && rc == 0; k++)
		if (layer_has(&w->wishes, k))
			rc = apply_wish(p, w->wishes.at[k], k, &w->scratch, r, err);
	return rc;
}

/* Whether some layer set how code is judged: then trust, which only provides a default for it, does not loosen that. */
static bool is_chosen(const struct policy *p, enum setting_key k)
{
	return setting_info[k].loosen == LOOSEN_PERSON && p->origin[k].layer == LAYER_ENV;
}

/* What the file says of a trust level replaces what is built in, key by key, and so does what it binds for all. */
static void apply_trust(const struct policy *p, enum trust t, struct policy_resolved *r)
{
	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		if (layer_has(&p->file_trust[t], k))
			layer_apply_key(&p->file_trust[t], k, &r->set, &r->origin[k]);
		else if (t != TRUST_TRUSTED || !(is_bound(p, t, k) || is_chosen(p, k)))
			layer_apply_key(&p->trust[t], k, &r->set, &r->origin[k]);
}

int policy_resolve(const struct policy *p, const char *trust, const struct brig_option *options, size_t n,
		   struct policy_resolved *ret, struct brig_error *err)
{
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = find_trust(p, trust, ret, err);
	if (rc < 0)
		return rc;
	for (enum setting_key k = 0; k < SETTING_COUNT; k++)
		value_copy(k, setting_at(&ret->set, k), setting_at_const(&p->base, k));
	memcpy(ret->origin, p->origin, sizeof(ret->origin));
	memcpy(ret->preset, p->preset, sizeof(ret->preset));
	apply_trust(p, ret->trust, ret);
	follow_timeout(ret);
	ret->n_policy_rules = ret->set.rules.n;
	ret->only_tighten = !may_loosen(p, ret->trust, SET_rules);
	if (n == 0)
		return 0;
	rc = resolve_wishes(p, options, n, ret, err);
	follow_timeout(ret);
	/* INV-5: nothing that a request wishes for gives it more trust than it came with. */
	assert(ret->trust_from != LAYER_REQUEST || (int)ret->trust <= p->base.max_trust);
	return rc;
}

bool policy_most(const struct policy *p, enum trust t, struct settings *ret, bool *ret_any_degraded)
{
	AUTO_FREE struct policy_resolved *r = calloc(1, sizeof(*r));
	struct brig_error err = BRIG_ERROR_INIT;

	if (!r || policy_resolve(p, trust_name[t], NULL, 0, r, &err) < 0)
		return false;
	for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
		uint64_t most;

		if (setting_info[k].kind != KIND_NUM)
			continue;
		/* What gets stricter by being more may be wished for by anybody. */
		if (may_loosen(p, t, k) || setting_info[k].stricter == STRICTER_MORE)
			*(uint64_t *)setting_at(&r->set, k) = setting_info[k].max;
		else if (find_maximum(p, r, k, &most))
			*(uint64_t *)setting_at(&r->set, k) = most;
	}
	follow_timeout(r);
	*ret_any_degraded = may_loosen(p, t, SET_allow_degraded);
	*ret = r->set;
	return true;
}
