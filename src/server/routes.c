/* SPDX-License-Identifier: Apache-2.0 */
#include "server/routes.h"

const struct route_row route_rows[ROUTE_COUNT] = {
#define ROUTE(name, method, path, body, access, answers, summary) \
	[ROUTE_##name] = { #name, #method, path, summary, BODY_##body, ACCESS_##access, ANSWERS_##answers },
#include "server/routes.def"
#undef ROUTE
};
