# SPDX-License-Identifier: Apache-2.0
"""Names that sandbox code in use already has, so that it runs by changing an import.

Three styles are here: containers and an executor (`ContainerManager`, `SandboxExecutor`), an asynchronous service
(`create_docker_sandbox`, `await execute_code(...)`), and the sandbox of a coding agent (`get_sandbox`, `CodingTools`).
They are thin: whatever runs is checked, contained, verified and recorded by brig like any other request.
"""

from __future__ import annotations

from ._agent import CodingTools, FallbackSandbox, SandboxResult, get_sandbox
from ._containers import (
    Container,
    ContainerManager,
    ResourceMonitor,
    SandboxExecution,
    SandboxExecutor,
)
from ._sandbox import DockerSandbox
from ._service import (
    ExecutionResult,
    ResourceLimits,
    SandboxConfig,
    SandboxLanguage,
    SecurityConstraints,
    TimeoutConfig,
    create_docker_sandbox,
    create_standard_config,
    create_strict_config,
)
from ._settings import SecuritySettings
from ._validators import (
    CodeValidator,
    CommandValidator,
    FileValidator,
    SecurityCheckResult,
    SecurityIssue,
    SecurityLevel,
    SecurityValidator,
    Validation,
    create_security_validator,
)

__all__ = [
    "CodeValidator",
    "CodingTools",
    "CommandValidator",
    "Container",
    "ContainerManager",
    "DockerSandbox",
    "ExecutionResult",
    "FallbackSandbox",
    "FileValidator",
    "ResourceLimits",
    "ResourceMonitor",
    "SandboxConfig",
    "SandboxExecution",
    "SandboxExecutor",
    "SandboxLanguage",
    "SandboxResult",
    "SecurityCheckResult",
    "SecurityConstraints",
    "SecurityIssue",
    "SecurityLevel",
    "SecuritySettings",
    "SecurityValidator",
    "TimeoutConfig",
    "Validation",
    "create_docker_sandbox",
    "create_security_validator",
    "create_standard_config",
    "create_strict_config",
    "get_sandbox",
]
