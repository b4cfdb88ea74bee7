/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_LANGUAGES_H
#define API_LANGUAGES_H

#include "base/err.h"

/* The document behind brig_languages_json(), on the heap. */
int languages_json(char **ret, struct brig_error *err);

#endif
