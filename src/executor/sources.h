/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that came with a request and are compiled with its code: they are the program as much as the code is, so each of them is
 * inspected like it, before the compiler starts.  Which ones a compiler takes is for the compiler to say (a Go module takes whole
 * folders), so it is all that have an ending of the language.  A project of this host's own is its owner's: of that one nothing but
 * the code is inspected (docs/INSPECTION.md).
 */
#ifndef EXECUTOR_SOURCES_H
#define EXECUTOR_SOURCES_H

#include "executor/inspection.h"

#define SOURCES_MAX 1000

struct sources {
	int folder; /* in which they lie */
	const struct language *lang;
	const char *inspected;     /* the path of the code itself, which is left out */
	struct inspectors *spares; /* NULL: none */
	const struct rule_set *rules;
	const struct inspect_request *like; /* all but kind and text */
};

/* Adds what is found, each with the name of its file.  Negative: not all could be inspected. */
int sources_inspect(const struct sources *s, struct findings *ret, struct brig_error *err);

#endif
