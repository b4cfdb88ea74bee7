/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KEY=VALUE lines as .env files have them, one after the other:
 *
 *	# a comment                 lines of blanks and comments say nothing
 *	export NAME=value # why     the word export may stand before a name, a comment behind a blank after a value
 *	NAME='as it is'             single quotes: everything up to the next one, over several lines too
 *	NAME="a\nb \$5"             double quotes: \n \r \t \" \\ \$ mean what they mean in C; any other stays as it is
 *
 * Nothing is expanded: a $ that would have been is reported, so that the text is not mistaken for a value.  Other lines
 * are reported with their number and skipped.  The text may be anything; only requested values are copied.
 */
#ifndef POLICY_DOTENV_H
#define POLICY_DOTENV_H

#include "base/util.h"

#define DOTENV_NAME_MAX  128
#define DOTENV_VALUE_MAX 4096

struct dotenv {
	const char *at, *end; /* what is left of the text */
	unsigned line;        /* of at, from 1 */
};

struct dotenv_entry {
	unsigned line;
	char name[DOTENV_NAME_MAX];
	char value[DOTENV_VALUE_MAX];
	bool expands;    /* it holds a $ that other readers would expand */
	bool cut;        /* the value is longer than there is room for */
	const char *why; /* not NULL: the line is none, and this says why */
};

#define DOTENV_INIT(text, len)                                 \
	{                                                      \
		.at = (text), .end = (text) + (len), .line = 1 \
	}

/* False: there is no further one. */
bool dotenv_next(struct dotenv *d, struct dotenv_entry *ret);

#endif
