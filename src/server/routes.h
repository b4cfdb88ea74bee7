/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes (routes.def), for the code that matches requests and the code that answers them. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "base/util.h"

enum route {
#define ROUTE(name, method, path, body, access, answers, summary) ROUTE_##name,
#include "server/routes.def"
#undef ROUTE
	ROUTE_COUNT
};

enum route_body {
	BODY_NONE,
	BODY_JOB,
	BODY_BATCH,
	BODY_TAR,
	BODY_ENVIRONMENT,
	BODY_INSPECTION,
	BODY_RECEIPT,
	BODY_SESSION,
	BODY_PIECE,
	BODY_FILE,
};
enum route_access { ACCESS_OPEN, ACCESS_TOKEN, ACCESS_ADMIN };
enum route_answers { ANSWERS_FRONT, ANSWERS_RUNNER };

struct route_row {
	const char *name, *method, *path, *summary;
	enum route_body body;
	enum route_access access;
	enum route_answers answers;
};
extern const struct route_row route_rows[ROUTE_COUNT];

#endif
