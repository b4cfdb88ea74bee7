/* SPDX-License-Identifier: Apache-2.0 */
/* A changeset as JSON, in the two files that keeper.c writes.  Paths that are not UTF-8 are hex, under another name. */
#ifndef WORKSPACE_MANIFEST_H
#define WORKSPACE_MANIFEST_H

#include <jansson.h>

#include "workspace/internal.h"

/* NULL: no memory. */
json_t *manifest_head(const struct changeset *c);
json_t *manifest_rows(const struct changeset *c);
/* False: it is not what was written.  *ret may be filled in part. */
bool manifest_read_head(const json_t *head, struct changeset *ret);
bool manifest_read_rows(const json_t *rows, struct changeset *ret);

#endif
