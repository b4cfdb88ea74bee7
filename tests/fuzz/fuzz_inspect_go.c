/* SPDX-License-Identifier: Apache-2.0 */
#define FUZZ_KIND INSPECT_GO
#include "fuzz_inspect.h"
