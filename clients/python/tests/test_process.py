# SPDX-License-Identifier: Apache-2.0
"""The transport itself: where the program is, what it is given, what happens when it breaks; leaks and kills."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

import brig
from brig import _binary, _process
from brig._transport import Request
from conftest import (
    PATIENCE,
    asleep,
    children,
    descriptors,
    processes_with,
    python_script,
    seconds,
    wait_until,
)

RUNS = int(os.environ.get("BRIG_TEST_RUNS", "60"))


# ---- which program ----


def test_named_by_the_environment(monkeypatch, tmp_path):
    program = tmp_path / "brig"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("BRIG_BIN", str(program))
    assert brig.find_binary() == str(program)


@pytest.mark.parametrize("name", ["/no/such/brig", "/etc/passwd", "/tmp"])
def test_named_wrongly(monkeypatch, name):
    monkeypatch.setenv("BRIG_BIN", name)
    with pytest.raises(brig.BinaryNotFound, match="BRIG_BIN"):
        brig.find_binary()


def test_found_on_the_path(monkeypatch, tmp_path):
    """A script of that name, such as the command of this very package, is passed over."""
    monkeypatch.delenv("BRIG_BIN", raising=False)
    monkeypatch.setattr(_binary, "BUNDLED", "/no/such")
    for folder, content in (("script", b"#!/bin/sh\n"), ("real", b"\x7fELF")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "brig").write_bytes(content)
        (tmp_path / folder / "brig").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/script:{tmp_path}/real")
    assert brig.find_binary() == str(tmp_path / "real" / "brig")


def test_found_nowhere(monkeypatch, tmp_path):
    monkeypatch.delenv("BRIG_BIN", raising=False)
    monkeypatch.setattr(_binary, "BUNDLED", "/no/such")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(brig.BinaryNotFound, match="set BRIG_BIN"):
        brig.run("pass")
    assert _binary.main(["--version"]) == 121


def test_version_is_the_program_s():
    assert brig.version() == brig.__version__


def test_command_line_becomes_the_program():
    words = [sys.executable, "-c", "import brig._binary as b; b.main()", "version", "--json"]
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(brig.__file__))}
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, check=True)
    assert b'"version"' in done.stdout


def test_program_that_is_gone():
    with pytest.raises(brig.BinaryNotFound):
        brig.run("pass", transport=brig.ProcessTransport("/no/such/brig"))


# ---- what it is given ----


def test_own_variables_are_not_handed_on(monkeypatch, fake_brig):
    """brig takes BRIG_ variables that it does not know for misspelt settings."""
    monkeypatch.setenv("BRIG_BIN", brig.find_binary())
    assert brig.run("pass", timeout=PATIENCE).ok


@pytest.mark.parametrize(
    "call",
    [
        lambda b: b.run("x", args=["a\0b"]),
        lambda b: b.exec("x\0"),
        lambda b: b.run("x", env={"A": "\0"}),
    ],
)
def test_nul_characters(box, call):
    with pytest.raises(brig.UsageError):
        call(box)


def test_argument_that_is_too_long(box):
    with pytest.raises(brig.UsageError, match="128 KB"):
        box.exec("echo " + "x" * 200_000)


def test_arguments_that_are_too_many(box):
    with pytest.raises(brig.UsageError, match="longer than the kernel allows"):
        box.run("pass", args=["x" * 100_000] * 60)


def test_wrong_use_raises(box):
    request = Request(kind="run", code=b"", options=[("--no-such-option", None)])
    with pytest.raises(brig.UsageError):
        box._transport.run(request)
    with pytest.raises(brig.UsageError, match="no-such-option"):
        list(box._transport.stream(request))


def test_program_sees_no_descriptor_of_ours(box):
    result = box.run(
        "import os; print(sorted(os.listdir('/proc/self/fd')))", stdin="x", receipt=True
    )
    assert result.stdout in ("['0', '1', '2', '3']\n",)


def test_without_standard_streams():
    """A daemon's memory files would get the numbers 0 to 2."""
    script = (
        "import os\n"
        "keep = os.dup(1)\n"
        "for fd in (0, 1, 2): os.close(fd)\n"
        "import brig\n"
        "with brig.Sandbox(files={'a': 'x'}, timeout=60) as box:\n"
        "    r = box.run('import sys; print(open(\"a\").read() + sys.stdin.read())', stdin='y')\n"
        "os.write(keep, repr((r.verdict, r.stdout)).encode())\n"
    )
    child = python_script(script)
    assert child.communicate()[0] == b"('ok', 'xy\\n')"


# ---- programs that break ----


BROKEN = [
    ("nothing", "exit 0", "gave no result"),
    ("noise", "echo hello", "gave no result"),
    ("half", "printf '{\"verdict\":'", "gave no result"),
    ("list", "echo '[1]'", "gave no result"),
    ("killed", "kill -9 $$", "signal 9"),
    ("words", "echo 'brig: out of luck' >&2; exit 121", "out of luck"),
]


@pytest.mark.parametrize("body, said", [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_broken_program(fake_brig, body, said):
    before = descriptors(), children()
    with brig.Sandbox(transport=fake_brig(body)) as box:
        with pytest.raises(brig.TransportError, match=said):
            box.run("pass")
    assert (descriptors(), children()) == before


@pytest.mark.parametrize("body", [b[1] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_broken_program_in_a_loop(fake_brig, body):
    before = descriptors(), children()
    with pytest.raises(brig.TransportError):
        asyncio.run(brig.AsyncSandbox(transport=fake_brig(body)).run("pass"))
    assert (descriptors(), children()) == before


def test_broken_stream(fake_brig):
    before = descriptors(), children()
    with brig.Sandbox(transport=fake_brig('echo \'{"event":"stdout","data":"x"}\'; exit 1')) as box:
        events = box.stream("pass")
        assert next(events).text == "x"
        with pytest.raises(brig.TransportError):
            next(events)
    del events
    assert (descriptors(), children()) == before


def test_stream_of_noise(fake_brig):
    """Whoever prints no JSON is not waited for."""
    before = descriptors(), children()
    with brig.Sandbox(transport=fake_brig("echo noise; exec sleep " + seconds("0023"))) as box:
        with pytest.raises(brig.TransportError):
            box.stream("pass").wait()
        with pytest.raises(brig.TransportError):
            asyncio.run(brig.AsyncSandbox(transport=box._transport).run("pass"))
    assert processes_with(seconds("0023")) == [] and (descriptors(), children()) == before


def test_events_of_a_newer_brig(fake_brig):
    lines = (
        '{"event":"weather","sun":true}',
        '{"event":"result","result":{"id":"x","verdict":"ok"}}',
    )
    with brig.Sandbox(transport=fake_brig("".join(f"echo '{line}'\n" for line in lines))) as box:
        first, last = box.stream("pass")
    assert first.kind == "weather" and first.raw["sun"] is True and last.result.ok


def test_interrupted():
    """Ctrl-C in the middle of a run ends the program before the exception goes on."""
    box = brig.Sandbox(timeout=PATIENCE)
    main = threading.main_thread().ident

    def interrupt():
        wait_until(lambda: asleep(seconds("0021")))
        signal.pthread_kill(main, signal.SIGINT)

    before = descriptors(), children()
    helper = threading.Thread(target=interrupt)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        box.exec(["sleep", seconds("0021")])
    helper.join()
    assert processes_with(seconds("0021")) == [] and (descriptors(), children()) == before


def test_interrupted_when_brig_does_not_listen(fake_brig, monkeypatch):
    monkeypatch.setattr(_process, "GRACE", 0.3)
    child = _process.Child(
        fake_brig(f"trap '' TERM\nexec sleep {seconds('0022')}\n").binary,
        Request("run"),
        "--json",
    )
    assert wait_until(lambda: asleep(seconds("0022")))
    child.abort()
    child.abort()
    assert processes_with(seconds("0022")) == [] and children() == []


# ---- nothing is left ----


def test_many_runs_leak_nothing(box):
    """BRIG_TEST_RUNS=1000 for the long form."""
    box.files.write("in", "x" * 1000)

    def once():
        box.run("open('out', 'w').write('1')")
        box.last = None

    for _ in range(10):
        once()
    gc.collect()
    before = descriptors(), children(), sys.getallocatedblocks()
    for _ in range(RUNS):
        once()
    gc.collect()
    assert (descriptors(), children()) == before[:2]
    assert sys.getallocatedblocks() - before[2] < 200 + RUNS


def test_refused_runs_leak_nothing(box):
    box.run("pass", memory="8g")
    before = descriptors(), children()
    for _ in range(5):
        box.run("pass", memory="8g")
        with pytest.raises(brig.UsageError):
            box.run("pass", args=["\0"])
    assert (descriptors(), children()) == before


KILLED = "import brig\n" "box = brig.Sandbox(timeout=120)\n" "print('up', flush=True)\n" "{}\n"
WAYS = {
    "run": "box.exec(['sleep', 'SECONDS'])",
    "stream": "list(box.stream_exec(['sleep', 'SECONDS']))",
    "async": "import asyncio; asyncio.run(brig.AsyncSandbox(timeout=120).exec(['sleep', 'SECONDS']))",
}


@pytest.mark.backends
@pytest.mark.parametrize("way", sorted(WAYS))
def test_killed_python_leaves_no_cell(way):
    child = python_script(KILLED.format(WAYS[way].replace("SECONDS", seconds("0031"))))
    try:
        assert child.stdout.readline() == b"up\n"
        assert wait_until(lambda: asleep(seconds("0031")))
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert wait_until(lambda: not processes_with(seconds("0031")))


def test_python_that_exits_leaves_no_cell():
    script = KILLED.format("stream = box.stream_exec(['sleep', 'SECONDS'])\nnext(stream)")
    child = python_script(script.replace("SECONDS", seconds("0032")))
    child.communicate()
    assert wait_until(lambda: not processes_with(seconds("0032")))
