/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

int main(void)
{
	const char *separator = "";

	for (int n = 2; n < 50; n++) {
		int d = 2;

		while (n % d != 0)
			d++;
		if (d == n) {
			printf("%s%d", separator, n);
			separator = " ";
		}
	}
	putchar('\n');
	return 0;
}
