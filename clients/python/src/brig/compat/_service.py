# SPDX-License-Identifier: Apache-2.0
"""The configuration and the results of the asynchronous style."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from .._result import Result
from ._validators import SecurityIssue, SecurityLevel, issue_of, strict_policy

if TYPE_CHECKING:
    from ._sandbox import DockerSandbox


class SandboxLanguage(enum.Enum):
    PYTHON = "python"
    TYPESCRIPT = "typescript"
    JAVASCRIPT = "javascript"
    GO = "go"


@dataclass(frozen=True)
class ResourceLimits:
    """`allowed_hosts` names what a program may reach; an open network (`network_enabled` alone) cannot be had."""

    memory_mb: int = 512
    cpu_quota_percent: int = 50
    disk_io_mb: int = 100
    network_enabled: bool = False
    allowed_hosts: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class SecurityConstraints:
    """What always holds in a cell; a value that would weaken it is refused.  `user` is one of the image, if any."""

    readonly_rootfs: bool = True
    no_new_privileges: bool = True
    drop_all_capabilities: bool = True
    user: str = "node"
    seccomp_profile: str = "default"


@dataclass(frozen=True)
class TimeoutConfig:
    execution_timeout_ms: int = 30000
    startup_timeout_ms: int = 5000
    cleanup_timeout_ms: int = 2000


@dataclass(frozen=True)
class SandboxConfig:
    """Everything about a sandbox.

    `inspection` None judges code as callers of these classes expect; "guard", "report" or "off" judge it as brig does.
    """

    resource_limits: ResourceLimits = field(default_factory=ResourceLimits)
    security_constraints: SecurityConstraints = field(default_factory=SecurityConstraints)
    timeout_config: TimeoutConfig = field(default_factory=TimeoutConfig)
    language: SandboxLanguage = SandboxLanguage.PYTHON
    image: Optional[str] = None
    backend: str = "auto"
    inspection: Optional[str] = None

    def policy(self) -> Dict[str, Any]:
        """The same as a policy of brig's."""
        limits, walls, times = self.resource_limits, self.security_constraints, self.timeout_config
        policy = strict_policy() if self.inspection is None else {"inspection": self.inspection}
        policy.update(
            memory_mb=limits.memory_mb,
            cpu_quota_percent=limits.cpu_quota_percent,
            disk_io_mb=limits.disk_io_mb,
            readonly_rootfs=walls.readonly_rootfs,
            no_new_privileges=walls.no_new_privileges,
            drop_all_capabilities=walls.drop_all_capabilities,
            seccomp_profile=walls.seccomp_profile,
            execution_timeout_ms=times.execution_timeout_ms,
            startup_timeout_ms=times.startup_timeout_ms,
            cleanup_timeout_ms=times.cleanup_timeout_ms,
            backend=self.backend,
        )
        if limits.allowed_hosts:
            policy.update(network_mode="allowlist", whitelist=list(limits.allowed_hosts))
        elif limits.network_enabled:
            policy.update(network_enabled=True)
        if self.image:
            policy.update(docker_image=self.image, user=walls.user)
        elif ":" in walls.user:
            policy.update(user=walls.user)
        return policy


def create_standard_config(language: SandboxLanguage = SandboxLanguage.PYTHON) -> SandboxConfig:
    """512 MB, half a cpu, 30 s."""
    return SandboxConfig(language=language)


def create_strict_config(language: SandboxLanguage = SandboxLanguage.PYTHON) -> SandboxConfig:
    """256 MB, a quarter of a cpu, 15 s."""
    return SandboxConfig(
        resource_limits=ResourceLimits(memory_mb=256, cpu_quota_percent=25, disk_io_mb=50),
        timeout_config=TimeoutConfig(execution_timeout_ms=15000),
        language=language,
    )


@dataclass(frozen=True)
class ExecutionResult:
    """What became of one piece of code; blocked and timed out ones have a result, too, and nothing is raised."""

    success: bool
    stdout: str
    stderr: str
    exit_code: int
    security_violations: List[SecurityIssue]
    execution_time_ms: int
    memory_peak_bytes: int
    timed_out: bool
    blocked: bool
    verdict: str
    error: Optional[str]
    warnings: List[SecurityIssue]
    result: Result = field(repr=False, compare=False)

    @property
    def timeout(self) -> bool:
        """The same as `timed_out`."""
        return self.timed_out


def execution_of(r: Result) -> ExecutionResult:
    issues = [issue_of(f) for f in r.findings]
    critical = [i for i in issues if i.level is SecurityLevel.CRITICAL]
    violations = critical if r.verdict == "blocked" else []
    if r.verdict == "violated":
        violations = [SecurityIssue(SecurityLevel.CRITICAL, r.reason)]
    return ExecutionResult(
        success=r.ok,
        stdout=r.stdout,
        stderr=r.stderr or ("" if r.verdict in ("ok", "error") else r.reason),
        exit_code=-1 if r.exit_code is None else r.exit_code,
        security_violations=violations,
        execution_time_ms=r.usage.wall_ms,
        memory_peak_bytes=r.usage.memory_peak_bytes,
        timed_out=r.verdict in ("timeout", "cpu_limit"),
        blocked=r.verdict == "blocked",
        verdict=r.verdict,
        error=None if r.ok else r.reason or r.verdict,
        warnings=[i for i in issues if i.level is SecurityLevel.HIGH],
        result=r,
    )


def create_docker_sandbox(
    strict: bool = False, config: Optional[SandboxConfig] = None
) -> "DockerSandbox":
    """A sandbox of the standard configuration, of the strict one, or of the one given."""
    from ._sandbox import DockerSandbox

    chosen = (
        config
        if config is not None
        else create_strict_config()
        if strict
        else create_standard_config()
    )
    return DockerSandbox(chosen)
