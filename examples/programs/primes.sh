# SPDX-License-Identifier: Apache-2.0
separator=
n=2
while [ "$n" -lt 50 ]; do
	d=2
	while [ $((n % d)) -ne 0 ]; do
		d=$((d + 1))
	done
	if [ "$d" -eq "$n" ]; then
		printf '%s%s' "$separator" "$n"
		separator=' '
	fi
	n=$((n + 1))
done
echo
