/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/lang.h"

#include <strings.h>

const struct language languages[] = {
#define LANGUAGE(...) { __VA_ARGS__ },
#include "lang/languages.def"
};
const size_t language_count = ARRAY_LEN(languages);

/*
 * A command may be any program: Node, which has a just-in-time compiler, a compiler, a program that connects to another
 * one. So it gets the widest filter of the families and may have memory that is both writable and executable.
 */
const struct language lang_command = {
	.name = "command",
	.title = "a program and its arguments",
	.source_name = "command",
	.run = { .program = "env",
		 .tool = { "/usr/bin/env", "/bin/env" },
		 .family = FAMILY_GENERIC,
		 .install = "apt-get install coreutils" },
};

const struct language lang_shell_line = {
	.name = "shell",
	.title = "a line for the shell",
	.source_name = "command",
	.run = { .program = "sh",
		 .tool = { "/usr/bin/sh", "/bin/sh" },
		 .argv = { "-c" },
		 .family = FAMILY_GENERIC,
		 .install = "apt-get install dash" },
};

const struct language lang_session = {
	.name = "session",
	.title = "a cell that stays",
	.source_name = "session",
	.run = { .program = "steward", .family = FAMILY_SESSION },
};

static bool has_alias(const struct language *lang, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(lang->aliases) && lang->aliases[i]; i++)
		if (strcasecmp(lang->aliases[i], name) == 0)
			return true;
	return false;
}

const struct language *lang_by_name(const char *name)
{
	for (size_t i = 0; i < language_count; i++)
		if (strcasecmp(languages[i].name, name) == 0 || has_alias(&languages[i], name))
			return &languages[i];
	return NULL;
}

const char *lang_label(const char *name)
{
	const struct language *lang = lang_by_name(name);

	if (lang)
		return lang->name;
	return strcasecmp(name, lang_command.name) == 0 ? lang_command.name : NULL;
}
