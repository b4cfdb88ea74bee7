/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks arguments against the same schema that clients are shown, so there is only one description. Supports what
 * data/mcp/tools.json uses: type, properties, required, additionalProperties, items, enum, minimum, maximum, minLength,
 * maxLength, maxItems and maxProperties.
 */
#ifndef MCP_SHARED_SCHEMA_H
#define MCP_SHARED_SCHEMA_H

#include <jansson.h>

#include "base/err.h"

/* 0, or -BRIG_E_USAGE with a message for the model. */
int schema_check(const json_t *schema, const json_t *value, struct brig_error *err);

#endif
