# SPDX-License-Identifier: Apache-2.0
"""Sessions: cells that stay, at a service that was named and at one's own."""

import asyncio
import contextlib
import os
import pathlib
import pickle
import re
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

import brig
from conftest import PATIENCE, children, processes_with, python_script, wait_until, word


@pytest.fixture
def session():
    with brig.Sandbox(session=True, timeout=PATIENCE) as s:
        yield s


@contextlib.contextmanager
def serving(folder):
    """A service with tokens: (its address, a token)."""
    state = str(folder / "state")
    made = subprocess.run(
        [brig.find_binary(), "token", "create", "--state", state, "ada"],
        stdout=subprocess.PIPE,
        check=True,
    )
    words = ["serve", "--listen", "127.0.0.1:0", "--socket", "none", "--state", state]
    with subprocess.Popen(
        [brig.find_binary(), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as p:
        try:
            line = p.stdout.readline()
            while line and not line.startswith(b"ready "):
                line = p.stdout.readline()
            yield line.split()[1].decode(), made.stdout.decode().strip()
        finally:
            p.terminate()


def test_forks_and_snapshots(session):
    session.files.write("kept.txt", "one")
    session.run("x = 1")
    with session.fork(session_timeout=600) as other:
        assert other.id != session.id
        other.files.write("kept.txt", "two")
        assert other.run("'x' in globals()").text == "False"
        assert (session.files.read("kept.txt"), other.files.read("kept.txt")) == (b"one", b"two")
    snapshot = session.snapshot("first")
    assert snapshot.name == "first" and snapshot in session.snapshots()
    address = session._service.address
    with brig.Session(host=address, snapshot=snapshot) as again:
        assert again.files.read("kept.txt") == b"one"
    session.remove_snapshot(snapshot)
    with pytest.raises(brig.ServiceError):
        brig.Session(host=address, snapshot=snapshot.id).run("1")


def test_watches(session):
    session.files.mkdir("out/in")
    with session.files.watch("out", recursive=True) as watch:
        session.files.write("out/in/a.txt", "x")
        for change in watch:
            assert change.name == "in/a.txt"
            if change.change == "written":
                break
    with pytest.raises(brig.ServiceError):
        session.files.watch("none")


def test_terminals(session):
    with session.terminal(["sh"], rows=31, columns=97, env={"PS1": "> "}) as terminal:
        terminal.write("stty size\n")
        out = b""
        for piece in terminal:
            out += piece
            if b"31 97" in out:
                break
        terminal.resize(11, 33)
        terminal.write("stty size; exit 3\n")
        out = b"".join(terminal)
        assert b"11 33" in out and terminal.result.exit_code == 3
    with session.terminal("sleep 1000") as terminal:
        terminal.kill()
        assert terminal.wait().verdict == "crash"


def test_state_stays(session):
    assert isinstance(session, brig.Session) and re.fullmatch("[a-z2-7]{16}", session.id)
    assert session.run("x = 20").text is None
    result = session.run("print('said'); x * 2 + 2")
    assert (result.text, result.stdout, result.verdict) == ("42", "said\n", "ok")
    assert session.run("let y = 1; y + 1", "javascript").text == "2"
    assert session.run("z=5; echo $z", "bash").stdout == "5\n"
    assert [c.language for c in session.contexts] == ["python", "javascript", "shell"]
    assert session.info()["state"] == "ready"


def test_errors_and_limits(session):
    result = session.run("1 / 0")
    assert result.verdict == "error" and result.error["name"] == "ZeroDivisionError"
    with pytest.raises(brig.ProgramError):
        session.run("1 / 0", check=True)
    with pytest.raises(brig.TimeLimit):
        session.run("while True: pass", timeout="300ms", check=True)
    shown = "class P:\n    def _repr_html_(self): return '<b>h</b>'\nP()"
    assert session.run(shown).results[0]["html"] == "<b>h</b>"
    for wrong in ({"memory": "1m"}, {"args": ["x"]}, {"stdin": "x"}):
        with pytest.raises(brig.UsageError):
            session.run("1", **wrong)
    with pytest.raises(brig.UsageError):
        session.test()
    assert session.run("7").text == "7"


def test_commands(session):
    result = session.exec(["sh", "-c", "cat; exit 3"], stdin="in\n")
    assert (result.stdout, result.exit_code, result.verdict) == ("in\n", 3, "error")
    assert session.exec("pwd; echo $V", cwd="/tmp", env={"V": "w"}).stdout == "/tmp\nw\n"
    seen = []
    session.exec("echo a; echo b >&2", on_event=seen.append)
    said = {e.stream: e.text for e in seen if isinstance(e, brig.OutputEvent)}
    assert said == {"stdout": "a\n", "stderr": "b\n"}


def test_files(session, tmp_path):
    session.files.write("d/a.bin", bytes(range(256)))
    assert session.files.read("d/a.bin") == bytes(range(256))
    assert session.run("len(open('d/a.bin', 'rb').read())").text == "256"
    session.files.mkdir("e")
    session.files.move("d/a.bin", "e/b.bin")
    session.files.write("run me", "#!/bin/sh\necho ran\n", executable=True)
    assert session.exec(["./run me"]).stdout == "ran\n"
    assert session.files.list() == ["e/b.bin", "run me"] and session.files.list("e") == ["e/b.bin"]
    session.files.download("e", tmp_path / "out")
    assert (tmp_path / "out" / "b.bin").read_bytes() == bytes(range(256))
    assert "e/b.bin" in session.files and "e/c" not in session.files
    session.files.remove("e")
    with pytest.raises(brig.FileMissing):
        session.files.read("e/b.bin")


def test_first_files():
    with brig.Sandbox(session=True, files={"in.txt": "here"}) as s:
        assert s.run("open('in.txt').read()").text == "here"


def test_interrupt_and_contexts(session):
    session.run("n = 1")
    running = session.stream("print('up', flush=True)\nwhile True: pass")
    for event in running:
        if isinstance(event, brig.OutputEvent):
            session.interrupt()
    assert running.result.error["name"] == "KeyboardInterrupt"
    other = session.contexts.create("python")
    assert session.run("'n' in globals()", context=other).text == "False"
    assert session.run("n").text == "1"
    with pytest.raises(brig.UsageError):
        session.interrupt()  # which one?
    session.contexts.remove(other)
    session.restart()
    assert session.run("'n' in globals()").text == "False"
    with pytest.raises(brig.ServiceError) as caught:
        session.run("1", context=other)
    assert caught.value.status == 404
    assert pickle.loads(pickle.dumps(caught.value)).status == 404
    session.pause()
    session.resume()
    session.set_timeout("5m")


def test_a_stream_that_is_left_interrupts(session):
    with session.stream("print('up', flush=True)\nwhile True: pass") as running:
        for event in running:
            if isinstance(event, brig.OutputEvent):
                break

    def free():
        try:
            return session.run("1").ok
        except brig.ServiceError as e:
            assert e.status == 409
            return False

    assert wait_until(free)


def test_threads(session):
    contexts = [session.contexts.create() for _ in range(2)]
    there = "open('{0}', 'w')\nimport os, time\nwhile not os.path.exists('{1}'): time.sleep(0.01)\n'{0}'"
    seen = {}

    def go(i, own, peer):
        seen[i] = session.run(there.format(own, peer), context=contexts[i]).text

    threads = [threading.Thread(target=go, args=a) for a in ((0, "p", "q"), (1, "q", "p"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == {0: "p", 1: "q"}


def test_a_service_that_is_named(tmp_path, monkeypatch):
    with serving(tmp_path) as (address, token):
        monkeypatch.setenv("BRIG_HOST", address)
        monkeypatch.setenv("BRIG_TOKEN", token)
        before = children()
        with brig.Sandbox(session=True, memory="128m", session_timeout=100) as s:
            assert s.run("6 * 7").text == "42" and s.info()["token"] == "ada"
            assert children() == before  # nothing was started
            other = brig.Session(host=address, token=token)
            assert other.run("1").text == "1" and other.id != s.id
            other.close()
        with pytest.raises(brig.ServiceError) as caught:
            brig.Session(token="brig_wrong").run("1")
        assert caught.value.status == 401
        with pytest.raises(brig.UsageError):
            brig.Session(policy="/x").run("1")
    with pytest.raises(brig.TransportError):
        brig.Session().run("1")
    monkeypatch.setenv("BRIG_HOST", "nonsense")
    with pytest.raises(brig.UsageError):
        brig.Session().run("1")


def test_a_service_at_a_usual_place(tmp_path, monkeypatch):
    os.mkdir(tmp_path / "brig")
    path = str(tmp_path / "brig" / "brig.sock")
    monkeypatch.delenv("BRIG_HOST", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    words = ["serve", "--unix", path, "--socket", "none", "--no-auth", "--end-with-stdin"]
    with subprocess.Popen(
        [brig.find_binary(), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as p:
        assert p.stdout.readline().startswith(b"ready")
        before = children()
        with brig.Sandbox(session=True) as s:
            assert s.run("6 * 7").text == "42" and children() == before
        p.stdin.close()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    with brig.Sandbox(session=True) as s:  # nobody listens: one's own
        assert s.run("6 * 7").text == "42" and children() != before


@pytest.fixture
def short_path():
    """A folder in which the address of a socket has room."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield pathlib.Path(path)


def test_a_long_tmpdir(tmp_path, monkeypatch):
    long = tmp_path / ("a" * 100)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", None)
    with brig.Sandbox(session=True) as s:
        assert s.run("6 * 7").text == "42"
    assert os.listdir(long) == []


def test_nothing_is_left(short_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(short_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = children()
    s = brig.Sandbox(session=True)
    s.exec(["sh", "-c", "sleep 100 & echo", word("left")])
    assert children() != before and os.listdir(short_path)
    s.close()
    s.close()
    assert children() == before and os.listdir(short_path) == []
    with pytest.raises(brig.ClosedError):
        s.run("1")


def test_killed(short_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(short_path))
    name = word("killed")
    script = (
        "import brig, time\n"
        "s = brig.Sandbox(session=True)\n"
        f"s.exec(['sh', '-c', 'sleep 1000 > /dev/null 2>&1 & :', '{name}'])\n"
        f"for e in s.stream_exec(['sh', '-c', 'echo up; sleep 1000; :', '{name}']): print(s._own.path, flush=True)\n"
    )
    p = python_script(script)
    path = p.stdout.readline().decode().strip()
    assert os.listdir(short_path) == [os.path.basename(path)] and processes_with(name)
    p.send_signal(signal.SIGKILL)
    p.communicate()
    assert wait_until(lambda: not [pid for pid in processes_with(name) if pid != p.pid])
    assert wait_until(lambda: not processes_with(path))  # the service
    assert os.listdir(short_path) == []


def test_wrong_use():
    for wrong in (
        {"workspace": "."},
        {"packages": ["numpy"]},
        {"backend": "docker"},
    ):
        with pytest.raises(brig.UsageError):
            brig.Sandbox(session=True, **wrong)
    with pytest.raises(brig.UsageError):
        brig.Sandbox(host="http://127.0.0.1:1")


async def free(s):
    """The context that was interrupted runs code again, and knows what it knew."""
    for _ in range(PATIENCE * 50):
        try:
            assert (await s.run("n")).text == "5"
            return
        except brig.ServiceError as e:
            assert e.status == 409
        await asyncio.sleep(0.02)
    raise AssertionError("the context is never free")


def test_asyncio():
    async def main():
        async with brig.AsyncSandbox(session=True) as s:
            assert isinstance(s, brig.AsyncSession)
            await s.run("n = 5")
            assert (await s.run("n + 1")).text == "6"
            await s.files.write("a", "b")
            await s.files.move("a", "c")
            assert await s.files.list() == ["c"]
            assert (await s.exec(["cat", "c"])).stdout == "b"
            other = await s.contexts.create()
            both = await asyncio.gather(s.run("1"), s.run("2", context=other))
            assert [r.text for r in both] == ["1", "2"]
            events = [e.kind async for e in s.stream("print(1)\n2", context=other)]
            assert events == ["started", "stdout", "shown", "result"]
            for began in (False, True):  # cancelled before it is asked for, and while it runs
                code = f"open('up{began}', 'w')\nwhile True: pass"
                running = asyncio.ensure_future(s.run(code))
                await asyncio.sleep(0)
                while began and "upTrue" not in await s.files.list():
                    await asyncio.sleep(0.01)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
                await free(s)

    asyncio.run(main())
