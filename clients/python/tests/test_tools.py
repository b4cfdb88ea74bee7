# SPDX-License-Identifier: Apache-2.0
"""Tools for models, and adapters.

Where a package can be had (IPython) it is the real one; where not, a stand-in has the classes of the package's own
protocol, with its signatures, so that what is shown is how the adapter uses them.
"""

from __future__ import annotations

import abc
import asyncio
import dataclasses
import json
import sys
import types
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import pytest

import brig
from brig import tools


@pytest.fixture
def box() -> Iterator[brig.Sandbox]:
    with brig.Sandbox(timeout=60) as sandbox:
        yield sandbox


# ---- schemas ----


@pytest.mark.parametrize("style", ["openai", "openai-responses", "anthropic"])
def test_schemas_have_the_form_of_their_api(style: str) -> None:
    rows = tools.schema(style)
    assert json.loads(json.dumps(rows)) == rows
    for row in rows:
        inner = row["function"] if style == "openai" else row
        assert row.get("type") == ("function" if style != "anthropic" else None)
        assert inner["name"] in tools.NAMES and inner["description"]
        arguments = inner["input_schema" if style == "anthropic" else "parameters"]
        assert arguments["type"] == "object" and set(arguments["required"]) <= set(
            arguments["properties"]
        )


def test_schemas_of_some_tools_only() -> None:
    rows = tools.schema("anthropic", ["run_code"])
    assert [r["name"] for r in rows] == ["run_code"]
    with pytest.raises(ValueError, match="style"):
        tools.schema("other")


def test_schemas_are_json_schemas() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    for row in tools.schema("anthropic"):
        jsonschema.Draft202012Validator.check_schema(row["input_schema"])


# ---- calls ----


def test_a_tool_is_called(box: brig.Sandbox) -> None:
    assert tools.dispatch("run_code", {"code": "print(6 * 7)"}, box) == "ok\nstdout:\n42\n"
    assert (
        tools.dispatch("run_code", '{"code": "console.log(1)", "language": "javascript"}', box)
        == "ok\nstdout:\n1\n"
    )


def test_files_last_between_calls(box: brig.Sandbox) -> None:
    assert "written" in tools.dispatch("write_file", {"path": "a/b.txt", "content": "hi"}, box)
    told = tools.dispatch("run_command", {"command": "cp a/b.txt c.txt; cat c.txt"}, box)
    assert "hi" in told and "c.txt (2 bytes)" in told
    assert tools.dispatch("read_file", {"path": "c.txt"}, box) == "hi"
    assert tools.dispatch("list_files", {}, box).split() == ["a/b.txt", "c.txt"]
    assert tools.dispatch("list_files", {"folder": "a"}, box) == "a/b.txt"


def test_tests_are_counted(box: brig.Sandbox) -> None:
    box.files.write(
        "test_x.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 2)\n",
    )
    told = tools.call("run_tests", {}, box)
    assert not told.ok and "0 passed, 1 failed" in told.text and "test_a" in told.text


def test_what_is_blocked_says_what_to_do(box: brig.Sandbox) -> None:
    told = tools.call("run_code", {"code": "import os\nos.system('rm -rf /')"}, box)
    assert not told.ok and told.text.startswith("blocked") and "what helps" in told.text
    assert told.result is not None and told.result.verdict == "blocked"
    assert tools.dispatch(
        "check_code", {"code": "import os\nos.system('rm -rf /')"}, box
    ).startswith("would be blocked")
    assert tools.dispatch("check_code", {"code": "print(1)"}, box) == "would run"


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("rm", {}, "no tool 'rm'"),
        ("run_code", {}, "'code' is missing"),
        ("run_code", {"code": 5}, "'code' must be a string"),
        ("run_code", {"code": "1", "more": "2"}, "'more' is not known"),
        ("run_code", "{nonsense", "no JSON"),
        ("run_code", "[1]", "must be an object"),
        ("read_file", {"path": "none.txt"}, "no such file"),
        ("read_file", {"path": "../../etc/passwd"}, "error:"),
        ("write_file", {"path": "/etc/passwd", "content": ""}, "error:"),
    ],
)
def test_mistakes_of_a_model_are_answers(
    box: brig.Sandbox, name: str, arguments: Any, words: str
) -> None:
    told = tools.call(name, arguments, box)
    assert not told.ok and words in told.text


def test_long_output_is_shortened(box: brig.Sandbox) -> None:
    told = tools.dispatch("run_code", {"code": "print('a' * 100000 + 'END')"}, box, max_chars=1000)
    assert len(told) < 1300 and "left out" in told and told.rstrip().endswith("END")


def test_answers_to_both_kinds_of_calls(box: brig.Sandbox) -> None:
    function = types.SimpleNamespace(name="run_code", arguments='{"code": "print(1)"}')
    as_object = types.SimpleNamespace(id="c1", function=function)
    as_dict = {"id": "c1", "function": {"name": "run_code", "arguments": '{"code": "print(1)"}'}}
    for one in (as_object, as_dict):
        assert tools.answer_openai(one, box) == {
            "role": "tool",
            "tool_call_id": "c1",
            "content": "ok\nstdout:\n1\n",
        }
    block = {"type": "tool_use", "id": "t1", "name": "run_code", "input": {"code": "1 / 0"}}
    answer = tools.answer_anthropic(block, box)
    assert answer["tool_use_id"] == "t1" and answer["is_error"] is True
    assert "ZeroDivisionError" in answer["content"]


# ---- LangChain ----


def stand_in(monkeypatch: pytest.MonkeyPatch, modules: Dict[str, Dict[str, Any]]) -> None:
    for name, members in modules.items():
        made = types.ModuleType(name)
        made.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, made)


def test_langchain_tools(box: brig.Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class StructuredTool:
        name: str
        description: str
        args_schema: Dict[str, Any]
        func: Any
        coroutine: Any

    stand_in(
        monkeypatch,
        {"langchain_core": {}, "langchain_core.tools": {"StructuredTool": StructuredTool}},
    )
    from brig.adapters.langchain import brig_tools

    made = {t.name: t for t in brig_tools(box)}
    assert list(made) == list(tools.NAMES)
    assert made["run_code"].args_schema["required"] == ["code"]
    assert made["run_code"].func(code="print(1)") == "ok\nstdout:\n1\n"
    assert asyncio.run(made["run_code"].coroutine(code="print(2)")) == "ok\nstdout:\n2\n"


# ---- deepagents ----


def test_deepagents_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class ExecuteResponse:
        output: str
        exit_code: Optional[int] = None
        truncated: bool = False

    @dataclasses.dataclass
    class FileDownloadResponse:
        path: str
        content: Optional[bytes] = None
        error: Optional[str] = None

    @dataclasses.dataclass
    class FileUploadResponse:
        path: str
        error: Optional[str] = None

    class BaseSandbox(abc.ABC):
        @property
        @abc.abstractmethod
        def id(self) -> str:
            ...

        @abc.abstractmethod
        def execute(self, command: str, *, timeout: Optional[int] = None) -> ExecuteResponse:
            ...

        @abc.abstractmethod
        def upload_files(self, files: Any) -> List[FileUploadResponse]:
            ...

        @abc.abstractmethod
        def download_files(self, paths: List[str]) -> List[FileDownloadResponse]:
            ...

    protocol = {
        "ExecuteResponse": ExecuteResponse,
        "FileDownloadResponse": FileDownloadResponse,
        "FileUploadResponse": FileUploadResponse,
    }
    stand_in(
        monkeypatch,
        {
            "deepagents": {},
            "deepagents.backends": {},
            "deepagents.backends.protocol": protocol,
            "deepagents.backends.sandbox": {"BaseSandbox": BaseSandbox},
        },
    )
    monkeypatch.delitem(sys.modules, "brig.adapters.deepagents", raising=False)
    from brig.adapters.deepagents import BrigBackend

    backend = BrigBackend()
    assert backend.id.startswith("brig-") and backend.id != BrigBackend().id
    assert backend.upload_files([("/workspace/in.txt", b"data"), ("/etc/x", b"")])[0].error is None
    assert backend.upload_files([("/etc/x", b"")])[0].error
    done = backend.execute("cat in.txt; exit 3")
    assert (done.output, done.exit_code, done.truncated) == ("data", 3, False)
    assert backend.execute("rm -rf /").exit_code == 126
    assert "blocked" in backend.execute("rm -rf /").output
    there, missing = backend.download_files(["in.txt", "none"])
    assert there.content == b"data" and missing.error == "file_not_found"


# ---- smolagents ----


@pytest.fixture
def smolagents(monkeypatch: pytest.MonkeyPatch) -> Any:
    @dataclasses.dataclass
    class CodeOutput:
        output: Any
        logs: str
        is_final_answer: bool

    class PythonExecutor(abc.ABC):
        @abc.abstractmethod
        def send_tools(self, tools: Any) -> None:
            ...

        @abc.abstractmethod
        def send_variables(self, variables: Any) -> None:
            ...

        @abc.abstractmethod
        def __call__(self, code_action: str) -> CodeOutput:
            ...

    def get_tools_definition_code(tools: Dict[str, Any]) -> str:
        return "\n\n".join(tools.values())

    stand_in(
        monkeypatch,
        {
            "smolagents": {},
            "smolagents.local_python_executor": {
                "CodeOutput": CodeOutput,
                "PythonExecutor": PythonExecutor,
            },
            "smolagents.tools": {"get_tools_definition_code": get_tools_definition_code},
        },
    )
    monkeypatch.delitem(sys.modules, "brig.adapters.smolagents", raising=False)
    import brig.adapters.smolagents as adapter

    return adapter


def test_smolagents_state_lasts(smolagents: Any) -> None:
    run = smolagents.BrigExecutor()
    run.send_variables({"rows": [1, 2, 3], "text": "ü'\"\n"})
    run.send_tools({"double": "def double(x):\n    return 2 * x\n", "final_answer": "no source"})
    first = run(
        "import math\n\nclass P:\n    def __init__(self, n):\n        self.n = n\n\np = P(sum(rows))\nprint('log')\np.n"
    )
    assert (first.output, first.logs, first.is_final_answer) == (6, "log\n", False)
    second = run("total = double(p.n) + math.floor(1.5)\n(total,\n text)")
    assert second.output == [13, "ü'\"\n"]
    last = run("final_answer(total)\nprint('never')")
    assert (last.output, last.logs, last.is_final_answer) == (13, "", True)
    assert run("final_answer(answer={'a': 1})").output == {"a": 1}
    run.cleanup()


def test_smolagents_answers_without_a_form(smolagents: Any) -> None:
    run = smolagents.BrigExecutor()
    assert run("x = object()\n{1, 2}").output == "{1, 2}"
    assert run("y = 1").output is None


def test_smolagents_errors_are_for_the_model(smolagents: Any) -> None:
    run = smolagents.BrigExecutor()
    with pytest.raises(smolagents.CodeFailed, match="ZeroDivisionError"):
        run("kept = 1\n1 / 0")
    assert run("kept").output == 1  # as in a notebook
    with pytest.raises(smolagents.CodeFailed, match="blocked"):
        run("import os\nos.system('rm -rf /')")
    with pytest.raises(smolagents.CodeFailed, match="SyntaxError|syntax|parse"):
        run("def f(:")


# ---- IPython ----


def test_the_magic_of_ipython(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "brig.adapters.ipython")
    try:
        r = shell.run_cell_magic(
            "brig", "--timeout 30", "print(6 * 7)\nopen('kept', 'w').write('1')"
        )
        assert r.stdout == "42\n" and shell.user_ns["_brig"] is r
        r = shell.run_cell_magic("brig", "shell --out mine", "cat kept")
        assert r.stdout == "1" and shell.user_ns["mine"] is r
        shell.run_line_magic("brig_reset", "")
        assert not shell.run_cell_magic("brig", "shell", "cat kept").ok
        with pytest.raises(ValueError, match="--nonsense"):
            shell.run_cell_magic("brig", "--nonsense", "1")
    finally:
        shell.run_line_magic("brig_reset", "")
        InteractiveShell.clear_instance()
