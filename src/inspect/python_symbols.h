/* SPDX-License-Identifier: Apache-2.0 */
/* The inspector's numbers for node types and fields, so that it can switch on them. */
#ifndef INSPECT_PYTHON_SYMBOLS_H
#define INSPECT_PYTHON_SYMBOLS_H

#include "inspect/python_symbols.def"

#define X(name, text) PY_##name,
enum py_symbol { PY_OTHER, PY_NAMED_SYMBOLS(X) PY_OPERATOR_SYMBOLS(X) PY_SYMBOL_COUNT };
#undef X

#define X(name, text) PY_F_##name,
enum py_field { PY_F_NONE, PY_FIELDS(X) PY_FIELD_COUNT };
#undef X

#endif
