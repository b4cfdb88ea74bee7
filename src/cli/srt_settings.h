/* SPDX-License-Identifier: Apache-2.0 */
/* --srt-settings of commands that run something: the file's meaning (srt.h) becomes part of their values. */
#ifndef CLI_SRT_SETTINGS_H
#define CLI_SRT_SETTINGS_H

#include "cli/request.h"
#include "cli/srt.h"

/* Before anything else looks for a workspace; the values borrow from *s.  Does nothing without --srt-settings. */
int srt_settings_use(struct request_values *v, struct srt *s, struct brig_error *err);
/* Once the workspace is known: that it is not one the file does not show. */
int srt_settings_keep(const struct request_values *v, const struct srt *s, struct brig_error *err);

#endif
