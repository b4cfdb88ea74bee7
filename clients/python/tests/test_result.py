# SPDX-License-Identifier: Apache-2.0
"""Results as objects: members, errors, what people see."""

import base64
import copy
import json
import pickle

import pytest

import brig
from brig._errors import VERDICT_ERRORS, error_of
from brig._result import Files, Result
from brig._archive import Entry, pack

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 8
BASE = {
    "id": "a" * 16, "verdict": "ok", "reason": "", "hint": None, "exit_code": 0, "signal": None, "step": "run",
    "language": "python", "backend": "native", "trust": "unknown", "stdout": "", "stderr": "",
    "stdout_encoding": "utf-8", "stderr_encoding": "utf-8", "stdout_truncated": False, "stderr_truncated": False,
    "usage": {"wall_ms": 5, "cpu_ms": 4, "memory_peak_bytes": 1 << 20, "pids_peak": 1, "output_bytes": 0},
}  # fmt: skip
FINDING = {"rule": "r", "severity": "CRITICAL", "line": 3, "column": 1, "end_line": 3, "end_column": 2, "name": "n",
           "message": "m <b>", "remedy": "do not"}  # fmt: skip


def result_of(files=None, **members):
    if files:
        members["artifacts"] = [
            {"path": p, "size": len(e.data), "sha256": "0" * 64} for p, e in files.items()
        ]
    return Result({**BASE, **members}, Files(pack(files or {})))


@pytest.mark.parametrize("verdict", sorted(VERDICT_ERRORS))
def test_each_verdict_has_an_error(verdict):
    error = error_of(result_of(verdict=verdict, reason="because"))
    assert type(error) is VERDICT_ERRORS[verdict] and isinstance(error, brig.VerdictError)
    assert str(error) == f"{verdict}: because" and error.verdict == verdict


def test_verdict_of_a_newer_brig():
    error = error_of(result_of(verdict="quarantined"))
    assert type(error) is brig.VerdictError and str(error) == "quarantined"


def test_errors_have_one_base():
    for name in brig.__all__:
        thing = getattr(brig, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            assert issubclass(thing, brig.BrigError), name


def test_limits_have_a_base():
    for error in (
        brig.TimeLimit,
        brig.MemoryLimit,
        brig.OutputLimit,
        brig.DiskLimit,
        brig.ProcessLimit,
    ):
        assert issubclass(error, brig.LimitReached)


def test_error_names_all_that_blocks():
    second = {**FINDING, "line": 9, "message": "other", "remedy": "do not"}
    error = error_of(
        result_of(verdict="blocked", reason="r at line 3: m", findings=[FINDING, second])
    )
    assert "also line 9: other [r]" in str(error) and str(error).count("do not") == 1
    assert error.remedy == "do not" and len(error.findings) == 2


def test_error_has_fixes_of_what_was_denied():
    denied = [{"kind": "host", "what": "x", "count": 1, "why": "w", "fix": "add x to whitelist"},
              {"kind": "syscall", "what": "y", "count": 1, "why": "w", "fix": None}]  # fmt: skip
    error = error_of(result_of(verdict="error", denied=denied))
    assert error.remedy == "add x to whitelist" and error.denied[1].fix is None


def test_errors_can_be_pickled():
    error = error_of(result_of(verdict="timeout", reason="late"))
    again = pickle.loads(pickle.dumps(error))
    assert (
        type(again) is brig.TimeLimit and str(again) == str(error) and again.result.reason == "late"
    )


def test_results_can_be_copied_and_pickled():
    result = result_of({"a": Entry(b"1")}, stdout="x")
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again.stdout == "x" and again.artifacts[0].data == b"1"


def test_raw_is_all_of_it():
    result = result_of(something_new=[1])
    assert result.raw["something_new"] == [1] and json.loads(json.dumps(result.to_dict())) == dict(
        result.raw
    )


def test_repr_says_what_matters():
    text = repr(result_of(verdict="error", exit_code=3, reason="exit code 3", stderr="x" * 500))
    assert text.startswith("<brig.Result error exit_code=3") and len(text) < 300
    assert (
        repr(result_of({"a.png": Entry(PNG)}, stdout="42\n"))
        == "<brig.Result ok stdout='42\\n' artifacts=['a.png'] wall=5ms>"
    )


def test_repr_of_a_signal():
    assert "signal=SIGKILL" in repr(result_of(verdict="timeout", exit_code=None, signal="SIGKILL"))


def test_base64_output():
    result = result_of(stdout=base64.b64encode(b"\xff\x00").decode(), stdout_encoding="base64")
    assert result.stdout_bytes == b"\xff\x00" and result.stdout == "\ufffd\x00"


def test_truncated():
    assert result_of(stderr_truncated=True).truncated and not result_of().truncated


def test_security_violations_are_those_that_count():
    rows = [{**FINDING, "severity": s} for s in ("CRITICAL", "HIGH", "MEDIUM", "LOW")]
    result = result_of(findings=rows)
    assert [f.severity for f in result.security_violations] == ["CRITICAL", "HIGH"] and len(
        result.findings
    ) == 4
    assert str(result.findings[0]) == "3:1: CRITICAL: m <b> [r]"


def test_html_is_escaped():
    """Output, names and messages are the program's: none of them becomes part of the page."""
    files = {"<script>.txt": Entry(b"x"), '"><script>.png': Entry(PNG)}
    result = result_of(files, stdout="<script>alert(1)</script>", reason="<i>", findings=[FINDING])
    page = result._repr_html_()
    assert (
        "<script" not in page and "<i>" not in page and "<b>]" not in page and "m <b>" not in page
    )
    assert "&lt;script&gt;alert(1)" in page and "data:image/png;base64," in page


def test_html_is_bounded():
    assert len(result_of(stdout="x" * 1_000_000)._repr_html_()) < 10_000


def test_active_pictures_are_not_shown():
    svg = Entry(b"<svg><script>alert(1)</script></svg>")
    result = result_of({"a.svg": svg, "fake.png": Entry(b"<html>")})
    assert (
        result.images == [] and result._repr_png_() is None and "<svg" not in result._repr_html_()
    )
    assert all(a._repr_png_() is None and a._repr_jpeg_() is None for a in result.artifacts)


def test_pictures():
    result = result_of(
        {"a.png": Entry(PNG), "b.jpg": Entry(b"\xff\xd8\xff\xe0"), "c.txt": Entry(b"")}
    )
    assert [a.path for a in result.images] == ["a.png", "b.jpg"]
    assert result.artifact("a.png")._repr_png_() == PNG == result._repr_png_()
    assert result.artifact("b.jpg")._repr_jpeg_() == b"\xff\xd8\xff\xe0"
    assert result_of({"a.png": Entry(PNG), "b.png": Entry(PNG)})._repr_png_() is None


def test_artifact_whose_bytes_did_not_come():
    result = result_of(artifacts=[{"path": "big", "size": 1 << 40, "sha256": ""}])
    with pytest.raises(brig.UsageError, match="not fetched"):
        result.artifacts[0].data


def test_documents_with_little_in_them():
    result = Result({"id": "", "verdict": "refused"})
    assert (result.findings, result.evidence, result.artifacts, result.changes, result.network) == (
        [],
        [],
        [],
        [],
        [],
    )
    assert result.usage.wall_ms == 0 and result.tests is None and result.exit_code is None
    assert "refused" in repr(result) and result._repr_html_()


def test_members_of_rows():
    rows = {
        "evidence": [
            {"check": "c", "declared": "d", "enforced": "e", "kept": False, "source": "s"}
        ],
        "network": [
            {
                "host": "h",
                "port": 443,
                "allowed": True,
                "reason": "",
                "count": 2,
                "sent_bytes": 3,
                "received_bytes": 4,
            }
        ],
        "degraded": [{"protection": "p", "lost": "l", "fix": "f"}],
        "samples": [{"at_ms": 1, "cpu_ms": 2, "memory_bytes": 3, "pids": 4, "output_bytes": 5}],
        "changes": [
            {
                "path": "YQ==",
                "path_encoding": "base64",
                "change": "added",
                "type": "file",
                "size": 1,
                "mode": 420,
            }
        ],
    }
    result = result_of(**rows)
    assert (
        result.evidence[0].kept is False
        and result.network[0].port == 443
        and result.degraded[0].fix == "f"
    )
    assert result.samples[0].pids == 4 and str(result.changes[0]) == "added a"
