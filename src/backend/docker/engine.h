/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Engine API, one function per call.  The engine's address: the setting docker_host, otherwise $DOCKER_HOST,
 * otherwise the first that exists of /run/docker.sock, /var/run/docker.sock and podman's sockets.
 *
 * An engine is trusted with root, but not to send sane answers: answers are bounded in size and time, ids in them must
 * be 64 hex digits, text from them is cut and cleaned before it goes into a message, and text from a request is
 * percent-encoded before it becomes part of a path.
 *
 * Functions return 0, or negative with err filled; lookups return 1 for "not found".  Codes of err: BRIG_E_REFUSED if
 * there is no usable engine (absent, no permission, too old, TLS), so that nothing can run here; BRIG_E_SYSTEM if an
 * existing engine fails or misbehaves.  engine_status() and engine_trouble() describe the last call.  An engine object
 * serves one thread at a time.
 */
#ifndef DOCKER_ENGINE_H
#define DOCKER_ENGINE_H

#include <jansson.h>

#include "base/err.h"
#include "model/settings.h"
#include "net/http.h"

#define ENGINE_ID_LEN      64
#define ENGINE_IMAGE_LEN   (7 + ENGINE_ID_LEN) /* "sha256:" + id */
#define ENGINE_API_OLDEST  40                  /* 1.40: the oldest version with everything that brig needs */
#define ENGINE_API_NEWEST  47                  /* 1.47: the version that brig was written for */
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
	ENGINE_GARBAGE, /* malformed or too large answer */
	ENGINE_BROKEN,  /* the connection broke */
	ENGINE_SAID_NO, /* status 4xx or 5xx: see engine_status() */
};

/* What is known about the engine once it is open. */
struct engine_about {
	char name[32];     /* "Docker" or "Podman" */
	char version[64];  /* "20.10.24" */
	char runtime[128]; /* "runc 1.1.5"; "" if unknown or not asked for */
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
	unsigned cgroup_version; /* 1 or 2; 0: unknown */
	char storage_driver[32];
	char root[256]; /* where it keeps images and containers, on its own host */
	char warnings[8][160];
	char architecture[32]; /* "x86_64" */
	char os_type[16];      /* "linux" */
	uint64_t cpus;
	uint64_t memory;
	bool rootless, userns, apparmor, seccomp, selinux;
	bool memory_limit, swap_limit, pids_limit,
		cpu_quota; /* capabilities of the engine's kernel as it reports them; true if not reported */
};

/* Finds the engine, connects and negotiates a version, all before deadline_ns (CLOCK_MONOTONIC). */
int engine_open(const struct settings *set, uint64_t deadline_ns, struct engine **ret, struct brig_error *err);
void engine_close(struct engine *e); /* NULL is fine */
const struct engine_about *engine_about(const struct engine *e);
/*
 * Limits all later calls, in addition to their own timeouts (30 s; an hour for images).  0, as after opening: only the
 * timeouts apply.
 */
void engine_set_deadline(struct engine *e, uint64_t deadline_ns);
/* HTTP status of the last answer, 0 if there was none. */
int engine_status(const struct engine *e);
enum engine_trouble engine_trouble(const struct engine *e);
int engine_info(struct engine *e, struct engine_host *ret, struct brig_error *err);

/* ---- images ------------------------------------------------------------------------------------- */

/* A line of progress, cleaned, without newline. */
typedef void (*engine_progress_fn)(void *arg, const char *line);

/* name: a reference or an id.  1: not found.  *ret: release with json_decref(). */
int engine_image_inspect(struct engine *e, const char *name, json_t **ret, struct brig_error *err);
/* Array of the images with this label ("key" or "key=value"; NULL: all). */
int engine_image_list(struct engine *e, const char *label, json_t **ret, struct brig_error *err);
/*
 * Imports a root file system, a tar from tar_fd, as image repo:tag.  changes: Dockerfile lines ("USER 1000"),
 * NULL-terminated.
 */
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
	bool no_cache;               /* without the build cache */
	engine_progress_fn progress; /* may be NULL */
	void *arg;
};
int engine_image_build(struct engine *e, const struct engine_build *b, char ret_id[ENGINE_IMAGE_LEN + 1],
		       struct brig_error *err);
/* An archive of `docker save`. */
int engine_image_load(struct engine *e, int tar_fd, engine_progress_fn progress, void *arg, struct brig_error *err);
int engine_image_tag(struct engine *e, const char *name, const char *repo, const char *tag, struct brig_error *err);
/* 1: not found. */
int engine_image_remove(struct engine *e, const char *name, struct brig_error *err);

/* ---- containers ---------------------------------------------------------------------------------- */

/*
 * body: borrowed.  warnings (may be NULL): the engine's warnings, joined with "; ", cleaned.  engine_status() 404: no
 * such image, 409: the name is taken, 400: invalid body.
 */
int engine_create(struct engine *e, const char *name, json_t *body, char ret_id[ENGINE_ID_LEN + 1], char *warnings,
		  size_t warnings_size, struct brig_error *err);
/*
 * id: an id or a name, here and below.  1: not found.  *ret: the complete answer, an object; release with
 * json_decref().
 */
int engine_inspect(struct engine *e, const char *id, json_t **ret, struct brig_error *err);
/* Call before start.  The stream is decoded by frames.h; data written to it goes to the program's stdin. */
int engine_attach(struct engine *e, const char *id, bool with_stdin, struct http_stream **ret, struct brig_error *err);

struct engine_exit {
	int code;        /* 0 ... 255; engines report a signal as 128 + its number */
	char error[256]; /* an error of the engine with the container; "" if none */
};
/*
 * Begins waiting for the next exit; returns when the engine has accepted the call, so start may follow.  until_ns
 * bounds the wait itself.  Poll http_call_fd(), then call engine_wait_step().
 */
int engine_wait_begin(struct engine *e, const char *id, uint64_t until_ns, struct http_call **ret,
		      struct brig_error *err);
/* 1: *ret is filled, 0: not yet, negative: the wait failed. */
int engine_wait_step(struct http_call *call, struct engine_exit *ret, struct brig_error *err);

int engine_start(struct engine *e, const char *id, struct brig_error *err);
/* 1: not running, or not found. */
int engine_kill(struct engine *e, const char *id, const char *signal, struct brig_error *err);
int engine_pause(struct engine *e, const char *id, struct brig_error *err);
int engine_unpause(struct engine *e, const char *id, struct brig_error *err);
/*
 * Kills the container if it runs, removes it and its anonymous volumes, and returns when the engine no longer knows it:
 * waits for a removal in progress until the deadline. Not found: 0.
 */
int engine_remove(struct engine *e, const char *id, struct brig_error *err);
/*
 * Array of the containers in any state with this label ("key" or "key=value"): the engine's short descriptions, each
 * with a valid "Id" (64 hex digits) and an object "Labels".
 */
int engine_list(struct engine *e, const char *label, json_t **ret, struct brig_error *err);

struct engine_stats {
	uint64_t cpu_ns;
	uint64_t memory_bytes;
	uint64_t memory_peak_bytes; /* 0: not reported (cgroup v2) */
	uint64_t memory_limit;
	uint64_t pids;
	uint64_t pids_limit;
};
/* Takes about a second: engines answer at their own interval.  1: not running, so there are none. */
int engine_stats(struct engine *e, const char *id, struct engine_stats *ret, struct brig_error *err);
/*
 * The same without waiting: poll http_call_fd() or call again later.  step: 1: *ret is filled, 0: not yet, negative:
 * failed.
 */
int engine_stats_begin(struct engine *e, const char *id, struct http_call **ret, struct brig_error *err);
int engine_stats_step(struct http_call *call, struct engine_stats *ret, struct brig_error *err);

enum engine_change { ENGINE_CHANGED, ENGINE_ADDED, ENGINE_DELETED };
/*
 * Called with each changed path of the container's root: absolute, and with names chosen by the guest, so clean it
 * (answer_clean) before it goes into a message.  A negative return value ends the walk.
 */
typedef int (*engine_change_fn)(void *arg, enum engine_change kind, const char *path);
int engine_changes(struct engine *e, const char *id, engine_change_fn each, void *arg, struct brig_error *err);
int engine_commit(struct engine *e, const char *id, const char *repo, const char *tag,
		  char ret_id[ENGINE_IMAGE_LEN + 1], struct brig_error *err);
/*
 * Unpacks a tar into a directory of a container that is not running.  From memory, or if data is NULL from a
 * descriptor.
 */
int engine_put_archive(struct engine *e, const char *id, const char *path, const void *data, size_t len, int tar_fd,
		       struct brig_error *err);
/* A file of a container as a tar stream, at most as much as fits into the buffer.  1: not found. */
int engine_get_archive(struct engine *e, const char *id, const char *path, struct buf *ret, struct brig_error *err);

#endif
