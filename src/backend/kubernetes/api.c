/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/kubernetes/api.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backend/container/answer.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/wait.h"

#define CALL_MS        30000
#define RETRY_MS       200 /* pause before a call to a busy server is repeated */
#define PATH_MAX_BYTES (4 * KiB)

/* An API call. */
struct request {
	const char *method;
	const char *what; /* "make the pod", for messages */
	struct buf path;  /* owned by the request */
	const json_t *body;
	bool not_again; /* do not repeat it after a server error: it may have been executed */
};
#define REQUEST_INIT(m, w)                                                   \
	{                                                                    \
		.method = (m), .what = (w), .path = BUF_INIT(PATH_MAX_BYTES) \
	}
static void request_release(struct request *q)
{
	buf_release(&q->path);
}
#define AUTO_REQUEST             \
	CLEANUP(request_release) \
	struct request

static void add_pods(const struct api *a, struct request *q, const char *name)
{
	(void)buf_addf(&q->path, "/api/v1/namespaces/%s/pods", a->namespace);
	if (name) {
		(void)buf_adds(&q->path, "/");
		http_escape(&q->path, name);
	}
}

/* ---- error messages -------------------------------------------------------------------------------- */

static const struct {
	enum brig_code code;
	const char *fix;
} troubles[] = {
#define TROUBLE(http, code, fix) [http] = { code, fix },
#include "backend/kubernetes/troubles.def"
};

static int no_answer(struct api *a, const char *what, enum http_trouble trouble, struct brig_error *err)
{
	char why[300];

	if (err->code == BRIG_E_NOMEM || err->code == BRIG_E_INTERNAL)
		return -err->code;
	a->status = 0;
	return err_set(err, troubles[trouble].code, 0, "cannot %s: %s. %s", what,
		       answer_clean(why, sizeof(why), err->msg), troubles[trouble].fix);
}

static int said_no(const struct api *a, const char *what, const struct http_answer *answer, struct brig_error *err)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	json_t *v = answer_parse_object(buf_str(&answer->body), answer->body.len, 0, &ignored);
	char words[300];

	(void)answer_clean(words, sizeof(words), answer_text_or(v, "message", "(without a reason)"));
	json_decref(v);
	if (answer->status == 401)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "cannot %s: the API server at %s does not know who asks (%s). Give a valid token in "
			       "kubernetes_token_file",
			       what, a->server, words);
	if (answer->status == 403)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "cannot %s: the API server at %s forbids it: %s. The role that brig needs is in "
			       "deploy/kubernetes/cells",
			       what, a->server, words);
	return err_set(err, BRIG_E_SYSTEM, 0, "cannot %s: the API server at %s answered %d: %s", what, a->server,
		       answer->status, words);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static uint64_t call_deadline(const struct api *a)
{
	uint64_t own = clock_now_ns() + CALL_MS * NS_PER_MS;

	return a->deadline_ns ? min_u64(own, a->deadline_ns) : own;
}

static int send_once(struct api *a, const struct request *q, const char *body, struct http_answer *ret,
		     struct brig_error *err)
{
	enum http_trouble trouble = HTTP_FINE;
	const struct http_request req = { .method = q->method,
					  .path = buf_str(&q->path),
					  .content_type = body ? "application/json" : NULL,
					  .headers = { "Accept: application/json", a->authorization },
					  .body = body,
					  .body_len = body ? strlen(body) : 0,
					  .deadline_ns = call_deadline(a),
					  .max_body = API_ANSWER_MAX };
	int rc = http_send(a->http, &req, ret, &trouble, err);

	if (rc < 0)
		return no_answer(a, q->what, trouble, err);
	a->status = ret->status;
	return 0;
}

static bool may_retry(const struct request *q, int status)
{
	return status == 429 || (!q->not_again && status >= 500);
}

/* Returns any status; retries "try again later" until the deadline. */
static int send_any(struct api *a, const struct request *q, struct http_answer *ret, struct brig_error *err)
{
	AUTO_FREE char *body = q->body ? json_dumps(q->body, JSON_COMPACT) : NULL;
	uint64_t until = call_deadline(a);
	int rc;

	a->status = 0;
	if ((q->body && !body) || q->path.no_memory)
		return err_nomem(err);
	if (q->path.full)
		return err_set(err, BRIG_E_REFUSED, 0, "cannot %s: what is asked for is too long", q->what);
	for (;;) {
		rc = send_once(a, q, body, ret, err);
		if (rc < 0 || !may_retry(q, ret->status) || clock_now_ns() + RETRY_MS * NS_PER_MS >= until)
			return rc;
		http_answer_release(ret);
		*ret = (struct http_answer)HTTP_ANSWER_INIT;
		wait_sleep(RETRY_MS * NS_PER_MS);
	}
}

/* Returns the object in the answer; ret may be NULL.  1: 404. */
static int send_for(struct api *a, const struct request *q, json_t **ret, struct brig_error *err)
{
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	json_t *v;
	int rc = send_any(a, q, &answer, err);

	if (rc < 0)
		return rc;
	if (answer.status == 404)
		return 1;
	if (answer.status >= 300)
		return said_no(a, q->what, &answer, err);
	if (!ret)
		return 0;
	v = answer_parse_object(buf_str(&answer.body), answer.body.len, 0, err);
	if (!v)
		return err_wrap(err, "cannot %s: the API server at %s makes no sense", q->what, a->server);
	*ret = v;
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------------- */

/* "20", or "20+" as some vendors write. */
static unsigned version_number(const char *text)
{
	unsigned n = 0;

	for (; *text >= '0' && *text <= '9' && n < 10000; text++)
		n = n * 10 + (unsigned)(*text - '0');
	return n;
}

static int read_version(struct api *a, struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("GET", "ask the cluster for its version");
	json_t *v = NULL;
	int rc;

	(void)buf_adds(&q.path, "/version");
	rc = send_for(a, &q, &v, err);
	if (rc == 0 && version_number(answer_text_or(v, "major", "")) == 1)
		a->minor = version_number(answer_text_or(v, "minor", ""));
	json_decref(v);
	if (rc < 0)
		return rc;
	if (a->minor < 19)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "what answers at %s is not Kubernetes 1.19 or newer, which brig needs (seccompProfile)",
			       a->server);
	return 0;
}

int api_open(const struct settings *set, uint64_t deadline_ns, struct api *ret, struct brig_error *err)
{
	struct http_target target;
	int rc;

	*ret = (struct api){ .deadline_ns = deadline_ns };
	rc = api_locate(set, &target, ret, err);
	if (rc == 0)
		rc = http_open(&target, &ret->http, err);
	if (rc == 0)
		rc = read_version(ret, err);
	if (rc < 0)
		api_close(ret);
	ret->deadline_ns = 0;
	return rc;
}

void api_close(struct api *a)
{
	http_close(MOVE_PTR(a->http));
	if (a->authorization)
		explicit_bzero(a->authorization, strlen(a->authorization));
	free(MOVE_PTR(a->authorization));
}

/* ---- pods ------------------------------------------------------------------------------------------- */

int api_pod_create(struct api *a, const json_t *pod, json_t **ret, struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("POST", "make the pod");
	int rc;

	q.body = pod;
	q.not_again = true;
	add_pods(a, &q, NULL);
	rc = send_for(a, &q, ret, err);
	if (rc > 0)
		return err_set(err, BRIG_E_REFUSED, 0, "cannot make the pod: the cluster at %s has no namespace '%s'",
			       a->server, a->namespace);
	return rc;
}

int api_pod_get(struct api *a, const char *name, json_t **ret, struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("GET", "look at the pod");

	add_pods(a, &q, name);
	return send_for(a, &q, ret, err);
}

int api_pod_list(struct api *a, const char *label, json_t **ret, struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("GET", "list pods");
	json_t *v = NULL;
	int rc;

	add_pods(a, &q, NULL);
	(void)buf_adds(&q.path, "?labelSelector=");
	http_escape(&q.path, label);
	rc = send_for(a, &q, &v, err);
	if (rc == 0 && json_is_array(json_object_get(v, "items")))
		*ret = json_incref(json_object_get(v, "items"));
	else if (rc >= 0)
		rc = err_set(err, BRIG_E_SYSTEM, 0, "cannot list pods: the API server at %s has no list of them",
			     a->server);
	json_decref(v);
	return rc;
}

/* A conflict: a different pod may have the name by now, which means that ours is gone. */
static bool is_another(struct api *a, const char *name, const char *uid)
{
	struct brig_error ignored = BRIG_ERROR_INIT;
	json_t *pod = NULL;
	int rc = api_pod_get(a, name, &pod, &ignored);
	bool other = rc > 0 || (rc == 0 && !str_eq(answer_text_or(pod, "metadata.uid", uid), uid));

	json_decref(pod);
	return other;
}

int api_pod_delete(struct api *a, const char *name, const char *uid, unsigned grace_seconds, struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("DELETE", "remove the pod");
	json_t *body = json_pack("{s:s, s:s, s:i, s:s}", "apiVersion", "v1", "kind", "DeleteOptions",
				 "gracePeriodSeconds", (int)grace_seconds, "propagationPolicy", "Background");
	int rc;

	if (uid[0])
		(void)json_object_set_new(body, "preconditions", json_pack("{s:s}", "uid", uid));
	q.body = body;
	add_pods(a, &q, name);
	rc = body ? send_for(a, &q, NULL, err) : err_nomem(err);
	json_decref(body);
	return rc < 0 && uid[0] && a->status == 409 && is_another(a, name, uid) ? 1 : rc;
}

int api_runtime_class(struct api *a, const char *name, struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("GET", "look for the RuntimeClass");
	int rc;

	(void)buf_adds(&q.path, "/apis/node.k8s.io/v1/runtimeclasses/");
	http_escape(&q.path, name);
	rc = send_for(a, &q, NULL, err);
	return rc < 0 && a->status == 403 ? 0 : rc;
}

int api_pod_attach(struct api *a, const char *name, const char *container, struct http_stream **ret,
		   struct brig_error *err)
{
	AUTO_REQUEST q = REQUEST_INIT("GET", "attach to the pod");
	AUTO_ANSWER answer = HTTP_ANSWER_INIT;
	enum http_trouble trouble = HTTP_FINE;
	char key[64] = "Sec-WebSocket-Key: ";
	uint8_t random[16];
	struct http_request req = { .method = q.method, .upgrade = "websocket", .deadline_ns = call_deadline(a) };
	size_t len = strlen(key);
	int rc;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(err, BRIG_E_SYSTEM, errno, "the kernel gives no random numbers");
	base64_put(key + len, random, sizeof(random));
	key[len + 24] = '\0';
	add_pods(a, &q, name);
	(void)buf_adds(&q.path, "/attach?stdin=true&stdout=true&stderr=true&tty=false&container=");
	http_escape(&q.path, container);
	req.path = buf_str(&q.path);
	req.headers[0] = "Sec-WebSocket-Version: 13";
	req.headers[1] = "Sec-WebSocket-Protocol: v4.channel.k8s.io";
	req.headers[2] = key;
	req.headers[3] = a->authorization;
	rc = http_stream_open(a->http, &req, ret, &answer, &trouble, err);
	a->status = answer.status;
	if (rc == 0 && answer.status == 101)
		return 0;
	if (rc == 0)
		http_stream_close(MOVE_PTR(*ret));
	return rc == 0 || trouble == HTTP_FINE ? said_no(a, q.what, &answer, err) : no_answer(a, q.what, trouble, err);
}
