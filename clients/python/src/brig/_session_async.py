# SPDX-License-Identifier: Apache-2.0
"""AsyncSession: a Session for asyncio.  Its calls wait in threads; cancelling a task ends what it waits for."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, AsyncIterator, Callable, List, Mapping, Optional, Type, TypeVar

from ._async import AsyncFiles, AsyncSandbox, AsyncStream
from ._core import Code, Command
from ._events import Event
from ._options import Time
from ._result import Result
from ._sandbox import Stream
from ._session_parts import Snapshot
from ._session import Context, ContextLike, Session
from ._transport import Stdin

T = TypeVar("T")


class AsyncSessionFiles(AsyncFiles):
    """The files of an AsyncSession."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.files)
        self._files = session.files

    async def move(self, path: str, to: str) -> None:
        await asyncio.to_thread(self._files.move, path, to)

    async def mkdir(self, path: str) -> None:
        await asyncio.to_thread(self._files.mkdir, path)


class AsyncContexts:
    """The interpreters of an AsyncSession."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def list(self) -> "List[Context]":
        return await asyncio.to_thread(self._session.contexts.list)

    async def create(self, language: str = "python", cwd: Optional[str] = None) -> Context:
        return await asyncio.to_thread(self._session.contexts.create, language, cwd)

    async def remove(self, context: ContextLike) -> None:
        await asyncio.to_thread(self._session.contexts.remove, context)


class AsyncSessionStream(AsyncStream):
    """The events of one run in a session; see SessionStream.  Each is waited for in a thread."""

    def __init__(self, begin: Callable[[], Stream]) -> None:
        self._begin = begin
        self._stream: Optional[Stream] = None
        self.result: Optional[Result] = None

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        if self._stream is None:
            self._stream = await asyncio.to_thread(self._begin)
        stream = self._stream
        event = await _waited(lambda: next(stream, None), stream.close)
        self.result = stream.result
        if event is None:
            raise StopAsyncIteration
        return event

    def cancel(self) -> None:
        """Interrupts the code; the events go on to the result."""
        if self._stream is not None:
            self._stream.cancel()

    async def close(self) -> None:
        if self._stream is not None:
            await asyncio.to_thread(self._stream.close)


async def _waited(call: Callable[[], T], give_up: Callable[[], None]) -> T:
    """What a thread gives.  When the task is cancelled, so is the call, and its thread is waited for."""
    thread = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        give_up()
        await asyncio.wait([thread])
        if not thread.cancelled():
            thread.exception()  # which is our own doing
        raise


class AsyncSession(AsyncSandbox):
    """A cell that stays, for asyncio: the same arguments and results as of Session.

    Any number of runs may be under way, one in each context.  `sync` is the Session itself.
    """

    def __init__(self, **wishes: Any) -> None:
        self.sync = Session(**wishes)
        super().__init__(**{k: v for k, v in wishes.items() if k == "language"})

    def __repr__(self) -> str:
        return repr(self.sync).replace("brig.Session", "brig.AsyncSession")

    async def __aenter__(self) -> "AsyncSession":
        await asyncio.to_thread(self.sync.__enter__)
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the session and all that runs in it."""
        self._closed = True
        await asyncio.to_thread(self.sync.close)

    @property
    def files(self) -> AsyncSessionFiles:
        return AsyncSessionFiles(self.sync)

    @property
    def contexts(self) -> AsyncContexts:
        return AsyncContexts(self.sync)

    async def info(self) -> Mapping[str, Any]:
        return await asyncio.to_thread(self.sync.info)

    async def interrupt(self, context: Optional[ContextLike] = None) -> None:
        await asyncio.to_thread(self.sync.interrupt, context)

    async def restart(self, context: Optional[ContextLike] = None) -> None:
        await asyncio.to_thread(self.sync.restart, context)

    async def pause(self) -> None:
        await asyncio.to_thread(self.sync.pause)

    async def resume(self) -> None:
        await asyncio.to_thread(self.sync.resume)

    async def set_timeout(self, timeout: Time) -> None:
        await asyncio.to_thread(self.sync.set_timeout, timeout)

    async def fork(self, session_timeout: Optional[Time] = None) -> "AsyncSession":
        """As of Session."""
        other = AsyncSession()
        other.sync = await asyncio.to_thread(self.sync.fork, session_timeout)
        return other

    async def snapshot(self, name: Optional[str] = None) -> Snapshot:
        return await asyncio.to_thread(self.sync.snapshot, name)

    async def _result(self, begin: Callable[[], Stream]) -> Result:
        stream = await asyncio.to_thread(begin)
        return await _waited(stream.wait, stream.close)

    async def run(
        self,
        code: Code,
        language: Optional[str] = None,
        *,
        context: Optional[ContextLike] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        check: bool = False,
        **others: Any,
    ) -> Result:
        """As of Session.  When the task is cancelled, the code is interrupted."""
        return await self._result(
            lambda: self.sync.stream(
                code, language, context=context, env=env, timeout=timeout, check=check, **others
            )
        )

    async def exec(
        self,
        command: Command,
        *,
        stdin: Stdin = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        check: bool = False,
        **others: Any,
    ) -> Result:
        """As of Session.  When the task is cancelled, the command is killed."""
        return await self._result(
            lambda: self.sync.stream_exec(
                command, stdin=stdin, cwd=cwd, env=env, timeout=timeout, check=check, **others
            )
        )

    def stream(self, code: Code, language: Optional[str] = None, **wishes: Any) -> AsyncStream:
        """As of Session: `async for event in session.stream(code)`."""
        return AsyncSessionStream(lambda: self.sync.stream(code, language, **wishes))

    def stream_exec(self, command: Command, **wishes: Any) -> AsyncStream:
        return AsyncSessionStream(lambda: self.sync.stream_exec(command, **wishes))

    async def test(self, *_: Any, **__: Any) -> Result:
        """Sessions run no test suites."""
        return self.sync.test()
