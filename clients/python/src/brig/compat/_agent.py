# SPDX-License-Identifier: Apache-2.0
"""The sandbox of a coding agent: a project's folder, and `execute_python`, `run_tests`, `run_command` on it.

A program works on a copy of the folder; what it changed is moved over when it has ended well, as callers of a
sandbox with a mounted folder expect.
"""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Dict, Mapping, Optional, Type, Union

from .._errors import BrigError
from .._options import Size, Time
from .._result import Result
from .._sandbox import Sandbox
from ._settings import SecuritySettings
from ._validators import CODE_RULES

logger = logging.getLogger("brig.compat")

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class SandboxResult:
    """What became of it.  `output` is what a person would have seen."""

    success: bool
    stdout: str
    stderr: str
    exit_code: int
    execution_time: float
    timed_out: bool
    blocked: bool
    error: Optional[str]
    result: Result = field(repr=False, compare=False)

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def sandbox_result(r: Result) -> SandboxResult:
    return SandboxResult(
        success=r.ok,
        stdout=r.stdout,
        stderr=r.stderr or ("" if r.verdict in ("ok", "error") else r.reason),
        exit_code=-1 if r.exit_code is None else r.exit_code,
        execution_time=r.usage.wall_ms / 1000,
        timed_out=r.verdict in ("timeout", "cpu_limit"),
        blocked=r.verdict == "blocked",
        error=None if r.ok else r.reason or r.verdict,
        result=r,
    )


class AgentSandbox:
    """`cpu_quota` counts as container engines do: 100000 is one cpu."""

    backend = "auto"

    def __init__(
        self,
        workspace_path: Optional[PathLike] = None,
        *,
        timeout: Optional[Time] = None,
        memory_limit: Optional[Size] = None,
        cpu_quota: int = 100000,
        image: Optional[str] = None,
        backend: Optional[str] = None,
        inspection: str = "guard",
        rules: Optional[Mapping[str, str]] = None,
        settings: Optional[SecuritySettings] = None,
    ) -> None:
        self.workspace_path = (
            None if workspace_path is None else os.path.abspath(os.fspath(workspace_path))
        )
        chosen = settings if settings is not None else SecuritySettings.load(env_file=None)
        policy: Dict[str, Any] = {
            "inspection": inspection,
            "cpu_quota": cpu_quota,
            **chosen.policy(),
        }
        if image is not None:
            policy["docker_image"] = image
        if rules:
            policy["rules"] = dict(rules)
        limit = timeout if timeout is not None else chosen.max_execution_time
        self._box = Sandbox(
            self.workspace_path,
            policy=policy,
            timeout=limit,
            memory=memory_limit,
            backend=backend or ("auto" if not chosen.enable_sandbox else self.backend),
        )

    def __enter__(self) -> "AgentSandbox":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        self._box.close()

    cleanup = close

    def _counted(self, r: Result) -> Result:
        return r

    def _ended(self, r: Result) -> SandboxResult:
        self._counted(r)
        if r.ok and self.workspace_path is not None and r.changes:
            self._box.apply(r.id)
        return sandbox_result(r)

    def execute_python(self, code: str, timeout: Optional[Time] = None) -> SandboxResult:
        """Runs Python code in the folder."""
        return self._ended(self._box.run(code, "python", timeout=timeout))

    def execute(
        self, code: str, language: str = "python", timeout: Optional[Time] = None
    ) -> SandboxResult:
        """Runs code of any language that brig knows."""
        return self._ended(self._box.run(code, language, timeout=timeout))

    def run_command(self, command: str, timeout: Optional[Time] = None) -> SandboxResult:
        """Runs a line for the shell in the folder."""
        return self._ended(self._box.exec(command, timeout=timeout))

    execute_command = run_command

    def run_tests(
        self, test_path: Optional[str] = None, timeout: Optional[Time] = None
    ) -> SandboxResult:
        """Runs the folder's tests, all or those of a path; what they leave behind is not moved over."""
        r = self._box.test(test_path, timeout=timeout)
        self._counted(r)
        return sandbox_result(r)


class FallbackSandbox(AgentSandbox):
    """The same without a container engine: brig's native cell, which needs none."""

    backend = "native"


def has_engine() -> bool:
    """Whether a container engine answers."""
    from .._process import ProcessTransport
    from .._transport import Question

    try:
        return ProcessTransport().query(Question(["images", "list", "--json"])).status == 0
    except BrigError:
        return False


def get_sandbox(
    workspace_path: PathLike,
    use_docker: bool = True,
    timeout: Time = 60,
    memory_limit: Size = "512m",
    cpu_quota: int = 100000,
    image: Optional[str] = None,
    settings: Optional[SecuritySettings] = None,
) -> AgentSandbox:
    """A DockerSandbox whose cells are containers, or where no engine answers a FallbackSandbox, with a warning."""
    from ._sandbox import DockerSandbox

    options: Dict[str, Any] = {
        "timeout": timeout,
        "memory_limit": memory_limit,
        "cpu_quota": cpu_quota,
        "image": image,
        "settings": settings,
    }
    if use_docker and has_engine():
        return DockerSandbox(workspace_path=workspace_path, backend="docker", **options)
    if use_docker:
        text = "no container engine answers: programs run in brig's native cells, which isolate more and need none"
        logger.warning("%s", text)
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    options.pop("image")
    return FallbackSandbox(workspace_path, **options)


class CodingTools:
    """Tools of a coding agent; each returns a string for the model.

    Without `use_sandbox` code still runs in a cell: brig has no other way to run it that it could answer for.
    """

    def __init__(
        self,
        workspace_root: PathLike,
        use_sandbox: bool = True,
        sandbox_config: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.workspace_root = os.path.abspath(os.fspath(workspace_root))
        self.use_sandbox = use_sandbox
        config: Dict[str, Any] = {"rules": CODE_RULES, **(sandbox_config or {})}
        self.sandbox = AgentSandbox(self.workspace_root, **config)

    def execute_python(self, code: str) -> str:
        """Runs Python code; what starts processes or evaluates text is blocked, and the string says so."""
        return self._told(self.sandbox.execute_python(code))

    def run_tests(self, test_path: Optional[str] = None) -> str:
        """Runs the tests; the string has the counts and the failures."""
        outcome = self.sandbox.run_tests(test_path)
        report = outcome.result.tests
        if report is None:
            return self._told(outcome)
        lines = [f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped"]
        lines += [f"FAILED {f.name}\n{f.message}" for f in report.failures]
        return "\n".join(lines)

    def run_command(self, command: str) -> str:
        """Runs a line for the shell."""
        return self._told(self.sandbox.run_command(command))

    def close(self) -> None:
        self.sandbox.close()

    @staticmethod
    def _told(outcome: SandboxResult) -> str:
        if outcome.success:
            return outcome.output or "(no output)"
        if outcome.blocked:
            return f"Blocked: {outcome.error}\n{outcome.result.remedy}".rstrip()
        return f"Error: {outcome.error}\n{outcome.output}".rstrip()
