/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_keys.c - requests with a session's key instead of a token
 *
 * The runner generates a key for each session and includes it in the session's description for doors.  A request with
 * the key, or with a signature made with it, is authorised for this session like the token that owns it, while that
 * token is valid; other routes are refused.  If the request names a session, only that one's key is compared, otherwise
 * the keys of all sessions, in constant time.
 */
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "server/runner/access.h"
#include "server/runner/answer.h"
#include "server/runner/sessions.h"
#include "sys/crypto.h"

#define ROUTES_OF_ONE "/v1/sessions/{id}"

static bool is_key(const struct server_session *x, const char *key)
{
	return strlen(key) == SESSION_KEY_LEN && crypto_same(x->key, key, SESSION_KEY_LEN);
}

/* Base64 without padding of SHA-256(text, key, and ":" with the expiry time, if there is one). */
static bool is_signed(const struct server_session *x, const struct message *m)
{
	const char *given = message_text(m, FIELD_signature), *text = message_text(m, FIELD_signed_text);
	uint64_t expires = message_number(m, FIELD_expires, 0);
	char until[24] = "", made[(SHA256_LEN + 2) / 3 * 4 + 1] = "";
	uint8_t hash[SHA256_LEN];
	struct sha256 h;
	size_t len;

	if (message_has(m, FIELD_expires)) {
		if (expires <= clock_wall_ns() / NS_PER_SEC)
			return false;
		(void)snprintf(until, sizeof(until), ":%llu", (unsigned long long)expires);
	}
	sha256_begin(&h);
	sha256_add(&h, text ? text : "", text ? strlen(text) : 0);
	sha256_add(&h, x->key, SESSION_KEY_LEN);
	sha256_add(&h, until, strlen(until));
	sha256_end(&h, hash);
	base64_put(made, hash, sizeof(hash));
	len = strcspn(made, "=");
	return strlen(given) == len && crypto_same(given, made, len);
}

static bool opens(const struct server_session *x, enum route route, const struct message *m)
{
	const char *key = message_text(m, FIELD_session_key);

	return key ? is_key(x, key) : message_has(m, FIELD_link) ? session_link_holds(x, route, m) : is_signed(x, m);
}

/* The session the request refers to; NULL: none.  If it names none, the one whose key matches. */
static struct server_session *find(struct service *s, enum route route, const struct message *m)
{
	const char *id = message_text(m, FIELD_id);
	struct server_session *x, *found = NULL;

	TAILQ_FOREACH(x, &s->sessions.all, in_all)
	if (id ? str_eq(x->id, id) : opens(x, route, m))
		found = x;
	return found;
}

/* A signature is valid only for file contents and the session's description. */
static bool is_for(const struct request *req)
{
	const char *path = route_rows[req->route].path;

	if (strncmp(path, ROUTES_OF_ONE, strlen(ROUTES_OF_ONE)) != 0)
		return false;
	if (message_has(req->m, FIELD_link)) /* the link itself says what it permits */
		return true;
	return message_has(req->m, FIELD_session_key) || req->route == ROUTE_session ||
	       req->route == ROUTE_session_file || req->route == ROUTE_session_file_put;
}

bool session_has_key(const struct message *m)
{
	return message_has(m, FIELD_session_key) || message_has(m, FIELD_signature) || message_has(m, FIELD_link);
}

bool session_let_in(struct service *s, struct request *req)
{
	struct server_session *x;
	char why[256] = "";

	if (!is_for(req)) {
		answer_error(s, req, 403, "the key of a session opens what concerns this session only");
		return false;
	}
	x = find(s, req->route, req->m);
	if (!x && forward_lets_in(s, req))
		return true;
	if (!x) {
		if (message_has(req->m, FIELD_id))
			answer_error(s, req, 404, "there is no session of this name");
		else
			answer_error(s, req, 401, "this is the key of no session, or its time is over");
	} else if (!x->inside || x->is_stopping) {
		answer_error(s, req, 410, "the session %s has ended: %s", x->id, x->reason);
	} else if (!opens(x, req->route, req->m)) {
		answer_error(s, req, 401, "this is not the key of the session %s, or its time is over", x->id);
	} else {
		req->token = access_of_owner(s, x->owner, &x->quota, why, sizeof(why));
		if (!req->token)
			answer_error(s, req, 401, "%s", why);
	}
	req->session = req->token ? x : NULL;
	return req->token != NULL;
}
