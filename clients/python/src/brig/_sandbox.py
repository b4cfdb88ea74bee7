# SPDX-License-Identifier: Apache-2.0
"""Sandbox: a place to run code in, again and again."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Sequence, Type, Union

from ._core import Code, Command, Core
from ._errors import TransportError
from ._events import Event, ResultEvent, event_of
from ._files import Data, Files, PathLike
from ._options import Policy, Size, Time
from ._result import Check, Result
from ._transport import Reply, Running, Stdin, Transport


class Stream:
    """The events of one run, as they come; the last is a ResultEvent, and `result` has it then.

    Leaving it early (close(), the end of a `with`, a loop that breaks and forgets it) cancels the run.
    """

    def __init__(self, box: Core, running: Running, check: bool) -> None:
        self._box, self._running, self._check = box, running, check
        self._lines = iter(running)
        self.result: Optional[Result] = None

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        line = next(self._lines)
        if isinstance(line, Reply):
            self.result = self._box._finish(line, check=False)
            if self._check:
                self.result.raise_for_verdict()
            return ResultEvent("result", {"event": "result", "result": line.document}, self.result)
        return event_of(line)

    def wait(self) -> Result:
        """Passes over what is left of the events, and returns the result."""
        for _ in self:
            pass
        if self.result is None:
            raise TransportError("the run was closed before its result came")
        return self.result

    def cancel(self) -> None:
        """Ends the program; the events go on to the result, whose verdict is `cancelled`."""
        self._running.cancel()

    def close(self) -> None:
        """Ends the program and waits for that; nothing more is told."""
        self._running.close()
        close = getattr(self._lines, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Sandbox(Core):
    """Runs code in cells that share files.

    Without `workspace` the files are in memory: what is written to `files`, and what one run leaves, is there for the
    next.  With `workspace=DIR` every run sees that folder and works on a copy; what it changed is kept aside until
    `apply()`.

    Limits (`timeout` in seconds, `memory` as "512m" ...), `trust`, `packages`, `backend` and all others hold for every
    run, and a run may name others; `network` lists the hosts that programs may reach.  What the policy does not allow
    is refused, and the result says why.  The sandbox may be used by several threads.

    With `session=True` it is a `Session`: one cell that stays, with interpreters that keep their state.
    """

    if not TYPE_CHECKING:  # which would forget the arguments

        def __new__(cls, *args: Any, session: bool = False, **wishes: Any) -> "Sandbox":
            if not session or cls is not Sandbox:
                return super().__new__(cls)
            from ._session import Session

            return super().__new__(Session)

    def __enter__(self) -> "Sandbox":
        self._check_open()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancels streams that are under way and forgets the files in memory.  Kept changes of a workspace stay."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()
        if self._memory is not None:
            self._memory.clear()

    @property
    def files(self) -> Files:
        """The files of the workspace, before and after runs."""
        return self._store

    def run(
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
        """Runs a program and returns what became of it; raises for no verdict unless `check` is true.

        `stdin` is the program's input: text, bytes, or an open file or pipe.  `artifacts` are patterns of files that
        come back, [] for none; by default all that the program made or changed.
        """
        wishes = wishes_of(env, timeout, memory, trust, packages, settings)
        request = self._code_request(code, language, stdin, args, artifacts, receipt, wishes)
        return self._finish(self._transport.run(request), check)

    def exec(
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
        """Runs a command: a text is a line for the shell, a list is a program and its arguments."""
        wishes = wishes_of(env, timeout, memory, trust, packages, settings)
        request = self._command_request(command, stdin, artifacts, receipt, wishes)
        return self._finish(self._transport.run(request), check)

    def test(
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
        """Runs the tests of the files, or those of one path; `tests` of the result counts them."""
        wishes = wishes_of(None, timeout, memory, trust, packages, settings)
        return self._finish(
            self._transport.run(self._test_request(paths, framework, wishes)), check
        )

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
    ) -> Stream:
        """Like run(), but gives the events while they happen."""
        wishes = wishes_of(env, timeout, memory, trust, packages, settings)
        request = self._code_request(code, language, stdin, args, artifacts, receipt, wishes)
        return self._opened(Stream(self, self._transport.stream(request), check))

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
    ) -> Stream:
        """Like exec(), but gives the events while they happen."""
        wishes = wishes_of(env, timeout, memory, trust, None, settings)
        request = self._command_request(command, stdin, artifacts, False, wishes)
        return self._opened(Stream(self, self._transport.stream(request), check))

    def _opened(self, stream: Stream) -> Stream:
        self._streams.add(stream)
        return stream

    def check(self, code: Code, language: Optional[str] = None, *, kind: str = "code") -> Check:
        """What the inspection says about code, without running it; `kind` is "code", "command" or "path"."""
        return self._checked(self._transport.query(self._check_question(code, language, kind)))

    def diff(self, run: Optional[str] = None) -> str:
        """What the last run (or that of an id) changed in the project, in the form that git and patch read."""
        return self._done(self._transport.query(self._workspace_question("diff", run)))

    def apply(self, run: Optional[str] = None) -> str:
        """Moves the changes of the last run over to the project: all, or none if the project has moved on, which is a
        CommandError that names the file.  Returns brig's words about it."""
        return self._done(self._transport.query(self._workspace_question("apply", run))).strip()

    def discard(self, run: Optional[str] = None) -> str:
        """Forgets the changes of the last run."""
        return self._done(self._transport.query(self._workspace_question("discard", run))).strip()


def wishes_of(
    env: Optional[Mapping[str, str]],
    timeout: Optional[Time],
    memory: Optional[Size],
    trust: Optional[str],
    packages: Optional[Sequence[str]],
    settings: Optional[Mapping[str, Any]],
) -> Dict[str, Any]:
    return {
        "env": env,
        "timeout": timeout,
        "memory": memory,
        "trust": trust,
        "packages": packages,
        "settings": settings,
    }


def run(
    code: Code,
    language: str = "python",
    *,
    stdin: Stdin = None,
    args: Sequence[str] = (),
    files: Optional[Mapping[str, Data]] = None,
    artifacts: Optional[Sequence[str]] = None,
    receipt: bool = False,
    check: bool = False,
    workspace: Optional[PathLike] = None,
    trust: Optional[str] = None,
    timeout: Optional[Time] = None,
    memory: Optional[Size] = None,
    cpus: Optional[float] = None,
    pids: Optional[int] = None,
    disk: Optional[Size] = None,
    output_limit: Optional[Size] = None,
    packages: Sequence[str] = (),
    network: Optional[Sequence[str]] = None,
    backend: str = "auto",
    policy: Optional[Policy] = None,
    preset: Optional[str] = None,
    inspect: Optional[str] = None,
    rules: Optional[Mapping[str, str]] = None,
    allow_degraded: Sequence[str] = (),
    settings: Optional[Mapping[str, Any]] = None,
    env: Optional[Mapping[str, str]] = None,
    state: Optional[PathLike] = None,
    transport: Optional[Transport] = None,
) -> Result:
    """Runs one program in a cell of its own and returns what became of it.

    `files` (paths and contents) are there before it starts.  The rest is as of Sandbox and its run().
    """
    with Sandbox(
        workspace,
        files=files,
        trust=trust,
        timeout=timeout,
        memory=memory,
        cpus=cpus,
        pids=pids,
        disk=disk,
        output_limit=output_limit,
        packages=packages,
        network=network,
        backend=backend,
        policy=policy,
        preset=preset,
        inspect=inspect,
        rules=rules,
        allow_degraded=allow_degraded,
        settings=settings,
        env=env,
        state=state,
        transport=transport,
    ) as box:
        return box.run(
            code,
            language,
            stdin=stdin,
            args=args,
            artifacts=artifacts,
            receipt=receipt,
            check=check,
        )


def check(
    code: Code,
    language: str = "python",
    *,
    kind: str = "code",
    trust: Optional[str] = None,
    inspect: Optional[str] = None,
    rules: Optional[Mapping[str, str]] = None,
    policy: Optional[Policy] = None,
    transport: Optional[Transport] = None,
) -> Check:
    """What the inspection says about code, without running it."""
    with Sandbox(
        trust=trust, inspect=inspect, rules=rules, policy=policy, transport=transport
    ) as box:
        return box.check(code, language, kind=kind)
