/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/invocation.h"

#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/fd.h"

#define WORD_MAX (256 * KiB) /* the kernel's limit is half of it */

static void add_taken(struct invocation *p, char *word)
{
	if (p->n + 2 > p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 32;
		char **grown = realloc(p->word, cap * sizeof(*grown));

		if (!grown) {
			free(word);
			p->failed = true;
			return;
		}
		p->word = grown;
		p->cap = cap;
	}
	if (!word) {
		p->failed = true;
		return;
	}
	p->word[p->n++] = word;
	p->word[p->n] = NULL;
}

void invocation_add(struct invocation *p, const char *word)
{
	add_taken(p, strdup(word));
}

void invocation_addf(struct invocation *p, const char *fmt, ...)
{
	struct buf word = BUF_INIT(WORD_MAX);
	va_list ap;

	va_start(ap, fmt);
	p->failed |= !buf_vaddf(&word, fmt, ap);
	va_end(ap);
	add_taken(p, buf_take(&word));
	buf_release(&word);
}

static void add_option(struct invocation *p, const char *name, const char *value, bool is_taken)
{
	if (is_taken && value)
		invocation_addf(p, "--%s=%s", name, value);
}

void invocation_begin(struct invocation *p, const struct mcp_options *options, const char *command, unsigned takes)
{
	const char *space = strchr(command, ' ');

	invocation_add(p, "brig");
	if (space)
		invocation_addf(p, "%.*s", (int)(space - command), command);
	invocation_add(p, space ? space + 1 : command);
	add_option(p, "policy", options->policy, takes & INVOCATION_POLICY);
	add_option(p, "preset", options->preset, takes & INVOCATION_PRESET);
	add_option(p, "trust", options->trust, takes & INVOCATION_TRUST);
	add_option(p, "state", options->state, takes & INVOCATION_STATE);
	for (size_t i = 0; (takes & INVOCATION_SETTINGS) && i < options->n_settings; i++)
		invocation_addf(p, "--set=%s", options->settings[i]);
}

/* A memory file with this content, positioned at its start; FD_NONE on failure. */
static int memory_file(const void *data, size_t len)
{
	AUTO_FD fd = memfd_create("brig-mcp", MFD_CLOEXEC);

	if (fd < 0 || fd_write_all(fd, data, len) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fd_move_up(&fd, INVOCATION_FD_OURS) < 0)
		return FD_NONE;
	return fd_move(&fd);
}

void invocation_input(struct invocation *p, const void *data, size_t len)
{
	fd_closep(&p->input);
	p->input = memory_file(data, len);
	p->failed |= p->input < 0;
}

int invocation_inherit(struct invocation *p, const void *data, size_t len)
{
	int fd = p->n_fds < INVOCATION_FDS_MAX ? memory_file(data, len) : FD_NONE;

	if (fd < 0) {
		p->failed = true;
		return FD_NONE;
	}
	p->fd[p->n_fds] = fd;
	return INVOCATION_FD_FIRST + (int)p->n_fds++;
}

void invocation_release(struct invocation *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->word[i]);
	free(p->word);
	for (size_t i = 0; i < p->n_fds; i++)
		fd_closep(&p->fd[i]);
	fd_closep(&p->input);
	*p = (struct invocation)INVOCATION_INIT;
}
