# SPDX-License-Identifier: Apache-2.0
"""brig runs code that nobody has reviewed in isolated cells, and says with evidence what was enforced.

    >>> import brig
    >>> brig.run("print(6 * 7)").stdout
    '42\\n'

`Sandbox` keeps files between runs, `AsyncSandbox` is its twin for asyncio.  README.md has the rest.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from ._binary import find_binary
from ._errors import (
    BinaryNotFound,
    Blocked,
    BrigError,
    Cancelled,
    ClosedError,
    CommandError,
    Crashed,
    DiskLimit,
    Failed,
    LimitReached,
    MemoryLimit,
    OutputLimit,
    ProcessLimit,
    ProgramError,
    Refused,
    ServiceError,
    TimeLimit,
    TransportError,
    UsageError,
    VerdictError,
    Violated,
)
from ._events import (
    Event,
    FindingEvent,
    NoticeEvent,
    OutputEvent,
    ResultEvent,
    SampleEvent,
    ShownEvent,
    StartedEvent,
)
from ._files import FileMissing, Files, MemoryFiles, ProjectFiles
from ._process import ProcessTransport
from ._queries import doctor, history, languages, metrics, policy, show, verify_receipt, version
from ._result import (
    Artifact,
    Change,
    Check,
    Degraded,
    Denied,
    Evidence,
    Finding,
    NetworkUse,
    Result,
    Sample,
    TestFailure,
    TestReport,
    Usage,
)
from ._sandbox import Sandbox, Stream, check, run
from ._transport import Transport

if TYPE_CHECKING:
    from ._async import AsyncFiles, AsyncSandbox, AsyncStream
    from ._session import Context, Contexts, Session, SessionFiles
    from ._session_async import AsyncSession
    from ._session_parts import FileChange, Snapshot, Terminal, Watch

__version__ = "0.1.0"

__all__ = [
    "Artifact",
    "AsyncFiles",
    "AsyncSandbox",
    "AsyncSession",
    "AsyncStream",
    "BinaryNotFound",
    "Blocked",
    "BrigError",
    "Cancelled",
    "Change",
    "Check",
    "ClosedError",
    "CommandError",
    "Context",
    "Contexts",
    "Crashed",
    "Degraded",
    "Denied",
    "DiskLimit",
    "Event",
    "Evidence",
    "Failed",
    "FileChange",
    "FileMissing",
    "Files",
    "Finding",
    "FindingEvent",
    "LimitReached",
    "MemoryFiles",
    "MemoryLimit",
    "NetworkUse",
    "NoticeEvent",
    "OutputEvent",
    "OutputLimit",
    "ProcessLimit",
    "ProcessTransport",
    "ProgramError",
    "ProjectFiles",
    "Refused",
    "Result",
    "ResultEvent",
    "Sample",
    "SampleEvent",
    "Sandbox",
    "ServiceError",
    "Session",
    "SessionFiles",
    "ShownEvent",
    "Snapshot",
    "StartedEvent",
    "Stream",
    "Terminal",
    "TestFailure",
    "TestReport",
    "TimeLimit",
    "Transport",
    "TransportError",
    "Usage",
    "UsageError",
    "VerdictError",
    "Violated",
    "Watch",
    "check",
    "doctor",
    "find_binary",
    "history",
    "languages",
    "metrics",
    "policy",
    "run",
    "show",
    "verify_receipt",
    "version",
]

# Whoever wants to hear of it attaches a handler.
logging.getLogger("brig").addHandler(logging.NullHandler())

_LATER = {
    "AsyncSandbox": "_async",
    "AsyncStream": "_async",
    "AsyncFiles": "_async",
    "AsyncSession": "_session_async",
    "Context": "_session",
    "Contexts": "_session",
    "Session": "_session",
    "SessionFiles": "_session",
    "FileChange": "_session_parts",
    "Snapshot": "_session_parts",
    "Terminal": "_session_parts",
    "Watch": "_session_parts",
}


def __getattr__(name: str) -> Any:
    """asyncio and HTTP are loaded when somebody asks for them: most of the time that importing this package would
    take."""
    if name in _LATER:
        return getattr(importlib.import_module("." + _LATER[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
