/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dotenv - hostile .env files.  What must hold: it comes to an end, lines are counted, a name is one or the line is
 * refused, and a good line that is written again in single quotes is read as the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/dotenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void read_again(const struct dotenv_entry *e)
{
	static char text[DOTENV_NAME_MAX + DOTENV_VALUE_MAX + 8];
	static struct dotenv_entry again;
	struct dotenv d;
	int n;

	if (strchr(e->value, '\''))
		return;
	n = snprintf(text, sizeof(text), "%s='%s'\n", e->name, e->value);
	d = (struct dotenv)DOTENV_INIT(text, (size_t)n);
	must(dotenv_next(&d, &again) && !again.why, "a value in single quotes is one");
	must(strcmp(e->name, again.name) == 0 && strcmp(e->value, again.value) == 0, "it is the same");
	must(!dotenv_next(&d, &again), "it is the only one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dotenv d = DOTENV_INIT((const char *)data, size);
	struct dotenv_entry e;
	unsigned line = 0;

	while (dotenv_next(&d, &e)) {
		must(e.line > line, "each entry has a line of its own");
		line = e.line;
		must(e.why || e.name[0], "a good line has a name");
		if (!e.why && !e.cut)
			read_again(&e);
	}
	must(d.at == d.end, "all of it is read");
	return 0;
}
