# SPDX-License-Identifier: Apache-2.0
"""The suite of the package, against a real brig.

BRIG_BIN names the program (else the one of the installed wheel), BRIG_BACKEND what makes the cells.  Cases that are
marked `backends` are those that depend on it.  Records go to a state folder of the session's own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

import brig

# Limits that are not a case's subject are generous: the machine may be busy.
PATIENT = {"BRIG_STARTUP_TIMEOUT_MS": "120000", "BRIG_CLEANUP_TIMEOUT_MS": "60000"}
PATIENCE = 60


def pytest_configure(config):
    config.addinivalue_line("markers", "backends: runs again in containers")
    state = tempfile.mkdtemp(prefix="suite-state-")
    os.environ["BRIG_STATE"] = state
    os.environ.update(PATIENT)
    config._brig_state = state


def pytest_unconfigure(config):
    shutil.rmtree(config._brig_state, ignore_errors=True)


@pytest.fixture
def box():
    with brig.Sandbox(timeout=PATIENCE) as sandbox:
        yield sandbox


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "note.txt").write_text("a draft\n")
    return folder


@pytest.fixture
def native():
    if os.environ.get("BRIG_BACKEND", "auto") not in ("auto", "native"):
        pytest.skip("about native cells")


@pytest.fixture
def fake_brig(tmp_path):
    """Makes a program that stands for brig: what a broken one does cannot be had from a real one."""

    def make(body, name="fake-brig"):
        path = tmp_path / name
        path.write_text("#!/bin/sh\n" + body)
        path.chmod(0o755)
        return brig.ProcessTransport(str(path))

    return make


def wait_until(condition, seconds=PATIENCE):
    """Waits for an event; gives up long after it must have happened."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def word(name):
    """Something to recognise processes of this run of the suite by; others may run at the same time."""
    return f"{name}-{os.getpid()}"


def seconds(number):
    """A minute that sleep(1) understands, and nobody else's."""
    return f"61.{os.getpid():08d}{number}"


def asleep(text):
    """Pids of sleep(1) with that argument: the program of a cell, not the brig that was asked for it."""
    return [pid for pid in processes_with(text) if b"sleep" in _words(pid)[0]]


def _words(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().split(b"\0")
    except OSError:
        return [b""]


def processes_with(text):
    """Pids of programs that have the text among their arguments; keeper and janitor, which brig forks, are none."""
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    found = [pid for pid in pids if pid != os.getpid() and text.encode() in _words(pid)]
    return [pid for pid in found if not _name(pid).startswith("brig-")]


def _name(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def descriptors():
    return sorted(os.listdir("/proc/self/fd"))


def children():
    """Pids of this process' children, zombies included."""
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            out.append(int(pid))
    return out


def python_script(text, **kw):
    """A Python of its own that has this package."""
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(brig.__file__))}
    return subprocess.Popen([sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, **kw)
