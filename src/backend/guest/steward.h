/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steward: the program of a session's cell, and how the session's owner speaks to it.
 *
 * Theory of operation
 *
 * A session is a cell that stays.  Its program is the steward, a small static program of brig's own, which is executed from a
 * sealed file in memory behind exactly the walls that any other program of the policy would have: ids, capabilities, filter,
 * Landlock, limits, namespaces, control group.  Whatever it starts inherits all of them, so the walls of a session are those
 * of a single run by construction, and are read back in the same way.  The steward has no right that the programs which it
 * starts do not have; it is there because somebody has to be asked from outside.
 *
 *	owner (caller, runner)                     cell
 *	struct session  <== SOCK_SEQPACKET ==>     steward (pid 2, standard input is the socket)
 *	     |                                        |-- process: kernel of a context, command, shell on a terminal
 *	     '-- pipes, one channel per kernel ---------- their descriptors 0, 1, 2 (and 3)
 *
 * The owner makes the pipes of each process and sends their other ends; of a terminal, which is made inside, the steward moves
 * the bytes, so the owner never holds one.  What the owner gets from inside is either such bytes, or a message, or a descriptor
 * of a regular file or of a connection to the cell's own loopback: it checks what kind of thing came and never waits for it.
 *
 * The owner believes nothing that comes out of the cell: a program there has the steward's user id, and may have taken it over.
 * Then it can lie about the cell to its owner, and nothing else: it is inside, as it was before.
 *
 * One record, one message: a head, then words (strings with their NULs, one behind the other).  Numbers are in the order of this
 * machine.  The reader checks that the record is whole, that there are as many words as the head says, and that descriptors come
 * only where the table says so.
 *
 *	owner -> steward   numbers                                   words                              descriptors
 *	  START            argv words, env words, flags, cpu         folder, argv..., env...            0, 1, 2 and maybe 3
 *	                   seconds, rows, columns                                                      (a terminal: in and out)
 *	  SIGNAL           pid, signal, whole group?                 -                                  -
 *	  RESIZE           pid, rows, columns                        -                                  -
 *	  CPU              pid                                       -                                  -
 *	  OPEN             flags (enum steward_open), mode           path                               -
 *	  STAT             -                                         path                               -
 *	  LIST             depth, at most so many                    path                               -
 *	  MKDIR            mode                                      path                               -
 *	  MOVE             -                                         from, to                           -
 *	  REMOVE           -                                         path                               -
 *	  WATCH            recursive?                                path                               -
 *	  UNWATCH          tag of the WATCH                          -                                  -
 *	  CONNECT          port                                      -                                  -
 *	  PAUSE, RESUME    -                                         -                                  -
 *	  SAVE             at most so many entries, bytes            -                                  where to write
 *	  LOAD             -                                         -                                  where to read
 *	  FREEZER          version of its control group              -                                  its cgroup.procs, its
 *	                   (not answered)                                                              state, of 2 its events
 *	  END              -                                         -                                  -
 *	steward -> owner
 *	  READY            its pid                                   -                                  -
 *	  DONE             errno, then by what was asked for:        -                                  -
 *	    START          pid, stage that failed                    -                                  -
 *	    OPEN           -                                         -                                  the file
 *	    LIST           1: there was more                         -                                  -
 *	    CONNECT        -                                         -                                  the connection
 *	    CPU            milliseconds, with all that descend from  -                                  -
 *	                   the process
 *	    SAVE, LOAD     entries, bytes in files, left out         -                                  -
 *	  ENTRY            mode, size, seconds, nanoseconds, uid,    path, where a link leads           -
 *	                   gid, mode of what a link leads to         (resolved; "": nowhere)
 *	  CHANGED          enum steward_change                       name below the watched folder      -
 *	  EXITED           pid, exit code, signal, cpu microseconds, -                                  -
 *	                   largest resident KiB
 *
 * Each message of the owner has a tag of the owner's choice; DONE, the ENTRYs before it, the CHANGEDs of a watch and the EXITED
 * of a process carry the tag of what they answer.  Requests are answered in their order.
 */
#ifndef GUEST_STEWARD_H
#define GUEST_STEWARD_H

#include <stddef.h>
#include <stdint.h>

/* The program, for a file in memory. */
extern const unsigned char steward_program_bytes[];
extern const size_t steward_program_size;

#define STEWARD_PATH "/run/brig/steward" /* what it is called in its own words; there is no such file */

#define STEWARD_MAGIC     0x53545744u /* "STWD" */
#define STEWARD_NUMBERS   8
#define STEWARD_WORDS_MAX 1000 /* with the head they are pieces of one sendmsg(2) */
#define STEWARD_BYTES_MAX \
	(160u << 10) /* of words: the longest that the kernel takes, and more; fits into one record of a usual socket */
#define STEWARD_FDS_MAX       4
#define STEWARD_PROCESSES_MAX 128
#define STEWARD_WATCHES_MAX   256 /* folders that are looked at, all watches together */
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
	STEWARD_FREEZER, /* the supervisor's, before anybody else's */
	STEWARD_END,
	STEWARD_ASKED_END, /* those above are the owner's */
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
	STEWARD_OPEN_WRITE,  /* made or emptied, and the folders that lead there */
	STEWARD_OPEN_APPEND, /* made, likewise */
};

enum steward_change { CHANGE_CREATE = 1, CHANGE_WRITE, CHANGE_REMOVE, CHANGE_RENAME, CHANGE_CHMOD, CHANGE_COUNT };

struct steward_head {
	uint32_t magic, kind;
	uint64_t tag;
	int64_t number[STEWARD_NUMBERS];
	uint32_t n_words, size; /* of the words, with their NULs */
};

struct steward_message {
	struct steward_head head;
	const char *word[STEWARD_WORDS_MAX + 1]; /* NULL behind the last; in bytes */
	int fds[STEWARD_FDS_MAX];                /* the receiver's; FD_NONE where none came */
	size_t n_fds;
	char bytes[STEWARD_BYTES_MAX];
};

/* 0 or -errno; -E2BIG: more words than fit.  head's magic and sizes are filled in. */
int steward_send(int sock, const struct steward_head *head, const char *const *words, size_t n_words, const int *fds,
		 size_t n_fds, int flags);
/* 1: a sound message; 0: the other has gone; -EAGAIN; -EPROTO: it was unsound, and its descriptors are closed. */
int steward_receive(int sock, struct steward_message *ret, int flags);
void steward_message_release(struct steward_message *m);

#endif
