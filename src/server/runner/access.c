/* SPDX-License-Identifier: Apache-2.0 */
#include "server/runner/access.h"

#include <linux/un.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/str.h"

/* ---- who ------------------------------------------------------------------------------------------------ */

/*
 * Somebody who has a mount namespace of his own can bind a socket to any name, have a privileged program connect to it, and, if
 * the front is his as well, send us that connection.  So the file behind the name is compared, too, where we may ask for it
 * (CAP_NET_ADMIN, as root has); a service of an ordinary user has no privilege that could be had by that.
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

/* Whether this is a connection to a unix socket of ours, and whose: a socket of any other kind says nothing of a client. */
static bool ask_kernel(const struct service *s, int peer, struct ucred *ret)
{
	union { /* so that the path has an end, however long it is */
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
	    getsockopt(peer, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &int_len) < 0 || is_listening)
		return false;
	return getsockopt(peer, SOL_SOCKET, SO_PEERCRED, ret, &cred_len) == 0 && cred_len == sizeof(*ret);
}

/* Root and who runs the service are its administrators; other users run what nobody has vouched for. */
static const struct token *token_of_user(uid_t uid)
{
	static struct token t;

	t = (struct token){ .max_trust = TOKEN_UNKNOWN };
	(void)snprintf(t.name, sizeof(t.name), "uid:%u", (unsigned)uid);
	if (uid == 0 || uid == geteuid()) {
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
		[TOKEN_UNREADABLE] = "no token is known until the operator has mended the file of tokens",
	};
	struct brig_error err = BRIG_ERROR_INIT;
	enum token_why why = TOKEN_WRONG;
	const struct token *t;

	if (tokens_refresh(s->tokens, &err) < 0)
		(void)fprintf(stderr, "brig serve: runner: %s\n", err.msg);
	t = tokens_find(s->tokens, secret, (int64_t)(clock_wall_ns() / NS_PER_SEC), &why);
	if (!t)
		(void)str_copy(ret_why, why_size, whys[why]);
	return t;
}

const struct token *access_find(struct service *s, const struct message *m, int peer, char *ret_why, size_t why_size)
{
	static const struct token anonymous = { .name = "anonymous", .max_trust = TOKEN_TRUSTED, .admin = true };
	const char *secret = message_text(m, FIELD_credential);
	struct ucred cred;

	if (s->options->no_auth)
		return &anonymous;
	if (secret)
		return find_token(s, secret, ret_why, why_size);
	if (ask_kernel(s, peer, &cred))
		return token_of_user(cred.uid);
	(void)str_copy(ret_why, why_size, "there is no token: send 'Authorization: Bearer brig_...'");
	return NULL;
}

bool access_owns(const struct token *token, const char *owner)
{
	return token->admin || str_eq(token->name, owner);
}

/* ---- what ------------------------------------------------------------------------------------------------- */

/* Settings that say what this host is to do without, or name places of it: the operator's, whatever the policy lets the
 * person at its command line do. */
static const char *const host_settings[] = {
	"allow_degraded",   "enable_sandbox", "fallback",      "rootfs",     "docker_host",
	"docker_cert_path", "docker_runtime", "docker_userns", "rules_file",
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

/* Where it is in the order of strictness; what is no level is for the library to complain about, as the strictest. */
static size_t level_of_inspection(const char *text)
{
	static const char *const levels[] = { "off", "report", "guard", "strict" };
	size_t i = 0;

	while (i < ARRAY_LEN(levels) && !str_eq(levels[i], text))
		i++;
	return i;
}

/* "RULE=ACTION", separated by commas or blanks: whether each of them blocks. */
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

/* Without a policy file the person at a command line may loosen how code is judged.  Who sends a request is not that person. */
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

	if (!text)
		return level->memory;
	if (which == 2 && str_to_u64(text, &n))
		return n < QUOTA_MEMORY_MAX / MiB ? n * MiB : QUOTA_MEMORY_MAX;
	return str_to_bytes(text, &n) ? n : level->memory;
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

/* The token's own word comes before the policy's: it is one of those that the token may have. */
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

int access_check(const struct host *h, const struct token *token, struct job *job, uint64_t *ret_memory,
		 struct brig_error *err)
{
	enum token_trust trust = h->default_trust;
	struct brig_request *req = &job->req;
	const struct host_level *level;
	struct token_wish wish = { 0 };
	const size_t n_operators = job->n_options - message_count(&job->m, FIELD_option);
	int rc;

	wish.trust = req->trust ? req->trust : token_trust_default(token, token_trust_name(h->default_trust));
	(void)token_trust_parse(wish.trust, &trust);
	if (!req->trust && trust != h->default_trust) /* else the policy chooses, and the result says so */
		req->trust = wish.trust;
	level = &h->level[trust];
	wish.language = language_of(h, req);
	wish.environment = environment_of(job, level);
	wish.packages = req->n_packages > 0;
	wish.memory = memory_of(job, level);
	*ret_memory = wish.memory;
	rc = check_host_settings(token, job, n_operators, err);
	if (rc == 0 && !token->admin && trust != TOKEN_TRUSTED)
		rc = check_inspection(token, job, n_operators, level, err);
	if (rc < 0)
		return rc;
	wish.backend = backend_of(token, job, level);
	return token_allows(token, &wish, err);
}
