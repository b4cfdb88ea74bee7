/* SPDX-License-Identifier: Apache-2.0 */
/* --srt-settings for commands that run something: turns the file (srt.h) into their values. */
#ifndef CLI_SRT_SETTINGS_H
#define CLI_SRT_SETTINGS_H

#include "cli/request.h"
#include "cli/srt.h"

/* Call before the workspace is determined; the values borrow from *s.  Does nothing without --srt-settings. */
int srt_settings_use(struct request_values *v, struct srt *s, struct brig_error *err);
/* Call when the workspace is known: fails if the file does not permit it. */
int srt_settings_keep(const struct request_values *v, const struct srt *s, struct brig_error *err);

#endif
