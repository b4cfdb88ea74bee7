/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the Kubernetes API that brig makes, one function per call: pods of one namespace, and RuntimeClasses by name.
 * It may do nothing else: deploy/kubernetes/cells has the role.
 *
 * Where the API server is and who asks: the settings kubernetes_server, kubernetes_token_file and kubernetes_ca_file, else
 * what Kubernetes gives a pod of its own (service account).  Answers are bounded in size and time, text from them that goes
 * into a message is cut and cleaned, and names are checked before they become part of a path.  What is asked again: reads
 * and removals while the server is busy (429) or in trouble (5xx); making a pod only when the server has said that it did
 * not look at it (429).
 *
 * Functions return 0, or negative with err filled; those that ask for something which may not be there return 1 for
 * "there is none".  BRIG_E_REFUSED: there is no usable cluster (absent, not allowed, TLS); BRIG_E_SYSTEM: it failed.
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
	unsigned minor;       /* version 1.minor of the API server; 0: it did not say */
	uint64_t deadline_ns; /* no call waits longer */
	int status;           /* of the last answer; 0: there was none */
};

/* address.c: who and where, from the settings and the service account. */
int api_locate(const struct settings *set, struct http_target *target, struct api *a, struct brig_error *err);

/* Finds the server, connects and asks for its version, before deadline_ns (CLOCK_MONOTONIC). */
int api_open(const struct settings *set, uint64_t deadline_ns, struct api *ret, struct brig_error *err);
void api_close(struct api *a); /* fine for one that is all zero */

/* *ret: the pod as the server has it; decref it. */
int api_pod_create(struct api *a, const json_t *pod, json_t **ret, struct brig_error *err);
int api_pod_get(struct api *a, const char *name, json_t **ret, struct brig_error *err);
/* An array of pods. */
int api_pod_list(struct api *a, const char *label, json_t **ret, struct brig_error *err);
/*
 * Asks for the removal of a pod, of this uid ("": whichever has the name).  grace_seconds 0: the server forgets it at once;
 * more: when its node has said that everything in it is dead.  1: there is none.
 */
int api_pod_delete(struct api *a, const char *name, const char *uid, unsigned grace_seconds, struct brig_error *err);
/* A WebSocket of v4.channel.k8s.io to the standard input, output and error of its container. */
int api_pod_attach(struct api *a, const char *name, const char *container, struct http_stream **ret,
		   struct brig_error *err);
/* 1: there is no such RuntimeClass.  A server that does not let us look says so when the pod is made. */
int api_runtime_class(struct api *a, const char *name, struct brig_error *err);

#endif
