# SPDX-License-Identifier: Apache-2.0
"""The blocks of the README are run, each as a program of its own in one folder."""

import os
import re
import subprocess
import sys

import pytest

import brig
from conftest import PATIENCE

README = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "README.md")
with open(README, encoding="utf-8") as f:
    BLOCKS = re.findall(r"^```python\n(.*?)^```", f.read(), re.S | re.M)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def has_matplotlib():
    with brig.Sandbox(timeout=PATIENCE) as box:
        return box.run(
            "import importlib.util as u, sys; sys.exit(u.find_spec('matplotlib') is None)"
        ).ok


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_block(number, tmp_path, has_matplotlib):
    code = BLOCKS[number]
    if "matplotlib" in code and not has_matplotlib:
        pytest.skip("needs Matplotlib on the host (package python3-matplotlib)")
    env = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(brig.__file__))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert done.returncode == 0, done.stderr.decode()
    if "matplotlib" in code:
        assert (tmp_path / "plot.png").read_bytes().startswith(PNG)


def test_five_lines_to_a_plot():
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert "matplotlib" in BLOCKS[0] and len(lines) <= 5
