/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks arguments against the schema that the client was shown, so that there is one description of them.  Understood
 * are type, properties, required, additionalProperties, items, enum, minimum, maximum, minLength, maxLength, maxItems and
 * maxProperties: what data/mcp/tools.json uses.
 */
#ifndef MCP_SHARED_SCHEMA_H
#define MCP_SHARED_SCHEMA_H

#include <jansson.h>

#include "base/err.h"

/* 0, or -BRIG_E_USAGE with a sentence for the model. */
int schema_check(const json_t *schema, const json_t *value, struct brig_error *err);

#endif
