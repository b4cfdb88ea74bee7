/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is run again unchanged is not compiled again.
 *
 * The key is a hash of everything that decides what the compile cell leaves: the source and its name, the words and
 * the environment of the compiler, the toolchain (lang/identity.c), the backend, and of the cell what it was allowed:
 * family of system calls, profile, trust level, protections that are missing here.  So
 *  - what is found was made from exactly this source; only the author of the source can influence it, and they could
 *    have written the result into the source;
 *  - what an untrusted request's cell left is never run for a trusted one, nor that of a cell with fewer walls for one
 *    with more: should a source subvert its compiler, it affects only runs of the same kind.
 * Limits are not part of it: only whole successes are kept, and a limit decides whether there is one, not which.
 *
 * Only the output of a cell that succeeded and kept every promise is stored; a failed compile is retried each time.
 * The state directory belongs to one user, so nothing passes from one user to another.  Where the toolchain cannot be
 * known (an image of its own, another root) nothing is looked for.
 *
 * What another host compiled is asked for before it is compiled here (exchange.h): its key is made of the same inputs.
 *
 * A hit means that there was no compile cell and thus no evidence of one: result.cache says so.
 */
#include "executor/compile_cache.h"

#include <string.h>

#include "base/clock.h"
#include "executor/exchange.h"

/* To be incremented whenever the same key would mean another output. */
#define RECIPE 1

#define DAY_NS (86400 * NS_PER_SEC)

static void add_words(struct store_key_maker *m, const char *name, const char *const *words)
{
	size_t n = 0;

	for (; words[n]; n++)
		store_key_text(m, name, words[n]);
	store_key_number(m, name, n);
}

/* False: the toolchain cannot be identified. */
static bool make_key(const struct compile_ask *ask, enum lang_identity of, struct store_key *ret)
{
	const struct prepared_request *pr = ask->request;
	const struct plan *plan = &ask->compile->plan;
	AUTO_BUF tools = BUF_INIT(64 * KiB);
	struct store_key_maker m;

	if (!lang_tool_identity(&pr->lang->compile, ask->compile->command.tool, of, &tools))
		return false;
	store_key_begin(&m, of == IDENTITY_ANYWHERE ? EXCHANGE_PREFIX "compile" : "compile");
	store_key_number(&m, "recipe", RECIPE);
	store_key_text(&m, "language", pr->lang->name);
	store_key_text(&m, "source name", pr->source_name);
	store_key_add(&m, "source", ask->req->code, ask->req->code_len);
	store_key_text(&m, "output name", pr->lang->output_name);
	add_words(&m, "argv", plan->argv);
	add_words(&m, "env", plan->envp);
	store_key_add(&m, "toolchain", tools.data, tools.len);
	if (pr->provision)
		store_key_text(&m, "packages", pr->provision->content);
	store_key_text(&m, "backend", ask->chosen->ops->name);
	store_key_text(&m, "trust", trust_name[plan->trust]);
	store_key_number(&m, "family", plan->family);
	store_key_number(&m, "profile", (uint64_t)plan->profile);
	store_key_number(&m, "deny write exec", plan->deny_write_exec);
	store_key_number(&m, "missing", ask->chosen->missing);
	store_key_end(&m, ret);
	return true;
}

static bool is_of_use(const struct compile_ask *ask)
{
	const struct settings *set = &ask->request->resolved.set;

	/* With a workspace, the influence of the project's other files is unknown. */
	return set->cache && !ask->compile->plan.workspace && !*set->rootfs && !ask->chosen->ops->brings_runtimes &&
	       ask->compile->command.tool[0];
}

static int open_store(struct compile_cache *c, struct recorder *recorder, const struct settings *set,
		      struct brig_error *err)
{
	const struct store_limits limits = { .bytes = set->cache_size, .ttl_ns = set->cache_days * DAY_NS };
	const struct statedir *dir;
	int rc = recorder_dir(recorder, &dir, err);

	return rc < 0 ? rc : store_open(dir, STORE_BYTES, true, &limits, &c->store, err);
}

static void note_content(struct result_cache *rc, enum cached what, const unsigned char hash[STORE_HASH_LEN])
{
	rc->compile = what;
	(void)hex_put(rc->content, hash, STORE_HASH_LEN);
}

/* True if another host had the program and it is stored here now. */
static bool fetch(struct compile_cache *c, const struct compile_ask *ask)
{
	return ask->exchange && ask->exchange->want && make_key(ask, IDENTITY_ANYWHERE, &c->shared) &&
	       exchange_fetch(ask->exchange, c->store, &c->shared, &c->key, ask->req->cancel_fd);
}

/* True if the program was found. */
static bool look_up(struct compile_cache *c, const struct compile_ask *ask, struct buf *ret, struct result *res)
{
	enum cached how = CACHED_HIT;
	const struct limits *l = &ask->compile->plan.limits;
	uint64_t patience = l->startup_ms + l->wall_ms + l->cleanup_ms;
	struct brig_error err = BRIG_ERROR_INIT;
	struct store_info info;
	int rc;

	/* The lookup decides even if the claim failed: at worst, two processes compile the same program. */
	(void)store_claim(c->store, &c->key, patience, ask->req->cancel_fd, &err);
	rc = store_get(c->store, &c->key, ret, &info, &err);
	if (rc != STORE_HIT && fetch(c, ask)) {
		how = CACHED_RECEIVED;
		rc = store_get(c->store, &c->key, ret, &info, &err);
	}
	if (rc < 0 || rc == STORE_DAMAGED)
		result_warn(res, "%s%s", err.msg,
			    rc < 0 ? "; the program is compiled without the cache" : " and compiled anew");
	if (rc != STORE_HIT)
		return false;
	note_content(&res->cache, how, info.content);
	res->cache.age_ms = clock_wall_ns() > info.created_ns ? (clock_wall_ns() - info.created_ns) / NS_PER_MS : 0;
	return true;
}

static void close_store(struct compile_cache *c, struct result *res)
{
	if (c->store)
		res->cache.events = *store_events(c->store);
	store_close(MOVE_PTR(c->store));
}

bool compile_cache_begin(struct compile_cache *c, struct recorder *recorder, const struct compile_ask *ask,
			 struct buf *ret, struct result *res)
{
	uint64_t begin = clock_now_ns();
	struct brig_error err = BRIG_ERROR_INIT;
	bool hit = false;

	*c = (struct compile_cache){ .missing = res->degraded, .exchange = ask->exchange };
	res->cache.compile = CACHED_NONE;
	if (is_of_use(ask) && make_key(ask, IDENTITY_HERE, &c->key)) {
		res->cache.compile = CACHED_MISS;
		if (open_store(c, recorder, &ask->request->resolved.set, &err) < 0)
			result_warn(res, "the compile cache is not used: %s", err.msg);
		else
			hit = look_up(c, ask, ret, res);
	}
	if (hit)
		close_store(c, res);
	res->phase_ns[PHASE_CACHE] += clock_now_ns() - begin;
	return hit;
}

void compile_cache_end(struct compile_cache *c, const struct buf *compiled, struct result *res)
{
	uint64_t begin = clock_now_ns();
	struct brig_error err = BRIG_ERROR_INIT;
	unsigned char hash[STORE_HASH_LEN];

	/* A cell that lacked more protections than expected does not match the key. */
	if (c->store && compiled && res->degraded == c->missing) {
		int rc = store_put(c->store, &c->key, compiled->data, compiled->len, &err);

		if (rc < 0)
			result_warn(res, "the compiled program is not kept: %s", err.msg);
		if (rc == STORE_STORED) {
			sha256(compiled->data, compiled->len, hash);
			note_content(&res->cache, CACHED_STORED, hash);
			if (c->shared.kind[0])
				exchange_offer(c->exchange, c->store, &c->key, &c->shared);
		}
	}
	close_store(c, res);
	res->phase_ns[PHASE_CACHE] += clock_now_ns() - begin;
}
