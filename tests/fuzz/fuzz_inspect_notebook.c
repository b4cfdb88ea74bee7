/* SPDX-License-Identifier: Apache-2.0 */
#define FUZZ_KIND INSPECT_NOTEBOOK
#include "fuzz_inspect.h"
