# SPDX-License-Identifier: Apache-2.0
"""Where the brig program is: $BRIG_BIN, else the one that came with this package, else the first on PATH."""

from __future__ import annotations

import os
import shutil
import sys
from typing import List, Optional

from ._errors import BinaryNotFound

_HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.join(_HERE, "_bin", "brig")
_ELF = b"\x7fELF"


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_elf(path: str) -> bool:
    """The command `brig` of this package is a script that looks for the program: it must not find itself."""
    try:
        with open(path, "rb") as f:
            return f.read(len(_ELF)) == _ELF
    except OSError:
        return False


def _on_path() -> Optional[str]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("brig", path=folder) if folder else None
        if found and _is_elf(found):
            return os.path.abspath(found)
    return None


def find_binary() -> str:
    """The absolute path of the brig program; BinaryNotFound, with what to do, if there is none."""
    named = os.environ.get("BRIG_BIN")
    if named:
        if not _is_program(named):
            raise BinaryNotFound(
                f"$BRIG_BIN names {named!r}, which is no executable file; correct it, or unset it"
            )
        return os.path.abspath(named)
    if _is_program(BUNDLED):
        return BUNDLED
    found = _on_path()
    if found:
        return found
    raise BinaryNotFound(
        "the brig program is not there: this package was installed without it, PATH has none, and "
        "$BRIG_BIN is not set; install the wheel for this machine, or build brig and set BRIG_BIN"
    )


def main(argv: Optional[List[str]] = None) -> int:
    """The command `brig` that the wheel installs: becomes the program."""
    words = sys.argv[1:] if argv is None else argv
    try:
        program = find_binary()
    except BinaryNotFound as e:
        print(f"brig: {e}", file=sys.stderr)
        return 121
    env = {name: value for name, value in os.environ.items() if name != "BRIG_BIN"}
    os.execve(program, ["brig", *words], env)
