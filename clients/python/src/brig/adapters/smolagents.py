# SPDX-License-Identifier: Apache-2.0
"""An executor for smolagents' CodeAgent.

    from brig.adapters.smolagents import BrigExecutor
    agent = CodeAgent(tools=[...], model=model, executor=BrigExecutor(brig.Sandbox()))

Each piece of code has a cell of its own, and is inspected like any other program.  Its variables last: _step.py says
how.  The last expression, or the argument of final_answer(), comes back as JSON, or as its repr() where it has no such
form.
"""

from __future__ import annotations

import ast
import json
import os
from typing import Any, Dict, Optional

from smolagents.local_python_executor import CodeOutput, PythonExecutor

from .._errors import BrigError
from .._result import Result
from .._sandbox import Sandbox

_BEGIN = "import brig_step; brig_step.begin(globals())\n"
_ANSWER = ".brig-agent/answer.json"


class CodeFailed(BrigError):
    """The code did not run to its end; the text is for the model."""


def with_answer(code: str) -> str:
    """The code with its last expression handed to brig_step; as it is if it has none, or is no Python."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code
    if not body or not isinstance(body[-1], ast.Expr):
        return code
    last = body[-1]
    lines = code.splitlines(keepends=True)
    before = "".join(lines[: last.lineno - 1])
    head = lines[last.lineno - 1].encode("utf-8")[: last.col_offset].decode("utf-8")
    text = ast.get_source_segment(code, last)
    return f"{before}{head}brig_step.answer({text}\n)\n" if text is not None else code


class BrigExecutor(PythonExecutor):  # type: ignore[misc]  # an optional package
    """Runs the code of a CodeAgent in cells of one sandbox."""

    def __init__(self, sandbox: Optional[Sandbox] = None) -> None:
        self.sandbox = sandbox if sandbox is not None else Sandbox()
        with open(os.path.join(os.path.dirname(__file__), "_step.py"), "rb") as f:
            self.sandbox.files.write("brig_step.py", f.read())

    def send_variables(self, variables: Dict[str, Any]) -> None:
        """Variables travel as JSON: nothing is pickled on this side."""
        if variables:
            lines = [f"{name} = json.loads({json.dumps(v)!r})" for name, v in variables.items()]
            self._step("import json\n" + "\n".join(lines) + "\n")

    def send_tools(self, tools: Dict[str, Any]) -> None:
        """Tools travel as their sources; final_answer is the cell's own."""
        from smolagents.tools import get_tools_definition_code

        others = {name: tool for name, tool in tools.items() if name != "final_answer"}
        if others:
            self._step(get_tools_definition_code(others))

    def __call__(self, code_action: str) -> CodeOutput:
        r = self._step(with_answer(code_action))
        answer = json.loads(self.sandbox.files.read(_ANSWER))
        return CodeOutput(output=answer["value"], logs=r.stdout, is_final_answer=answer["final"])

    def _step(self, code: str) -> Result:
        r = self.sandbox.run(_BEGIN + code, "python")
        if not r.ok:
            what = f"{r.verdict}: {r.reason}" if r.verdict != "error" else ""
            raise CodeFailed(f"{r.stdout}{r.stderr}{what}\n{r.remedy}".strip())
        return r

    def cleanup(self) -> None:
        self.sandbox.close()
