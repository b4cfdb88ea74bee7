/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steward: the program of a session's cell, and the protocol between it and the session's owner.
 *
 * Theory of operation
 *
 * A session is a cell that stays.  Its program is the steward, a small static program of brig's own, executed from a
 * sealed memfd under exactly the confinement that any other program of the policy would have: ids, capabilities,
 * filter, Landlock, limits, namespaces, cgroup.  Everything that it starts inherits all of that, so a session is
 * confined like a single run by construction, and the evidence is read back in the same way.  The steward has no right
 * that the programs which it starts lack; it exists because requests from outside need a process inside to serve them.
 *
 *	owner (caller, runner)                     cell
 *	struct session  <== SOCK_SEQPACKET ==>     steward (pid 2, standard input is the socket)
 *	     |                                        |-- process: kernel of a context, command, shell on a terminal
 *	     '-- pipes, one channel per kernel ---------- their descriptors 0, 1, 2 (and 3)
 *
 * The owner creates the pipes of each process and sends their other ends.  A terminal is created inside, and the
 * steward relays its bytes, so the owner never holds one.  The owner receives from inside either such bytes, or a
 * message, or a descriptor of a regular file or of a connection to the cell's own loopback; it checks the type of the
 * descriptor and never blocks on it.
 *
 * The owner trusts nothing that comes out of the cell: a program there has the steward's user id and may have taken it
 * over.  It can then lie to the owner about the cell, and nothing else: it is as confined as before.
 *
 * One record is one message: a head, then words (NUL-terminated strings, one after the other).  Numbers have host byte
 * order.  The reader checks that the record is complete, that it has as many words as the head says, and that
 * descriptors come only where the table permits them.
 *
 *	owner -> steward   numbers                                   words                              descriptors
 *	  START            argv words, env words, flags, CPU         directory, argv..., env...         0, 1, 2, maybe 3
 *	                   seconds, rows, columns                                                       (pty: in, out)
 *	  SIGNAL           pid, signal, whole group?                 -                                  -
 *	  RESIZE           pid, rows, columns                        -                                  -
 *	  CPU              pid                                       -                                  -
 *	  OPEN             flags (enum steward_open), mode           path                               -
 *	  STAT             -                                         path                               -
 *	  LIST             depth, maximum number of entries          path                               -
 *	  MKDIR            mode                                      path                               -
 *	  MOVE             -                                         from, to                           -
 *	  REMOVE           -                                         path                               -
 *	  WATCH            recursive?                                path                               -
 *	  UNWATCH          tag of the WATCH                          -                                  -
 *	  CONNECT          port                                      -                                  -
 *	  PAUSE, RESUME    -                                         -                                  -
 *	  SAVE             maximum number of entries, of bytes       -                                  to write to
 *	  LOAD             -                                         -                                  to read from
 *	  FREEZER          version of its cgroup                     -                                  cgroup.procs,
 *	                   (no answer)                                                                  state, events
 *	  END              -                                         -                                  -
 *	steward -> owner
 *	  READY            its pid                                   -                                  -
 *	  DONE             errno, then depending on the request:     -                                  -
 *	    START          pid, stage that failed                    -                                  -
 *	    OPEN           -                                         -                                  the file
 *	    LIST           1: truncated                              -                                  -
 *	    CONNECT        -                                         -                                  the connection
 *	    CPU            milliseconds, including descendants       -                                  -
 *	    SAVE, LOAD     entries, bytes in files, left out         -                                  -
 *	  ENTRY            mode, size, seconds, nanoseconds, uid,    path, target of a link             -
 *	                   gid, mode of a link's target              (resolved; "": dangling)
 *	  CHANGED          enum steward_change                       name below the watched directory   -
 *	  EXITED           pid, exit code, signal, CPU microseconds, -                                  -
 *	                   largest resident KiB
 *
 * Each message of the owner has a tag chosen by the owner; DONE, the ENTRYs before it, the CHANGEDs of a watch and the
 * EXITED of a process carry the tag of the request that they belong to.  Requests are answered in order.
 */
#ifndef GUEST_STEWARD_H
#define GUEST_STEWARD_H

#include <stddef.h>
#include <stdint.h>

/* The program's bytes, for a memfd. */
extern const unsigned char steward_program_bytes[];
extern const size_t steward_program_size;

#define STEWARD_PATH "/run/brig/steward" /* its argv[0]; no such file exists */

#define STEWARD_MAGIC     0x53545744u /* "STWD" */
#define STEWARD_NUMBERS   8
#define STEWARD_WORDS_MAX 1000 /* with the head they are the iovecs of one sendmsg(2) */
#define STEWARD_BYTES_MAX \
	(160u << 10) /* all words: exceeds the longest string for execve; fits into one record of a default socket */
#define STEWARD_FDS_MAX       4
#define STEWARD_PROCESSES_MAX 128
#define STEWARD_WATCHES_MAX   256 /* directories, over all watches */
#define STEWARD_ENTRIES_MAX   10000
#define STEWARD_DEPTH_MAX     64

enum steward_kind {
	STEWARD_START = 1,
	STEWARD_SIGNAL,
	STEWARD_RESIZE,
	STEWARD_OPEN,
	STEWARD_STAT,
	STEWARD_LIST,
	STEWARD_MKDIR,
	STEWARD_MOVE,
	STEWARD_REMOVE,
	STEWARD_WATCH,
	STEWARD_UNWATCH,
	STEWARD_CONNECT,
	STEWARD_PAUSE,
	STEWARD_RESUME,
	STEWARD_SAVE,
	STEWARD_LOAD,
	STEWARD_CPU,
	STEWARD_FREEZER, /* sent by the supervisor before the owner's first message */
	STEWARD_END,
	STEWARD_ASKED_END, /* those above are sent by the owner */
	STEWARD_READY = STEWARD_ASKED_END,
	STEWARD_DONE,
	STEWARD_ENTRY,
	STEWARD_CHANGED,
	STEWARD_EXITED,
	STEWARD_KIND_END
};

/* Flags of START. */
#define STEWARD_PTY 1

/* Why a process could not be started: number[2] of DONE. */
enum steward_stage { STEWARD_STAGE_NONE, STEWARD_STAGE_FOLDER, STEWARD_STAGE_EXEC };

enum steward_open {
	STEWARD_OPEN_READ,
	STEWARD_OPEN_WRITE,  /* creates or truncates the file, and creates missing directories */
	STEWARD_OPEN_APPEND, /* creates, likewise */
};

enum steward_change { CHANGE_CREATE = 1, CHANGE_WRITE, CHANGE_REMOVE, CHANGE_RENAME, CHANGE_CHMOD, CHANGE_COUNT };

struct steward_head {
	uint32_t magic, kind;
	uint64_t tag;
	int64_t number[STEWARD_NUMBERS];
	uint32_t n_words, size; /* size of the words, including NULs */
};

struct steward_message {
	struct steward_head head;
	const char *word[STEWARD_WORDS_MAX + 1]; /* pointers into bytes; NULL after the last */
	int fds[STEWARD_FDS_MAX];                /* the receiver's; FD_NONE: not sent */
	size_t n_fds;
	char bytes[STEWARD_BYTES_MAX];
};

/* 0 or -errno; -E2BIG: the words do not fit.  Fills in head's magic and sizes. */
int steward_send(int sock, const struct steward_head *head, const char *const *words, size_t n_words, const int *fds,
		 size_t n_fds, int flags);
/* 1: a well-formed message; 0: end of file; -EAGAIN; -EPROTO: malformed, and its descriptors are closed. */
int steward_receive(int sock, struct steward_message *ret, int flags);
void steward_message_release(struct steward_message *m);

#endif
