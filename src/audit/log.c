/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - writing: audit.h has the theory.
 *
 * Everything between log_enter() and log_leave() happens under the head's lock.  log_settle() brings head and file into
 * agreement first, so that what follows only ever appends to a log whose end is known:
 *
 *	the file is longer    whole entries that continue the chain are adopted: their writer was killed before it could
 *	                      rewrite the head.  A piece without a newline is cut off: its writer was killed, or found
 *	                      no room.  Anything else was not written by brig; it stays for `brig audit verify` to name.
 *	the file is shorter, it was truncated, or the power failed before it was on disk.  The chain goes on from what
 *	the
 *	or gone               head says, so that the gap shows forever.
 *	the head is no good   the chain goes on from the last entry there is.
 *
 * Of each but the first an entry `recovered` tells.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "audit/internal.h"
#include "audit/log.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "model/plan.h"

#define RESERVE_BYTES (128 * KiB) /* what is asked of the file system at a time */
#define RECENT_BYTES  (256 * KiB) /* of the log, that a writer who was killed is looked for in */
#define NS_PER_DAY    (86400 * NS_PER_SEC)

/* ---- opening ------------------------------------------------------------------------------------- */

static int open_head(struct audit_log *log, struct brig_error *err)
{
	int rc = statedir_open_sub(&log->state, AUDIT_DIR, true, &log->dir, err);

	if (rc < 0)
		return rc;
	log->head_fd = statedir_open_file(&log->dir, AUDIT_HEAD, O_RDWR | O_CREAT, err);
	return log->head_fd < 0 ? log->head_fd : 0;
}

int audit_open(const struct statedir *state, struct audit_log **ret, struct brig_error *err)
{
	struct audit_log *log = calloc(1, sizeof(*log));
	int rc;

	if (!log)
		return err_nomem(err);
	log->dir.fd = log->head_fd = log->file_fd = FD_NONE;
	log->state = *state;
	log->state.fd = fcntl(state->fd, F_DUPFD_CLOEXEC, 3);
	rc = log->state.fd < 0 ? err_set(err, BRIG_E_SYSTEM, errno, "cannot open the audit log") : open_head(log, err);
	if (rc < 0) {
		audit_close(log);
		return rc;
	}
	*ret = log;
	return 0;
}

void audit_close(struct audit_log *log)
{
	if (!log)
		return;
	fd_closep(&log->file_fd);
	fd_closep(&log->head_fd);
	statedir_close(&log->dir);
	statedir_close(&log->state);
	crypto_wipe(&log->key, sizeof(log->key));
	free(log);
}

const char *audit_id(const struct audit_log *log)
{
	return log->key.id;
}

static int log_trouble(const struct audit_log *log, int sys, const char *what, struct brig_error *err)
{
	char name[LOG_NAME_MAX];

	log_name(name, log->head.file);
	return statedir_trouble(err, sys, what, log->dir.path, name);
}

/* The directory was moved away under an open handle: what is written there would be lost. */
static bool is_gone(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

static int take_lock(struct audit_log *log, struct brig_error *err)
{
	int rc;

	for (int tries = 0; tries < 3; tries++) {
		rc = fd_lock(log->head_fd, LOCK_EX, AUDIT_PATIENCE);
		if (rc < 0)
			return statedir_trouble(err, -rc, "cannot lock", log->dir.path, AUDIT_HEAD);
		if (!is_gone(log->head_fd))
			return 0;
		fd_closep(&log->file_fd);
		fd_closep(&log->head_fd);
		statedir_close(&log->dir);
		log->has_key = false;
		rc = open_head(log, err);
		if (rc < 0)
			return rc;
	}
	return statedir_trouble(err, ESTALE, "cannot keep open", log->dir.path, AUDIT_HEAD);
}

static void log_leave(struct audit_log *log)
{
	(void)flock(log->head_fd, LOCK_UN);
}

/* ---- one line ---------------------------------------------------------------------------------------- */

/* Frames and writes the line that is in log->line; the head goes on to it.  All or nothing. */
static int put_line(struct audit_log *log, struct brig_error *err)
{
	uint8_t hash[SHA256_LEN];
	ssize_t n;
	int rc;

	line_end(&log->line, &log->key, log->head.hash, hash);
	if (log->line.full)
		return err_set(err, BRIG_E_INTERNAL, 0, "an audit entry would have more than %d bytes",
			       AUDIT_ENTRY_MAX);
	n = write(log->file_fd, log->line.text, log->line.len);
	if (n < 0 || (size_t)n != log->line.len) {
		int sys = n < 0 ? errno : ENOSPC;

		/* If this fails too, the next writer cuts the piece off. */
		if (n > 0 && ftruncate(log->file_fd, (off_t)log->head.size) < 0)
			sys = errno;
		return log_trouble(log, sys, "cannot write to", err);
	}
	log->head.size += log->line.len;
	log->head.seq++;
	memcpy(log->head.hash, hash, sizeof(hash));
	rc = head_write(log->head_fd, &log->key, &log->head);
	return rc < 0 ? statedir_trouble(err, -rc, "cannot write to", log->dir.path, AUDIT_HEAD) : 0;
}

static int put_recovered(struct audit_log *log, const char *why, uint64_t cut, uint64_t expected,
			 struct brig_error *err)
{
	line_begin(&log->line, &log->head, EVENT_recovered, clock_wall_ns());
	line_text(&log->line, "why", why);
	line_number(&log->line, "cut", cut);
	line_number(&log->line, "expected", expected);
	return put_line(log, err);
}

static int put_begin(struct audit_log *log, struct brig_error *err)
{
	log->head.begun_ns = clock_wall_ns();
	if (log->head.cp_ns == 0)
		log->head.cp_ns = log->head.begun_ns;
	line_begin(&log->line, &log->head, EVENT_begin, log->head.begun_ns);
	line_number(&log->line, "file", log->head.file);
	line_text(&log->line, "log", log->key.id);
	line_number(&log->line, "format", AUDIT_FORMAT);
	line_text(&log->line, "brig", BRIG_VERSION);
	return put_line(log, err);
}

static int put_checkpoint(struct audit_log *log, struct brig_error *err)
{
	char text[CHECKPOINT_TEXT_MAX];
	uint64_t now = clock_wall_ns();
	uint8_t sig[SIGN_LEN];
	struct public_key key;
	size_t len = checkpoint_text(text, log->key.id, log->head.seq + 1, log->head.cp + 1, log->head.hash);
	int rc = keys_sign(&log->state, text, len, sig, &key, err);

	if (rc < 0)
		return rc;
	line_begin(&log->line, &log->head, EVENT_checkpoint, now);
	line_text(&log->line, "key", key.id);
	line_hex(&log->line, "sig", sig, sizeof(sig));
	log->head.cp++;
	log->head.cp_seq = log->head.seq + 1;
	log->head.cp_ns = now;
	rc = put_line(log, err);
	if (rc < 0)
		log->head.cp--;
	return rc;
}

/* ---- agreement of head and file -------------------------------------------------------------------------- */

/* Follows the chain from head.size on; *ret_cut: bytes of a piece at the end that is no whole line. */
static int adopt_lines(struct audit_log *log, uint64_t size, uint64_t *ret_cut, bool any_start, struct brig_error *err)
{
	uint64_t at = log->head.size;
	struct entry e;

	*ret_cut = 0;
	while (at < size) {
		ssize_t n = pread(log->file_fd, log->text, sizeof(log->text), (off_t)at);
		const char *end;

		if (n <= 0)
			return log_trouble(log, n < 0 ? errno : EIO, "cannot read", err);
		end = memchr(log->text, '\n', (size_t)min_u64((uint64_t)n, size - at));
		if (!end && size - at < sizeof(log->text)) {
			*ret_cut = size - at;
			return 0;
		}
		if (!end) { /* longer than anything of ours: it stays */
			log->head.size = size;
			return 0;
		}
		at += (uint64_t)(end - log->text) + 1;
		if (entry_read(log->text, (size_t)(end - log->text), &e) && entry_is_true(&e, &log->key) &&
		    (any_start ||
		     (e.seq == log->head.seq + 1 && memcmp(e.prev, log->head.hash, sizeof(e.prev)) == 0))) {
			log->head.seq = e.seq;
			memcpy(log->head.hash, e.hash, sizeof(e.hash));
			if (e.cp > log->head.cp)
				log->head.cp_seq = e.seq;
			log->head.cp = e.cp;
		}
		log->head.size = at; /* a foreign line is skipped, and stays */
	}
	return 0;
}

/* The last line of a file cut or torn: everything behind the last newline goes. */
static int cut_piece(struct audit_log *log, uint64_t *size, uint64_t *ret_cut, struct brig_error *err)
{
	size_t want = (size_t)min_u64(*size, sizeof(log->text));
	ssize_t n = pread(log->file_fd, log->text, want, (off_t)(*size - want));
	const char *end;

	*ret_cut = 0;
	if (want == 0)
		return 0;
	if (n != (ssize_t)want)
		return log_trouble(log, n < 0 ? errno : EIO, "cannot read", err);
	end = memrchr(log->text, '\n', want);
	*ret_cut = end ? want - (size_t)(end + 1 - log->text) : want;
	*size -= *ret_cut;
	if (*ret_cut && ftruncate(log->file_fd, (off_t)*size) < 0)
		return log_trouble(log, errno, "cannot shorten", err);
	return 0;
}

static int open_file(struct audit_log *log, bool make, struct brig_error *err)
{
	char name[LOG_NAME_MAX];

	fd_closep(&log->file_fd);
	log_name(name, log->head.file);
	log->file_fd = statedir_open_file(&log->dir, name, O_RDWR | O_APPEND | (make ? O_CREAT : 0), err);
	log->file_no = log->head.file;
	return log->file_fd < 0 ? log->file_fd : 0;
}

/* The next file; nothing is in it yet. */
static int next_file(struct audit_log *log, struct brig_error *err)
{
	int rc;

	/* What was reserved and not used goes back; what was not forced to disk yet is. */
	if (log->file_fd >= 0 && (ftruncate(log->file_fd, (off_t)log->head.size) < 0 || fdatasync(log->file_fd) < 0))
		return log_trouble(log, errno, "cannot finish", err);
	log->head.file++;
	log->head.size = 0;
	rc = head_write(log->head_fd, &log->key, &log->head);
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot write to", log->dir.path, AUDIT_HEAD);
	rc = open_file(log, true, err);
	if (rc == 0)
		(void)fsync(log->dir.fd);
	return rc;
}

/* The head is no good: go on behind the last entry of the last file. */
static int rebuild_head(struct audit_log *log, struct brig_error *err)
{
	uint32_t last = 0;
	struct stat st;
	uint64_t cut, size;
	int rc = log_last_file(&log->dir, &last, err);

	if (rc < 0)
		return rc;
	log->head = (struct head){ .file = last ? last : 1 };
	/* A new log gets its head first: a process killed from here on leaves a log with a head. */
	if (last == 0)
		rc = head_write(log->head_fd, &log->key, &log->head);
	if (rc == 0 && last == 0 && fsync(log->head_fd) < 0)
		rc = -errno;
	if (rc < 0)
		return statedir_trouble(err, -rc, "cannot write to", log->dir.path, AUDIT_HEAD);
	rc = open_file(log, true, err);
	if (rc == 0 && fstat(log->file_fd, &st) < 0)
		rc = log_trouble(log, errno, "cannot look at", err);
	if (rc < 0 || st.st_size == 0)
		return rc;
	size = (uint64_t)st.st_size;
	rc = cut_piece(log, &size, &cut, err);
	/* Only the last entries matter: begin where at least one is sure to follow. */
	if (rc == 0) {
		log->head.size = size > AUDIT_ENTRY_MAX ? size - AUDIT_ENTRY_MAX : 0;
		rc = adopt_lines(log, size, &cut, true, err);
	}
	return rc < 0 ? rc : put_recovered(log, "head", cut, 0, err);
}

/* The file is shorter than the head says, or not there at all. */
static int accept_loss(struct audit_log *log, uint64_t size, struct brig_error *err)
{
	uint64_t expected = log->head.seq, cut = 0;
	int rc = 0;

	if (log->file_fd >= 0) {
		rc = cut_piece(log, &size, &cut, err);
		log->head.size = size;
	} else {
		rc = next_file(log, err);
		if (rc == 0)
			rc = put_begin(log, err);
	}
	return rc < 0 ? rc : put_recovered(log, "lost", cut, expected, err);
}

static int accept_more(struct audit_log *log, uint64_t size, struct brig_error *err)
{
	uint64_t cut;
	int rc = adopt_lines(log, size, &cut, false, err);

	if (rc < 0 || cut == 0)
		return rc;
	if (ftruncate(log->file_fd, (off_t)log->head.size) < 0)
		return log_trouble(log, errno, "cannot shorten", err);
	if (log->head.size == 0)
		return 0; /* not even the file's own first entry was whole */
	return put_recovered(log, "torn", cut, log->head.seq, err);
}

static int log_settle(struct audit_log *log, enum head_state state, struct brig_error *err)
{
	struct brig_error local = BRIG_ERROR_INIT;
	struct stat st = { .st_size = 0 };
	int rc = 0;

	if (state != HEAD_GOOD)
		return rebuild_head(log, err);
	if (log->file_fd < 0 || log->file_no != log->head.file || is_gone(log->file_fd))
		rc = open_file(log, log->head.size == 0, &local);
	if (rc < 0 && local.sys == ENOENT)
		return accept_loss(log, 0, err);
	if (rc < 0) {
		if (err)
			*err = local;
		return rc;
	}
	if (fstat(log->file_fd, &st) < 0)
		return log_trouble(log, errno, "cannot look at", err);
	if ((uint64_t)st.st_size < log->head.size)
		return accept_loss(log, (uint64_t)st.st_size, err);
	return (uint64_t)st.st_size > log->head.size ? accept_more(log, (uint64_t)st.st_size, err) : 0;
}

/* Only a log without entries may have no key: a new one would disown them. */
static int take_key(struct audit_log *log, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	uint32_t last = 0;
	int rc = log_key_load(&log->dir, false, &log->key, &why);

	if (rc < 0 && why.sys == ENOENT && log_last_file(&log->dir, &last, &why) == 0 && last == 0)
		rc = log_key_load(&log->dir, true, &log->key, &why);
	else if (rc < 0 && last > 0)
		(void)err_wrap(&why, "the audit log has entries, but not its key");
	if (rc < 0 && err)
		*err = why;
	log->has_key = rc == 0;
	return rc;
}

/* Takes the lock and makes the log fit to be appended to. */
static int log_enter(struct audit_log *log, struct brig_error *err)
{
	enum head_state state;
	int rc = take_lock(log, err);

	if (rc < 0)
		return rc;
	if (!log->has_key)
		rc = take_key(log, err);
	if (rc == 0) {
		log->line = (struct line){ .text = log->text, .size = sizeof(log->text) };
		state = head_read(log->head_fd, &log->key, &log->head);
		rc = log_settle(log, state, err);
	}
	if (rc == 0 && log->head.size == 0)
		rc = put_begin(log, err);
	if (rc < 0)
		log_leave(log);
	return rc;
}

/* ---- what policy says: files, checkpoints, disk ---------------------------------------------------------- */

static bool is_file_over(const struct head *h, const struct settings *set, uint64_t now)
{
	return h->size >= set->audit_file_size ||
	       (now > h->begun_ns && now - h->begun_ns >= set->audit_file_days * NS_PER_DAY);
}

/* A clock that was set back does not postpone the next one forever. */
static bool is_due(uint64_t last, uint64_t now, uint64_t interval)
{
	return (now < last ? last - now : now - last) >= interval;
}

static bool is_checkpoint_due(const struct head *h, uint64_t now)
{
	return h->seq - h->cp_seq >= CHECKPOINT_ENTRIES || is_due(h->cp_ns, now, CHECKPOINT_NS);
}

static int turn_page(struct audit_log *log, const struct settings *set, uint64_t now, struct brig_error *err)
{
	int rc;

	if (!is_file_over(&log->head, set, now))
		return 0;
	rc = put_checkpoint(log, err);
	if (rc == 0)
		rc = next_file(log, err);
	return rc < 0 ? rc : put_begin(log, err);
}

static int force_to_disk(struct audit_log *log, const struct settings *set, uint64_t now, struct brig_error *err)
{
	if (set->audit_fsync != AUDIT_FSYNC_ALWAYS &&
	    !is_due(log->head.synced_ns, now, set->audit_fsync_ms * NS_PER_MS))
		return 0;
	if (fdatasync(log->file_fd) < 0)
		return log_trouble(log, errno, "cannot force to disk", err);
	log->head.synced_ns = now;
	(void)head_write(log->head_fd, &log->key, &log->head);
	return 0;
}

/* The line of a run, or about one, that is in log->line. */
static int append_line(struct audit_log *log, const struct settings *set, struct audit_place *ret,
		       struct brig_error *err)
{
	int rc = put_line(log, err);

	if (rc < 0)
		return rc;
	ret->seq = log->head.seq;
	memcpy(ret->hash, log->head.hash, sizeof(ret->hash));
	return force_to_disk(log, set, clock_wall_ns(), err);
}

int audit_append(struct audit_log *log, struct record *rec, struct brig_error *err)
{
	struct audit_place place = { .seq = 0 };
	int rc = log_enter(log, err);

	if (rc < 0)
		return rc;
	line_begin(&log->line, &log->head, EVENT_run, rec->wall_ns);
	line_record(&log->line, rec);
	rc = append_line(log, rec->set, &place, err);
	log_leave(log);
	if (place.seq > 0) {
		rec->audit_seq = place.seq;
		memcpy(rec->audit_hash, place.hash, sizeof(rec->audit_hash));
	}
	return rc;
}

int audit_append_leftover(struct audit_log *log, const struct settings *set, const char *id, const char *what,
			  struct brig_error *err)
{
	struct audit_place place;
	int rc = log_enter(log, err);

	if (rc < 0)
		return rc;
	line_begin(&log->line, &log->head, EVENT_leftover, clock_wall_ns());
	line_text(&log->line, "id", id);
	line_text(&log->line, "what", what);
	rc = append_line(log, set, &place, err);
	log_leave(log);
	return rc;
}

/* ---- entries whose body somebody else made ---------------------------------------------------------------- */

/* Whether the line is the entry of this run. */
static bool is_run(const char *line, size_t len, const char *id, struct entry *ret)
{
	char own[RUN_ID_LEN + 1];

	return entry_read(line, len, ret) && ret->event == EVENT_run && entry_member(ret, "id", own, sizeof(own)) &&
	       str_eq(own, id);
}

/* Looks through the end of the file, and of it through what is whole: 1: *ret and its body; 0: it is not there. */
static int find_locked(struct audit_log *log, const char *id, struct audit_place *ret, struct buf *body,
		       struct brig_error *err)
{
	uint64_t from = log->head.size > RECENT_BYTES ? log->head.size - RECENT_BYTES : 0;
	size_t want = (size_t)(log->head.size - from), at = 0, len;
	AUTO_FREE char *text = malloc(want + 1);
	struct entry e;

	if (!text)
		return err_nomem(err);
	if (pread(log->file_fd, text, want, (off_t)from) != (ssize_t)want)
		return log_trouble(log, EIO, "cannot read", err);
	while (at < want) {
		const char *line = text + at, *end = memchr(line, '\n', want - at);

		if (!end)
			break;
		at += (size_t)(end - line) + 1;
		if (!is_run(line, (size_t)(end - line), id, &e) || !entry_is_true(&e, &log->key))
			continue;
		ret->seq = e.seq;
		memcpy(ret->hash, e.hash, sizeof(ret->hash));
		line = entry_body(&e, &len);
		(void)buf_add(body, line, len);
		return 1;
	}
	return 0;
}

int audit_find_recent(struct audit_log *log, const char *id, struct audit_place *ret, struct brig_error *err)
{
	AUTO_BUF body = BUF_INIT(AUDIT_ENTRY_MAX);
	int rc = log_enter(log, err);

	if (rc < 0)
		return rc;
	rc = find_locked(log, id, ret, &body, err);
	log_leave(log);
	return rc;
}

static int append_said(struct audit_log *log, const struct settings *set, const struct audit_said *said,
		       struct audit_place *ret, struct brig_error *err)
{
	AUTO_BUF there = BUF_INIT(AUDIT_ENTRY_MAX);
	int rc = said->may_be_there ? find_locked(log, said->id, ret, &there, err) : 0;

	if (rc < 0)
		return rc;
	if (rc > 0)
		return there.len == said->len && memcmp(there.data, said->body, said->len) == 0
			       ? 0
			       : err_set(err, BRIG_E_REFUSED, EEXIST,
					 "the log has an entry of run %s already, which says something else and stays",
					 said->id);
	line_begin(&log->line, &log->head, EVENT_run, said->wall_ns);
	line_add(&log->line, said->body, said->len);
	return append_line(log, set, ret, err);
}

int audit_append_body(struct audit_log *log, const struct settings *set, const struct audit_said *said,
		      struct audit_place *ret, struct brig_error *err)
{
	int rc = log_enter(log, err);

	*ret = (struct audit_place){ .seq = 0 };
	if (rc < 0)
		return rc;
	rc = append_said(log, set, said, ret, err);
	log_leave(log);
	return rc;
}

/* ---- room -------------------------------------------------------------------------------------------------- */

/* Preallocated blocks after the end: a promised entry does not fail for lack of space. */
static int reserve(struct audit_log *log, struct brig_error *err)
{
	struct statvfs fs;
	struct stat st;

	if (fstat(log->file_fd, &st) < 0)
		return log_trouble(log, errno, "cannot look at", err);
	if ((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size + RESERVE_BYTES / 2)
		return 0;
	if (fallocate(log->file_fd, FALLOC_FL_KEEP_SIZE, st.st_size, RESERVE_BYTES) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return log_trouble(log, errno, "no room in", err);
	if (fstatvfs(log->file_fd, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < RESERVE_BYTES)
		return log_trouble(log, ENOSPC, "no room in", err);
	return 0;
}

/* Everything that may fail or take long is done here, before the run: the entry itself is one write. */
int audit_ready(struct audit_log *log, const struct settings *set, struct brig_error *err)
{
	uint64_t now;
	int rc = log_enter(log, err);

	if (rc < 0)
		return rc;
	now = clock_wall_ns();
	rc = turn_page(log, set, now, err);
	if (rc == 0 && is_checkpoint_due(&log->head, now))
		rc = put_checkpoint(log, err);
	if (rc == 0)
		rc = reserve(log, err);
	log_leave(log);
	return rc;
}

/* ---- keys --------------------------------------------------------------------------------------------------- */

static int announce_key(void *arg, const struct public_key *old, const struct public_key *now,
			const uint8_t sig[SIGN_LEN], struct brig_error *err)
{
	struct audit_log *log = arg;

	line_begin(&log->line, &log->head, EVENT_key, clock_wall_ns());
	line_text(&log->line, "old", old->id);
	line_text(&log->line, "new", now->id);
	line_hex(&log->line, "public", now->pub, SIGN_PUB_LEN);
	line_hex(&log->line, "sig", sig, SIGN_LEN);
	return put_line(log, err);
}

int audit_key_rotate(struct audit_log *log, char **ret_json, struct brig_error *err)
{
	int rc = log_enter(log, err);

	if (rc < 0)
		return rc;
	rc = keys_rotate(&log->state, announce_key, log, err);
	if (rc == 0 && fdatasync(log->file_fd) < 0)
		rc = log_trouble(log, errno, "cannot force to disk", err);
	log_leave(log);
	return rc < 0 ? rc : audit_keys_json(&log->state, false, ret_json, err);
}
