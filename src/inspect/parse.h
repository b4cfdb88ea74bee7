/* SPDX-License-Identifier: Apache-2.0 */
/* The only access to tree-sitter: a parser that keeps the judge's deadline. */
#ifndef INSPECT_PARSE_H
#define INSPECT_PARSE_H

#include <tree_sitter/api.h>

#include "inspect/judge.h"

const TSLanguage *tree_sitter_python(void);
const TSLanguage *tree_sitter_javascript(void);
const TSLanguage *tree_sitter_typescript(void);
const TSLanguage *tree_sitter_tsx(void);
const TSLanguage *tree_sitter_go(void);

/* Parses a text from inspect_bytes(); the caller deletes the tree.  NULL: already reported (judge_unfinished()). */
TSTree *inspect_parse(struct judge *j, const TSLanguage *language, const char *text, size_t len);

#endif
