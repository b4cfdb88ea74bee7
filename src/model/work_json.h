/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a result that tell of workspaces, attempts, tests and packages.  NULL: no memory. */
#ifndef MODEL_WORK_JSON_H
#define MODEL_WORK_JSON_H

#include <jansson.h>

#include "model/result.h"

json_t *json_denied(const struct denied *d);
json_t *json_network(const struct network *n);
json_t *json_workspace(const struct result *r); /* null: there was none */
json_t *json_changes(const struct changes *c);
/* { "text", "encoding", "truncated" } */
json_t *json_diff(const struct result *r);
json_t *json_artifacts(const struct artifacts *a);
json_t *json_left(const struct artifacts *a);
json_t *json_tests(const struct test_report *t);        /* null: none were run */
json_t *json_packages(const struct result_packages *p); /* null: none were asked for */

#endif
