# SPDX-License-Identifier: Apache-2.0
"""Processes: pipes, terminals, signals."""
import signal

from harness import Failed, case
from owner import PATIENCE, PTY, STDIN, Owner, holds, same

BAD_DIR, TIMED_OUT, TOO_MUCH = 2, 4, 8


@case("a process has arguments, variables, a folder, both streams and an exit code")
def plain(t):
	with Owner(t) as owner:
		s = owner.session(env=["A=session", "B=session"])
		p = s.command("sh", "-c", 'echo "$1 $A $B"; pwd; echo e >&2; exit 3', "sh", "a b", env=["B=call"], cwd="/tmp")
		same("it", (p.out, p.err, p.code, p.ended_by), ("a b session call\n/tmp\n", "e\n", 3, 0))
		same("its record", (p.result["verdict"], p.result["exit_code"], p.result["language"]), ("error", 3, "command"))
		same("workspace and empty input", s.command("sh", "-c", "pwd; cat; echo end").out, "/workspace\nend\n")
		same("what it starts sees no more", s.command("sh", "-c", "ls /proc/self/fd | wc -l").out, "4\n")


@case("what cannot be started says why")
def missing(t):
	with Owner(t) as owner:
		s = owner.session()
		done = s.done("start", argv=["no-such-program"])
		same("a program", (done["error"], done["flags"]), ("ENOENT", 0))
		done = s.done("start", argv=["true"], cwd="/nowhere")
		same("a folder", (done["error"], done["flags"]), ("ENOENT", BAD_DIR))
		holds("nothing", s.ask("start", argv=[], refused=True), "command")
		same("after that", s.command("true").code, 0)


@case("input is written as it comes, and closed; much of it too")
def given_input(t):
	with Owner(t) as owner:
		s = owner.session()
		p = s.start("cat", flags=STDIN)
		p.input("one\n")
		p.said("one")
		p.input("two")
		p.close()
		same("cat", p.finish().out, "one\ntwo")
		p = s.start("wc", "-c", flags=STDIN)
		for _ in range(9):
			p.input("x" * 100000)
		p.close()
		same("wc", p.finish().out.strip(), "900000")
		p = s.start("sleep", "1000")
		holds("input of one that has none", s.ask("input", of=p.tag, data="x", refused=True), "no input")
		p.signal(signal.SIGTERM)
		p.finish()


@case("a process whose output nobody can take waits, and goes on when somebody can")
def flow(t):
	with Owner(t) as owner:
		s = owner.session()
		p = s.start("sh", "-c", "read x; head -c 300000 /dev/zero | tr '\\0' a; echo end", flags=STDIN)
		s.ask("flow", of=p.tag, reads=0)
		p.input("\n")
		# It has filled its pipe when another one that it outruns has come and gone.
		s.command("sh", "-c", f"while [ $(cut -d' ' -f3 /proc/{p.pid}/stat) != S ]; do :; done; echo", timeout_ms=PATIENCE * 1000)
		same("held", s.output(p.tag, 1), "")
		s.ask("flow", of=p.tag, reads=1)
		same("all of it", p.finish().out, "a" * 300000 + "end\n")


@case("signals reach the process and what it started; one that has ended is gone")
def signals(t):
	with Owner(t) as owner:
		s = owner.session()
		p = s.start("sh", "-c", "sleep 1000 & echo $!; wait")
		p.said("\n")
		child = s.output(p.tag, 1).strip()
		same("sent", p.signal(signal.SIGKILL), "")
		p.finish()
		same("killed", (p.code, p.ended_by, p.result["verdict"]), (-1, 9, "crash"))
		same("its child", s.command("sh", "-c", f"while [ -d /proc/{child} ]; do sleep 0.01; done; echo gone", timeout_ms=PATIENCE * 1000).out, "gone\n")
		holds("again", s.ask("signal", of=p.tag, signal=9, refused=True), "no such process")
		p = s.start("sh", "-c", "trap 'echo caught; exit 5' TERM; echo up; while :; do sleep 0.05; done")
		p.said("up")
		p.signal(signal.SIGTERM)
		same("caught", (p.finish().out, p.code), ("up\ncaught\n", 5))


@case("a process has its own time and output limit, and nothing else ends with it")
def limits(t):
	with Owner(t) as owner:
		s = owner.session({"output_limit": "10k"})
		other = s.start("cat", flags=STDIN)
		p = s.command("sh", "-c", "sleep 1000 & sleep 1000", timeout_ms=100)
		same("time", (p.ended_by, p.flags, p.result["verdict"]), (9, TIMED_OUT, "timeout"))
		p = s.command("yes")
		same("output", (p.ended_by, p.flags, p.result["verdict"], len(p.out)), (9, TOO_MUCH, "output_limit", 10240))
		other.input("still")
		other.close()
		same("the other", other.finish().out, "still")


@case("a terminal: it is one, has its size, takes ^C, and its last words come")
def terminal(t):
	with Owner(t) as owner:
		s = owner.session()
		p = s.start("sh", "-c", "tty; stty size; read x; echo got $x; stty size; read y; echo never", flags=PTY, rows=30, columns=100)
		p.said("30 100")
		s.ask("resize", of=p.tag, rows=40, columns=120)
		p.input("hello\n")
		p.said("40 120")
		p.input("\x03")
		p.finish()
		holds("it", p.out, "/dev/pts/")
		holds("what it read", p.out, "got hello")
		if "never" in p.out.replace("echo never", ""):
			raise Failed(f"^C did nothing: {p.out!r}")
		same("ended by ^C", p.code == 130 or p.ended_by == 2, True)
		p = s.command("sh", "-c", "for i in $(seq 2000); do echo line $i; done; echo last", flags=PTY)
		holds("the last words", p.out, "line 2000\r\nlast\r\n")
		p = s.start("cat", flags=PTY)
		p.input("a\n")
		p.said("a\r\na")
		p.close()
		same("end of file", p.finish().code, 0)


@case("many processes at once, each with its own words")
def many(t):
	with Owner(t) as owner:
		s = owner.session({"pids_limit": "64"})
		started = [s.start("sh", "-c", f"read x; echo {i} $x", flags=STDIN) for i in range(20)]
		for i, p in enumerate(started):
			p.input(f"in{i}\n")
		for i, p in enumerate(started):
			same("words", p.finish().out, f"{i} in{i}\n")


@case("processes beyond the cell's limit are refused, and the session goes on when there is room")
def too_many(t):
	with Owner(t) as owner:
		s = owner.session({"pids_limit": "10"})
		started, error = [], ""
		while not error and len(started) < 20:
			done = s.done("start", argv=["sleep", "1000"])
			error = done["error"]
			started.append(done["tag"])
		same("refused", (error, len(started) > 3), ("EAGAIN", True))
		s.done("signal", of=started[0], signal=9)
		s.wait("exited", started[0])
		same("again", s.command("echo", "ok").out, "ok\n")
