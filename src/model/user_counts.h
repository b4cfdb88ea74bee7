/* SPDX-License-Identifier: Apache-2.0 */
/* What a cell may have of what the kernel counts per user: the rows of user_counts.def. */
#ifndef MODEL_USER_COUNTS_H
#define MODEL_USER_COUNTS_H

enum user_count {
#define USER_COUNT(name, most) USER_COUNT_##name,
#include "model/user_counts.def"
	USER_COUNT_COUNT
};

enum user_count_most {
#define USER_COUNT(name, most) MOST_##name = (most),
#include "model/user_counts.def"
};

#endif
