/* SPDX-License-Identifier: Apache-2.0 */
/* Names and links that a program made: the rules read nothing beyond them, end, and let no link out of the tree. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/beneath.h"
#include "files/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A tree with one link beside the one that is asked about. */
struct tree {
	const char *path, *target;
};

static bool read_none(void *arg, const char *path, char target[PATH_MAX])
{
	(void)arg;
	(void)path;
	(void)target;
	return false;
}

static bool read_one(void *arg, const char *path, char target[PATH_MAX])
{
	const struct tree *t = arg;

	if (strcmp(path, t->path) != 0)
		return false;
	memcpy(target, t->target, strlen(t->target) + 1);
	return true;
}

static void look_at(const char *path, const char *target, const char *other, const char *other_target)
{
	struct tree tree = { other, other_target };
	char to[PATH_MAX];

	(void)git_mark(path);
	(void)path_has_git(target);
	(void)path_has_hidden(target);
	if (!beneath_is_path(path, strlen(path)) || !link_stays(path, target))
		return;
	/* What stays leads inside, alone or past another one that stays. */
	if (!link_leads(path, target, read_none, NULL, to) || (*to && !beneath_is_path(to, strlen(to))))
		abort();
	if (beneath_is_path(other, strlen(other)) && link_leads(path, target, read_one, &tree, to) && *to &&
	    !beneath_is_path(to, strlen(to)))
		abort();
}

/* Four texts, each ended by a line's end or the end of all. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[1024], *part[4], *next = text;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < 4; i++) {
		char *piece = strsep(&next, "\n");

		part[i] = piece ? piece : text + size;
	}
	look_at(part[0], part[1], part[2], part[3]);
	return 0;
}
