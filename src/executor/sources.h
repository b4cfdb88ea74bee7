/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files sent with a request and compiled with its code. They are as much part of the program as the code, so each is
 * inspected before the compiler starts. Only the compiler knows which ones it takes (a Go module takes whole folders),
 * so every file with an extension of the language is inspected. A project on this host belongs to its owner: of such a
 * project only the code is inspected (docs/INSPECTION.md).
 */
#ifndef EXECUTOR_SOURCES_H
#define EXECUTOR_SOURCES_H

#include "executor/inspection.h"

#define SOURCES_MAX 1000

struct sources {
	int folder; /* the folder that contains them */
	const struct language *lang;
	const char *inspected;     /* path of the code itself, which is skipped */
	struct inspectors *spares; /* NULL: none */
	const struct rule_set *rules;
	const struct inspect_request *like; /* for everything but kind and text */
};

/* Adds findings, each with its file name. Negative: not all files could be inspected. */
int sources_inspect(const struct sources *s, struct findings *ret, struct brig_error *err);

#endif
