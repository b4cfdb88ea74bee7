# SPDX-License-Identifier: Apache-2.0
"""Bytes in and bytes out: exact, bounded, and never in the way of the verdict."""
import hashlib
import os
import pty
import subprocess

from harness import BACKEND, GUARD, Host, case

OFTEN = {"BRIG_MONITORING_INTERVAL_MS": "20"}
HOSTILE = bytes(range(256)) + b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x00\xff\xfe\xc3(\xed\xa0\x80\r\n" + "ünï€𝄞".encode()


def printer(data):
	return f"import os\nos.write(1, bytes.fromhex('{data.hex()}'))\nos.write(2, bytes.fromhex('{data[::-1].hex()}'))\n"


@case("streamed output is byte-exact: NUL, invalid UTF-8, escape sequences")
def byte_exact(t):
	p = t.run(t.run_args(t.path("p.py", printer(HOSTILE))))
	t.equal(p.rc, 0, "exit status", p)
	t.equal(p.out, HOSTILE, "stdout")
	t.check(HOSTILE[::-1] in p.err, "stderr arrives byte for byte", p)


@case("the same bytes come back through JSON, by base64 where they are not UTF-8")
def json_exact(t):
	r = t.verdict(t.cell(code=printer(HOSTILE), lang="python"), "ok")
	t.equal(r.json.get("stdout_encoding"), "base64", "encoding", r)
	t.equal(r.stdout, HOSTILE, "stdout")
	t.equal(r.stderr, HOSTILE[::-1], "stderr")


@case("valid UTF-8 stays text in JSON, whatever it holds")
def json_text(t):
	text = 'quotes " and \\ and \x1b[0m and \t and € and 𝄞 and {"verdict": "ok"}\n'
	r = t.verdict(t.cell(code=printer(text.encode()).split("os.write(2")[0], lang="python"), "ok")
	t.equal(r.json["stdout"], text, "stdout")


@case("a character cut by the limit still gives valid JSON")
def cut_character(t):
	r = t.cell("--output-limit", "1000", "--timeout", t.secs(20), "-c", "print('€' * 4000)", lang="python")
	t.verdict(r, "output_limit")
	t.check(("€" * 4000).encode().startswith(r.stdout) and len(r.stdout) > 0, "the start is kept", r)


@case("output streams while the program runs")
def live(t):
	p = t.popen(t.run_args("--timeout", t.secs(30), "-c", "echo first; read line; echo \"second $line\"", "--lang", "shell"),
		    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
	# The program cannot go on before we answer, so the first line can only have come live.
	first = p.stdout.readline()
	out, err = p.communicate(b"answer\n", timeout=GUARD)
	t.equal((first, out, p.returncode), (b"first\n", b"second answer\n", 0), "lines and status", err)


@case("1 GB of streamed output: cut by the limit, and what came is the start")
def flood(t):
	p = t.run(t.run_args("--output-limit", "8m", "--timeout", t.secs(25), "-c", "yes | head -c 1000000000", "--lang", "shell"))
	t.equal(p.rc, 123, "exit status", p)
	t.check(0 < len(p.out) <= 8 << 20, f"between nothing and the limit arrives ({len(p.out)})")
	t.check(p.out == (b"y\n" * (4 << 20))[:len(p.out)], "what arrives is the start, byte for byte")


@case("one endless line, one byte at a time")
def drip(t):
	r, _ = t.at_limit(1, lambda limit: t.cell("--timeout", limit, "-c", "while :; do printf x; sleep 0.05; done", lang="shell"), lambda r: r.stdout)
	t.verdict(r, "timeout")
	t.check(r.stdout.strip(b"x") == b"" and r.stdout, "only what was printed", r)


@case("a reader that goes away (EPIPE) ends brig without a crash")
def reader_gone(t):
	p = t.run(["sh", "-c", '"$@" | head -c 10; echo', "sh",
		   *t.run_args("--timeout", t.secs(20), "-c", "yes", "--lang", "shell")])
	t.check(p.out.startswith(b"y\ny\n"), "the reader had its bytes", p)
	t.check(b"AddressSanitizer" not in p.err and b"core dumped" not in p.err, "no crash", p)


@case("a program that never reads its stdin is not waited for")
def never_reads(t):
	r = t.verdict(t.cell("-c", "echo done", lang="shell", stdin=b"z" * (4 << 20)), "ok")
	t.equal(r.stdout, b"done\n", "output", r)


@case("a program that closes its stdin early does not hurt brig")
def closes_early(t):
	r = t.verdict(t.cell("-c", "head -c 1 >/dev/null; exec <&-; sleep 0.2; echo done", lang="shell", stdin=b"z" * (4 << 20)), "ok")
	t.equal(r.stdout, b"done\n", "output", r)


@case("64 MiB of stdin arrive whole")
def large_stdin(t):
	data = os.urandom(1 << 20) * 64
	r = t.cell("--timeout", t.secs(20), code="""
import hashlib, sys
h = hashlib.sha256()
while True:
    block = sys.stdin.buffer.read(1 << 16)
    if not block: break
    h.update(block)
print(h.hexdigest())
""", lang="python", stdin=data)
	t.verdict(r, "ok")
	t.equal(r.stdout.decode().strip(), hashlib.sha256(data).hexdigest(), "digest", r)


@case("both directions at once do not dead-lock: cat of 8 MiB")
def both_ways(t):
	data = os.urandom(1 << 20) * 8
	p = t.run(t.run_args("--output-limit", "10m", "--timeout", t.secs(20), "-c", "cat", "--lang", "shell"), stdin=data)
	t.equal(p.rc, 0, "exit status", p.err[-300:])
	t.check(p.out == data, f"what went in comes out ({len(p.out)} bytes)")


@case("an empty stdin is at its end at once")
def empty_stdin(t):
	r = t.verdict(t.cell("-c", "wc -c", lang="shell", stdin=subprocess.DEVNULL), "ok")
	t.equal(r.stdout.strip(), b"0", "bytes read", r)


@case("brig started with descriptors 0, 1 and 2 closed mixes nothing up")
def closed_descriptors(t):
	program = t.path("p.sh", "echo out; echo err >&2; cat\nexit 9\n")
	for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
		p = t.run(["sh", "-c", f'exec "$@" {closed}', "sh", *t.run_args(program)], stdin=b"")
		t.equal(p.rc, 9, f"exit status with {closed}", p)
		t.check("1>&-" in closed or p.out == b"out\n", f"stdout with {closed}", p)
		t.check("2>&-" in closed or b"err\n" in p.err, f"stderr with {closed}", p)


@case("descriptors that the caller left open do not reach the program")
def leaked_descriptors(t):
	t.path("secret", "do not read me\n")
	p = t.run(["sh", "-c", 'exec 3<secret 7<secret 9<.; exec "$@"', "sh",
		   *t.run_args("-c", "ls /proc/self/fd | tr '\\n' ' '; cat <&3 <&7 2>&1", "--lang", "shell")])
	t.check(b"do not read me" not in p.out + p.err, "nothing is inherited", p)
	t.check(set(p.out.split(b"\n")[0].split()) <= {b"0", b"1", b"2", b"3"}, "only 0-2, and ls's own", p)


def without_warnings(err):
	"""A degraded host is warned about on every run, asked or not."""
	return b"".join(line for line in err.splitlines(True) if not Host.degraded or not line.startswith(b"brig: warning: "))


def on_terminal(t, argv):
	"""Runs with stdout and stderr on a terminal; everything that was shown."""
	leader, follower = pty.openpty()
	p = t.popen(argv, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower)
	os.close(follower)
	shown = b""
	while True:
		try:
			data = os.read(leader, 65536)
		except OSError:
			break
		if not data:
			break
		shown += data
	os.close(leader)
	return p.wait(timeout=GUARD), shown


@case("the summary line comes with --summary, and by itself only on a terminal")
def summary(t):
	p = t.run(t.run_args("-c", "echo hi", "--lang", "shell"))
	t.equal((p.out, without_warnings(p.err)), (b"hi\n", b""), "nothing is added when not asked", p)
	p = t.run(t.run_args("--summary", "-c", "echo hi", "--lang", "shell"))
	t.equal(p.out, b"hi\n", "stdout is the program's alone", p)
	line = without_warnings(p.err).decode()
	lines = [text for text in line.strip().splitlines() if "warning" not in text]
	t.check(len(lines) == 1 and "ok" in lines[0] and (BACKEND or "native") in lines[0], "one line with verdict and backend", p)
	rc, shown = on_terminal(t, t.run_args("--no-color", "-c", "echo hi", "--lang", "shell"))
	t.check(rc == 0 and (BACKEND or "native").encode() in shown and b"hi" in shown, "shown on a terminal", shown)
	t.check(b"\x1b" not in shown, "--no-color means no escape sequences", shown)


@case("escape sequences never reach a terminal raw (TT-02)")
def terminal_safe(t):
	code = r"printf '\033]0;owned\007\033[2J\033]52;c;Zm9v\007visible\n'"
	rc, shown = on_terminal(t, t.run_args("--no-color", "-c", code, "--lang", "shell"))
	t.equal(rc, 0, "exit status", shown)
	t.check(b"visible" in shown, "text is shown", shown)
	t.check(b"\x1b]" not in shown and b"\x1b[2J" not in shown and b"\x07" not in shown, "sequences are not", shown)


@case("--watch shows samples live and leaves stdout alone")
def watch(t):
	p = t.run(t.run_args("--watch", "--no-color", "--timeout", t.secs(20), "-c", "echo hi; sleep 1", "--lang", "shell"), env=OFTEN)
	t.equal((p.rc, p.out), (0, b"hi\n"), "status and stdout", p)
	t.check(b"mem" in p.err.lower() or b"cpu" in p.err.lower(), "samples are on stderr", p)


@case("samples are in the result: rising time, bounded number")
def samples(t):
	r = t.cell("--timeout", t.secs(20), "-c", "echo hi; sleep 1", lang="shell", env=OFTEN)
	rows = t.verdict(r, "ok").json["samples"]
	t.check(len(rows) >= 2, "several samples", rows)
	times = [row["at_ms"] for row in rows]
	t.check(times == sorted(times), "time rises", times)
	t.check(all(row["pids"] >= 1 for row in rows) or "pids_limit" in str(r.json["degraded"]), "someone is alive", rows)


@case("two hundred samples a second do not grow the result without bound")
def samples_capped(t):
	r = t.cell("--timeout", 3, "-c", "sleep 30", lang="shell", env={"BRIG_MONITORING_INTERVAL_MS": "5"})
	t.verdict(r, "timeout")
	t.check(2 <= len(r.json["samples"]) <= 1024, "capped", len(r.json["samples"]))
