/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The piece of code that a finding refers to, as compilers show it:
 *
 *	  3 | from subprocess import run
 *	    |      ^^^^^^^^^^
 *
 * The text is hostile: control characters are shown in visible form, tabs are expanded, wide characters count as two
 * columns, and of a long line only the part around the place is shown.
 */
#ifndef CLI_FRAMES_H
#define CLI_FRAMES_H

#include "cli/ui.h"

/* Lines and columns count from 1, columns in characters; the end is exclusive. */
struct frame_place {
	size_t line, column, end_line, end_column;
};

/* Appends the frame; nothing if the text has no such line. */
void frame_show(const char *text, size_t len, const struct frame_place *at, bool has_color, enum ui_color color,
		struct buf *out);
/* Width of that frame's gutter, for lines below it. */
size_t frame_gutter(const struct frame_place *at);

#endif
