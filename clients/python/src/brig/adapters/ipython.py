# SPDX-License-Identifier: Apache-2.0
"""The magic %%brig for IPython and notebooks.

    %load_ext brig.adapters.ipython
    %%brig --timeout 5
    print("this runs in a cell")

The files of a notebook's sandbox last from one cell of it to the next; `%brig_reset` begins anew.
"""

from __future__ import annotations

import argparse
import shlex
from typing import Any, Optional

from .._result import Result
from .._sandbox import Sandbox

_sandbox: Optional[Sandbox] = None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="%%brig", exit_on_error=False, add_help=False)
    parser.add_argument("language", nargs="?", default="python")
    parser.add_argument("--timeout")
    parser.add_argument("--memory")
    parser.add_argument("--trust")
    parser.add_argument("--inspect", help="off, report, guard or strict")
    parser.add_argument("--packages", action="append", default=[])
    parser.add_argument("--out", help="a variable that the result is kept in")
    return parser


def run_cell(line: str, cell: str, shell: Any) -> Result:
    """Runs the text of a notebook's cell, and keeps the result in `_brig` and in the variable of --out."""
    global _sandbox
    try:
        args, unknown = _parser().parse_known_args(shlex.split(line))
    except (argparse.ArgumentError, SystemExit) as e:
        raise ValueError(f"%%brig {line}: {e}") from None
    if unknown:
        raise ValueError(f"%%brig does not know {' '.join(unknown)}")
    if _sandbox is None or _sandbox.closed:
        _sandbox = Sandbox()
    settings = {"inspection": args.inspect} if args.inspect else None
    result = _sandbox.run(
        cell,
        args.language,
        timeout=args.timeout,
        memory=args.memory,
        trust=args.trust,
        packages=args.packages or None,
        settings=settings,
    )
    shell.user_ns["_brig"] = result
    if args.out:
        shell.user_ns[args.out] = result
    return result


def reset(_line: str = "") -> None:
    """Forgets the files of the notebook's sandbox."""
    global _sandbox
    if _sandbox is not None:
        _sandbox.close()
    _sandbox = None


def load_ipython_extension(shell: Any) -> None:
    shell.register_magic_function(
        lambda line, cell: run_cell(line, cell, shell), magic_kind="cell", magic_name="brig"
    )
    shell.register_magic_function(reset, magic_kind="line", magic_name="brig_reset")
