/* SPDX-License-Identifier: Apache-2.0 */
/* A package of Python that an image is to have: "numpy", "pandas==2.1", "requests[socks]>=2.28".  Anything that would
 * redirect pip (options, URLs, paths, several conditions, blanks) is not accepted. */
#ifndef MODEL_REQUIREMENT_H
#define MODEL_REQUIREMENT_H

#include "base/util.h"

#define REQUIREMENT_NAME_MAX    64
#define REQUIREMENT_VERSION_MAX 48

struct requirement {
	char name[REQUIREMENT_NAME_MAX + 1];       /* as PEP 503 has it: small letters, "-" between words */
	bool has_extras;                           /* [socks] */
	char op[4];                                /* "==", ">=" ...; "": any version */
	char version[REQUIREMENT_VERSION_MAX + 1]; /* "" with no op */
};

/* NULL, or what is wrong with it. */
const char *requirement_parse(const char *text, struct requirement *ret);
/* The name of a package in the form in which names are compared. */
void requirement_name(const char *name, size_t len, char dst[REQUIREMENT_NAME_MAX + 1]);
/* Whether that version will do; false also for versions that are more than numbers and dots, unless they are the same. */
bool requirement_allows(const struct requirement *r, const char *version);

#endif
