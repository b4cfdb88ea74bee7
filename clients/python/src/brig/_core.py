# SPDX-License-Identifier: Apache-2.0
"""What Sandbox and AsyncSandbox have in common: requests out of wishes, results out of replies."""

from __future__ import annotations

import logging
import os
import weakref
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._errors import ClosedError, CommandError, UsageError
from ._files import Data, Files, MemoryFiles, PathLike, ProjectFiles
from ._options import Options, Pairs, Policy, Size, Time, flat, words
from ._process import ProcessTransport
from ._queries import answer_json, answer_text
from ._result import Change, Check, Files as FetchedFiles, Result, merged_changes
from ._transport import Answer, Question, Reply, Request, Stdin, Transport

logger = logging.getLogger("brig")

Code = Union[str, bytes]
Command = Union[str, Sequence[str]]


def _code_bytes(code: Code) -> bytes:
    return code.encode("utf-8") if isinstance(code, str) else bytes(code)


class Core:
    """A sandbox without its methods that wait."""

    def __init__(
        self,
        workspace: Optional[PathLike] = None,
        *,
        language: str = "python",
        files: Optional[Mapping[str, Data]] = None,
        trust: Optional[str] = None,
        timeout: Optional[Time] = None,
        memory: Optional[Size] = None,
        cpus: Optional[float] = None,
        pids: Optional[int] = None,
        disk: Optional[Size] = None,
        output_limit: Optional[Size] = None,
        packages: Sequence[str] = (),
        project_packages: bool = False,
        environment: Optional[str] = None,
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
        session: bool = False,
        host: Optional[str] = None,
        token: Optional[str] = None,
        session_timeout: Optional[Time] = None,
    ) -> None:
        if not session and (host, token, session_timeout) != (None, None, None):
            raise UsageError("host, token and session_timeout are of sessions: session=True")
        self.language = language
        self.options = Options(
            timeout=timeout,
            memory=memory,
            cpus=cpus,
            pids=pids,
            disk=disk,
            output_limit=output_limit,
            trust=trust,
            backend=backend,
            preset=preset,
            inspect=inspect,
            rules=dict(rules or {}),
            packages=words(packages),
            project_packages=project_packages,
            environment=environment,
            network=network,
            allow_degraded=words(allow_degraded),
            settings=dict(settings or {}),
            env=dict(env or {}),
            policy=policy,
            state=state,
        )
        self.workspace = None if workspace is None else os.path.abspath(os.fspath(workspace))
        self.last: Optional[Result] = None  #: the result of the last run that ended
        self._transport: Transport = transport if transport is not None else ProcessTransport()
        self._memory = MemoryFiles() if self.workspace is None else None
        self._store: Files = (
            self._memory if self._memory is not None else ProjectFiles(self.workspace or "")
        )
        self._closed = False
        self._streams: "weakref.WeakSet[Any]" = weakref.WeakSet()
        for path, data in (files or {}).items():
            self._store.write(path, data)

    def __repr__(self) -> str:
        where = repr(self.workspace) if self.workspace else "in memory"
        return f"<brig.{type(self).__name__} {where}, {self.options.backend}{', closed' if self._closed else ''}>"

    @property
    def closed(self) -> bool:
        return self._closed

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this sandbox was closed; make another one")

    # ---- requests ----

    def _request(
        self,
        kind: str,
        options: Options,
        extra: Pairs,
        artifacts: Optional[Sequence[str]],
        **parts: Any,
    ) -> Request:
        self._check_open()
        pairs = options.pairs() + extra
        for pattern in words(artifacts or ()):
            pairs.append(("--artifact", pattern))
        if self.workspace is not None:
            pairs.append(("--workspace", self.workspace))
        return Request(
            kind=kind,
            options=pairs,
            environ=options.environ(),
            policy=options.policy_document(),
            files=self._memory.packed() if self._memory is not None else None,
            fetch=artifacts is None or len(artifacts) > 0,
            **parts,
        )

    def _code_request(
        self,
        code: Code,
        language: Optional[str],
        stdin: Stdin,
        args: Sequence[str],
        artifacts: Optional[Sequence[str]],
        receipt: bool,
        wishes: Dict[str, Any],
    ) -> Request:
        return self._request(
            "run",
            self.options.over(**wishes),
            [("--lang", language or self.language)],
            artifacts,
            code=_code_bytes(code),
            args=list(args),
            stdin=stdin,
            receipt=receipt,
        )

    def _command_request(
        self,
        command: Command,
        stdin: Stdin,
        artifacts: Optional[Sequence[str]],
        receipt: bool,
        wishes: Dict[str, Any],
    ) -> Request:
        line = command if isinstance(command, str) else None
        if not command:
            raise UsageError(
                "there is no command: give one line for the shell, or a program and its arguments"
            )
        return self._request(
            "exec",
            self.options.over(**wishes),
            [],
            artifacts,
            shell=line,
            command=() if line is not None else list(command),
            stdin=stdin,
            receipt=receipt,
        )

    def _test_request(
        self,
        paths: Union[None, str, Sequence[str]],
        framework: Optional[str],
        wishes: Dict[str, Any],
    ) -> Request:
        named = words(paths or ())
        if len(named) > 1:
            raise UsageError(
                "brig runs the tests of one path at a time: name the folder that has them all"
            )
        extra: Pairs = [] if framework is None else [("--framework", framework)]
        return self._request("test", self.options.over(**wishes), extra, [], args=named)

    def _check_question(self, code: Code, language: Optional[str], kind: str) -> Question:
        self._check_open()
        pairs = self.options.judged()
        if self.options.inspect is not None:
            pairs.append(("--inspect", self.options.inspect))
        if kind == "code":
            pairs.append(("--lang", language or self.language))
            return self._question(["check", "--json", *flat(pairs), "-"], stdin=_code_bytes(code))
        text = code if isinstance(code, str) else os.fsdecode(code)
        return self._question(["check", "--json", *flat(pairs), "--kind", kind, "--", text])

    def _question(self, line: List[str], stdin: bytes = b"") -> Question:
        return Question(line, stdin, self.options.environ(), self.options.policy_document())

    # ---- replies ----

    def _finish(self, reply: Reply, check: bool) -> Result:
        result = Result(reply.document, FetchedFiles(reply.files), reply.receipt)
        if self._memory is not None and (reply.files or result.changes):
            missed = self._memory.merge(merged_changes(result))
            result._remarks += [
                f"{path} is not there for later runs: the sandbox is full" for path in missed
            ]
        self.last = result
        logger.debug("run %s: %s", result.id, result.verdict)
        for lost in result.degraded:
            logger.info("run %s went without %s: %s", result.id, lost.protection, lost.lost)
        for warning in result.warnings:
            logger.info("run %s: %s", result.id, warning)
        return result.raise_for_verdict() if check else result

    def _checked(self, answer: Answer) -> Check:
        if answer.status not in (0, 1, 2):
            raise (UsageError if answer.status == 64 else CommandError)(
                answer.stderr or "brig check failed"
            )
        return Check.of(answer_json(answer, statuses=(0, 1, 2)))

    def changes(self) -> List[Change]:
        """What the last run did to the files of the workspace."""
        return list(self.last.changes) if self.last else []

    # ---- what a run has kept aside ----

    def _kept(self, run: Optional[str], what: str) -> str:
        if self.workspace is None:
            raise UsageError(
                f"there is nothing to {what}: files of a sandbox without workspace stay in it by themselves"
            )
        if run is not None:
            return run
        if self.last is None or not self.last.id:
            raise UsageError(f"there is nothing to {what}: nothing has run yet")
        return self.last.id

    def _workspace_question(self, what: str, run: Optional[str]) -> Question:
        self._check_open()
        pairs = self.options.policy_file() + self.options.place()
        return self._question(["workspace", what, *flat(pairs), self._kept(run, what)])

    @staticmethod
    def _done(answer: Answer) -> str:
        return answer_text(answer)
