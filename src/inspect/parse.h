/* SPDX-License-Identifier: Apache-2.0 */
/* The one way to tree-sitter: a parser that keeps the judge's deadline. */
#ifndef INSPECT_PARSE_H
#define INSPECT_PARSE_H

#include <tree_sitter/api.h>

#include "inspect/judge.h"

const TSLanguage *tree_sitter_python(void);
const TSLanguage *tree_sitter_javascript(void);
const TSLanguage *tree_sitter_typescript(void);
const TSLanguage *tree_sitter_tsx(void);
const TSLanguage *tree_sitter_go(void);

/* The tree of a text that inspect_bytes() made; ts_tree_delete() it.  NULL: reported already ("not-analysable"). */
TSTree *inspect_parse(struct judge *j, const TSLanguage *language, const char *text, size_t len);

#endif
