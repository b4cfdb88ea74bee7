# SPDX-License-Identifier: Apache-2.0
"""DockerSandbox: the class of that name in both styles that have one.

Given a SandboxConfig it is the asynchronous one; given a folder it is the coding agent's.  The name is theirs: what
makes the cell is the configuration's `backend`, by default brig's own choice.
"""

from __future__ import annotations

import logging
import os
import threading
from types import TracebackType
from typing import Any, Dict, Optional, Type, Union

from .._async import AsyncSandbox
from .._result import Result
from ._agent import AgentSandbox
from ._service import ExecutionResult, SandboxConfig, execution_of
from ._validators import language_name

logger = logging.getLogger("brig.compat")

PathLike = Union[str, "os.PathLike[str]"]


class Counters:
    """How executions ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._verdicts: Dict[str, int] = {}
        self._wall_ms = 0

    def count(self, r: Result) -> None:
        with self._lock:
            self._verdicts[r.verdict] = self._verdicts.get(r.verdict, 0) + 1
            self._wall_ms += r.usage.wall_ms

    def metrics(self) -> Dict[str, Any]:
        """Totals, and rates in percent."""
        with self._lock:
            verdicts, wall_ms = dict(self._verdicts), self._wall_ms
        total = sum(verdicts.values())
        timeouts = verdicts.get("timeout", 0) + verdicts.get("cpu_limit", 0)
        blocked, good = verdicts.get("blocked", 0), verdicts.get("ok", 0)

        def rate(n: int) -> float:
            return 100.0 * n / total if total else 0.0

        return {
            "total_executions": total,
            "successful_executions": good,
            "failed_executions": total - good - timeouts - blocked,
            "timeout_executions": timeouts,
            "security_blocks": blocked,
            "success_rate": rate(good),
            "failure_rate": rate(total - good - timeouts - blocked),
            "timeout_rate": rate(timeouts),
            "security_block_rate": rate(blocked),
            "average_execution_time_ms": wall_ms / total if total else 0.0,
            "by_verdict": verdicts,
        }


class DockerSandbox(AgentSandbox):
    """`await execute_code(code, language)` of the asynchronous style, and what AgentSandbox has for coding agents."""

    def __init__(
        self,
        config: Union[None, SandboxConfig, PathLike] = None,
        workspace_path: Optional[PathLike] = None,
        **options: Any,
    ) -> None:
        if config is not None and not isinstance(config, SandboxConfig):
            config, workspace_path = None, config
        self.config = config if config is not None else SandboxConfig()
        self._counters = Counters()
        self._async: Optional[AsyncSandbox] = None
        super().__init__(workspace_path, **options)

    def _counted(self, r: Result) -> Result:
        self._counters.count(r)
        return super()._counted(r)

    async def execute_code(
        self,
        code: str,
        language: Any = None,
        timeout: Optional[float] = None,
        stdin: Optional[str] = None,
    ) -> ExecutionResult:
        """Checks, runs, verifies and cleans up.  A result on every path; cancelling the task ends the program."""
        if self._async is None:
            self._async = AsyncSandbox(policy=self.config.policy())
        chosen = language_name(self.config.language if language is None else language)
        r = await self._async.run(code, chosen, timeout=timeout, stdin=stdin, artifacts=[])
        self._counters.count(r)
        for f in r.findings:
            if f.severity == "HIGH":
                logger.warning("%s", f)
        return execution_of(r)

    def get_metrics(self) -> Dict[str, Any]:
        """Totals and rates of what this sandbox has run; `success_rate` is in percent."""
        return self._counters.metrics()

    async def shutdown(self) -> None:
        """Ends what is under way."""
        if self._async is not None:
            await self._async.close()
            self._async = None
        self.close()

    async def __aenter__(self) -> "DockerSandbox":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.shutdown()
