/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait_harness - starts an interpreter that waits for its program, without a cell around it
 *
 *	wait_harness [OPTIONS] PROGRAM CONTENT -- COMMAND...
 *
 * PROGRAM is the program file, which is made; CONTENT is the file with what comes into it; COMMAND starts the interpreter
 * and names PROGRAM among its words.  The child has our streams, and we end as it ended.
 *
 *	--library FILE   the library under test; without it COMMAND is started cold, with PROGRAM filled in advance
 *	--warm LIST      modules to import before waiting
 *	--also PATH      another path whose opening is a place to wait
 *	--bring FOLDER   what is copied into PROGRAM's folder beside it: before the claim, or before a cold start
 *	--play NAME      how the supervisor behaves; see plays[]
 *	--times FILE     appends "START RUN": ns until it waits (0 if cold), and from the claim, or the cold start, to its end
 *
 * Exit status 99: the harness itself could not do something, or the interpreter ended without having waited.
 */
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/guest/wait.h"

#define OWN_FAULT 99

extern char **environ;

static struct {
	const char *library, *warm, *also, *bring, *play, *times;
	const char *program, *content;
	char **command;
} opt;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A sealed copy of a file in memory. */
static int memory_copy(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char bytes[65536];
	ssize_t n;

	if (from < 0 || to < 0)
		err(OWN_FAULT, "%s", path);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			err(OWN_FAULT, "copy of %s", path);
	close(from);
	if (n < 0 || fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		err(OWN_FAULT, "copy of %s", path);
	return to;
}

static void bring_files(void)
{
	int status;
	pid_t child;

	if (!opt.bring)
		return;
	child = fork();
	if (child == 0) {
		char *from = NULL, *to = strdup(opt.program);

		if (asprintf(&from, "%s/.", opt.bring) < 0 || !to)
			err(OWN_FAULT, "asprintf");
		strrchr(to, '/')[1] = '\0';
		execlp("cp", "cp", "-r", from, to, (char *)NULL);
		err(OWN_FAULT, "cp");
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		errx(OWN_FAULT, "files could not be brought");
}

static uint64_t size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		err(OWN_FAULT, "fstat");
	return (uint64_t)st.st_size;
}

/* The program file: with its content for a cold start, empty for one that waits. */
static void make_program(bool filled)
{
	int to = open(opt.program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), from;
	char bytes[65536];
	ssize_t n;

	if (to < 0)
		err(OWN_FAULT, "%s", opt.program);
	if (filled) {
		from = open(opt.content, O_RDONLY | O_CLOEXEC);
		while ((n = read(from, bytes, sizeof(bytes))) > 0)
			if (write(to, bytes, (size_t)n) != n)
				err(OWN_FAULT, "%s", opt.program);
		close(from);
	}
	close(to);
}

static char *joined(const char *a, const char *b, const char *c, const char *d)
{
	char *text;

	if (asprintf(&text, "%s%s%s%s", a, b, c, d) < 0)
		err(OWN_FAULT, "asprintf");
	return text;
}

/* The caller's environment with the library's variables behind it. */
static char **waiting_environment(void)
{
	size_t n = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 4, sizeof(*env));
	if (!env)
		err(OWN_FAULT, "calloc");
	memcpy(env, environ, n * sizeof(*env));
	env[n++] = joined(GUEST_WAIT_PRELOAD, "", "", "");
	env[n++] = joined(GUEST_WAIT_PATHS, opt.program, opt.also ? ":" : "", opt.also ? opt.also : "");
	if (opt.warm)
		env[n++] = joined(GUEST_WAIT_WARM, opt.warm, "", "");
	return env;
}

static _Noreturn void become(int sock, int library)
{
	char **env = environ;

	if (library >= 0) {
		env = waiting_environment();
		/* Above both numbers first: one may be the other's. */
		sock = fcntl(sock, F_DUPFD_CLOEXEC, 10);
		library = fcntl(library, F_DUPFD_CLOEXEC, 10);
		if (dup2(sock, GUEST_WAIT_SOCKET) < 0 || dup2(library, GUEST_WAIT_LIBRARY) < 0)
			err(OWN_FAULT, "dup2");
	}
	execve(opt.command[0], opt.command, env);
	err(OWN_FAULT, "%s", opt.command[0]);
}

static void say(int sock, const void *words, size_t size, const int *fds, size_t n_fds)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec space = { (void *)(uintptr_t)words, size };
	struct msghdr msg = { .msg_iov = &space, .msg_iovlen = 1 };

	if (n_fds > 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		control.align = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n_fds * sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.align), fds, n_fds * sizeof(int));
	}
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) < 0)
		warn("sendmsg");
}

#define WORD(kind, value) ((struct guest_word){ GUEST_WORD_MAGIC, kind, value })

static void play_one(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd)), WORD(GUEST_GO, 0) };

	say(sock, words, sizeof(words), &fd, 1);
}

static void play_two(int sock, int fd)
{
	struct guest_word claim = WORD(GUEST_CLAIM, size_of(fd)), go = WORD(GUEST_GO, 0);

	say(sock, &claim, sizeof(claim), &fd, 1);
	say(sock, &go, sizeof(go), NULL, 0);
}

static void play_silence(int sock, int fd)
{
	(void)sock, (void)fd;
}

static void play_no_go(int sock, int fd)
{
	struct guest_word claim = WORD(GUEST_CLAIM, size_of(fd));

	say(sock, &claim, sizeof(claim), &fd, 1);
}

static void play_go_first(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_GO, 0), WORD(GUEST_CLAIM, size_of(fd)) };

	say(sock, words, sizeof(words), &fd, 1);
}

static void play_claim_twice(int sock, int fd)
{
	play_no_go(sock, fd);
	play_no_go(sock, fd);
}

static void play_short(int sock, int fd)
{
	struct guest_word claim = WORD(GUEST_CLAIM, size_of(fd));

	say(sock, &claim, sizeof(claim) - 1, &fd, 1);
}

static void play_long(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd)), WORD(GUEST_GO, 0), WORD(GUEST_GO, 0) };

	say(sock, words, sizeof(words), &fd, 1);
}

static void play_magic(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd)), WORD(GUEST_GO, 0) };

	words[0].magic++;
	say(sock, words, sizeof(words), &fd, 1);
}

static void play_no_descriptor(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd)), WORD(GUEST_GO, 0) };

	say(sock, words, sizeof(words), NULL, 0);
}

static void play_two_descriptors(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd)), WORD(GUEST_GO, 0) };

	say(sock, words, sizeof(words), (int[]){ fd, fd }, 2);
}

static void play_too_small(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd) + 1), WORD(GUEST_GO, 0) };

	say(sock, words, sizeof(words), &fd, 1);
}

static void play_too_large(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd) - 1), WORD(GUEST_GO, 0) };

	say(sock, words, sizeof(words), &fd, 1);
}

static void play_unreadable(int sock, int fd)
{
	struct guest_word words[] = { WORD(GUEST_CLAIM, size_of(fd)), WORD(GUEST_GO, 0) };
	int closed = open("/", O_PATH | O_CLOEXEC);

	say(sock, words, sizeof(words), &closed, 1);
}

static const struct {
	const char *name;
	void (*play)(int sock, int program);
} plays[] = {
	{ "one", play_one }, /* sound: claim and word in one record */
	{ "two", play_two }, /* sound: two records */
	{ "silence", play_silence },
	{ "no-go", play_no_go },
	{ "go-first", play_go_first },
	{ "claim-twice", play_claim_twice },
	{ "short", play_short },
	{ "long", play_long },
	{ "magic", play_magic },
	{ "no-descriptor", play_no_descriptor },
	{ "two-descriptors", play_two_descriptors },
	{ "too-small", play_too_small },
	{ "too-large", play_too_large },
	{ "unreadable", play_unreadable },
};

static void play(int sock)
{
	int program = memory_copy(opt.content);

	for (size_t i = 0; i < sizeof(plays) / sizeof(plays[0]); i++)
		if (strcmp(plays[i].name, opt.play) == 0) {
			plays[i].play(sock, program);
			return;
		}
	errx(OWN_FAULT, "no play is called %s", opt.play);
}

/* False: it ended, and has not waited. */
static bool await_waiting(int sock)
{
	struct guest_word word;
	ssize_t n = recv(sock, &word, sizeof(word), 0);

	if (n == 0)
		return false;
	if (n != sizeof(word) || word.magic != GUEST_WORD_MAGIC)
		errx(OWN_FAULT, "an unsound record");
	if (word.kind == GUEST_FAILED)
		fprintf(stderr, "wait_harness: module %llu failed\n", (unsigned long long)word.value);
	return word.kind == GUEST_WAITING;
}

/* Whatever it said after the claim. */
static void note_last_word(int sock)
{
	struct guest_word word;

	if (recv(sock, &word, sizeof(word), MSG_DONTWAIT) == sizeof(word))
		fprintf(stderr, "wait_harness: %s\n", word.kind == GUEST_UNFIT ? "unfit" : "an unsound record");
}

static void note_times(uint64_t start, uint64_t run)
{
	FILE *f = opt.times ? fopen(opt.times, "ae") : NULL;

	if (f) {
		fprintf(f, "%llu %llu\n", (unsigned long long)start, (unsigned long long)run);
		fclose(f);
	}
}

static int end_like(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		err(OWN_FAULT, "waitpid");
	return status;
}

static int run(void)
{
	int pair[2], library = opt.library ? memory_copy(opt.library) : -1, status;
	uint64_t begin = now_ns(), claimed = begin;
	bool waited = false;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		err(OWN_FAULT, "socketpair");
	child = fork();
	if (child == 0)
		become(pair[1], library);
	close(pair[1]);
	if (opt.library) {
		waited = await_waiting(pair[0]);
		if (waited)
			bring_files();
		claimed = now_ns();
		if (waited)
			play(pair[0]);
		shutdown(pair[0], SHUT_WR);
	}
	status = end_like(child);
	note_times(claimed - begin, now_ns() - claimed);
	if (waited)
		note_last_word(pair[0]);
	if (opt.library && !waited && !(WIFEXITED(status) && WEXITSTATUS(status) == GUEST_WAIT_FAILED))
		errx(OWN_FAULT, "the interpreter ended without having waited");
	return status;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "library", 1, NULL, 'l' },
		{ "warm", 1, NULL, 'w' },
		{ "also", 1, NULL, 'a' },
		{ "bring", 1, NULL, 'b' },
		{ "play", 1, NULL, 'p' },
		{ "times", 1, NULL, 't' },
		{ 0 },
	};
	int c;

	opt.play = "one";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1)
		switch (c) {
		case 'l':
			opt.library = optarg;
			break;
		case 'w':
			opt.warm = optarg;
			break;
		case 'a':
			opt.also = optarg;
			break;
		case 'b':
			opt.bring = optarg;
			break;
		case 'p':
			opt.play = optarg;
			break;
		case 't':
			opt.times = optarg;
			break;
		default:
			exit(OWN_FAULT);
		}
	if (argc - optind < 4 || strcmp(argv[optind + 2], "--") != 0)
		errx(OWN_FAULT, "wait_harness [OPTIONS] PROGRAM CONTENT -- COMMAND...");
	opt.program = argv[optind];
	opt.content = argv[optind + 1];
	opt.command = argv + optind + 3;
}

int main(int argc, char **argv)
{
	int status;

	parse(argc, argv);
	make_program(!opt.library);
	if (!opt.library)
		bring_files();
	status = run();
	if (WIFSIGNALED(status)) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WEXITSTATUS(status);
}
