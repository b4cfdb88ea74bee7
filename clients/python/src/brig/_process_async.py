# SPDX-License-Identifier: Apache-2.0
"""Requests under way in asyncio: _process.py says how one works, this is how it is waited for.

Descriptors are watched with the loop's add_reader, the child's end through a pidfd.  No thread, no child watcher, so it
works in every loop that watches descriptors, in whatever thread that runs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections import deque
from typing import Any, AsyncIterator, Deque, Dict, Mapping, Optional, Set

from ._process import CHUNK, GRACE, Child, Lines, checked
from ._transport import Line, Reply

_AHEAD = 256  # lines that may wait for a slow consumer before nothing more is read


class _AsyncPipe:
    """The child's stdout as lines, and its end, in the running loop."""

    def __init__(self, child: Child) -> None:
        self._child, self._loop = child, asyncio.get_running_loop()
        self._lines, self.eof = Lines(), False
        self.ready: Deque[Dict[str, Any]] = deque()
        self.error: Optional[BaseException] = None
        self._wake: "Optional[asyncio.Future[None]]" = None
        self._watching = False
        os.set_blocking(child.fd, False)
        self.watch()

    def watch(self) -> None:
        if not self._watching and not self.eof:
            self._loop.add_reader(self._child.fd, self._readable)
            self._watching = True

    def unwatch(self) -> None:
        if self._watching:
            self._loop.remove_reader(self._child.fd)
            self._watching = False

    def _readable(self) -> None:
        try:
            data = os.read(self._child.fd, CHUNK)
            if data:
                self.ready.extend(self._lines.feed(data))
            else:
                self.eof = True
                self.ready.extend(self._lines.end())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as e:
            self.error, self.eof = e, True
        except ValueError:
            self._child.process.kill()
            self.eof = True
        if self.eof or len(self.ready) >= _AHEAD:
            self.unwatch()
        if self._wake and not self._wake.done():
            self._wake.set_result(None)

    async def more(self) -> None:
        """Returns when there is a line, or the end."""
        while not self.ready and not self.eof:
            self.watch()
            self._wake = self._loop.create_future()
            await self._wake


async def exited(process: "subprocess.Popen[bytes]") -> None:
    """Waits for the end of a child without a thread."""
    if process.poll() is not None:
        return
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()
    pidfd = os.pidfd_open(process.pid)

    def ended() -> None:
        if not done.done():
            done.set_result(None)

    try:
        loop.add_reader(pidfd, ended)
        try:
            await done
        finally:
            loop.remove_reader(pidfd)
    finally:
        os.close(pidfd)
    process.wait()


# A task that nobody refers to may vanish half done; aborts finish although their caller was cancelled twice.
_ABORTS: "Set[asyncio.Task[None]]" = set()


class ProcessAsyncRunning:
    """The same for asyncio."""

    def __init__(self, child: Child) -> None:
        self._child, self._pipe = child, _AsyncPipe(child)
        self._document: Optional[Mapping[str, Any]] = None
        self._abort_task: "Optional[asyncio.Task[None]]" = None

    async def __aiter__(self) -> AsyncIterator[Line]:
        try:
            while True:
                line = await self._next()
                if line is None:
                    break
                yield line
            yield await self._end()
        finally:
            await self.close()

    async def reply(self) -> Reply:
        """The reply, without the events."""
        try:
            while await self._next() is not None:
                pass
            return await self._end()
        finally:
            await self.close()

    async def _next(self) -> Optional[Dict[str, Any]]:
        """The next event; None when there is no other.  The result is put aside."""
        pipe = self._pipe
        while True:
            await pipe.more()
            if pipe.error:
                raise pipe.error
            if not pipe.ready:
                return None
            line = pipe.ready.popleft()
            if line.get("event") == "result":
                self._document = line["result"]
            elif "event" in line:
                return line
            else:
                self._document = line

    async def _end(self) -> Reply:
        child = self._child
        await exited(child.process)
        if self._document is None or "verdict" not in self._document:
            raise child.no_result()
        reply = child.reply(self._document)
        self._release()
        return checked(reply, child.process.returncode)

    def _release(self) -> None:
        self._pipe.unwatch()
        self._child.release()

    def cancel(self) -> None:
        self._child.terminate()

    async def close(self) -> None:
        """Cancels what has not ended, and waits for that; goes on by itself if the waiting is cancelled."""
        if self._child.closed:
            return
        if self._abort_task is None:
            self._abort_task = asyncio.get_running_loop().create_task(self._abort())
            _ABORTS.add(self._abort_task)
            self._abort_task.add_done_callback(_ABORTS.discard)
        await asyncio.shield(self._abort_task)

    async def _abort(self) -> None:
        child = self._child
        try:
            child.terminate()
            try:
                await asyncio.wait_for(self._to_the_end(), GRACE)
            except asyncio.TimeoutError:
                child.process.kill()
                await exited(child.process)
        finally:
            if child.process.returncode is None:
                child.process.kill()
                child.process.wait()
            self._release()

    async def _to_the_end(self) -> None:
        while not self._pipe.eof:
            self._pipe.ready.clear()
            await self._pipe.more()
        await exited(self._child.process)
