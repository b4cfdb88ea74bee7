/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - commands through a service on this host
 *
 * Its address: $BRIG_HOST, which is unix:PATH or none; otherwise the default socket of this user, then the system's.
 * If a service that was not named explicitly does not answer, or refuses the request, the command runs here, as it does
 * without a service.  If it was named, that is an error.
 */
#include "cli/service.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/config_path.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define NAMED_BY      "BRIG_HOST"
#define POLICY_OF_ALL "/etc/brig/sandbox.yaml"
#define INLINE_MAX    (32 * MiB) /* maximum that a service puts into a result */

extern char **environ;

/* ---- address ------------------------------------------------------------------------------------------ */

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* 1: the variable names a service; 0: not set; -code: invalid.  *ret_none: it is "none". */
static int read_variable(struct service_place *ret, bool *ret_none, struct brig_error *err)
{
	static const char scheme[] = "unix:";
	const char *text = getenv(NAMED_BY);

	*ret_none = text && str_eq(text, "none");
	if (!text || !*text || *ret_none)
		return 0;
	if (strncmp(text, scheme, strlen(scheme)) != 0 || text[strlen(scheme)] == '\0' ||
	    !str_copy(ret->path, sizeof(ret->path), text + strlen(scheme)))
		return err_set(err, BRIG_E_USAGE, 0, NAMED_BY "='%.120s' is no service: it is unix:PATH or none", text);
	ret->is_named = true;
	return 1;
}

int service_find(bool local, struct service_place *ret, struct brig_error *err)
{
	bool none = false;
	int rc;

	*ret = (struct service_place){ .is_named = false };
	if (local)
		return 0;
	rc = read_variable(ret, &none, err);
	if (rc != 0 || none)
		return rc;
	if (socket_path_own(ret->path) && is_socket(ret->path))
		return 1;
	return str_copy(ret->path, sizeof(ret->path), SOCKET_OF_SYSTEM) && is_socket(ret->path) ? 1 : 0;
}

bool service_is_likely(void)
{
	struct service_place place;

	return service_find(false, &place, NULL) == 1 && (place.is_named || !service_own_policy());
}

/* ---- what only this process can do ------------------------------------------------------------------------ */

/* As chosen by the library (api/brig.c): a user's own file is used if the host has none. */
static bool has_own_file(void)
{
	char own[PATH_MAX];
	struct stat st;

	return stat(POLICY_OF_ALL, &st) < 0 && config_path(own, sizeof(own)) && stat(own, &st) == 0;
}

/* Variables that select a program, a service or a test, and do not affect how code runs. */
static bool is_no_policy(const char *variable)
{
	static const char *const others[] = { NAMED_BY "=", "BRIG_TOKEN=", "BRIG_BIN=", "BRIG_TEST_", "BRIG_BENCH_" };

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strncmp(variable, others[i], strlen(others[i])) == 0)
			return true;
	return false;
}

const char *service_own_policy(void)
{
	static char name[64];

	for (char **at = environ; *at; at++) {
		size_t len = strcspn(*at, "=");

		if (strncmp(*at, "BRIG_", strlen("BRIG_")) != 0 || is_no_policy(*at))
			continue;
		(void)memcpy(name, *at, min_u64(len, sizeof(name) - 1));
		name[min_u64(len, sizeof(name) - 1)] = '\0';
		return name;
	}
	return geteuid() != 0 && has_own_file() ? "a policy file of your own" : NULL;
}

/* Settings that name places of this host, which only this process can look up. */
static bool names_a_place(const struct brig_option *o)
{
	static const char *const keys[] = { "rules_file", "rootfs", "docker_host", "docker_cert_path" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_eq(o->key, keys[i]))
			return true;
	return false;
}

const char *service_only_here(const struct brig_request *req, bool is_named)
{
	if (req->venv)
		return "--venv";
	if (req->environment && !is_named) /* it is in this user's own state, unless a service was named */
		return "--env-name";
	if (req->inline_artifacts > INLINE_MAX && !req->workspace && !req->out_dir)
		return "--inline-artifacts of more than 32m";
	for (size_t i = 0; i < req->n_options; i++)
		if (names_a_place(&req->options[i]))
			return req->options[i].key;
	return NULL;
}

int service_stay_here(const struct service_place *place, const char *why, struct brig_error *err)
{
	if (!place->is_named)
		return 1;
	return err_set(err, BRIG_E_USAGE, 0, "%s does not travel to the service that " NAMED_BY " names: use --local",
		       why);
}

/* ---- the connection ---------------------------------------------------------------------------------------- */

/* The listener at a default location must be root or this user. */
static bool is_trusted(const struct service_place *place, int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return place->is_named || (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
				   (cred.uid == 0 || cred.uid == geteuid()));
}

/* The error if a named service cannot be reached. */
static int no_answer(const struct service_place *place, int error, struct brig_error *err)
{
	if (error == EPROTOTYPE)
		return err_set(
			err, BRIG_E_USAGE, 0,
			"what listens at %.120s is not for commands: name the socket of 'brig serve --socket', not "
			"that of --unix, which speaks HTTP",
			place->path);
	return err_set(err, BRIG_E_SYSTEM, error,
		       "no service answers at %.120s: start one with 'brig serve --socket', or use --local",
		       place->path);
}

int service_reach(const struct service_place *place, int *ret, struct brig_error *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	AUTO_FD sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)str_copy(sa.sun_path, sizeof(sa.sun_path), place->path);
	if (sock < 0 || connect(sock, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return place->is_named ? no_answer(place, errno, err) : 1;
	if (!is_trusted(place, sock))
		return 1;
	*ret = fd_move(&sock);
	return 0;
}

/* ---- answers ------------------------------------------------------------------------------------------------ */

int service_refusal(const struct service_place *place, const struct service_answer *a, struct brig_error *err)
{
	json_t *doc = json_loadb(buf_str(&a->text), a->text.len, 0, NULL);
	const char *text = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));
	enum brig_code code = BRIG_E_SYSTEM;
	int rc = 1;

	if (a->status == 400 || a->status == 422)
		code = BRIG_E_USAGE;
	else if (a->status == 401 || a->status == 403 || a->status == 429)
		code = BRIG_E_REFUSED;
	/* A user who is rejected, or finds the service busy or of another version, is served as without a service. */
	if (place->is_named || a->is_accepted ||
	    (a->status != 401 && a->status != 403 && a->status != 426 && a->status != 503))
		rc = err_set(err, code, 0, "%s", text ? text : "the service did not say why it does not do it");
	json_decref(doc);
	return rc;
}

/* Sends a request and waits: 0 with status 200, 1: it must run here. */
static int call(const struct service_place *place, const struct service_ask *ask, const struct brig_request *req,
		struct service_answer *answer, struct brig_error *err)
{
	AUTO_FD sock = FD_NONE;
	int rc = service_reach(place, &sock, err);

	if (rc != 0)
		return rc;
	rc = service_wait(&sock, ask, req, answer, err);
	if (rc < 0 && !answer->is_accepted && answer->status == 0 && !place->is_named)
		return 1;
	if (rc < 0)
		return err_wrap(err, "the service at %.100s", place->path);
	return answer->status == 200 ? 0 : service_refusal(place, answer, err);
}

/* Copies the artifacts to where the caller wants them. */
static int copy_out(int from, int to, struct brig_error *err)
{
	char piece[16 * KiB];
	ssize_t n = lseek(from, 0, SEEK_SET) < 0 ? -errno : 1;
	int rc = 0;

	while (n > 0 && rc == 0) {
		n = fd_read_all(from, piece, sizeof(piece));
		if (n > 0)
			rc = fd_write_all(to, piece, (size_t)n);
	}
	if (n < 0 || rc < 0)
		return err_set(err, BRIG_E_SYSTEM, rc < 0 ? -rc : (int)-n, "cannot write the archive of artifacts");
	return 0;
}

/* Sends the request, and handles this user's directories here (NULL: none). */
static int run_with(const struct service_place *place, struct brig_request *req, struct brig_folders *folders,
		    struct brig_result **ret, struct brig_error *err)
{
	struct service_ask ask = SERVICE_ASK_INIT;
	struct service_answer answer = { .text = BUF_INIT(0) };
	int rc = service_ask_fill(&ask, req, folders, err);

	if (rc == -BRIG_E_REFUSED && !place->is_named)
		rc = 1;
	if (rc == 0)
		rc = call(place, &ask, req, &answer, err);
	if (rc == 0)
		rc = brig_result_from_json(buf_str(&answer.text), answer.text.len, ret, err);
	if (rc == 0 && ask.out >= 0)
		rc = copy_out(ask.out, req->out_fd, err);
	if (rc == 0 && ask.left >= 0)
		rc = brig_folders_finish(folders, ask.left, *ret, err);
	if (rc < 0) {
		brig_result_free(*ret);
		*ret = NULL;
	}
	service_ask_release(&ask);
	buf_release(&answer.text);
	return rc;
}

static int run_with_folders(const struct service_place *place, struct brig_request *req, struct brig_result **ret,
			    struct brig_error *err)
{
	struct brig_folders *folders = NULL;
	struct brig *b = NULL;
	int too_large = 0, rc = brig_open(NULL, &b, err);

	if (rc == 0 && req->files_fd > 0)
		rc = service_copy_archive(&req->files_fd, err);
	if (rc == 0)
		rc = brig_folders_open(b, req, &folders, &too_large, err);
	if (rc == 0 && req->files_fd > 0) /* it was read, to be compared with what comes back */
		(void)lseek(req->files_fd, 0, SEEK_SET);
	if (rc < 0 && too_large && !place->is_named)
		rc = 1;
	if (rc == -BRIG_E_REFUSED) /* as for a run of our own */
		rc = brig_result_from_error(err, ret, err);
	else if (rc == 0)
		rc = run_with(place, req, folders, ret, err);
	brig_folders_close(folders);
	brig_close(b);
	return rc;
}

int service_run(const struct service_place *place, const char *only_here, struct brig_request *req,
		struct brig_result **ret, struct brig_error *err)
{
	if (only_here)
		return service_stay_here(place, only_here, err);
	return req->workspace || req->out_dir ? run_with_folders(place, req, ret, err)
					      : run_with(place, req, NULL, ret, err);
}

int service_check(const struct service_place *place, const char *only_here, const struct brig_check *req,
		  char **ret_json, int *ret_status, struct brig_error *err)
{
	struct service_ask ask = SERVICE_ASK_INIT;
	struct service_answer answer = { .text = BUF_INIT(0) };
	json_t *doc = NULL;
	const char *worst;
	int rc;

	if (only_here)
		return service_stay_here(place, only_here, err);
	rc = service_ask_check(&ask, req, err);
	if (rc == 0)
		rc = call(place, &ask, NULL, &answer, err);
	if (rc == 0)
		doc = json_loadb(buf_str(&answer.text), answer.text.len, 0, NULL);
	if (rc == 0 && !doc)
		rc = err_set(err, BRIG_E_SYSTEM, 0, "the service's document of the inspection cannot be read");
	if (rc == 0) {
		worst = json_string_value(json_object_get(doc, "worst"));
		*ret_status = json_is_true(json_object_get(doc, "blocked")) ? 2
			      : worst && str_eq(worst, "HIGH")              ? 1
									    : 0;
		*ret_json = buf_take(&answer.text);
		rc = *ret_json ? 0 : err_nomem(err);
	}
	json_decref(doc);
	service_ask_release(&ask);
	buf_release(&answer.text);
	return rc;
}
