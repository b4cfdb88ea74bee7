// SPDX-License-Identifier: Apache-2.0
const primes: number[] = [];
for (let n = 2; n < 50; n++)
	if (primes.every((p: number): boolean => n % p !== 0)) primes.push(n);
console.log(primes.join(" "));
