/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kubernetes API calls that brig makes, one function per call: pods in one namespace, and RuntimeClasses by name.
 * It needs no other permission: deploy/kubernetes/cells has the role.
 *
 * The address and credentials come from the settings kubernetes_server, kubernetes_token_file and kubernetes_ca_file,
 * otherwise from the service account that Kubernetes gives to a pod.  Answers are bounded in size and time, text from
 * them is cut and cleaned before it goes into a message, and names are checked before they become part of a path.
 * Reads and removals are repeated while the server is busy (429) or has an error (5xx); creating a pod only if the
 * server has not processed the request (429).
 *
 * Functions return 0, or negative with err filled; lookups return 1 for "not found".  BRIG_E_REFUSED: there is no
 * usable cluster (absent, not permitted, TLS); BRIG_E_SYSTEM: it failed.
 */
#ifndef KUBERNETES_API_H
#define KUBERNETES_API_H

#include <jansson.h>

#include "base/err.h"
#include "model/settings.h"
#include "net/http.h"

#define API_ANSWER_MAX (8 * MiB)
#define API_NAME_MAX   63

struct api {
	struct http_client *http;
	char *authorization; /* "Authorization: Bearer ..."; NULL: none */
	char server[300];    /* for messages */
	char namespace[API_NAME_MAX + 1];
	unsigned minor;       /* version 1.minor of the API server; 0: unknown */
	uint64_t deadline_ns; /* no call waits longer */
	int status;           /* of the last answer; 0: none */
};

/* address.c: address and credentials, from the settings or the service account. */
int api_locate(const struct settings *set, struct http_target *target, struct api *a, struct brig_error *err);

/* Finds the server, connects and asks for its version, before deadline_ns (CLOCK_MONOTONIC). */
int api_open(const struct settings *set, uint64_t deadline_ns, struct api *ret, struct brig_error *err);
void api_close(struct api *a); /* also for an all-zero struct */

/* *ret: the pod as returned by the server; release it with json_decref(). */
int api_pod_create(struct api *a, const json_t *pod, json_t **ret, struct brig_error *err);
int api_pod_get(struct api *a, const char *name, json_t **ret, struct brig_error *err);
/* An array of pods. */
int api_pod_list(struct api *a, const char *label, json_t **ret, struct brig_error *err);
/*
 * Requests the removal of a pod with this uid ("": any with the name).  grace_seconds 0: the server forgets it at once;
 * otherwise once its node has confirmed that all its processes are dead.  1: not found.
 */
int api_pod_delete(struct api *a, const char *name, const char *uid, unsigned grace_seconds, struct brig_error *err);
/* A WebSocket of v4.channel.k8s.io to the standard input, output and error of its container. */
int api_pod_attach(struct api *a, const char *name, const char *container, struct http_stream **ret,
		   struct brig_error *err);
/*
 * 1: no such RuntimeClass.  If we may not read RuntimeClasses, the server reports a missing one when the pod is
 * created.
 */
int api_runtime_class(struct api *a, const char *name, struct brig_error *err);

#endif
