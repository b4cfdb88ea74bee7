/* SPDX-License-Identifier: Apache-2.0 */
/* One container as a cell, seen from the files of this folder.  docker.c has the story. */
#ifndef DOCKER_CELL_H
#define DOCKER_CELL_H

#include "backend/backend.h"
#include "backend/docker/engine.h"
#include "backend/docker/frames.h"
#include "backend/docker/wire.h"
#include "base/buf.h"
#include "files/pack.h"

#define CERTIFICATES_NAME ".ca-certificates.crt"
#define CERTIFICATES_PATH "/tmp/" CERTIFICATES_NAME

/* Time for the engine's own part, on top of what the policy gives a cell to come up and to go away. */
#define ENGINE_GRACE_MS 30000

/* The same for a limit of the policy: whoever gives a cell little time does not mean to wait half a minute for the engine. */
static inline uint64_t engine_patience_ms(uint64_t policy_ms)
{
	return policy_ms + min_u64(ENGINE_GRACE_MS, 10 * policy_ms);
}

struct backend_host {
	const struct settings *set; /* outlives the host */
	struct engine *engine;
	bool podman, local; /* of engine_about */
	char disk[64];      /* with disk_io_bps: node of the disk that its images are on */
	char boot_id[40];
	char machine_id[40];
};

/* One direction of the program's output: from the engine's stream into a pipe that the watcher reads. */
struct pipe_out {
	int read, write;
	char piece[WIRE_BODY_MAX +
		   2 * WIRE_KEY]; /* what the pipe had no room for: one read at most, and what was held back before */
	size_t at, len;
	struct buf rest; /* of a stopped cell: everything that still came */
};

/* The plan's project as a stream in memory, on its way to init. */
struct project_out {
	const char *data; /* mapped; NULL: there is none, or it is sent */
	size_t len, mapped;
	uint64_t entries, bytes; /* in it */
	uint64_t room;           /* that it takes of the workspace, in bytes */
	bool sent;
};

/* The workspace as a stream, on its way back. */
struct tree_in {
	int fd; /* memory file; FD_NONE: nothing has come */
	uint64_t len;
	bool cut;     /* more came than is kept */
	bool ended;   /* init has said so */
	uint64_t sys; /* and why it was early; 0: it was not */
};

struct cell {
	struct backend_host *host;
	const struct plan *plan;
	struct backend_notice tell;
	char id[ENGINE_ID_LEN + 1]; /* "": there is no container */
	char name[64];
	bool perhaps; /* the engine may have made a container, but has not given its id */
	char image[ENGINE_IMAGE_LEN + 1];
	bool cold;         /* not to be taken from a pool */
	bool left_to_pool; /* which removes it when the connection closes */
	int pool;          /* connection to the pool that it came from; FD_NONE: it was made for this run */
	json_t *asked;     /* the body of the create call */
	int profile;       /* Podman: memory file with the seccomp profile, which it opens by path; FD_NONE */
	json_t *before;    /* the engine's description when every wall was up */
	json_t *after;     /* and after the end */
	struct http_stream *stream;
	struct http_call *wait;
	struct frames frames;
	struct wire_reader reader;
	struct wire_mark out_end; /* of stdout, once init was asked for it */
	bool out_marked;
	struct pipe_out out, err;
	int in_read, in_write; /* the program's stdin on its way to init */
	int poll;              /* epoll of all of the above */

	/* on their way to init */
	char *head; /* the job without its files */
	size_t head_len;
	size_t file; /* which file is under way; behind the last one, messages */
	size_t sent; /* bytes of the part that is under way */
	char message[WIRE_PREFIX + WIRE_BODY_MAX];
	size_t message_len;
	bool input_done; /* WIRE_INPUT_END was queued */

	struct project_out project;
	struct project_out shown;                /* the tree of one of the plan's binds */
	const struct plan_bind *folder, *linked; /* that bind, and one with same_as in it; NULL: none */

	/* what came back */
	bool ready, let_go, final, stream_over, draining;
	bool failed_step;
	struct wire_failure failure;
	struct wire_spaces spaces;
	bool has_spaces;
	struct wire_exit exit;
	bool has_exit, told;
	uint64_t output_size, output_got;
	int output; /* memory file with the output; FD_NONE */
	struct tree_in tree;
	struct buf left; /* the list of WIRE_LEFT */
	struct facts early, late;
	char piece[32 * KiB];  /* of the stream, as it is read */
	char first_words[200]; /* on stderr of a container whose init did not speak */
	size_t first_len;

	/* the container's control groups, when they are this host's */
	int memory, cpu, pids; /* directories */
	bool v2;
	uint64_t cpu_base_ns, oom_seen, cpu_seen_ns;
	struct engine_stats stats; /* the engine's, where there are no directories */
	struct http_call *asking;  /* for the next ones */
	bool no_stats;             /* it gives none */

	uint64_t started_ns;
	uint64_t changes;         /* in the container's root, outside of its writable places */
	const char *changes_from; /* NULL: not known */
	bool stopped;
	bool violated;
	char difference[200];
};

/* map_plan.c: the one place where a plan becomes container settings. */
int map_plan_offer_profile(struct cell *c, struct brig_error *err); /* for Podman, before map_plan_body */
json_t *map_plan_body(const struct cell *c, struct brig_error *err);
/* Sizes of the writable places: their sum is the plan's limit. */
struct place_sizes {
	uint64_t bytes[3], inodes[3];
};
struct place_sizes map_plan_places(const struct limits *l);
#define DOCKER_NEVER                                                                                                   \
	(PROT_BIT(PROT_user_ns) | PROT_BIT(PROT_id_separation) | PROT_BIT(PROT_time_ns) | PROT_BIT(PROT_proc_subset) | \
	 PROT_BIT(PROT_nested_userns) | PROT_BIT(PROT_user_counts) | PROT_BIT(PROT_socket_memory))

/* map_check.c: compares the engine's account of the container with what was asked.  true if nothing differs. */
bool map_check(const json_t *asked, const json_t *found, bool podman, bool ended, char *difference, size_t size);

/* owner.c: whose container it is. */
#define LABEL_CELL     "brig.cell"
#define LABEL_STEP     "brig.step"
#define LABEL_LANGUAGE "brig.language"
#define LABEL_UID      "brig.owner.uid"
#define LABEL_PID      "brig.owner.pid"
#define LABEL_START    "brig.owner.start"
#define LABEL_BOOT     "brig.owner.boot"
#define LABEL_MACHINE  "brig.owner.machine"
#define LABEL_DEADLINE "brig.deadline"
void owner_identify(struct backend_host *h);
json_t *owner_labels(const struct cell *c);
void owner_sweep(struct backend_host *h);
int owner_list(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);
int owner_reap(const struct settings *set, cell_entry_fn each, void *arg, struct brig_error *err);

/* container.c: its life. */
int container_prepare(struct cell *c, struct brig_error *err); /* all that needs no container */
int container_create(struct cell *c, struct brig_error *err);
int container_start(struct cell *c, struct brig_error *err);
int container_await_ready(struct cell *c, struct brig_error *err);
int container_let_go(struct cell *c, struct brig_error *err);
int container_stop(struct cell *c, struct brig_error *err);
int container_remove(struct cell *c, char *leftovers, size_t size);

/* tree.c: projects and what becomes of them. */
int project_pack(struct cell *c, struct brig_error *err);
int shown_pack(struct cell *c, struct brig_error *err);
int docker_open_folder(struct cell *c, const char *name);
void project_release(struct cell *c);
/* Ceilings of a workspace on its way back. */
struct pack_caps tree_caps(const struct cell *c);
bool tree_take(struct cell *c, const char *body, size_t len);
bool tree_take_end(struct cell *c, const char *body, size_t len);
/* Names of files that a program leaves in a workspace that nobody asked back. */
bool left_wanted(const struct cell *c);
bool left_take(struct cell *c, const char *body, size_t len);
void docker_left(struct cell *c, backend_left_fn each, void *arg);
int docker_workspace(struct cell *c, struct workspace_view *ret, struct brig_error *err);

/* pump.c: everything that flows. */
int pump_open(struct cell *c, struct brig_error *err);
/* Queues head and files of the job. */
int pump_load(struct cell *c, struct brig_error *err);
/* Queues a message without a body, at once if the queue is empty.  false: something is in its way. */
bool pump_message(struct cell *c, enum wire_message type);
/* Has init mark the end of stdout, once it has said everything; again, if something is still in the way. */
void pump_ask_mark(struct cell *c);
/* Moves what can be moved without waiting.  Negative: the stream makes no sense. */
int pump_turn(struct cell *c, struct brig_error *err);
/* Waits for something to move, at most until then. */
void pump_wait(struct cell *c, uint64_t deadline_ns);
/* No more will come: the watcher finds what is left and then the end of file. */
void pump_hand_over(struct cell *c);
void pump_close(struct cell *c);

/* way_out.c */
int docker_listener(struct cell *c, struct brig_error *err);

/* changes.c */
void changes_count(struct cell *c);

/* stats.c */
void stats_open(struct cell *c, uint64_t pid);
void stats_close(struct cell *c);
int stats_sample(struct cell *c, struct sample *ret);
uint64_t stats_cpu_ns(struct cell *c);
uint64_t stats_oom_kills(struct cell *c);

/* read_back.c */
void docker_read_back(struct cell *c, struct facts *ret);

#endif
