/* SPDX-License-Identifier: Apache-2.0 */
#define FUZZ_KIND INSPECT_TYPESCRIPT
#include "fuzz_inspect.h"
