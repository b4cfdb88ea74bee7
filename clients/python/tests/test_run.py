# SPDX-License-Identifier: Apache-2.0
"""Programs, commands, verdicts: what a run gives back."""

import io
import os
import threading

import pytest

import brig
from conftest import PATIENCE


@pytest.mark.backends
def test_run_function():
    result = brig.run("print(6 * 7)", timeout=PATIENCE)
    assert (result.verdict, result.stdout, result.exit_code) == ("ok", "42\n", 0)
    assert result.ok and result.success
    assert result.language == "python" and result.trust == "unknown"
    assert len(result.id) == 16


@pytest.mark.backends
@pytest.mark.parametrize(
    "language, code, output",
    [
        ("python", "print(1 + 1)", "2\n"),
        ("javascript", "console.log(1 + 1)", "2\n"),
        ("shell", "echo $((1 + 1))", "2\n"),
    ],
)
def test_languages(box, language, code, output):
    assert box.run(code, language).stdout == output


def test_language_of_the_sandbox():
    with brig.Sandbox(language="shell", timeout=PATIENCE) as box:
        assert box.run("echo hello").stdout == "hello\n"


VERDICTS = [
    ("error", "import sys; print('no'); sys.exit(3)", {}, brig.ProgramError),
    ("crash", "import os; os.kill(os.getpid(), 11)", {}, brig.Crashed),
    ("timeout", "import time; time.sleep(60)", {"timeout": 1}, brig.TimeLimit),
    (
        "output_limit",
        "print('x' * 300000)",
        {"settings": {"output_limit": "64k"}},
        brig.OutputLimit,
    ),
    ("blocked", "import os; os.system('rm -rf /')", {}, brig.Blocked),
    ("refused", "pass", {"memory": "8g"}, brig.Refused),
]


@pytest.mark.parametrize("verdict, code, wishes, error", VERDICTS, ids=[v[0] for v in VERDICTS])
def test_verdicts_do_not_raise_unless_asked(box, verdict, code, wishes, error):
    result = box.run(code, **wishes)
    assert result.verdict == verdict and not result.ok
    with pytest.raises(error) as caught:
        result.raise_for_verdict()
    assert caught.value.result is result
    assert str(caught.value).startswith(verdict)


def test_memory_limit(box):
    if "memory_limit" in os.environ.get("BRIG_ALLOW_DEGRADED", ""):
        pytest.skip("this host gives an ordinary user no memory limit")
    result = box.run("x = bytearray(1 << 30)", memory="64m")
    assert result.verdict == "memory_limit"
    with pytest.raises(brig.MemoryLimit):
        result.raise_for_verdict()


def test_disk_limit(box):
    result = box.run("open('big', 'wb').write(bytes(8 << 20))", settings={"disk_limit": "1m"})
    assert result.verdict == "disk_limit"
    with pytest.raises(brig.DiskLimit):
        result.raise_for_verdict()


@pytest.mark.backends
def test_check_raises(box):
    with pytest.raises(brig.ProgramError) as caught:
        box.run("1 / 0", check=True)
    assert "ZeroDivisionError: division by zero" in str(caught.value)
    assert caught.value.result.exit_code == 1
    assert box.last is caught.value.result


def test_check_returns_what_is_ok(box):
    assert box.run("print(1)", check=True).stdout == "1\n"
    assert box.run("print(1)").raise_for_verdict().stdout == "1\n"


def test_blocked_carries_findings_and_remedy(box):
    with pytest.raises(brig.Blocked) as caught:
        box.run("import os\nos.system('rm -rf /')", check=True)
    error = caught.value
    blocking = [f for f in error.findings if f.blocks]
    assert blocking[0].rule == "sh-delete-tree" and blocking[0].line == 2
    assert "sh-delete-tree=allow" in error.remedy
    assert "what would help" in str(error)
    assert blocking[0] in error.result.security_violations


def test_hint_of_a_missing_module(box):
    result = box.run("import requests_that_nobody_has")
    assert result.verdict == "error" and result.hint
    assert result.hint in result.remedy


def test_refused_says_what_to_do(box):
    with pytest.raises(brig.Refused, match="lower it, or use --trust trusted"):
        box.run("pass", memory="8g", check=True)


@pytest.mark.backends
def test_output_is_exact(box):
    result = box.run(
        "import sys; sys.stdout.buffer.write(bytes(range(256))); sys.stderr.write('é')"
    )
    assert result.stdout_bytes == bytes(range(256))
    assert "\ufffd" in result.stdout
    assert result.stderr == "é" and not result.truncated


@pytest.mark.backends
@pytest.mark.parametrize(
    "data", ["text é", b"\x00\xff", "", "x" * 300_000], ids=["text", "bytes", "empty", "large"]
)
def test_stdin(box, data):
    code = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d)"
    wanted = data.encode() if isinstance(data, str) else data
    assert box.run(code, stdin=data).stdout_bytes == wanted


def test_no_stdin_is_empty(box):
    assert box.run("import sys; print(repr(sys.stdin.read()))").stdout == "''\n"


def test_stdin_of_an_open_file(box, tmp_path):
    (tmp_path / "in").write_text("from a file")
    with open(tmp_path / "in", "rb") as f:
        assert box.run("print(input())", stdin=f).stdout == "from a file\n"


def test_stdin_of_a_pipe(box):
    read, write = os.pipe()

    def feed():
        with os.fdopen(write, "w") as f:
            f.write("y" * 200_000)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with os.fdopen(read, "rb") as f:
        assert box.run("import sys; print(len(sys.stdin.read()))", stdin=f).stdout == "200000\n"
    feeder.join()


def test_stdin_without_descriptor_is_wrong_use(box):
    with pytest.raises(io.UnsupportedOperation):
        box.run("pass", stdin=io.StringIO("x"))


def test_arguments(box):
    result = box.run("import sys; print(sys.argv[1:])", args=["a b", "--json", "-x", "é"])
    assert result.stdout == "['a b', '--json', '-x', 'é']\n"


def test_environment_of_the_program(box):
    code = "import os; print(os.environ['GREETING'], os.environ.get('BRIG_STATE'))"
    assert box.run(code, env={"GREETING": "hello world"}).stdout == "hello world None\n"


def test_environment_of_the_sandbox_and_of_a_run():
    with brig.Sandbox(env={"A": "1", "B": "1"}, timeout=PATIENCE) as box:
        result = box.run("import os; print(os.environ['A'], os.environ['B'])", env={"B": "2"})
    assert result.stdout == "1 2\n"


def test_large_code(box):
    code = "x = '" + "a" * 400_000 + "'\nprint(len(x))"
    assert box.run(code).stdout == "400000\n"


def test_code_in_bytes(box):
    assert box.run(b"print('\xc3\xa9')").stdout == "é\n"


def test_code_is_not_on_the_command_line(box):
    """Everybody on the host can read arguments."""
    code = "# secret-in-the-code\nimport time; print('up', flush=True); time.sleep(60)"
    with box.stream(code) as stream:
        next(e for e in stream if isinstance(e, brig.OutputEvent))
        seen = [open(f"/proc/{pid}/cmdline", "rb").read() for pid in _children_deep(os.getpid())]
    assert seen and not any(b"secret-in-the-code" in words for words in seen)


def _children_deep(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        direct = [int(p) for p in f.read().split()]
    return direct + [p for child in direct for p in _children_deep(child)]


@pytest.mark.backends
def test_exec_line(box):
    result = box.exec("echo one; echo two >&2; exit 4")
    assert (result.stdout, result.stderr, result.exit_code) == ("one\n", "two\n", 4)


@pytest.mark.backends
def test_exec_words(box):
    assert box.exec(["printf", "%s|", "a b", "-c", "$HOME"]).stdout == "a b|-c|$HOME|"


@pytest.mark.parametrize("command", ["", []])
def test_exec_of_nothing(box, command):
    with pytest.raises(brig.UsageError):
        box.exec(command)


def test_exec_with_stdin(box):
    assert box.exec(["wc", "-c"], stdin=b"12345").stdout.strip() == "5"


def test_exec_blocks(box):
    assert box.exec("rm -rf /").verdict == "blocked"


def test_check_without_running(box):
    report = box.check("import os\nos.system('rm -rf /')")
    assert report.blocked and not report.ok and not report
    assert report.worst == "CRITICAL" and report.language == "python"
    assert [f.line for f in report.findings if f.blocks] == [2]


def test_check_of_harmless_code(box):
    report = box.check("print(1)")
    assert report and report.findings == [] and report.inspected


def test_check_of_a_command(box):
    assert box.check("rm -rf /", kind="command").blocked
    assert brig.check("ls -l", kind="command").ok


def test_check_of_a_path(box):
    assert box.check("../etc/passwd", kind="path").blocked


def test_check_of_an_unknown_language(box):
    with pytest.raises(brig.UsageError, match="klingon"):
        box.check("x", "klingon")


def test_rules(box):
    code = "import os; os.system('rm -rf /')"
    with brig.Sandbox(rules={"sh-delete-tree": "allow"}, timeout=PATIENCE) as lenient:
        assert lenient.check(code).ok
    assert box.check(code).blocked


def test_inspection_off():
    with brig.Sandbox(inspect="off", timeout=PATIENCE) as box:
        assert box.run("import os; os.system('rm -rf /nothing')").verdict == "ok"


def test_evidence(box):
    result = box.run("pass")
    lacking = {row.protection for row in result.degraded}
    broken = [row for row in result.evidence if not row.kept and row.check not in lacking]
    assert len(result.evidence) > 10 and broken == []
    checks = {row.check for row in result.evidence}
    assert {"seccomp", "network", "no_process_left"} <= checks


def test_denied(box, native):
    code = "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)"
    denied = box.run(code, settings={"inspection": "off"}).denied
    assert [d.kind for d in denied] == ["syscall"] and "ptrace" in denied[0].what


def test_usage_and_limits(box):
    result = box.run("print('x' * 10)", timeout=9)
    assert result.usage.output_bytes == 11 and result.usage.wall_ms >= 0
    assert result.limits["wall_ms"] == 9000
    assert result.timing["total_ms"] > 0


def test_receipt(box):
    result = box.run("print(1)", receipt=True)
    assert result.receipt["statement"]["request"]["id"] == result.id
    assert brig.verify_receipt(result.receipt)["ok"] is True


def test_receipt_that_was_changed(box):
    receipt = dict(box.run("print(1)", receipt=True).receipt)
    receipt["statement"] = {**receipt["statement"], "brig": "9.9.9"}
    assert brig.verify_receipt(receipt)["ok"] is False


def test_no_receipt_unless_asked(box):
    assert box.run("pass").receipt is None


def test_trust_and_preset():
    with brig.Sandbox(trust="untrusted", preset="strict", timeout=10) as box:
        result = box.run("pass")
    assert result.trust == "untrusted" and result.limits["pids"] == 32


def test_limits_of_a_sandbox_hold_for_each_run(box):
    with brig.Sandbox(
        timeout="12s", memory="100m", pids=20, disk="5m", output_limit="1m", cpus=0.25
    ) as small:
        limits = small.run("pass").limits
        assert limits["wall_ms"] == 12000 and limits["pids"] == 20 and limits["cpu_percent"] == 25
        assert limits["memory_bytes"] == 100 << 20 and limits["disk_bytes"] == 5 << 20
        assert small.run("pass", timeout=3).limits["wall_ms"] == 3000
        assert small.run("pass").limits["wall_ms"] == 12000


def test_settings_that_do_not_exist_are_refused(box):
    result = box.run("pass", settings={"no_such": 1})
    assert result.verdict == "refused" and "no_such" in result.reason


def test_unknown_language_is_refused(box):
    assert "klingon" in box.run("pass", "klingon").reason


def test_policy_as_a_mapping():
    with brig.Sandbox(policy={"resources": {"mem_limit": "96m"}}, timeout=PATIENCE) as box:
        assert box.run("pass").limits["memory_bytes"] == 96 << 20


def test_policy_as_a_file(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("resources:\n  mem_limit: 97m\n")
    path.chmod(0o600)
    with brig.Sandbox(policy=path, timeout=PATIENCE) as box:
        assert box.run("pass").limits["memory_bytes"] == 97 << 20


def test_policy_with_a_mistake_is_refused():
    with brig.Sandbox(policy={"resources": {"mem_limt": 1}}) as box:
        result = box.run("pass")
    assert result.verdict == "refused" and "mem_limit" in result.reason


def test_backend_that_does_not_exist():
    with brig.Sandbox(backend="cloud") as box:
        assert "cloud" in box.run("pass").reason


def test_closed_sandbox():
    box = brig.Sandbox()
    assert not box.closed
    box.close()
    assert box.closed
    for call in (
        lambda: box.run("pass"),
        lambda: box.check("pass"),
        lambda: box.exec("ls"),
        box.__enter__,
    ):
        with pytest.raises(brig.ClosedError):
            call()


def test_threads_share_a_sandbox(box):
    seen = []

    def work(n):
        seen.append(box.run(f"open('f{n}', 'w').write('{n}'); print({n})").stdout)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [f"{n}\n" for n in range(6)]
    assert box.files.list() == [f"f{n}" for n in range(6)]


def test_network_is_closed_by_default(box):
    code = "import socket\ntry: socket.create_connection(('192.0.2.1', 80), 5)\nexcept OSError as e: print('closed')"
    assert box.run(code).stdout == "closed\n"


def test_network_allow_list():
    """Listed hosts are asked for, others are refused with the line that would allow them."""
    code = (
        "import urllib.request, urllib.error\n"
        "try: urllib.request.urlopen('http://other.example/')\n"
        "except urllib.error.HTTPError as e: print(e.code)\n"
    )
    with brig.Sandbox(network=["listed.example"], timeout=PATIENCE) as box:
        result = box.run(code)
    assert result.stdout == "403\n"
    assert [(n.host, n.allowed) for n in result.network] == [("other.example", False)]
    assert "whitelist" in result.denied[0].fix


def test_network_under_a_policy_that_closes_it():
    policy = {"network": {"network_mode": "none"}}
    with brig.Sandbox(network=["listed.example"], policy=policy) as box:
        result = box.run("pass")
    assert result.verdict == "refused" and "NETWORK_MODE" in result.reason


def test_packages_of_a_registry_that_is_not_there(box):
    """Nothing is downloaded here: that the request asks for them is what can be seen."""
    result = box.run("pass", packages=["no-such-package"], settings={"packages": "false"})
    assert result.verdict == "refused" and "package" in result.reason
