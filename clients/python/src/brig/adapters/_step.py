# SPDX-License-Identifier: Apache-2.0
"""State from one cell to the next, for agents whose code builds on what it ran before.

This module runs inside cells, as `brig_step`: BrigExecutor puts it beside the program, whose first line is
`import brig_step; brig_step.begin(globals())`.  What the program leaves in its variables is pickled into a file of the
sandbox when it ends, and loaded in the next cell; imports, functions and classes, which cannot be pickled, are run
again from their sources.  The other side of the wall unpickles and evaluates nothing.
"""

import ast
import atexit
import json
import os
import pickle
import sys
from typing import Any, Dict, NoReturn

FOLDER = ".brig-agent/"
_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_answer: Dict[str, Any] = {"final": False, "value": None}


def begin(space: Dict[str, Any]) -> None:
    """Definitions and variables of before; keep() follows when the program ends, however it does."""
    os.makedirs(FOLDER, exist_ok=True)
    for name, take in (("definitions.py", _run_definitions), ("variables", _load_variables)):
        if os.path.exists(FOLDER + name):
            with open(FOLDER + name, "rb") as f:
                take(f.read(), space)
    space["final_answer"] = final_answer
    atexit.register(_keep, space, space["__file__"])  # which is gone by then


def final_answer(answer: Any = None, **named: Any) -> NoReturn:
    """Ends the program, as the agent's own tool of this name does."""
    _answer.update(final=True, value=next(iter(named.values())) if named else answer)
    sys.exit(0)


def answer(value: Any) -> None:
    """The value of the program's last expression."""
    _answer["value"] = value


def _run_definitions(source: bytes, space: Dict[str, Any]) -> None:
    exec(compile(source, "definitions", "exec"), space)


def _load_variables(data: bytes, space: Dict[str, Any]) -> None:
    for name, value in pickle.loads(data).items():
        space[name] = pickle.loads(value)


def _pickled(space: Dict[str, Any]) -> Dict[str, bytes]:
    kept = {}
    for name, value in space.items():
        try:
            if not name.startswith("_") and value is not final_answer:
                kept[name] = pickle.dumps(value)
        except Exception:  # whatever its own pickling raises: it has no form that lasts
            pass
    return kept


def _keep(space: Dict[str, Any], program: str) -> None:
    with open(program, encoding="utf-8") as f:
        source = f.read()
    with open(FOLDER + "definitions.py", "a", encoding="utf-8") as f:
        for node in ast.parse(source).body[2:]:  # behind our own line
            if isinstance(node, _DEFINITIONS):
                f.write((ast.get_source_segment(source, node) or "") + "\n")
    with open(FOLDER + "variables", "wb") as g:
        pickle.dump(_pickled(space), g)
    try:
        text = json.dumps(_answer)
    except (TypeError, ValueError):
        text = json.dumps({"final": _answer["final"], "value": repr(_answer["value"])})
    with open(FOLDER + "answer.json", "w", encoding="utf-8") as f:
        f.write(text)
