# SPDX-License-Identifier: Apache-2.0
print(*[n for n in range(2, 50) if all(n % d for d in range(2, n))])
