# SPDX-License-Identifier: Apache-2.0
"""The same in asyncio; cancelling is real."""

import asyncio
import threading

import pytest

import brig
from conftest import (
    PATIENCE,
    asleep,
    children,
    descriptors,
    processes_with,
    seconds,
    wait_until,
    word,
)

FOREVER = "import os, time; os.write(1, b'up\\n'); time.sleep(61)"


def in_loop(work):
    """Runs it in a loop of its own, and sees that nothing is left when that is closed."""

    async def all_of_it():
        async with brig.AsyncSandbox(timeout=PATIENCE) as box:
            return await work(box)

    before = descriptors(), children()
    outcome = asyncio.run(all_of_it())
    assert (descriptors(), children()) == before
    return outcome


async def up(text):
    """sleep(1) with that argument runs."""
    for _ in range(PATIENCE * 50):
        if asleep(text):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{text} never ran")


@pytest.mark.backends
def test_run():
    result = in_loop(lambda box: box.run("print(6 * 7)"))
    assert result.ok and result.stdout == "42\n"


def test_everything_else():
    async def work(box):
        await box.files.write("in.txt", "1")
        result = await box.run("print(open('in.txt').read()); open('out.txt', 'w').write('2')")
        assert result.stdout == "1\n" and await box.files.read("out.txt") == b"2"
        assert await box.files.read_text("out.txt") == "2" and await box.files.list() == [
            "in.txt",
            "out.txt",
        ]
        assert (await box.exec("cat", stdin="x")).stdout == "x"
        assert (await box.check("import os; os.system('rm -rf /')")).blocked
        with pytest.raises(brig.ProgramError):
            await box.run("1 / 0", check=True)
        await box.files.remove("in.txt")
        assert box.changes() == []

    in_loop(work)


def test_project(project):
    async def work():
        async with brig.AsyncSandbox(workspace=project, timeout=PATIENCE) as box:
            await box.run("open('new', 'w').write('1')")
            assert "new" in await box.diff()
            await box.apply()
            await box.run("open('more', 'w').write('1')")
            await box.discard()

    asyncio.run(work())
    assert (project / "new").read_text() == "1" and not (project / "more").exists()


def test_tests():
    async def work(box):
        code = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
        await box.files.write("test_it.py", code)
        return await box.test(framework="unittest")

    assert in_loop(work).tests.passed == 1


def test_upload_and_download(tmp_path):
    async def work(box):
        (tmp_path / "a").write_text("1")
        await box.files.upload(tmp_path / "a")
        return await box.files.download("a", tmp_path / "b")

    assert in_loop(work) == [str(tmp_path / "b")]


def test_fifty_at_once():
    async def work(box):
        return await asyncio.gather(*(box.run(f"print({n})", artifacts=[]) for n in range(50)))

    results = in_loop(work)
    assert [r.stdout for r in results] == [f"{n}\n" for n in range(50)]


@pytest.mark.backends
def test_cancelling_a_task_ends_the_program():
    async def work(box):
        task = asyncio.ensure_future(box.exec(["sleep", seconds("0011")]))
        await up(seconds("0011"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return processes_with(seconds("0011"))

    assert in_loop(work) == []


def test_wait_for_cancels():
    async def work(box):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(box.exec(["sleep", seconds("0012")]), 1)
        return processes_with(seconds("0012"))

    assert in_loop(work) == []


def test_cancelling_twice():
    """The second cancellation does not wait, and the end goes on by itself."""

    async def work(box):
        task = asyncio.ensure_future(box.exec(["sleep", seconds("0013")]))
        await up(seconds("0013"))
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(PATIENCE * 50):
            if not processes_with(seconds("0013")) and not children():
                return
            await asyncio.sleep(0.02)
        raise AssertionError("it goes on")

    in_loop(work)


def test_cancelling_many_at_once():
    async def work(box):
        tasks = [asyncio.ensure_future(box.exec(["sleep", seconds("0014")])) for _ in range(8)]
        await up(seconds("0014"))
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(e, asyncio.CancelledError) for e in ended)
        return processes_with(seconds("0014"))

    assert in_loop(work) == []


def test_brig_that_does_not_listen_is_killed(fake_brig, monkeypatch):
    from brig import _process_async

    monkeypatch.setattr(_process_async, "GRACE", 0.3)
    transport = fake_brig(f"trap '' TERM\nexec sleep {seconds('0015')}\n")

    async def work():
        box = brig.AsyncSandbox(transport=transport)
        task = asyncio.ensure_future(box.run("pass"))
        await up(seconds("0015"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert processes_with(seconds("0015")) == [] and children() == []


@pytest.mark.backends
def test_stream():
    async def work(box):
        return [event async for event in box.stream("print(1)")]

    events = in_loop(work)
    assert events[0].kind == "started" and events[-1].result.stdout == "1\n"


def test_stream_is_left_early():
    async def work(box):
        async with box.stream(FOREVER, args=[word("async-left")]) as stream:
            async for event in stream:
                if isinstance(event, brig.OutputEvent):
                    break
        return processes_with(word("async-left"))

    assert in_loop(work) == []


def test_stream_is_cancelled():
    async def work(box):
        stream = box.stream(FOREVER)
        async for event in stream:
            if isinstance(event, brig.OutputEvent):
                stream.cancel()
        return stream.result

    assert in_loop(work).verdict == "cancelled"


def test_stream_with_a_slow_reader():
    """More lines than are read ahead."""

    async def work(box):
        stream = box.stream("import os\nfor n in range(3000): os.write(1, b'%d\\n' % n)")
        seen = []
        async for event in stream:
            if isinstance(event, brig.OutputEvent):
                seen.append(event.data)
                if len(seen) % 100 == 0:
                    await asyncio.sleep(0.001)
        return b"".join(seen), stream.result

    told, result = in_loop(work)
    assert told == result.stdout_bytes == b"".join(b"%d\n" % n for n in range(3000))


def test_stream_of_a_command_and_wait():
    assert in_loop(lambda box: box.stream_exec("echo hi").wait()).stdout == "hi\n"


def test_closing_the_sandbox_cancels_streams():
    async def work():
        box = brig.AsyncSandbox()
        stream = box.stream(FOREVER, args=[word("async-closed")])
        async for event in stream:
            if isinstance(event, brig.OutputEvent):
                break
        await box.close()
        assert not processes_with(word("async-closed"))
        with pytest.raises(brig.ClosedError):
            await box.run("pass")

    asyncio.run(work())


def test_loop_in_another_thread():
    seen = []
    thread = threading.Thread(
        target=lambda: seen.append(in_loop(lambda box: box.run("print(1)")).stdout)
    )
    thread.start()
    thread.join()
    assert seen == ["1\n"]


def test_loop_that_ends_early():
    """A loop that is closed with a run under way cancels that run."""

    async def work():
        asyncio.ensure_future(brig.AsyncSandbox().exec(["sleep", seconds("0016")]))
        await up(seconds("0016"))

    asyncio.run(work())
    assert wait_until(lambda: not processes_with(seconds("0016")))
