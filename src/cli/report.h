/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error after a run. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <brig/brig.h>

#include "cli/ui.h"

enum ui_color report_verdict_color(const char *verdict);
/* Reason, findings, warnings and missing protections: what users must see.  name: of the file, or NULL. */
void report_remarks(const struct brig_result *r, const char *name);
/* Only why nothing ran, or how brig itself failed (--quiet). */
void report_fatal(const struct brig_result *r, const char *name);
/* "brig: ok  wall 18 ms  cpu 14 ms  memory 9.1 MB  native  29/29 protections kept" */
void report_summary(const struct brig_result *r, bool has_color);

#endif
