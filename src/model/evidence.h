/* SPDX-License-Identifier: Apache-2.0 */
/* For one promise of the plan: what was declared, what was read back, whether they agree. */
#ifndef MODEL_EVIDENCE_H
#define MODEL_EVIDENCE_H

#include "base/util.h"

struct evidence_row {
	const char *check; /* name of the row in verify/checks.def */
	char declared[200];
	char enforced[200];
	bool kept;
	bool degraded; /* not kept, and allow_degraded names its protection */
	char source[120];
};

#define EVIDENCE_MAX 64

struct evidence {
	struct evidence_row row[EVIDENCE_MAX];
	size_t n;
	size_t kept;
};

#endif
