/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol between brig and a container's init.  This file has both ends, and neither trusts the other: everything
 * is bounded and checked before use.  No allocation, no I/O.
 *
 *	brig to init, on the container's stdin:
 *		head {magic, size of meta}, meta {keys, limits, command, names of files}, the project as a stream of
 *		files/pack.h if there is one, likewise the tree that is shown, contents of the files
 *		then messages {type, 0, 0, 0, length} with as many bytes; the program's own stdin travels in WIRE_INPUT.
 *		End of file, at any time, means that brig is gone or has finished: init ends the cell.
 *	init to brig, on the container's stderr:
 *		section 1, the very first bytes: key 1, frames, a frame WIRE_END
 *		whatever the program writes to its stderr
 *		section 2, the very last bytes: key 2, frames, a frame WIRE_END
 *	init to brig, on the container's stdout, if brig requests it after section 2:
 *		the mark, the very last bytes
 *
 * Each key is 256 random bits, generated for one run.  Key 1 is used up before the program starts.  Key 2 is in no
 * memory that the program can read (init is not dumpable, and exec has replaced the copy that fork made), and when init
 * writes it, the program and everything that it started are dead. So the first occurrence of key 2 is init's,
 * everything before it is the program's, and nothing after it is.
 *
 * An engine relays the two streams independently and is slow to report that they have ended.  The mark replaces that
 * for stdout: 256 more random bits, generated and sent to init when no other process is left that could write them.
 * Until then nothing of stdout is held back, whatever it looks like.
 */
#ifndef CONTAINER_WIRE_H
#define CONTAINER_WIRE_H

#include "base/util.h"

#define WIRE_MAGIC      "brigjob3"
#define WIRE_HEAD       16
#define WIRE_KEY        32
#define WIRE_META_MAX   (4 * MiB)
#define WIRE_ARGS_MAX   (4096 + 32)
#define WIRE_ENV_MAX    320
#define WIRE_FILES_MAX  64
#define WIRE_HIDDEN_MAX 4096
#define WIRE_PATH_MAX   1024
#define WIRE_SHOWN_TOP  "/opt/"
#define WIRE_BODY_MAX   (32 * KiB) /* body of a message or frame */
#define WIRE_LEFT_FILES 1000       /* examined for the list of remaining files */
#define WIRE_LEFT_BYTES (48 * KiB) /* the whole list */
#define WIRE_PREFIX     8          /* {type, 0, 0, 0, length} of a message or frame, little endian */

/* ---- the job ------------------------------------------------------------------------------------ */

enum wire_flag {
	WIRE_STRICT = 1 << 0, /* the strict system call filter */
	WIRE_DENY_WRITE_EXEC = 1 << 1,
	WIRE_WORKSPACE_EXEC = 1 << 2,
	WIRE_WITHOUT_LANDLOCK = 1 << 3, /* continue without Landlock if there is none */
	WIRE_PROJECT = 1 << 4,          /* a project precedes the files */
	WIRE_READ_ONLY = 1 << 5,        /* the program may not change its workspace */
	WIRE_RETURN = 1 << 6,           /* send the workspace back at the end */
	WIRE_NAME_LEFT = 1 << 7,        /* list the files that are in it at the end */
	/*
	 * In a pod: the limit for core files is not set from outside, and the limit on processes may not be readable.
	 */
	WIRE_IN_POD = 1 << 8,
	WIRE_FLAGS = (1 << 9) - 1,
};

enum wire_place { WIRE_IN_WORKSPACE, WIRE_IN_TMP, WIRE_PLACES };

struct wire_file {
	const char *name; /* path relative to its place */
	uint32_t place;   /* enum wire_place */
	uint32_t mode;
	uint64_t len;
	const void *data; /* brig's side only */
};

struct wire_job {
	uint8_t key[2][WIRE_KEY];
	uint32_t flags;  /* enum wire_flag */
	uint32_t family; /* enum syscall_family */
	uint64_t wall_ms, cpu_time_ms, disk_bytes, open_files, pids;
	uint64_t tree_entries, tree_bytes;   /* upper bounds for the project, and for the workspace on its way back */
	uint64_t room_bytes, room_inodes;    /* room in the workspace for the project, in addition to the limits */
	uint64_t shown_entries, shown_bytes; /* upper bounds for the shown tree */
	uint64_t output_max;                 /* largest permitted output file */
	const char *shown;                   /* directory below /opt into which a tree is unpacked; "": none */
	const char *link, *link_to;          /* a link to create in the workspace, into that directory; "": none */
	const char *output;                  /* name of the file to send back at the end; "": none */
	const char *argv[WIRE_ARGS_MAX + 1]; /* NULL-terminated */
	const char *envp[WIRE_ENV_MAX + 1];
	const char *hidden[WIRE_HIDDEN_MAX + 1]; /* paths of the project that were not sent, and must not exist */
	struct wire_file files[WIRE_FILES_MAX];
	uint32_t n_files;
};

/* Writes head and meta; the contents of the files follow.  Returns the size, or 0 if it does not fit. */
size_t wire_job_encode(const struct wire_job *job, char *dst, size_t size);
/* The size of meta that a head announces, or -1. */
int64_t wire_head_decode(const char head[WIRE_HEAD]);
/* Parses meta; the strings of *ret point into it.  false: malformed. */
bool wire_job_decode(const char *meta, size_t len, struct wire_job *ret);

/* ---- messages to init --------------------------------------------------------------------------- */

enum wire_message {
	WIRE_GO = 1,    /* start the program */
	WIRE_INPUT,     /* bytes for its stdin */
	WIRE_INPUT_END, /* no more of them */
	WIRE_STOP,      /* kill all processes and report the end */
	WIRE_MARK,      /* WIRE_KEY bytes to write to stdout; only after section 2 */
	WIRE_MESSAGES
};

void wire_prefix(char dst[WIRE_PREFIX], unsigned type, uint32_t len);
/* false if the padding is not zero, or the length exceeds WIRE_BODY_MAX. */
bool wire_prefix_decode(const char src[WIRE_PREFIX], unsigned *type, uint32_t *len);

/* ---- frames from init --------------------------------------------------------------------------- */

enum wire_frame {
	WIRE_END = 1, /* of the section */
	WIRE_FAILED,  /* struct wire_failure: nothing was started */
	WIRE_FACT,    /* a fact, read inside the container */
	WIRE_SPACES,  /* struct wire_spaces */
	WIRE_READY,   /* set-up is complete; init waits for WIRE_GO */
	WIRE_EXIT,    /* struct wire_exit */
	WIRE_OUTPUT,  /* u64: the output file's size; its bytes follow in WIRE_DATA */
	WIRE_DATA,
	WIRE_TREE,     /* a piece of the workspace as a stream of files/pack.h */
	WIRE_TREE_END, /* u64: 0, or the errno that ended it early */
	WIRE_LEFT,     /* a piece of the list of files: for each a u64, its size, and its path with NUL */
	WIRE_FRAMES
};

/* Init's steps, in order; a failed step is sent as its number. */
enum wire_step {
#define STEP(name, protection, text) WIRE_STEP_##name,
#include "backend/container/steps.def"
	WIRE_STEPS
};

struct wire_failure {
	uint32_t step;
	uint32_t sys; /* errno */
};

/* Inode numbers of init's namespaces; 0: the kernel has none. */
#define WIRE_SPACE_NAMES                                                    \
	{                                                                   \
		"user", "pid", "mnt", "net", "ipc", "uts", "cgroup", "time" \
	}
#define WIRE_SPACE_COUNT 8
struct wire_spaces {
	uint64_t inode[WIRE_SPACE_COUNT];
};

struct wire_exit {
	uint32_t exited; /* otherwise killed by a signal */
	uint32_t value;  /* code or signal */
	uint32_t expired;
	uint32_t disk_full;
	uint64_t run_ns;      /* from WIRE_GO until the end */
	uint64_t cpu_ns;      /* of the container since then; without a counter, of all reaped processes */
	uint64_t memory_peak; /* of the container; without a counter, of its largest process */
	uint64_t pids_peak, oom_kills, pids_refused;
};

struct wire_fact {
	uint32_t id; /* enum fact_id */
	bool is_text;
	uint64_t num;
	const char *text; /* inside the frame; "" if a number */
	const char *source;
};

/* A section under construction, in the caller's memory. */
struct wire_out {
	char *data;
	size_t len, cap;
	bool full; /* something did not fit, and was omitted entirely */
};
void wire_put_key(struct wire_out *o, const uint8_t key[WIRE_KEY]);
void wire_put(struct wire_out *o, enum wire_frame type, const void *body, size_t len);
void wire_put_failure(struct wire_out *o, enum wire_step step, int sys);
void wire_put_spaces(struct wire_out *o, const struct wire_spaces *s);
void wire_put_exit(struct wire_out *o, const struct wire_exit *e);
void wire_put_number(struct wire_out *o, enum wire_frame type, uint64_t value); /* WIRE_OUTPUT, WIRE_TREE_END */
void wire_put_fact(struct wire_out *o, const struct wire_fact *f);

bool wire_get_failure(const char *body, size_t len, struct wire_failure *ret);
bool wire_get_spaces(const char *body, size_t len, struct wire_spaces *ret);
bool wire_get_exit(const char *body, size_t len, struct wire_exit *ret);
bool wire_get_number(const char *body, size_t len, uint64_t *ret);
bool wire_get_fact(const char *body, size_t len, struct wire_fact *ret);

/* Encodes an entry of WIRE_LEFT; 0: it does not fit. */
size_t wire_left_encode(uint64_t size, const char *path, char *dst, size_t room);
/* Decodes the next entry; false: none, or malformed. */
bool wire_left_next(const char **data, size_t *len, uint64_t *ret_size, const char **ret_path);

/* ---- program output up to a key -------------------------------------------------------------------- */

struct wire_mark {
	uint8_t key[WIRE_KEY];
	uint8_t fallback[WIRE_KEY]; /* length that still matches after a mismatch */
	unsigned matched;           /* bytes of the key that are held back; WIRE_KEY: found */
};

void wire_mark_init(struct wire_mark *m, const uint8_t key[WIRE_KEY]);
static inline bool wire_mark_found(const struct wire_mark *m)
{
	return m->matched == WIRE_KEY;
}
/*
 * Advances *data and *len, and returns the program's next bytes in *ret and *ret_len, valid until the next call; false:
 * all input is consumed, or the key was found and *data points after it.  Up to 31 bytes that may begin the key are
 * held back until that is decided.
 */
bool wire_mark_next(struct wire_mark *m, const char **data, size_t *len, const char **ret, size_t *ret_len);
/* At end of file: returns the program's bytes that were held back, and their number. */
size_t wire_mark_rest(struct wire_mark *m, const char **ret);

/* ---- reading a container's stderr --------------------------------------------------------------- */

enum wire_state { WIRE_AT_KEY1, WIRE_IN_HEAD, WIRE_IN_GUEST, WIRE_IN_TAIL, WIRE_DONE, WIRE_BROKEN };

struct wire_reader {
	enum wire_state state;
	uint8_t key[WIRE_KEY]; /* key 1 */
	unsigned matched;      /* bytes of key 1 matched */
	struct wire_mark tail; /* key 2 */
	char prefix[WIRE_PREFIX];
	unsigned have; /* bytes of prefix or body received */
	bool in_body;
	unsigned type;
	uint32_t len;
	char body[WIRE_BODY_MAX];
};

enum wire_item { WIRE_NOTHING, WIRE_ITEM_GUEST, WIRE_ITEM_FRAME, WIRE_ITEM_BROKEN };

void wire_reader_init(struct wire_reader *r, const uint8_t key[2][WIRE_KEY]);
/*
 * Advances *data and *len, and returns the next item: bytes of the program (*ret, *ret_len), or a frame (also
 * *ret_type), valid until the next call. WIRE_NOTHING: all input is consumed.  WIRE_ITEM_BROKEN: a protocol error,
 * which is permanent.  Bytes that may begin key 2 are held back.
 */
enum wire_item wire_next(struct wire_reader *r, const char **data, size_t *len, unsigned *ret_type, const char **ret,
			 size_t *ret_len);
/* At end of file: returns the program's bytes that were held back, and their number. */
size_t wire_rest(struct wire_reader *r, const char **ret);

#endif
