/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/program.h"

int main(void)
{
	return keeper_main();
}
