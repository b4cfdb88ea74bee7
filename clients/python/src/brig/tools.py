# SPDX-License-Identifier: Apache-2.0
"""Tools for language models: their schemas, and what is answered when a model calls one.

    tools = brig.tools.schema("openai")             # or "anthropic"
    answer = brig.tools.dispatch(name, arguments, sandbox)

An answer is a short text that says what to do when something was not allowed.  Mistakes of the model (an unknown tool,
wrong arguments, code that is blocked) are answers, too, and nothing is raised for them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import BrigError
from ._result import Check, Result
from ._sandbox import Sandbox

__all__ = ["NAMES", "ToolAnswer", "answer_anthropic", "answer_openai", "call", "dispatch", "schema"]

MAX_CHARS = 8000
_MAX_FILES = 200
_MAX_FINDINGS = 10

Arguments = Union[None, str, Mapping[str, Any]]


@dataclass(frozen=True)
class ToolAnswer:
    """What the model is told; `result` is the run behind it, if there was one."""

    text: str
    ok: bool
    result: Optional[Result] = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class _Parameter:
    description: str
    required: bool = True


@dataclass(frozen=True)
class _Tool:
    description: str
    parameters: Mapping[str, _Parameter]
    call: Callable[[Sandbox, Mapping[str, str], int], ToolAnswer]


# ---- what is answered ----


def shorten(text: str, limit: int) -> str:
    """Its beginning and its end, with a word about what is missing between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _outcome(r: Result) -> str:
    if r.ok:
        return "ok"
    code = f" (exit code {r.exit_code})" if r.exit_code not in (None, 0) else ""
    return f"{r.verdict}{code}{': ' + r.reason if r.reason else ''}"


def _tell_run(r: Result, limit: int) -> ToolAnswer:
    """First how it ended, then what it wrote, then what helps."""
    parts = [_outcome(r)]
    for name, text in (("stdout", r.stdout), ("stderr", r.stderr)):
        if text:
            parts.append(f"{name}:\n{shorten(text, limit)}")
    if r.tests is not None:
        t = r.tests
        parts.append(f"{t.passed} passed, {t.failed} failed, {t.skipped} skipped")
        parts += [
            f"FAILED {f.name}\n{shorten(f.message, limit // 4)}" for f in t.failures[:_MAX_FINDINGS]
        ]
    made = [f"{a.path} ({a.size} bytes)" for a in r.artifacts[:_MAX_FILES]]
    if made:
        parts.append("files made or changed: " + ", ".join(made))
    if not r.ok and r.remedy:
        parts.append("what helps: " + r.remedy)
    return ToolAnswer("\n".join(parts), r.ok, r)


def _tell_check(c: Check) -> ToolAnswer:
    found = [
        f"{f}\n  instead: {f.remedy}" for f in c.findings if f.severity in ("CRITICAL", "HIGH")
    ]
    head = "would be blocked" if c.blocked else "would run"
    return ToolAnswer("\n".join([head, *found[:_MAX_FINDINGS]]), not c.blocked)


def _run_code(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    return _tell_run(box.run(args["code"], args.get("language"), stdin=args.get("stdin")), limit)


def _run_command(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    return _tell_run(box.exec(args["command"]), limit)


def _run_tests(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    return _tell_run(box.test(args.get("path")), limit)


def _check_code(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    return _tell_check(box.check(args["code"], args.get("language")))


def _read_file(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    return ToolAnswer(shorten(box.files.read(args["path"]).decode("utf-8", "replace"), limit), True)


def _write_file(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    box.files.write(args["path"], args["content"])
    return ToolAnswer(f"written: {args['path']}", True)


def _list_files(box: Sandbox, args: Mapping[str, str], limit: int) -> ToolAnswer:
    names = box.files.list(args.get("folder") or "")
    more = [f"... and {len(names) - _MAX_FILES} more"] if len(names) > _MAX_FILES else []
    return ToolAnswer("\n".join(names[:_MAX_FILES] + more) or "(no files)", True)


_LANGUAGE = _Parameter(
    "python (the default), javascript, typescript, go, shell, c ...", required=False
)
_PATH = _Parameter("Relative to the working directory.")

_TOOLS: Dict[str, _Tool] = {
    "run_code": _Tool(
        "Run a program in an isolated sandbox and get its output. Files in its working directory last from one call to "
        "the next; there is no network unless hosts were allowed.",
        {
            "code": _Parameter("The whole program; it must print what you want to see."),
            "language": _LANGUAGE,
            "stdin": _Parameter("What the program reads from its standard input.", required=False),
        },
        _run_code,
    ),
    "run_command": _Tool(
        "Run a line of shell in the same sandbox, in the working directory with the files.",
        {"command": _Parameter("The line, for sh.")},
        _run_command,
    ),
    "run_tests": _Tool(
        "Run the tests of the files in the sandbox and count them.",
        {"path": _Parameter("A file or folder of tests; all without it.", required=False)},
        _run_tests,
    ),
    "check_code": _Tool(
        "Say what the security inspection would object to in a program, without running it.",
        {"code": _Parameter("The whole program."), "language": _LANGUAGE},
        _check_code,
    ),
    "read_file": _Tool("Read a file of the sandbox as text.", {"path": _PATH}, _read_file),
    "write_file": _Tool(
        "Write a text file into the sandbox, replacing what is there.",
        {"path": _PATH, "content": _Parameter("The whole text.")},
        _write_file,
    ),
    "list_files": _Tool(
        "List the files of the sandbox.",
        {"folder": _Parameter("Only those below it.", required=False)},
        _list_files,
    ),
}

#: The names of all tools, in the order of schema().
NAMES: Tuple[str, ...] = tuple(_TOOLS)


# ---- schemas ----


def parameters(name: str) -> Dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    rows = _TOOLS[name].parameters
    return {
        "type": "object",
        "properties": {
            k: {"type": "string", "description": p.description} for k, p in rows.items()
        },
        "required": [k for k, p in rows.items() if p.required],
        "additionalProperties": False,
    }


def description(name: str) -> str:
    return _TOOLS[name].description


def schema(style: str = "openai", names: Sequence[str] = NAMES) -> List[Dict[str, Any]]:
    """The tools as an API for models takes them: "openai" (chat completions), "openai-responses" or "anthropic"."""
    makers: Dict[str, Callable[[str], Dict[str, Any]]] = {
        "openai": lambda n: {
            "type": "function",
            "function": {"name": n, "description": description(n), "parameters": parameters(n)},
        },
        "openai-responses": lambda n: {
            "type": "function",
            "name": n,
            "description": description(n),
            "parameters": parameters(n),
        },
        "anthropic": lambda n: {
            "name": n,
            "description": description(n),
            "input_schema": parameters(n),
        },
    }
    if style not in makers:
        raise ValueError(f"{style!r} is no style of schemas: use {', '.join(makers)}")
    return [makers[style](name) for name in names]


# ---- calls ----


def _arguments(name: str, given: Arguments) -> Mapping[str, str]:
    """The arguments of a call; ValueError with words for the model if they do not fit."""
    if isinstance(given, str):
        try:
            given = json.loads(given or "{}")
        except ValueError as e:
            raise ValueError(f"the arguments are no JSON: {e}") from None
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ValueError("the arguments must be an object")
    rows = _TOOLS[name].parameters
    unknown = [k for k in given if k not in rows]
    missing = [k for k, p in rows.items() if p.required and given.get(k) is None]
    wrong = [k for k, v in given.items() if k in rows and v is not None and not isinstance(v, str)]
    if unknown or missing or wrong:
        said = [f"{k!r} is not known" for k in unknown] + [f"{k!r} is missing" for k in missing]
        said += [f"{k!r} must be a string" for k in wrong]
        raise ValueError(f"{'; '.join(said)}; {name} takes {', '.join(rows)}")
    return {k: v for k, v in given.items() if v is not None}


def call(
    name: str, arguments: Arguments, sandbox: Sandbox, max_chars: int = MAX_CHARS
) -> ToolAnswer:
    """Does what a model asks for."""
    tool = _TOOLS.get(name)
    if tool is None:
        return ToolAnswer(f"there is no tool {name!r}; there are {', '.join(NAMES)}", False)
    try:
        return tool.call(sandbox, _arguments(name, arguments), max_chars)
    except (BrigError, OSError, ValueError) as e:
        return ToolAnswer(f"error: {e}", False)


def dispatch(name: str, arguments: Arguments, sandbox: Sandbox, max_chars: int = MAX_CHARS) -> str:
    """The same, as the text for the model."""
    return call(name, arguments, sandbox, max_chars).text


def _member(value: Any, name: str) -> Any:
    """Of an object of a client library, or of the dictionary behind it."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def answer_openai(tool_call: Any, sandbox: Sandbox, max_chars: int = MAX_CHARS) -> Dict[str, Any]:
    """The message that answers a tool call of a chat completion: an object of the client library, or a dictionary."""
    function = _member(tool_call, "function")
    text = dispatch(_member(function, "name"), _member(function, "arguments"), sandbox, max_chars)
    return {"role": "tool", "tool_call_id": _member(tool_call, "id"), "content": text}


def answer_anthropic(block: Any, sandbox: Sandbox, max_chars: int = MAX_CHARS) -> Dict[str, Any]:
    """The block that answers a tool_use block of a message."""
    a = call(_member(block, "name"), _member(block, "input"), sandbox, max_chars)
    return {
        "type": "tool_result",
        "tool_use_id": _member(block, "id"),
        "content": a.text,
        "is_error": not a.ok,
    }
