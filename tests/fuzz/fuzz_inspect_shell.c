/* SPDX-License-Identifier: Apache-2.0 */
#define FUZZ_KIND INSPECT_SHELL
#include "fuzz_inspect.h"
