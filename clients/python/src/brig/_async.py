# SPDX-License-Identifier: Apache-2.0
"""AsyncSandbox: the same as Sandbox, for asyncio.

Cancelling a task cancels its run, and waits until the cell is gone.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncIterator, List, Mapping, Optional, Sequence, Type, Union

from ._core import Code, Command, Core
from ._errors import TransportError
from ._events import Event, ResultEvent, event_of
from ._files import Data, Files, PathLike
from ._options import Size, Time
from ._result import Check, Result
from ._sandbox import wishes_of
from ._transport import AsyncRunning, Reply, Stdin


class AsyncStream:
    """The events of one run, as they come; see Stream.

    Close it, or use it with `async with`, if it may be left early.
    """

    def __init__(self, box: Core, running: AsyncRunning, check: bool) -> None:
        self._box, self._running, self._check = box, running, check
        self._lines = running.__aiter__()
        self.result: Optional[Result] = None

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        line = await self._lines.__anext__()
        if isinstance(line, Reply):
            self.result = self._box._finish(line, check=False)
            if self._check:
                self.result.raise_for_verdict()
            return ResultEvent("result", {"event": "result", "result": line.document}, self.result)
        return event_of(line)

    async def wait(self) -> Result:
        """Passes over what is left of the events, and returns the result."""
        async for _ in self:
            pass
        if self.result is None:
            raise TransportError("the run was closed before its result came")
        return self.result

    def cancel(self) -> None:
        """Ends the program; the events go on to the result, whose verdict is `cancelled`."""
        self._running.cancel()

    async def close(self) -> None:
        """Ends the program and waits for that; nothing more is told."""
        await self._running.close()
        close = getattr(self._lines, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()


class AsyncFiles:
    """The files of an AsyncSandbox.  Those of a folder are read and written in the loop's pool of threads."""

    def __init__(self, files: Files) -> None:
        self.sync = files

    async def read(self, path: str) -> bytes:
        return await asyncio.to_thread(self.sync.read, path)

    async def read_text(self, path: str) -> str:
        return await asyncio.to_thread(self.sync.read_text, path)

    async def write(self, path: str, data: Data, executable: bool = False) -> None:
        await asyncio.to_thread(self.sync.write, path, data, executable)

    async def remove(self, path: str) -> None:
        await asyncio.to_thread(self.sync.remove, path)

    async def list(self, folder: str = "") -> "List[str]":
        return await asyncio.to_thread(self.sync.list, folder)

    async def upload(self, source: PathLike, path: Optional[str] = None) -> "List[str]":
        return await asyncio.to_thread(self.sync.upload, source, path)

    async def download(self, path: str, target: PathLike, overwrite: bool = False) -> "List[str]":
        return await asyncio.to_thread(self.sync.download, path, target, overwrite)


class AsyncSandbox(Core):
    """Sandbox for asyncio: the same arguments, the same results; any number of runs may be under way at once."""

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, session: bool = False, **wishes: Any) -> "AsyncSandbox":
            if not session or cls is not AsyncSandbox:
                return super().__new__(cls)
            from ._session_async import AsyncSession

            return super().__new__(AsyncSession)

    async def __aenter__(self) -> "AsyncSandbox":
        self._check_open()
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancels streams that are under way and forgets the files in memory.  Kept changes of a workspace stay."""
        self._closed = True
        for stream in list(self._streams):
            await stream.close()
        if self._memory is not None:
            self._memory.clear()

    @property
    def files(self) -> AsyncFiles:
        """The files of the workspace, before and after runs."""
        return AsyncFiles(self._store)

    async def run(
        self,
        code: Code,
        language: Optional[str] = None,
        *,
        stdin: Stdin = None,
        args: Sequence[str] = (),
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        trust: Optional[str] = None,
        packages: Optional[Sequence[str]] = None,
        settings: Optional[Mapping[str, Any]] = None,
        artifacts: Optional[Sequence[str]] = None,
        receipt: bool = False,
        check: bool = False,
    ) -> Result:
        """As of Sandbox.  When the task is cancelled, so is the run."""
        wishes = wishes_of(env, timeout, memory, trust, packages, settings)
        request = self._code_request(code, language, stdin, args, artifacts, receipt, wishes)
        return self._finish(await self._transport.run_async(request), check)

    async def exec(
        self,
        command: Command,
        *,
        stdin: Stdin = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        trust: Optional[str] = None,
        packages: Optional[Sequence[str]] = None,
        settings: Optional[Mapping[str, Any]] = None,
        artifacts: Optional[Sequence[str]] = None,
        receipt: bool = False,
        check: bool = False,
    ) -> Result:
        """As of Sandbox: a text is a line for the shell, a list is a program and its arguments."""
        wishes = wishes_of(env, timeout, memory, trust, packages, settings)
        request = self._command_request(command, stdin, artifacts, receipt, wishes)
        return self._finish(await self._transport.run_async(request), check)

    async def test(
        self,
        paths: Union[None, str, Sequence[str]] = None,
        *,
        framework: Optional[str] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        trust: Optional[str] = None,
        packages: Optional[Sequence[str]] = None,
        settings: Optional[Mapping[str, Any]] = None,
        check: bool = False,
    ) -> Result:
        """Runs the tests of the files, or those of one path."""
        wishes = wishes_of(None, timeout, memory, trust, packages, settings)
        request = self._test_request(paths, framework, wishes)
        return self._finish(await self._transport.run_async(request), check)

    def stream(
        self,
        code: Code,
        language: Optional[str] = None,
        *,
        stdin: Stdin = None,
        args: Sequence[str] = (),
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        trust: Optional[str] = None,
        packages: Optional[Sequence[str]] = None,
        settings: Optional[Mapping[str, Any]] = None,
        artifacts: Optional[Sequence[str]] = None,
        receipt: bool = False,
        check: bool = False,
    ) -> AsyncStream:
        """Like run(), but gives the events while they happen: `async for event in box.stream(code)`."""
        wishes = wishes_of(env, timeout, memory, trust, packages, settings)
        request = self._code_request(code, language, stdin, args, artifacts, receipt, wishes)
        return self._opened(AsyncStream(self, self._transport.stream_async(request), check))

    def stream_exec(
        self,
        command: Command,
        *,
        stdin: Stdin = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        trust: Optional[str] = None,
        settings: Optional[Mapping[str, Any]] = None,
        artifacts: Optional[Sequence[str]] = None,
        check: bool = False,
    ) -> AsyncStream:
        """Like exec(), but gives the events while they happen."""
        wishes = wishes_of(env, timeout, memory, trust, None, settings)
        request = self._command_request(command, stdin, artifacts, False, wishes)
        return self._opened(AsyncStream(self, self._transport.stream_async(request), check))

    def _opened(self, stream: AsyncStream) -> AsyncStream:
        self._streams.add(stream)
        return stream

    async def check(
        self, code: Code, language: Optional[str] = None, *, kind: str = "code"
    ) -> Check:
        """What the inspection says about code, without running it."""
        return self._checked(
            await self._transport.query_async(self._check_question(code, language, kind))
        )

    async def diff(self, run: Optional[str] = None) -> str:
        """What the last run changed in the project, in the form that git and patch read."""
        return self._done(await self._transport.query_async(self._workspace_question("diff", run)))

    async def apply(self, run: Optional[str] = None) -> str:
        """Moves the changes of the last run over to the project, all or none."""
        return self._done(
            await self._transport.query_async(self._workspace_question("apply", run))
        ).strip()

    async def discard(self, run: Optional[str] = None) -> str:
        """Forgets the changes of the last run."""
        return self._done(
            await self._transport.query_async(self._workspace_question("discard", run))
        ).strip()
