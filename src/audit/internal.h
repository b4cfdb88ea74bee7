/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef AUDIT_INTERNAL_H
#define AUDIT_INTERNAL_H

#include "audit/audit.h"
#include "audit/keys.h"

#define AUDIT_DIR          "audit"
#define AUDIT_HEAD         "head"
#define AUDIT_KEY          "log.key"
#define AUDIT_PATIENCE     (10 * NS_PER_SEC) /* for other writers */
#define AUDIT_MAC_LEN      16
#define CHECKPOINT_ENTRIES 1000
#define CHECKPOINT_NS      (600 * NS_PER_SEC)

enum audit_event {
#define EVENT(name, meaning) EVENT_##name,
#include "audit/events.def"
	EVENT_COUNT
};
extern const char *const audit_event_name[EVENT_COUNT];

/* The name of a log file: "000001.jsonl". */
#define LOG_NAME_MAX 32
void log_name(char dst[LOG_NAME_MAX], uint32_t number);
bool log_number(const char *name, uint32_t *ret);

/* ---- log_key.c: the log's own key ---------------------------------------------------------------- */

struct log_key {
	struct hmac256 mac;
	char id[AUDIT_ID_LEN + 1];
};

/* With make, a missing one is made: the caller holds the head's lock. */
int log_key_load(const struct statedir *dir, bool make, struct log_key *ret, struct brig_error *err);

/* ---- head.c: where the log ends -------------------------------------------------------------------- */

struct head {
	uint64_t size; /* of the last file, up to the last entry */
	uint64_t seq;  /* the last entry's number; 0: none yet */
	uint64_t cp, cp_seq, cp_ns;
	uint64_t begun_ns;  /* when the last file was started */
	uint64_t synced_ns; /* when the log was last forced to disk */
	uint32_t file;      /* number of the last file */
	uint8_t hash[SHA256_LEN];
};

enum head_state { HEAD_GOOD, HEAD_EMPTY, HEAD_BAD };
enum head_state head_read(int fd, const struct log_key *key, struct head *ret);
/* 0 or -errno. */
int head_write(int fd, const struct log_key *key, const struct head *h);

/* ---- entry.c: lines --------------------------------------------------------------------------------- */

/* A line in the making; what does not fit is noted, not written. */
struct line {
	char *text;
	size_t len, size;
	bool full;
};

void line_add(struct line *l, const char *data, size_t len);
void line_adds(struct line *l, const char *text);
void line_text(struct line *l, const char *name, const char *value);
void line_number(struct line *l, const char *name, uint64_t value);
void line_hex(struct line *l, const char *name, const uint8_t *data, size_t len);
/* seq, cp, event, time. */
void line_begin(struct line *l, const struct head *h, enum audit_event event, uint64_t wall_ns);
/* The fields of a run. */
void line_record(struct line *l, const struct record *rec);
/* prev, hash, mac and the newline; the new hash. */
void line_end(struct line *l, const struct log_key *key, const uint8_t prev[SHA256_LEN], uint8_t hash[SHA256_LEN]);

/* A line read back: what every entry has. */
struct entry {
	const char *text;
	size_t len; /* without the newline */
	uint64_t seq, cp;
	enum audit_event event; /* EVENT_COUNT: one that we do not know */
	const char *time;       /* ENTRY_TIME_LEN bytes */
	uint8_t prev[SHA256_LEN], hash[SHA256_LEN], mac[AUDIT_MAC_LEN];
};
#define ENTRY_TIME_LEN 24

/* False: it has not the form of an entry.  Says nothing about its truth. */
bool entry_read(const char *text, size_t len, struct entry *ret);
/* Whether hash and code are those of the text. */
bool entry_is_true(const struct entry *e, const struct log_key *key);
/* What stands between its time and its hashes. */
const char *entry_body(const struct entry *e, size_t *ret_len);
/* A member that is a string without escapes, or a number: copied to dst; false if there is none or it does not fit. */
bool entry_member(const struct entry *e, const char *name, char *dst, size_t size);

/* What a checkpoint signs. */
#define CHECKPOINT_TEXT_MAX 256
size_t checkpoint_text(char dst[CHECKPOINT_TEXT_MAX], const char *log_id, uint64_t seq, uint64_t cp,
		       const uint8_t prev[SHA256_LEN]);

/* ---- reader.c: the lines of all files, in order ------------------------------------------------------- */

struct reader {
	struct statedir dir;
	uint32_t *file; /* numbers, ascending */
	size_t n_files, at;
	int fd;
	uint64_t left; /* bytes of this file that may still be read */
	uint64_t last_size;
	uint32_t last_file; /* the one that the head names; only last_size bytes of it are read */
	bool snapshot;
	uint64_t line_no; /* of the line given last, in its file */
	char *buf;
	size_t have, used;
	bool oversized; /* the line given last is only the beginning of one that is too long */
	bool torn;      /* the line given last has no newline */
};

#define READER_BUF      (256 * 1024)
#define READER_FILE_MAX 100000

int reader_open(const struct statedir *state, struct reader *r, struct brig_error *err);
/* Sees what is there now, with the head of that moment; head may be NULL. */
int reader_snapshot(struct reader *r, const struct log_key *key, struct head *head, enum head_state *ret_state,
		    struct brig_error *err);
/* 1: *ret_line, *ret_len; 0: the end; negative: *err. */
int reader_next(struct reader *r, const char **ret_line, size_t *ret_len, struct brig_error *err);
/* The file that the line given last is in. */
uint32_t reader_file(const struct reader *r);
void reader_close(struct reader *r);

#endif
