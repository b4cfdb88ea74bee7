# SPDX-License-Identifier: Apache-2.0
"""Containers and an executor: configurations as sandbox.yaml spells them, trust levels, a monitor that watches.

A Container is a sandbox with files that stay; each execution in it has a cell of its own, so that nothing of one
program is left running for the next.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, Union

from .._errors import ClosedError
from .._events import SampleEvent
from .._options import Time
from .._result import Result, Sample
from .._sandbox import Sandbox, Stream

logger = logging.getLogger("brig.compat")

PathLike = Union[str, "os.PathLike[str]"]
Command = Union[str, Sequence[str]]

#: Limits of each trust level, where no file says others.
TRUST_LEVELS: Dict[str, Dict[str, Any]] = {
    "untrusted": {"cpu_count": 0.5, "mem_limit": "256m", "timeout": 30, "pids_limit": 50},
    "unknown": {"cpu_count": 1, "mem_limit": "512m", "timeout": 60, "pids_limit": 100},
    "trusted": {"cpu_count": 2, "mem_limit": "1g", "timeout": 120, "pids_limit": 200},
}


class ResourceMonitor:
    """Readings of a program while it runs.  `on_sample` is called with each."""

    def __init__(self, on_sample: Optional[Callable[[Sample], None]] = None) -> None:
        self.samples: List[Sample] = []
        self._on_sample = on_sample

    def add(self, sample: Sample) -> None:
        self.samples.append(sample)
        if self._on_sample is not None:
            self._on_sample(sample)

    @property
    def peak_memory_bytes(self) -> int:
        return max((s.memory_bytes for s in self.samples), default=0)

    @property
    def peak_pids(self) -> int:
        return max((s.pids for s in self.samples), default=0)

    @property
    def cpu_ms(self) -> int:
        return max((s.cpu_ms for s in self.samples), default=0)


def watched(stream: Stream, monitor: Optional[ResourceMonitor]) -> Result:
    """The result of a stream whose readings went to the monitor."""
    with stream:
        for event in stream:
            if monitor is not None and isinstance(event, SampleEvent):
                monitor.add(event.sample)
        return stream.wait()


class Container:
    """A place to execute in: started, executed in, watched, stopped, removed."""

    def __init__(self, image: Optional[str], runtime_configs: Mapping[str, Any]) -> None:
        policy: Dict[str, Any] = {"inspection": "guard", **runtime_configs}
        if image:
            policy["docker_image"] = image
        self.id = secrets.token_hex(6)
        self.image = image
        self.status = "created"
        self.monitor = ResourceMonitor()
        self._box = Sandbox(policy=policy, backend="docker" if image else "auto")

    def _check_running(self) -> None:
        if self.status != "running":
            raise ClosedError(
                f"container {self.id} is {self.status}, not running: start() it first"
            )

    def start(self) -> "Container":
        if self.status == "removed":
            raise ClosedError(f"container {self.id} was removed; create another one")
        self.status = "running"
        return self

    def exec(self, command: Command, timeout: Optional[Time] = None) -> Result:
        """Runs a command in it."""
        self._check_running()
        return watched(self._box.stream_exec(command, timeout=timeout), self.monitor)

    exec_run = exec

    def execute(
        self, code: str, language: str = "python", timeout: Optional[Time] = None
    ) -> Result:
        """Runs code in it."""
        self._check_running()
        return watched(self._box.stream(code, language, timeout=timeout), self.monitor)

    def put_file(self, path: str, data: Union[str, bytes]) -> None:
        self._box.files.write(path, data)

    def get_file(self, path: str) -> bytes:
        return self._box.files.read(path)

    def stats(self) -> Dict[str, int]:
        """The highest readings so far."""
        m = self.monitor
        return {"memory_bytes": m.peak_memory_bytes, "pids": m.peak_pids, "cpu_ms": m.cpu_ms}

    def stop(self) -> None:
        if self.status == "running":
            self.status = "exited"

    def remove(self) -> None:
        """Forgets it and its files; what runs in it is ended."""
        self.status = "removed"
        self._box.close()


class ContainerManager:
    """Makes containers and removes what it made.

    Whatever a configuration says, a cell has no capability, no new privileges, a user that is not root, a read-only
    root and no network but the whitelist; one that would weaken this is refused when the container is used.
    """

    def __init__(self) -> None:
        self._containers: Dict[str, Container] = {}
        self._lock = threading.Lock()

    def create_container(
        self,
        image: Optional[str] = None,
        runtime_configs: Optional[Mapping[str, Any]] = None,
        **configs: Any,
    ) -> Container:
        """`runtime_configs` is spelled as in sandbox.yaml: cpu_count, mem_limit, pids_limit, timeout, network_mode ...

        Without an image the cell is brig's own choice."""
        made = Container(image, {**(runtime_configs or {}), **configs})
        with self._lock:
            self._containers[made.id] = made
        return made

    def list_containers(self) -> List[Container]:
        with self._lock:
            return list(self._containers.values())

    def get_container(self, id: str) -> Container:
        with self._lock:
            return self._containers[id]

    def stop_container(self, container: Union[str, Container]) -> None:
        self._known(container).stop()

    def remove_container(self, container: Union[str, Container]) -> None:
        known = self._known(container)
        known.remove()
        with self._lock:
            self._containers.pop(known.id, None)

    def cleanup(self) -> None:
        """Removes every container that it made."""
        for one in self.list_containers():
            self.remove_container(one)

    cleanup_all = cleanup
    close = cleanup

    def _known(self, container: Union[str, Container]) -> Container:
        return self.get_container(container) if isinstance(container, str) else container

    def __enter__(self) -> "ContainerManager":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.cleanup()


@dataclass(frozen=True)
class SandboxExecution:
    """What became of a piece of code, and what is known about its security."""

    success: bool
    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    resource_violations: List[str]
    security_metadata: Dict[str, Any]
    samples: List[Sample]
    result: Result = field(repr=False, compare=False)

    @property
    def output(self) -> str:
        return self.stdout

    @property
    def error(self) -> Optional[str]:
        return None if self.success else self.result.reason or self.result.verdict


_LIMITS = ("timeout", "cpu_limit", "memory_limit", "disk_limit", "output_limit", "pids_limit")


def _security(r: Result) -> Dict[str, Any]:
    return {
        "execution_id": r.id,
        "trust_level": r.trust,
        "backend": r.backend,
        "verdict": r.verdict,
        "findings": [str(f) for f in r.findings],
        "denied": [f"{d.kind} {d.what}: {d.why}" for d in r.denied],
        "promises_kept": sum(e.kept for e in r.evidence),
        "promises": len(r.evidence),
        "degraded": [d.protection for d in r.degraded],
    }


class SandboxExecutor:
    """Runs code under the limits of its trust level.

    `config_path` is a sandbox.yaml, whose trust_levels and monitoring then hold; without one TRUST_LEVELS do.
    """

    def __init__(self, config_path: Optional[PathLike] = None) -> None:
        self.config_path = config_path

    def _sandbox(self, level: str, limits: Mapping[str, Any]) -> Sandbox:
        if level not in TRUST_LEVELS:
            raise ValueError(f"{level!r} is no trust level: use {', '.join(TRUST_LEVELS)}")
        if self.config_path is not None:
            return Sandbox(policy=self.config_path, trust=level, settings=dict(limits))
        policy: Dict[str, Any] = {
            "inspection": "guard",
            "default_trust": level,
            **TRUST_LEVELS[level],
            **limits,
        }
        return Sandbox(policy=policy, trust=level)

    def execute(
        self,
        code: str,
        trust_level: str = "untrusted",
        language: str = "python",
        timeout: Optional[Time] = None,
        on_sample: Optional[Callable[[Sample], None]] = None,
        **limits: Any,
    ) -> SandboxExecution:
        """Runs it and watches; limits are spelled as in sandbox.yaml.  A result on every path."""
        monitor = ResourceMonitor(on_sample)
        with self._sandbox(trust_level, limits) as box:
            r = watched(box.stream(code, language, timeout=timeout, artifacts=[]), monitor)
        if r.verdict in _LIMITS:
            logger.warning("run %s: %s", r.id, r.reason)
        return SandboxExecution(
            success=r.ok,
            stdout=r.stdout,
            stderr=r.stderr or ("" if r.verdict in ("ok", "error") else r.reason),
            exit_code=-1 if r.exit_code is None else r.exit_code,
            timed_out=r.verdict in ("timeout", "cpu_limit"),
            resource_violations=[r.reason] if r.verdict in _LIMITS else [],
            security_metadata=_security(r),
            samples=monitor.samples,
            result=r,
        )
