# SPDX-License-Identifier: Apache-2.0
"""Policy files, trust levels, presets, doctor, and the command line's own manners."""
import json
import os

from harness import VERDICT_STATUS, case, is_root

POLICY = """
timeout: 10
mem_limit: 200m
pids_limit: 40
trust_levels:
  untrusted:
    timeout: 2
    mem_limit: 64m
  trusted:
    timeout: 60
    mem_limit: 300m
"""


def limits_of(t, *words, **kw):
	limits = t.verdict(t.cell(*words, "-c", "exit 0", lang="shell", **kw), "ok").json["limits"]
	return {k: v["value"] if isinstance(v, dict) else v for k, v in limits.items()}


@case("a policy file sets the limits of a run")
def policy_file(t):
	limits = limits_of(t, "--policy", t.path("p.yaml", POLICY))
	for want in (200 << 20, 40, 10000):
		t.check(want in limits.values(), f"{want} is in the limits", limits)


@case("trust levels choose other limits")
def trust_levels(t):
	path = t.path("p.yaml", POLICY)
	for trust, memory, wall in (("untrusted", 64 << 20, 2000), ("trusted", 300 << 20, 60000)):
		limits = limits_of(t, "--policy", path, "--trust", trust)
		t.check(memory in limits.values() and wall in limits.values(), f"limits of {trust}", limits)
	p = t.brig("run", "--policy", path, "--trust", "vip", "-c", "exit 0", "--lang", "shell")
	t.check(p.rc not in (0, 1) and "untrusted" in p.text(), "an unknown level is refused, the known ones named", p)


@case("a file can allow a request more only through its trust level")
def trust_ceiling(t):
	path = t.path("p.yaml", POLICY)
	t.verdict(t.cell("--policy", path, "--memory", "100m", "-c", "exit 0", lang="shell"), "ok")
	t.verdict(t.cell("--policy", path, "--memory", "250m", "-c", "exit 0", lang="shell"), "refused")
	t.verdict(t.cell("--policy", path, "--trust", "untrusted", "--timeout", "5", "-c", "exit 0", lang="shell"), "refused")


@case("presets: strict is stricter than standard")
def presets(t):
	for preset, memory, wall in (("standard", 512 << 20, 30000), ("strict", 256 << 20, 15000)):
		limits = limits_of(t, "--preset", preset)
		t.check(memory in limits.values() and wall in limits.values(), f"limits of {preset}", limits)


@case("policy show prints each value and the layer that set it")
def policy_show(t):
	p = t.brig("policy", "show")
	t.equal(p.rc, 0, "exit status", p)
	for word in (b"mem_limit", b"pids_limit", b"network_mode", b"seccomp_profile", b"512"):
		t.check(word in p.out, f"shows {word.decode()}", p)
	p = t.brig("policy", "show", "--json", "--trust", "untrusted")
	t.equal(p.rc, 0, "exit status", p)
	text = json.dumps(json.loads(p.out))
	t.check("mem_limit" in text and "layer" in text or "source" in text or "from" in text, "layers are named", p)
	p = t.brig("policy", "show", env={"BRIG_PIDS_LIMIT": "33"})
	t.check(b"33" in p.out and b"BRIG_PIDS_LIMIT" in p.out or b"environment" in p.out, "the environment's layer shows", p)


@case("policy check: good files pass, every error of a bad one is told with its place")
def policy_check(t):
	t.equal(t.brig("policy", "check", t.path("good.yaml", POLICY)).rc, 0, "a good file")
	bad = t.path("bad.yaml", "mem_limt: 1g\ntimeout: soon\npids_limit: -4\ncap_drop: [NET_RAW]\nread_only: maybe\n")
	p = t.brig("policy", "check", bad)
	t.check(p.rc not in (0, 139, 134), "a bad file fails", p)
	text = p.text()
	for place in ("bad.yaml:1:", "bad.yaml:2:", "bad.yaml:3:"):
		t.check(place in text, f"names {place}", p)
	t.check("did you mean 'mem_limit'" in text, "suggests the nearest key", p)


@case("hostile policy files are refused, never a crash")
def hostile_policies(t):
	bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{c}: &{c} [{','.join(['*' + p] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi"))
	files = {"bomb": bomb, "dup": "timeout: 1\ntimeout: 2\n", "utf8": b"timeout: \xff\xfe\n", "nul": b"timeout: 1\x00\n",
		 "deep": "[" * 20000, "deepmap": "{a: " * 5000, "big": "# " + "x" * (10 << 20) + "\ntimeout: 1\n", "tab": "\ttimeout: 1\n",
		 "list": "- a\n- b\n", "scalar": "hello\n", "huge": "mem_limit: 99999999999999999999999g\n", "nan": "timeout: .nan\n",
		 "neg": "timeout: -1\n", "root": "user: \"0:0\"\n", "caps": "cap_drop: []\n", "alias": "timeout: *nothing\n",
		 "two": "timeout: 1\n---\ntimeout: 2\n", "type": "pids_limit: [1, 2]\n", "unknown": "priviledged: true\n"}
	for name, content in files.items():
		path = t.path(name + ".yaml", content)
		p = t.brig("policy", "check", path)
		t.check(0 < p.rc < 128, f"{name}: refused in order (status {p.rc})", str(p)[:400])
		t.check(len(p.text()) < 1 << 16, f"{name}: the message is bounded")
		p = t.brig("run", "--policy", path, "-c", "echo ran", "--lang", "shell")
		t.check(0 < p.rc < 128 and b"ran" not in p.out, f"{name}: no run under it", str(p)[:400])


@case("an empty file, a missing file, a directory, a FIFO as policy")
def odd_policies(t):
	t.equal(t.brig("policy", "check", t.path("empty.yaml", "")).rc, 0, "an empty file is fine")
	os.mkfifo(t.path("fifo.yaml"))
	for path in (t.path("missing.yaml"), t.dir, t.path("fifo.yaml"), "/dev/zero"):
		p = t.brig("policy", "check", path)
		t.check(0 < p.rc < 128, f"{path}: refused", p)


@case("doctor: every row says ok or how to fix it; the exit status follows")
def doctor(t):
	p = t.brig("doctor", "--json")
	doc = json.loads(p.out)
	text = json.dumps(doc)
	for word in ("seccomp", "landlock", "cgroup", "user", "python"):
		t.check(word in text.lower(), f"tells about {word}", text[:600])
	human = t.brig("doctor")
	t.equal(human.rc, p.rc, "same status with and without --json", human)
	runnable = t.cell("-c", "exit 0", lang="shell")
	if is_root() and not runnable.json["degraded"]:
		t.equal(p.rc, 0, "doctor's status on a host that keeps the default policy", human)


@case("help and version")
def help_and_version(t):
	p = t.brig("--version")
	t.check(p.rc == 0 and b"0." in p.out, "version", p)
	for words in (("--help",), ("run", "--help"), ("policy", "--help"), ("doctor", "--help")):
		p = t.brig(*words)
		t.check(p.rc == 0 and len(p.out) > 80, f"help of {words}", p)


@case("wrong usage is told apart from every verdict and from the program's own codes")
def usage_errors(t):
	for words in ((), ("frobnicate",), ("run",), ("run", "--frobnicate"), ("run", "--timeout"), ("run", "--timeout", "soon", "x.py"),
		      ("run", "/does/not/exist.py"), ("run", "--memory", "lots", "-c", "1", "--lang", "python"),
		      ("run", "--set", "nonsense", "-c", "1", "--lang", "python"), ("run", "--set", "no_such=1", "-c", "1", "--lang", "python"),
		      ("run", "--env", "NOEQUALS", "-c", "1", "--lang", "python"), ("policy",), ("policy", "frobnicate")):
		p = t.brig(*words)
		t.check(p.rc != 0 and p.rc < 128, f"{words} fails in order", p)
		t.check(len(p.err) > 10, f"{words} says why on stderr", p)
		t.check(p.rc not in (VERDICT_STATUS["timeout"], VERDICT_STATUS["memory_limit"], VERDICT_STATUS["violated"]), f"{words}: status", p)


@case("hostile requests: environment, arguments and code at their limits")
def hostile_requests(t):
	for words in (("--env", "A=" + "x" * 100000), ("--env", "=x"), ("--env", "A=1", "--env", "A=2"), ("--env", "LD_PRELOAD=/tmp/x.so"),
		      ("--env", "PATH=/tmp"), ("--env", "PYTHONSTARTUP=/etc/passwd"), ("--env", "BASH_ENV=/etc/passwd")):
		p = t.run(t.run_args("--json", *words, "-c", "exit 0", "--lang", "shell"))
		t.check(p.rc in (0, 2, 121, 125) and p.rc != 121, f"{words[1][:30]}: runs or is refused", str(p)[:500])
	for code in ("", "\ufeffprint(1)", "print(1)\r\n", "#" + "x" * (1 << 20)):
		r = t.cell(code=code, lang="python")
		t.check(r.verdict in ("ok", "error"), f"code {code[:10]!r}", r)
	r = t.cell("--", *["y" * 1000] * 100, code="import sys; print(len(sys.argv))", lang="python")
	t.verdict(r, "ok", "refused")


@case("a missing runtime names the package to install")
def missing_runtime(t):
	t.native_only("runtimes of the host")
	for row in json.loads(t.brig("languages", "--json").out)["languages"]:
		if not row["installed"]:
			r = t.verdict(t.cell("-c", "1", lang=row["name"]), "refused")
			t.check("install" in r.reason and r.reason == row["missing"], "the reason tells what to install", r)
	os.mkdir(t.path("empty-root"))
	p = t.brig("run", "--policy", t.path("p.yaml", f"rootfs: {t.path('empty-root')}\n"), "-c", "print(1)", "--lang", "python")
	t.check(p.rc in (121, 125) and p.out == b"" and b"python3" in p.err, "a root tree without it says what is missing", p)
