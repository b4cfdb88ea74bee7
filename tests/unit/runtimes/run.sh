# SPDX-License-Identifier: Apache-2.0
# What ordinary shell scripts do, for test_seccomp_runtimes: prints "ok" at the end.  Both dash and bash run it.
set -eu
folder=$(mktemp -d ./sh-XXXXXX)
cd "$folder"
[ "$(seq 1000 | sort -rn | head -1 | tee copy | sed 's/1/2/' | tr -d '\n')" = 2000 ]
[ "$(cat copy | wc -l)" -eq 1 ]
mkdir -p a/b && printf '%s\n' one two three >a/b/list
cp -a a c && ln -s a/b link && ln a/b/list hard && mv hard soft
[ "$(find . -name list | sort | xargs cat | sort -u | wc -l)" -eq 3 ]
tar cf - a | (mkdir -p out && tar xf - -C out)
diff -r a out/a
gzip -k soft && gunzip -c soft.gz | cmp - soft
mkfifo pipe
(echo through >pipe) &
read -r word <pipe
wait
[ "$word" = through ]
ulimit -c >/dev/null
ulimit -n 64
chmod 600 soft && touch -d '2001-01-01' soft && stat soft >/dev/null && ls -laR . >/dev/null && df . >/dev/null
timeout 20 sleep 0.01
trap 'caught=1' USR1
kill -USR1 $$
[ "$caught" = 1 ]
nice -n 1 date -u >/dev/null
awk 'BEGIN { "echo 7" | getline x; exit x != 7 }'
dd if=/dev/zero of=big bs=64k count=8 2>/dev/null
cp big big2 && cmp big big2 && sync && truncate -s 10 big
id >/dev/null && uname -a >/dev/null && hostname >/dev/null 2>&1 || true
if ln -s x /proc/self/x 2>/dev/null; then exit 1; fi
cd ..
rm -rf "$folder"
echo ok
