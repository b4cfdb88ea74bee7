/* SPDX-License-Identifier: Apache-2.0 */
/* Valid names for environments and for the modules of their warm-up lists; everything else about them is in
 * packages/environment.h. */
#ifndef MODEL_ENVIRONMENT_H
#define MODEL_ENVIRONMENT_H

#include "base/util.h"

#define ENVIRONMENT_NAME_MAX 64
#define ENVIRONMENT_NONE     "none" /* not a name: requests no environment, whatever the policy says */
#define ENVIRONMENT_ANY      "*"    /* in the policy's list: every name */

#define WARM_MODULES_MAX 64
#define WARM_MODULE_MAX  95 /* bytes of one: it is also an item of a setting */

/* [a-z0-9][a-z0-9._-]*, at most ENVIRONMENT_NAME_MAX bytes, and not "none". */
bool environment_is_name(const char *text);
/* Letters, digits and _.@/:- behind a letter, _ or @: what Python and Node call modules, and nothing that ends a word. */
bool warm_is_module(const char *text);

#endif
