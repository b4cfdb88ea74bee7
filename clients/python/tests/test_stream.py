# SPDX-License-Identifier: Apache-2.0
"""Events while a program runs."""

import gc

import pytest

import brig
from conftest import children, descriptors, processes_with, wait_until, word

FOREVER = "import os, time; os.write(1, b'up\\n'); time.sleep({})"


@pytest.mark.backends
def test_events_in_order(box):
    events = list(box.stream("import sys; print('out'); print('err', file=sys.stderr)"))
    kinds = [e.kind for e in events]
    assert kinds[0] == "started" and kinds[-1] == "result" and kinds.count("result") == 1
    started = events[0]
    assert started.id == events[-1].result.id and started.language == "python"
    for stream in ("stdout", "stderr"):
        told = b"".join(
            e.data for e in events if isinstance(e, brig.OutputEvent) and e.stream == stream
        )
        assert told == getattr(events[-1].result, f"{stream}_bytes")


def test_output_comes_before_the_end(box):
    """The program waits for what is written when its first line was seen."""
    import os

    read, write = os.pipe()
    with os.fdopen(read, "rb") as their_end:
        with box.stream("print('ready', flush=True); print(input())", stdin=their_end) as stream:
            first = next(e for e in stream if isinstance(e, brig.OutputEvent))
            assert first.text.startswith("ready") and stream.result is None
            os.write(write, b"go\n")
            os.close(write)
            assert stream.wait().stdout == "ready\ngo\n"


def test_findings_are_events(box):
    events = list(box.stream("import os; os.system('rm -rf /')"))
    found = [e.finding.rule for e in events if isinstance(e, brig.FindingEvent)]
    assert "sh-delete-tree" in found
    assert not any(isinstance(e, brig.StartedEvent) for e in events)
    assert events[-1].result.verdict == "blocked"


def test_samples_are_events(box):
    code = "import time; time.sleep(0.5)"
    events = list(box.stream(code, settings={"monitoring_interval_ms": 20}, trust="trusted"))
    samples = [e.sample for e in events if isinstance(e, brig.SampleEvent)]
    assert samples and samples[-1].at_ms > 0 and samples[-1].output_bytes == 0


def test_bytes_that_are_no_text(box):
    stream = box.stream("import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)")
    data = b"".join(e.data for e in stream if isinstance(e, brig.OutputEvent))
    assert data == bytes(range(256)) * 1000 == stream.result.stdout_bytes


def test_wait(box):
    stream = box.stream("print(1)")
    assert stream.result is None
    assert stream.wait().stdout == "1\n" and stream.result.ok
    assert stream.wait() is stream.result


@pytest.mark.backends
def test_cancel_gives_a_result(box):
    with box.stream(FOREVER.format(60)) as stream:
        for event in stream:
            if isinstance(event, brig.OutputEvent):
                stream.cancel()
    assert stream.result.verdict == "cancelled" and stream.result.stdout == "up\n"
    with pytest.raises(brig.Cancelled):
        stream.result.raise_for_verdict()


def test_leaving_early_cancels(box):
    before = descriptors(), children()
    with box.stream(FOREVER.format(61), args=[word("leaving-early")]) as stream:
        next(e for e in stream if isinstance(e, brig.OutputEvent))
    assert wait_until(lambda: not processes_with(word("leaving-early")))
    assert stream.result is None and (descriptors(), children()) == before
    with pytest.raises(brig.TransportError):
        stream.wait()


def test_forgetting_cancels(box):
    gc.collect()  # else the one below also frees what earlier tests have left
    before = descriptors(), children()
    stream = box.stream(FOREVER.format(61), args=[word("forgotten-stream")])
    next(e for e in stream if isinstance(e, brig.OutputEvent))
    del stream
    gc.collect()
    assert wait_until(lambda: not processes_with(word("forgotten-stream")))
    assert (descriptors(), children()) == before


def test_stream_that_nobody_reads(box):
    before = descriptors(), children()
    box.stream(FOREVER.format(61), args=[word("unread-stream")])
    gc.collect()
    assert wait_until(lambda: not processes_with(word("unread-stream")))
    assert (descriptors(), children()) == before


def test_closing_the_sandbox_cancels():
    box = brig.Sandbox()
    stream = box.stream(FOREVER.format(61), args=[word("closed-sandbox")])
    next(e for e in stream if isinstance(e, brig.OutputEvent))
    box.close()
    assert not processes_with(word("closed-sandbox"))
    assert list(stream) == []


def test_files_persist_after_a_stream(box):
    box.stream("open('made', 'w').write('1')").wait()
    assert box.files.list() == ["made"]


def test_stream_of_a_command(box):
    stream = box.stream_exec(["echo", "hello"])
    assert "".join(e.text for e in stream if isinstance(e, brig.OutputEvent)) == "hello\n"
    assert stream.result.ok


def test_stream_that_checks(box):
    with pytest.raises(brig.ProgramError):
        list(box.stream("1 / 0", check=True))


def test_much_output_and_a_slow_reader(box):
    stream = box.stream("for n in range(20000): print(n)")
    seen = 0
    for event in stream:
        if isinstance(event, brig.OutputEvent):
            seen += len(event.data)
    assert seen == len(stream.result.stdout_bytes) == sum(len(str(n)) + 1 for n in range(20000))
