// SPDX-License-Identifier: Apache-2.0
package main

import "fmt"

func main() {
	separator := ""
	for n := 2; n < 50; n++ {
		prime := true
		for d := 2; d < n; d++ {
			prime = prime && n%d != 0
		}
		if prime {
			fmt.Print(separator, n)
			separator = " "
		}
	}
	fmt.Println()
}
