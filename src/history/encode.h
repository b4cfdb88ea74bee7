/* SPDX-License-Identifier: Apache-2.0 */
/* One finished request as a record of the spool. */
#ifndef HISTORY_ENCODE_H
#define HISTORY_ENCODE_H

#include "base/buf.h"
#include "model/record.h"

#define HISTORY_SAMPLES_MAX 64         /* rows of the chart */
#define HISTORY_TEXT_MAX    (16 * MiB) /* of code and of each stream, where policy keeps all */
#define REDACT_SLACK        256        /* bytes behind the kept ones that patterns are looked for in */

void history_encode(const struct record *r, struct buf *out);

#endif
