# SPDX-License-Identifier: Apache-2.0
"""What stands between a sandbox and whatever runs its requests.

A Request is plain data: it says what to run and under which wishes, and nothing of how that is carried.  Today
ProcessTransport starts the brig program for each; a service with a socket would take the same requests and give the
same replies, and no other module would notice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import (
    Any,
    AsyncIterator,
    Dict,
    Iterator,
    Mapping,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    Union,
)

Stdin = Union[None, str, bytes, "SupportsFileno"]


class SupportsFileno(Protocol):
    """An open file or pipe."""

    def fileno(self) -> int:
        ...


@dataclass(frozen=True)
class Request:
    """One program, command or test run.

    kind      "run" (code), "exec" (command: words, or shell: one line) or "test" (paths)
    options   pairs for the command line, in order: ("--timeout", "5s"), ("--json", None)
    environ   variables of brig's own environment: settings that no option can set
    policy    a policy document that takes the place of the host's policy file
    files     a tar archive of what is in the workspace before; None: no such
    fetch     whether the files that it leaves come back
    """

    kind: str
    code: Optional[bytes] = None
    command: Sequence[str] = ()
    shell: Optional[str] = None
    args: Sequence[str] = ()
    options: Sequence[Tuple[str, Optional[str]]] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    policy: Optional[bytes] = None
    files: Optional[bytes] = None
    fetch: bool = False
    receipt: bool = False
    stdin: Stdin = None


@dataclass(frozen=True)
class Reply:
    """The result's document, the archive of files that came back, the receipt."""

    document: Mapping[str, Any]
    files: bytes = b""
    receipt: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class Question:
    """A brig command that runs no program: its words, its input and, as of a Request, environment and policy."""

    words: Sequence[str]
    stdin: bytes = b""
    environ: Mapping[str, str] = field(default_factory=dict)
    policy: Optional[bytes] = None


@dataclass(frozen=True)
class Answer:
    """What became of it."""

    status: int
    stdout: bytes
    stderr: str


Line = Union[Dict[str, Any], Reply]


class Running(Protocol):
    """A request under way: its events, and last its reply.  close() cancels what has not ended and waits for that."""

    def __iter__(self) -> Iterator[Line]:
        ...

    def cancel(self) -> None:
        ...

    def close(self) -> None:
        ...


class AsyncRunning(Protocol):
    """The same for asyncio."""

    def __aiter__(self) -> AsyncIterator[Line]:
        ...

    def cancel(self) -> None:
        ...

    async def close(self) -> None:
        ...


class Transport(Protocol):
    """Carries requests.  Every method may be called from several threads or tasks at once."""

    def run(self, request: Request) -> Reply:
        ...

    def stream(self, request: Request) -> Running:
        ...

    async def run_async(self, request: Request) -> Reply:
        ...

    def stream_async(self, request: Request) -> AsyncRunning:
        ...

    def query(self, question: "Question") -> Answer:
        ...

    async def query_async(self, question: "Question") -> Answer:
        ...
