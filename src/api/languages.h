/* SPDX-License-Identifier: Apache-2.0 */
#ifndef API_LANGUAGES_H
#define API_LANGUAGES_H

#include "base/err.h"

/* Implements brig_languages_json(); the document is on the heap. */
int languages_json(char **ret, struct brig_error *err);

#endif
