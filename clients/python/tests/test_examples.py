# SPDX-License-Identifier: Apache-2.0
"""The examples of the tree do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

EXAMPLES = (
    Path(os.environ.get("EXAMPLES_FOLDER", Path(__file__).resolve().parents[3] / "examples"))
    / "python"
)

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="the examples are in the tree, not in the package"
)


MOVING = EXAMPLES.parent.parent / "docs" / "MOVING.md"


def blocks() -> List[str]:
    if not MOVING.is_file():
        return []
    return re.findall(r"^```python\n(.*?)^```", MOVING.read_text(encoding="utf-8"), re.S | re.M)


@pytest.mark.parametrize("number", range(len(blocks())))
def test_a_block_of_the_page_about_moving(number: int) -> None:
    line = [sys.executable, "-c", blocks()[number]]
    p = subprocess.run(line, capture_output=True, text=True, timeout=300)
    assert p.returncode == 0, p.stderr


def example(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    line: List[str] = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=300)


def test_an_agent_fixes_a_test() -> None:
    p = example("agent.py")
    assert p.returncode == 0, p.stdout + p.stderr
    lines = p.stdout.splitlines()
    assert lines[0].startswith("run_tests: error") and lines[-2] == "run_tests: ok"
    assert "tests pass" in lines[-1]


def test_a_plot(tmp_path: Path) -> None:
    picture = tmp_path / "plot.png"
    p = example("plot.py", str(picture))
    if "matplotlib" in p.stderr and "hint" not in p.stdout and p.returncode == 1:
        pytest.skip("Matplotlib is not installed where cells find it")
    assert p.returncode == 0, p.stdout + p.stderr
    assert "visits more each month" in p.stdout and picture.read_bytes().startswith(b"\x89PNG")


def test_a_class_is_graded() -> None:
    p = example("grade.py")
    marks = dict(line.split(None, 1) for line in p.stdout.splitlines())
    # Where an ordinary user has no limit for the whole cell, that of each process makes the program fail by itself.
    assert marks.pop("dan") in ("memory_limit", "0 of 3")
    assert marks == {
        "ada": "3 of 3",
        "ben": "2 of 3",
        "cleo": "timeout",
        "eve": "blocked",
        "fay": "0 of 3",
    }, p.stderr


def test_the_notebook_runs() -> None:
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    values = []
    try:
        for cell in cells:
            if cell["cell_type"] == "code":
                done = shell.run_cell("".join(cell["source"]))
                done.raise_error()
                values.append(done.result)
    finally:
        shell.run_line_magic("brig_reset", "")
        InteractiveShell.clear_instance()
    assert values[1].stdout == "4950\n" and values[2].stdout == "3\n2\n1\n"
    assert values[3][:2] == ("ok", "3\n2\n1\n") and values[3][2] > 0
    assert values[5][0] == "blocked" and values[5][1]
    assert "from the API" in repr(values[6]) or values[6].stdout == "from the API\n"
