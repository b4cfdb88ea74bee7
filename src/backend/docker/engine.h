/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Engine API, one function per call.  Where the engine is: the setting docker_host, else $DOCKER_HOST, else the
 * first of /run/docker.sock, /var/run/docker.sock, podman's sockets that is there.
 *
 * An engine is trusted to be root, not to be sane: answers are bounded in size and time, ids in them must be 64 hex
 * digits, text from them that goes into a message is cut and cleaned, and whatever comes from a request is
 * percent-encoded before it becomes part of a path.
 *
 * Functions return 0, or negative with err filled; those that ask for something which may not be there return 1 for
 * "there is none".  Codes of err: BRIG_E_REFUSED when there is no usable engine (absent, no permission, too old, TLS),
 * so that nothing can run here; BRIG_E_SYSTEM when an engine that is there fails or misbehaves.  engine_status() and
 * engine_trouble() tell more about the last call.  One engine serves one thread at a time.
 */
#ifndef DOCKER_ENGINE_H
#define DOCKER_ENGINE_H

#include <jansson.h>

#include "base/err.h"
#include "model/settings.h"
#include "net/http.h"

#define ENGINE_ID_LEN      64
#define ENGINE_IMAGE_LEN   (7 + ENGINE_ID_LEN) /* "sha256:" + id */
#define ENGINE_API_OLDEST  40                  /* 1.40: what brig needs is there */
#define ENGINE_API_NEWEST  47                  /* 1.47: what brig was written against */
#define ENGINE_ANSWER_MAX  (8 * MiB)
#define ENGINE_CHANGES_MAX (8 * MiB)

struct engine;

enum engine_trouble {
	ENGINE_FINE,
	ENGINE_ABSENT,
	ENGINE_DENIED,
	ENGINE_TOO_OLD,
	ENGINE_NO_TLS,
	ENGINE_NO_LIBRARY,
	ENGINE_LATE,    /* no answer before the deadline */
	ENGINE_GARBAGE, /* an answer that makes no sense, or is too big */
	ENGINE_BROKEN,  /* the connection broke */
	ENGINE_SAID_NO, /* it answered 4xx or 5xx: engine_status() */
};

/* What is known of the engine once it is open. */
struct engine_about {
	char name[32];     /* "Docker" or "Podman" */
	char version[64];  /* "20.10.24" */
	char runtime[128]; /* "runc 1.1.5"; "" if not said, or not asked for */
	char address[300]; /* "unix:///run/docker.sock", for messages */
	unsigned api;      /* minor version in use: 41 for 1.41 */
	bool podman;
	bool local; /* on a unix socket: its cgroups are this host's, unless it runs in a VM */
};

/* From GET /info. */
struct engine_host {
	char runtimes[16][48]; /* names; "" ends the list */
	char default_runtime[48];
	char security[16][96]; /* "name=seccomp,profile=default", "name=rootless", "name=userns", ... */
	char cgroup_driver[16];
	unsigned cgroup_version; /* 1 or 2; 0: not said */
	char storage_driver[32];
	char root[256]; /* where it keeps images and containers, on its own host */
	char warnings[8][160];
	char architecture[32]; /* "x86_64" */
	char os_type[16];      /* "linux" */
	uint64_t cpus;
	uint64_t memory;
	bool rootless, userns, apparmor, seccomp, selinux;
	bool memory_limit, swap_limit, pids_limit,
		cpu_quota; /* what the engine says its kernel can do; true if not said */
};

/* Finds the engine, connects and agrees on a version, all before deadline_ns (CLOCK_MONOTONIC). */
int engine_open(const struct settings *set, uint64_t deadline_ns, struct engine **ret, struct brig_error *err);
void engine_close(struct engine *e); /* NULL is fine */
const struct engine_about *engine_about(const struct engine *e);
/* No later call waits longer than this, nor longer than its own ceiling (30 s; an hour for images).  0, as after opening:
 * only the ceilings hold. */
void engine_set_deadline(struct engine *e, uint64_t deadline_ns);
/* HTTP status of the last answer, 0 if there was none. */
int engine_status(const struct engine *e);
enum engine_trouble engine_trouble(const struct engine *e);
int engine_info(struct engine *e, struct engine_host *ret, struct brig_error *err);

/* ---- images ------------------------------------------------------------------------------------- */

/* A line of progress, cleaned, without newline. */
typedef void (*engine_progress_fn)(void *arg, const char *line);

/* name: a reference or an id.  1: there is none.  *ret: decref it. */
int engine_image_inspect(struct engine *e, const char *name, json_t **ret, struct brig_error *err);
/* Images with this label ("key" or "key=value"; NULL: all): an array. */
int engine_image_list(struct engine *e, const char *label, json_t **ret, struct brig_error *err);
/* A root file system as tar from tar_fd becomes image repo:tag.  changes: Dockerfile lines ("USER 1000"), NULL-terminated. */
int engine_image_import(struct engine *e, int tar_fd, const char *repo, const char *tag, const char *const *changes,
			char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);

struct engine_build {
	int context_fd;              /* tar of the build context */
	const char *dockerfile;      /* its name inside the context; NULL: "Dockerfile" */
	const char *tag;             /* repo:tag */
	json_t *args;                /* object of build arguments, borrowed; may be NULL */
	json_t *labels;              /* object, borrowed; may be NULL */
	const char *network;         /* "none", NULL: the engine's default */
	bool pull;                   /* fetch a newer base */
	bool no_cache;               /* run every line again */
	engine_progress_fn progress; /* may be NULL */
	void *arg;
};
int engine_image_build(struct engine *e, const struct engine_build *b, char ret_id[ENGINE_IMAGE_LEN + 1],
		       struct brig_error *err);
/* An archive of `docker save`. */
int engine_image_load(struct engine *e, int tar_fd, engine_progress_fn progress, void *arg, struct brig_error *err);
int engine_image_tag(struct engine *e, const char *name, const char *repo, const char *tag, struct brig_error *err);
/* 1: there was none. */
int engine_image_remove(struct engine *e, const char *name, struct brig_error *err);

/* ---- containers ---------------------------------------------------------------------------------- */

/* body: borrowed.  warnings (may be NULL): what the engine warned of, joined with "; ", cleaned.
 * engine_status() 404: no such image, 409: the name is taken, 400: it dislikes the body. */
int engine_create(struct engine *e, const char *name, json_t *body, char ret_id[ENGINE_ID_LEN + 1], char *warnings,
		  size_t warnings_size, struct brig_error *err);
/* id: an id or a name, here and below.  1: there is none.  *ret: the whole answer, an object; decref it. */
int engine_inspect(struct engine *e, const char *id, json_t **ret, struct brig_error *err);
/* Before start.  The stream is what frames.h decodes; writing to it is the program's stdin. */
int engine_attach(struct engine *e, const char *id, bool with_stdin, struct http_stream **ret, struct brig_error *err);

struct engine_exit {
	int code;        /* 0 ... 255; 128 + signal is how engines spell a signal */
	char error[256]; /* the engine's own trouble with the container; "" if none */
};
/* Begins waiting for the next exit; returns when the engine has taken the call, so that start may follow.
 * until_ns bounds the wait itself.  Poll http_call_fd(), then engine_wait_step(). */
int engine_wait_begin(struct engine *e, const char *id, uint64_t until_ns, struct http_call **ret,
		      struct brig_error *err);
/* 1: *ret is filled, 0: not yet, negative: the wait failed. */
int engine_wait_step(struct http_call *call, struct engine_exit *ret, struct brig_error *err);

int engine_start(struct engine *e, const char *id, struct brig_error *err);
/* 1: it is not running, or not there. */
int engine_kill(struct engine *e, const char *id, const char *signal, struct brig_error *err);
int engine_pause(struct engine *e, const char *id, struct brig_error *err);
int engine_unpause(struct engine *e, const char *id, struct brig_error *err);
/* Kills it if it runs, removes it and its anonymous volumes, and returns when the engine no longer knows it:
 * a removal in progress is waited for until the deadline.  Not there: 0. */
int engine_remove(struct engine *e, const char *id, struct brig_error *err);
/* Containers in any state with this label ("key" or "key=value"): an array of the engine's short descriptions, each
 * with a valid "Id" (64 hex digits) and an object "Labels". */
int engine_list(struct engine *e, const char *label, json_t **ret, struct brig_error *err);

struct engine_stats {
	uint64_t cpu_ns;
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes; /* 0: not said (cgroup v2) */
	uint64_t memory_limit;
	uint64_t pids;
	uint64_t pids_limit;
};
/* A second of patience: engines answer at their own tick.  1: it is not running, so there are none. */
int engine_stats(struct engine *e, const char *id, struct engine_stats *ret, struct brig_error *err);
/* The same without waiting: poll http_call_fd() or ask again later.  step: 1: *ret is filled, 0: not yet, negative: none. */
int engine_stats_begin(struct engine *e, const char *id, struct http_call **ret, struct brig_error *err);
int engine_stats_step(struct http_call *call, struct engine_stats *ret, struct brig_error *err);

enum engine_change { ENGINE_CHANGED, ENGINE_ADDED, ENGINE_DELETED };
/* Called with each changed path of the container's root: absolute, and as the guest named it, so clean it (answer_clean)
 * before it goes into a message.  Negative ends the walk. */
typedef int (*engine_change_fn)(void *arg, enum engine_change kind, const char *path);
int engine_changes(struct engine *e, const char *id, engine_change_fn each, void *arg, struct brig_error *err);
int engine_commit(struct engine *e, const char *id, const char *repo, const char *tag,
		  char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
/* Unpacks a tar into a folder of a container that is not running.  Memory or a descriptor (data NULL). */
int engine_put_archive(struct engine *e, const char *id, const char *path, const void *data, size_t len, int tar_fd,
		       struct brig_error *err);
/* A file of a container as a tar stream, not more of it than the buffer takes.  1: there is none. */
int engine_get_archive(struct engine *e, const char *id, const char *path, struct buf *ret, struct brig_error *err);

#endif
