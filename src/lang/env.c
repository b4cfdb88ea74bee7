/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables that a request may set for its program.
 *
 * The inspection reads the code, but a variable can bring in other code: a library for the dynamic linker, a module
 * that the interpreter imports before the program, options with a program in them, a function for the shell.  env.def
 * lists these variables.  The list may be incomplete, so there are more rules.  Below `trusted`, a name with unusual
 * characters (bash passes functions as BASH_FUNC_x%%) and a value that is the text of a function are refused.  At
 * `untrusted`, where the requester is assumed hostile, every name that looks like a setting of a tool is refused, too.
 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lang/lang.h"

enum rule { RULE_READER, RULE_LOADER, RULE_ALLOW, RULE_PREFIX, RULE_NAME, RULE_WORD, RULE_ENDING };

static const struct {
	enum rule rule;
	const char *text;
} rules[] = {
#define READER(name) { RULE_READER, name },
#define LOADER(name) { RULE_LOADER, name },
#define ALLOW(name)  { RULE_ALLOW, name },
#define PREFIX(text) { RULE_PREFIX, text },
#define NAME(name)   { RULE_NAME, name },
#define WORD(text)   { RULE_WORD, text },
#define ENDING(text) { RULE_ENDING, text },
#include "lang/env.def"
};

#define NAME_MAX_BYTES 128 /* longer names are refused, so none can hide behind truncation */

static bool is_plain_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
	static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *name && strchr(letters, *name) && name[strspn(name, more)] == '\0';
}

static bool matches(enum rule rule, const char *text, const char *name, enum trust trust)
{
	size_t len = strlen(text), name_len = strlen(name);

	switch (rule) {
	case RULE_PREFIX:
		return strncasecmp(name, text, len) == 0;
	case RULE_NAME:
		return strcasecmp(name, text) == 0;
	case RULE_WORD:
		return trust == TRUST_UNTRUSTED && strcasestr(name, text);
	case RULE_ENDING:
		return trust == TRUST_UNTRUSTED && name_len >= len && strcasecmp(name + name_len - len, text) == 0;
	case RULE_READER:
	case RULE_LOADER:
	case RULE_ALLOW:
		break;
	}
	return false;
}

/* The program that loads code through a variable of this name; NULL: none is known. */
static const char *reader_of(const char *name, enum trust trust, bool in_session)
{
	const bool only_loaders = in_session && trust != TRUST_UNTRUSTED;
	const char *reader = NULL;
	bool counts = true;

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].rule == RULE_ALLOW && strcmp(rules[i].text, name) == 0)
			return NULL;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (rules[i].rule == RULE_READER || rules[i].rule == RULE_LOADER) {
			reader = rules[i].text;
			counts = !only_loaders || rules[i].rule == RULE_LOADER;
		} else if (counts && matches(rules[i].rule, rules[i].text, name, trust)) {
			return reader;
		}
	}
	return NULL;
}

bool lang_env_is_refused(const char *entry, enum trust trust, bool in_session, char *ret_why, size_t size)
{
	const char *equals = strchrnul(entry, '='), *value = *equals ? equals + 1 : equals, *reader = NULL;
	const char *why = "";
	char name[NAME_MAX_BYTES + 1] = "";

	if (trust == TRUST_TRUSTED)
		return false;
	if ((size_t)(equals - entry) <= NAME_MAX_BYTES)
		memcpy(name, entry, (size_t)(equals - entry));
	if (!is_plain_name(name)) {
		why = "its name has more than letters, digits and '_', or more than 128 bytes, and shells take "
		      "functions "
		      "from such variables";
	} else if (strncmp(value + strspn(value, " \t"), "()", 2) == 0) {
		why = "its value is the text of a shell function";
	} else {
		reader = reader_of(name, trust, in_session);
		if (!reader)
			return false;
	}
	if (ret_why && reader)
		(void)snprintf(ret_why, size, "%s may load or start code that is not inspected", reader);
	else if (ret_why)
		(void)snprintf(ret_why, size, "%s", why);
	return true;
}
