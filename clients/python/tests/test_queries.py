# SPDX-License-Identifier: Apache-2.0
"""Questions that run nothing."""

import logging
import os
import subprocess
import sys

import pytest

import brig
from conftest import PATIENCE


def test_doctor():
    report = brig.doctor()
    assert isinstance(report["ok"], bool)
    assert {"area", "name", "status", "fix"} <= set(report["rows"][0])


def test_policy():
    shown = brig.policy(trust="untrusted")
    assert shown["trust"] == "untrusted"
    assert "mem_limit" in {row["key"] for row in shown["settings"]}


def test_policy_of_a_mapping():
    rows = {
        row["key"]: row
        for row in brig.policy(policy={"resources": {"mem_limit": "99m"}})["settings"]
    }
    assert rows["mem_limit"]["value"] == 99 << 20 and rows["mem_limit"]["layer"] == "file"


def test_policy_of_a_preset():
    assert brig.policy(preset="strict")["preset"] == "strict"


def test_history_and_show(box):
    result = box.run("print('for the history')")
    newest = brig.history(limit=1)[0]
    assert newest["id"] == result.id and newest["verdict"] == "ok"
    assert brig.show(result.id)["id"] == result.id == brig.show()["id"]


def test_history_filters(box):
    blocked = box.run("import os; os.system('rm -rf /')")
    box.run("pass")
    assert (
        brig.history(limit=1, verdict="blocked", language="python", since="1h")[0]["id"]
        == blocked.id
    )
    assert brig.history(verdict="cancelled", trust="trusted", until="2001-01-01") == []


def test_history_of_another_folder(tmp_path):
    state = tmp_path / "state"
    with brig.Sandbox(state=state, timeout=PATIENCE) as box:
        result = box.run("pass")
    assert [row["id"] for row in brig.history(state=state)] == [result.id]


def test_metrics(box):
    before = brig.metrics().get("executions", 0)
    box.run("pass")
    assert brig.metrics()["executions"] == before + 1


def test_languages():
    assert "python" in str(brig.languages())


def test_unknown_run():
    with pytest.raises(brig.CommandError) as caught:
        brig.show("zzzzzzzzzzzzzzzz")
    assert caught.value.status == 2 and not str(caught.value).startswith("brig:")


def test_wrong_use():
    with pytest.raises(brig.CommandError):
        brig.history(verdict="no-such-verdict")


def test_receipt_that_is_none():
    with pytest.raises(brig.BrigError):
        brig.verify_receipt({"hello": 1}, key="zz")


def test_logging(box, caplog):
    caplog.set_level(logging.DEBUG, "brig")
    result = box.run("pass # not-in-the-log")
    assert any(result.id in record.getMessage() for record in caplog.records)
    assert "not-in-the-log" not in caplog.text


def test_import_is_light():
    """asyncio and tarfile are loaded when they are needed."""
    code = "import brig, sys; print([m for m in ('asyncio', 'tarfile', 'threading') if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(brig.__file__))}
    done = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, check=True)
    assert b"asyncio" not in done.stdout and b"tarfile" not in done.stdout


def test_everything_public_is_there():
    for name in brig.__all__:
        assert getattr(brig, name) is not None
    with pytest.raises(AttributeError):
        brig.no_such_thing
    assert os.path.exists(os.path.join(os.path.dirname(brig.__file__), "py.typed"))
