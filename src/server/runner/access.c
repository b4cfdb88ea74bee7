/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/access.h"

#include <linux/un.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/report.h"

/* ---- authentication --------------------------------------------------------------------------------------- */

/*
 * A user with a mount namespace of their own can bind a socket at any path, have a privileged program connect to it
 * and, if the front is compromised too, pass that connection to the runner.  So the file behind the path is compared as
 * well, where the runner may ask for it (CAP_NET_ADMIN, as root has); a service of an ordinary user has no privileges
 * to gain this way.
 */
static bool is_own_file(int peer, const char *path)
{
	AUTO_FD file = ioctl(peer, SIOCUNIXFILE);
	struct stat theirs, ours;

	if (file < 0)
		return errno == EPERM;
	return fstat(file, &theirs) == 0 && stat(path, &ours) == 0 && theirs.st_dev == ours.st_dev &&
	       theirs.st_ino == ours.st_ino;
}

static bool is_own_path(const struct service *s, int peer, const char *path)
{
	for (size_t i = 0; i < s->n_listeners; i++)
		if (s->listener[i].is_unix && *path && str_eq(s->listener[i].address, path))
			return is_own_file(peer, path);
	return false;
}

/*
 * A connection identifies its peer only while the peer keeps it open: otherwise a front could use a connection that a
 * client has closed.
 */
static bool has_gone(int peer)
{
	struct pollfd p = { .fd = peer };

	/* POLLHUP means closed in both directions; a client that has only shut down writing is still there */
	return poll(&p, 1, 0) != 0;
}

/*
 * Verifies that this is an open connection to one of our unix sockets, and gets the peer's credentials.  No other kind
 * of socket identifies a client.
 */
static bool ask_kernel(const struct service *s, int peer, struct ucred *ret)
{
	union { /* guarantees a NUL after the longest path */
		struct sockaddr_un sa;
		char bytes[sizeof(struct sockaddr_un) + 1];
	} own = { .bytes = { 0 } };
	socklen_t len = sizeof(own.sa), cred_len = sizeof(*ret);
	int is_listening = 1;
	socklen_t int_len = sizeof(is_listening);

	if (peer < 0 || getsockname(peer, (struct sockaddr *)&own.sa, &len) < 0 || own.sa.sun_family != AF_UNIX ||
	    len <= offsetof(struct sockaddr_un, sun_path) || len > sizeof(own.sa))
		return false;
	if (!is_own_path(s, peer, own.bytes + offsetof(struct sockaddr_un, sun_path)) ||
	    getsockopt(peer, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &int_len) < 0 || is_listening || has_gone(peer))
		return false;
	return getsockopt(peer, SOL_SOCKET, SO_PEERCRED, ret, &cred_len) == 0 && cred_len == sizeof(*ret);
}

/*
 * The permissions from the first matching row of the policy.  Without one, root and the user of the service are
 * administrators, and other users may run code with trust `unknown`.  Groups are those that the peer had when it
 * connected.  NULL: the policy refuses the user, or the groups cannot be determined.
 */
static const struct token *token_of_user(const struct service *s, int peer, const struct ucred *cred,
					 uint16_t *ret_status, char *ret_why, size_t why_size)
{
	static struct token t;
	AUTO_FREE gid_t *groups = NULL;
	struct users_peer who = { .uid = cred->uid, .gid = cred->gid };
	const struct users_row *row;

	if (!users_groups(s->host->served, peer, &groups, &who.n_groups)) {
		(void)snprintf(ret_why, why_size, "the kernel does not tell the groups of user %u",
			       (unsigned)cred->uid);
		return NULL;
	}
	who.groups = groups;
	row = users_find(s->host->served, &who);
	if (row && row->refuse) {
		*ret_status = 403;
		(void)snprintf(ret_why, why_size, "the policy of the service refuses user %u (%s)", (unsigned)cred->uid,
			       row->place);
		return NULL;
	}
	t = row ? row->may : (struct token){ .max_trust = TOKEN_UNKNOWN, .is_for_all = true };
	(void)snprintf(t.name, sizeof(t.name), "uid:%u", (unsigned)cred->uid);
	if (!row && (cred->uid == 0 || cred->uid == geteuid())) {
		t.admin = true;
		t.max_trust = TOKEN_TRUSTED;
	}
	return &t;
}

static const struct token *find_token(struct service *s, const char *secret, char *ret_why, size_t why_size)
{
	static const char *const whys[] = {
		[TOKEN_KNOWN] = "",
		[TOKEN_WRONG] = "the token is not known: see 'brig token list'",
		[TOKEN_EXPIRED] = "the token has expired: 'brig token create' makes another",
		[TOKEN_REVOKED] = "the token was revoked",
		[TOKEN_UNREADABLE] = "no token is known until the operator has fixed the file of tokens",
	};
	struct brig_error err = BRIG_ERROR_INIT;
	enum token_why why = TOKEN_WRONG;
	const struct token *t;

	if (tokens_refresh(s->tokens, &err) < 0)
		report("%s", err.msg);
	t = tokens_find(s->tokens, secret, (int64_t)(clock_wall_ns() / NS_PER_SEC), &why);
	if (!t)
		(void)str_copy(ret_why, why_size, whys[why]);
	return t;
}

enum door access_door(const struct message *m)
{
	return (enum door)min_u64(message_number(m, FIELD_door, DOOR_api), DOOR_COUNT - 1);
}

static bool is_refused(const struct service *s, const char *secret)
{
	for (size_t i = 0; i < s->options->n_refused_keys; i++)
		if (str_eq(s->options->refused_keys[i], secret))
			return true;
	return false;
}

/* A token for one door is not valid at others, and at the API only if its list includes "api". */
static const struct token *find_token_of(struct service *s, const char *secret, enum door door, char *ret_why,
					 size_t why_size)
{
	const struct token *t = find_token(s, secret, ret_why, why_size);

	if (!t || token_opens(t, door_rows[door].name))
		return t;
	(void)snprintf(ret_why, why_size,
		       "the token %s does not open %s: 'brig token create --door %s' makes one that does", t->name,
		       door_rows[door].title, door_rows[door].name);
	return NULL;
}

const struct token *access_find(struct service *s, const struct message *m, int peer, uint16_t *ret_status,
				char *ret_why, size_t why_size)
{
	static const struct token anonymous = {
		.name = "anonymous", .max_trust = TOKEN_TRUSTED, .admin = true, .is_for_all = true, .is_anonymous = true
	};
	const char *secret = message_text(m, FIELD_credential);
	struct ucred cred;

	*ret_status = 401;
	if (secret && is_refused(s, secret)) {
		(void)str_copy(ret_why, why_size, "this key is one that the service is configured to refuse");
		return NULL;
	}
	if (s->options->no_auth)
		return &anonymous;
	if (secret)
		return find_token_of(s, secret, access_door(m), ret_why, why_size);
	if (ask_kernel(s, peer, &cred))
		return token_of_user(s, peer, &cred, ret_status, ret_why, why_size);
	(void)str_copy(ret_why, why_size, "there is no token: send 'Authorization: Bearer brig_...'");
	return NULL;
}

const struct token *access_of_owner(struct service *s, const char *owner, const struct quota *quota, char *ret_why,
				    size_t why_size)
{
	static struct token t;
	struct brig_error err = BRIG_ERROR_INIT;
	const struct token *made;

	t = (struct token){ .max_trust = TOKEN_TRUSTED, .quota = *quota, .is_for_all = true };
	(void)str_copy(t.name, sizeof(t.name), owner);
	/* identified by user ("uid:N"), hence no token can have expired */
	if (s->options->no_auth || strchr(owner, ':'))
		return &t;
	if (tokens_refresh(s->tokens, &err) < 0)
		report("%s", err.msg);
	made = tokens_named(s->tokens, owner);
	if (made && !made->revoked && (!made->expires || made->expires > (int64_t)(clock_wall_ns() / NS_PER_SEC)))
		return &t;
	(void)snprintf(ret_why, why_size, "the token %s, which made the session, is not good any more", owner);
	return NULL;
}

bool access_owns(const struct token *token, const char *owner)
{
	return token->admin || str_eq(token->name, owner);
}

/* ---- authorisation ---------------------------------------------------------------------------------------- */

/*
 * Settings that waive protections of this host or name its resources.  Only the operator may set them, even where the
 * policy permits them at the command line.
 */
static const char *const host_settings[] = {
	"allow_degraded",
	"enable_sandbox",
	"fallback",
	"rootfs",
	"docker_host",
	"docker_cert_path",
	"docker_runtime",
	"docker_userns",
	"rules_file",
	"kubernetes_server",
	"kubernetes_token_file",
	"kubernetes_ca_file",
	"kubernetes_namespace",
	"kubernetes_runtime",
};

static int check_host_settings(const struct token *token, const struct job *job, size_t n_operators,
			       struct brig_error *err)
{
	for (size_t i = n_operators; i < job->n_options && !token->admin; i++)
		for (size_t k = 0; k < ARRAY_LEN(host_settings); k++)
			if (str_eq(job->options[i].key, host_settings[k]))
				return err_set(err, BRIG_E_REFUSED, 0,
					       "the token %s may not ask for %s, which is for who runs the service: "
					       "leave it out, or have it set there",
					       token->name, host_settings[k]);
	return 0;
}

/* Rank in order of strictness.  Unknown words rank lowest, because the library accepts others for off, such as "no". */
static size_t level_of_inspection(const char *text)
{
	static const char *const levels[] = { "off", "report", "guard", "strict" };

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (str_eq(levels[i], text))
			return i;
	return 0;
}

/* Whether all items "RULE=ACTION", separated by commas or blanks, have the action block. */
static bool only_blocks(const char *rules)
{
	static const char action[] = "=block", between[] = ", \t\n";

	for (const char *item = rules + strspn(rules, between); *item;) {
		size_t len = strcspn(item, between);

		if (len < strlen(action) || strncmp(item + len - strlen(action), action, strlen(action)) != 0)
			return false;
		item += len + strspn(item + len, between);
	}
	return true;
}

/* Without a policy file, a user at the command line may relax the inspection; a client of the service may not. */
static int check_inspection(const struct token *token, const struct job *job, size_t n_operators,
			    const struct host_level *level, struct brig_error *err)
{
	for (size_t i = n_operators; i < job->n_options; i++) {
		const struct brig_option *o = &job->options[i];

		if ((str_eq(o->key, "inspection") &&
		     level_of_inspection(o->value) < level_of_inspection(level->inspection)) ||
		    (str_eq(o->key, "rules") && !only_blocks(o->value)))
			return err_set(err, BRIG_E_REFUSED, 0,
				       "the token %s may not have code judged less strictly (%s) than the policy does, "
				       "below trust trusted: leave it out, or have it set in the policy",
				       token->name, o->key);
	}
	return 0;
}

static uint64_t memory_of(const struct job *job, const struct host_level *level)
{
	static const char *const names[] = { "mem_limit", "memory_limit", "memory_mb" };
	size_t which = 0;
	const char *text = job_wish(job, names, ARRAY_LEN(names), &which);
	uint64_t n = 0;
	bool is_read;

	if (!text)
		return level->memory;
	if (which == 2 && text[strspn(text, "0123456789.")] == '\0')
		is_read = str_to_millis(text, MiB, &n); /* a number without a unit counts MiB, as in a policy */
	else
		is_read = str_to_bytes(text, &n);
	/* what cannot be parsed counts as the maximum */
	return is_read ? min_u64(n, QUOTA_MEMORY_MAX) : QUOTA_MEMORY_MAX;
}

static const char *environment_of(const struct job *job, const struct host_level *level)
{
	static const char *const names[] = { "environment" };
	size_t which;
	const char *text = job->req.environment ? job->req.environment : job_wish(job, names, ARRAY_LEN(names), &which);

	if (!text)
		text = level->environment;
	return *text && !str_eq(text, "none") ? text : NULL;
}

/* The token's default takes precedence over the policy's, since the token may use only those in its list. */
static const char *backend_of(const struct token *token, struct job *job, const struct host_level *level)
{
	static const char *const names[] = { "backend" };
	size_t which;
	const char *text = job_wish(job, names, ARRAY_LEN(names), &which), *own = token_backend_default(token);

	if (!text && own) {
		job_wish_backend(job, own);
		text = own;
	}
	if (!text)
		text = level->backend;
	return *text && !str_eq(text, "auto") ? text : NULL;
}

static const char *language_of(const struct host *h, const struct brig_request *req)
{
	const char *own = NULL;

	if (req->kind == BRIG_KIND_COMMAND || req->kind == BRIG_KIND_SHELL)
		return NULL;
	if (req->language) {
		own = host_language(h, req->language);
		return own ? own : req->language;
	}
	return req->file_name ? host_language_of_file(h, req->file_name) : NULL;
}

/*
 * A request without a trust level gets the policy's, lowered to the maximum of token and door; an explicit one must not
 * exceed either (the token's is checked later).
 */
static int choose_trust(const struct host *h, const struct token *token, const struct door_set *doors, struct job *job,
			const char **ret, struct brig_error *err)
{
	enum door door = access_door(&job->m);
	enum token_trust ceiling = doors->trust[door], wished;
	const char *text = job->req.trust;

	if (!text)
		text = token_trust_default(token, token_trust_name(h->default_trust));
	if (door != DOOR_api && token_trust_parse(text, &wished) && wished > ceiling) {
		if (job->req.trust)
			return err_set(err, BRIG_E_REFUSED, 0, "what comes through %s runs with trust '%s' at most",
				       door_rows[door].title, token_trust_name(ceiling));
		text = token_trust_name(ceiling);
	}
	*ret = text;
	return 0;
}

/*
 * Limits in other protocols may exceed the policy's, and are lowered to it instead of being refused.  For E2B the door
 * sets the limits itself, because its clients name none and enforce their own timeouts: the maximum that a request may
 * have, unless the operator has set a value.
 */
static void lower_wishes(struct job *job, const struct host_level *level, size_t n_operators)
{
	static const char *const time[] = { "execution_timeout_ms", "timeout", "max_execution_time" };
	static const char *const output[] = { "output_limit" };
	const bool is_doors = access_door(&job->m) == DOOR_e2b;

	job_lower(job, n_operators, "mem_limit", level->memory, 0);
	job_lower(job, n_operators, "execution_timeout_ms", is_doors ? level->most_ms : level->time_ms, 1);
	job_lower(job, n_operators, "cpu_time_ms", level->cpu_ms, 2);
	job_lower(job, n_operators, "output_limit", level->most_output, 3);
	job_lower(job, n_operators, "compile_timeout_ms", level->compile_ms, 4);
	if (is_doors) {
		job_leave(job, n_operators, time, ARRAY_LEN(time));
		job_leave(job, n_operators, output, ARRAY_LEN(output));
	}
}

int access_check(const struct host *h, const struct token *token, const struct door_set *doors, struct job *job,
		 uint64_t *ret_memory, struct brig_error *err)
{
	enum token_trust trust = h->default_trust;
	struct brig_request *req = &job->req;
	const struct host_level *level;
	struct token_wish wish = { 0 };
	const size_t n_operators = job->n_options - message_count(&job->m, FIELD_option);
	int rc;

	rc = choose_trust(h, token, doors, job, &wish.trust, err);
	if (rc < 0)
		return rc;
	(void)token_trust_parse(wish.trust, &trust);
	if (!req->trust && trust != h->default_trust) /* otherwise the policy chooses, and the result says so */
		req->trust = wish.trust;
	level = &h->level[trust];
	if (access_door(&job->m) != DOOR_api)
		lower_wishes(job, level, n_operators);
	wish.language = language_of(h, req);
	wish.environment = environment_of(job, level);
	wish.packages = req->n_packages > 0 && !job->env.name;
	wish.memory = memory_of(job, level);
	*ret_memory = wish.memory;
	rc = job->env.name ? token_makes(token, job->env.name, err) : 0;
	if (rc == 0)
		rc = check_host_settings(token, job, n_operators, err);
	if (rc == 0 && !token->admin && trust != TOKEN_TRUSTED)
		rc = check_inspection(token, job, n_operators, level, err);
	if (rc < 0)
		return rc;
	wish.backend = backend_of(token, job, level);
	return token_allows(token, &wish, err);
}
