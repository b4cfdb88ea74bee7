/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/*
 * The guardian: waits for a message; end of file means that the sender is dead.  It has its own process group, so that
 * signals to ours do not reach it, and since it is in the background it must not be stopped for touching the terminal.
 */
static void guard(int fd, int words, const struct termios *before)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTOU, SIGTTIN };
	ssize_t n;
	char word;

	(void)setpgid(0, 0);
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	do
		n = read(words, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		(void)tcsetattr(fd, TCSANOW, before);
	_exit(0);
}

static int start_guardian(struct terminal *t, struct brig_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot make a pipe for the terminal");
	t->guardian = fork();
	if (t->guardian == 0) {
		(void)close(ends[1]);
		if (t->fd != STDIN_FILENO)
			(void)close(STDIN_FILENO);
		(void)close(STDOUT_FILENO); /* its reader waits for our exit, not for the guardian's */
		(void)close(STDERR_FILENO);
		guard(t->fd, ends[0], &t->before);
	}
	(void)close(ends[0]);
	if (t->guardian < 0) {
		(void)close(ends[1]);
		return err_set(err, BRIG_E_SYSTEM, errno, "cannot start what puts the terminal back");
	}
	t->word = ends[1];
	return 0;
}

void terminal_raw_again(struct terminal *t)
{
	struct termios raw = t->before;

	if (t->guardian < 0)
		return;
	cfmakeraw(&raw);
	t->is_raw = tcsetattr(t->fd, TCSADRAIN, &raw) == 0;
}

int terminal_begin(struct terminal *t, int fd, struct brig_error *err)
{
	*t = (struct terminal)TERMINAL_INIT;
	t->fd = fd;
	if (tcgetattr(fd, &t->before) < 0)
		return err_set(err, BRIG_E_USAGE, errno,
			       "standard input is no terminal: use 'brig session exec' without --tty");
	if (start_guardian(t, err) < 0)
		return -err->code;
	terminal_raw_again(t);
	return 0;
}

void terminal_restore(struct terminal *t)
{
	if (t->is_raw)
		(void)tcsetattr(t->fd, TCSADRAIN, &t->before);
	t->is_raw = false;
}

void terminal_end(struct terminal *t)
{
	terminal_restore(t);
	if (t->guardian < 0)
		return;
	(void)!write(t->word, "k", 1);
	fd_closep(&t->word);
	while (waitpid(t->guardian, NULL, 0) < 0 && errno == EINTR)
		;
	t->guardian = -1;
}

bool terminal_size(int fd, uint64_t *ret_rows, uint64_t *ret_columns)
{
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		return false;
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
	return true;
}
