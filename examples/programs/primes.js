// SPDX-License-Identifier: Apache-2.0
const primes = [];
for (let n = 2; n < 50; n++)
	if (primes.every((p) => n % p !== 0)) primes.push(n);
console.log(primes.join(" "));
