# SPDX-License-Identifier: Apache-2.0
"""Validators: what brig's inspection says, in the words that callers of such classes know."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from .._result import Check, Finding, Result
from .._sandbox import Sandbox


def strict_policy() -> Dict[str, Any]:
    """Settings under which code is judged as the validators in use judge it."""
    return {"inspection": "strict", "rules": {"py-input": "block"}}


#: What validators of code in use block: starting processes, evaluating text, pickles, the network.
CODE_RULES = {
    name: "block" for name in ("py-os-process", "py-process", "py-eval", "py-pickle", "py-network")
}


class SecurityLevel(enum.Enum):
    """CRITICAL blocks, HIGH warns, MEDIUM and LOW inform."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True)
class SecurityIssue:
    """One remark."""

    level: SecurityLevel
    message: str
    line: int = 0
    column: int = 0
    rule: str = ""
    remedy: str = ""

    @property
    def severity(self) -> SecurityLevel:
        """The same as `level`."""
        return self.level

    @property
    def line_number(self) -> int:
        """The same as `line`."""
        return self.line

    def __str__(self) -> str:
        return f"line {self.line}: {self.message} [{self.rule}]" if self.line else self.message


def issue_of(f: Finding) -> SecurityIssue:
    return SecurityIssue(SecurityLevel[f.severity], f.message, f.line, f.column, f.rule, f.remedy)


@dataclass(frozen=True)
class SecurityCheckResult:
    """What a check came to: `passed` is false if something blocks."""

    passed: bool
    issues: List[SecurityIssue] = field(default_factory=list)

    @property
    def is_safe(self) -> bool:
        """The same as `passed`."""
        return self.passed

    def __bool__(self) -> bool:
        return self.passed


def language_name(language: Any) -> str:
    """A SandboxLanguage, or a name."""
    return str(getattr(language, "value", language))


#: What each promise says when it was not kept, by the name of its evidence.
_AFTER = {
    "network": "network isolation",
    "packets_out": "network isolation",
    "memory_limit": "memory limit",
    "cpu_quota": "cpu limit",
    "pids_limit": "process limit",
    "read_only_root": "read-only file system",
    "root_unchanged": "read-only file system",
    "uid_inside": "user",
    "capabilities": "capabilities",
    "no_new_privs": "no new privileges",
}


class SecurityValidator:
    """Judges code before it runs, on its syntax tree, and what was enforced afterwards."""

    def __init__(self, policy: Optional[Dict[str, Any]] = None) -> None:
        self._box = Sandbox(policy=strict_policy() if policy is None else policy)

    def validate(self, code: str, language: Any = "python") -> List[SecurityIssue]:
        """Every remark, the place of each included; [] for code that nothing is to be said about."""
        checked = self._box.check(code, language_name(language))
        return [issue_of(f) for f in checked.findings]

    def check(self, code: str, language: Any = "python") -> SecurityCheckResult:
        """The same, and whether the code would be let run."""
        issues = self.validate(code, language)
        return SecurityCheckResult(
            not any(i.level is SecurityLevel.CRITICAL for i in issues), issues
        )

    validate_code = check
    validate_pre_execution = check

    def validate_execution(self, result: Any) -> SecurityCheckResult:
        """Whether every promise of a run was kept, as the kernel or the engine says: network, limits, files, user."""
        rows = (result if isinstance(result, Result) else result.result).evidence
        broken = [r for r in rows if not r.kept]
        issues = [
            SecurityIssue(
                SecurityLevel.CRITICAL,
                f"{_AFTER.get(r.check, r.check)}: {r.enforced or 'nothing'} is in force, not {r.declared} ({r.source})",
                rule=r.check,
            )
            for r in broken
        ]
        return SecurityCheckResult(not issues and bool(rows), issues)

    validate_post_execution = validate_execution


def create_security_validator() -> SecurityValidator:
    return SecurityValidator()


@dataclass(frozen=True)
class Validation:
    """Yes or no, and why: true or false by itself, and `ok, reason = ...` takes it apart."""

    is_valid: bool
    reason: str = ""
    issues: List[SecurityIssue] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.is_valid

    def __iter__(self) -> Iterator[Union[bool, str]]:
        parts: Tuple[Union[bool, str], ...] = (self.is_valid, self.reason)
        return iter(parts)


def validation_of(checked: Check) -> Validation:
    issues = [issue_of(f) for f in checked.findings]
    blocking = [i for i in issues if i.level is SecurityLevel.CRITICAL]
    return Validation(not checked.blocked, str(blocking[0]) if blocking else "", issues)


class CommandValidator:
    """Judges command lines.  With `strict` only a white-list passes, to which `allowed_commands` are added."""

    def __init__(self, strict: bool = False, allowed_commands: Sequence[str] = ()) -> None:
        policy: Dict[str, Any] = {"inspection": "guard"}
        if strict:
            policy["strict_commands"] = True
        if allowed_commands:
            policy["allowed_commands"] = list(allowed_commands)
        self._box = Sandbox(policy=policy)

    def validate(self, command: str) -> Validation:
        return validation_of(self._box.check(command, kind="command"))

    def is_safe(self, command: str) -> bool:
        return self.validate(command).is_valid


class CodeValidator:
    """Judges Python code.  With `allow_network` talking to the network is no reason to block."""

    def __init__(self, allow_network: bool = False) -> None:
        rules = {**CODE_RULES, "py-network": "note"} if allow_network else CODE_RULES
        self._box = Sandbox(policy={"inspection": "guard", "rules": rules})

    def validate(self, code: str) -> Validation:
        return validation_of(self._box.check(code, "python"))

    def is_safe(self, code: str) -> bool:
        return self.validate(code).is_valid


class FileValidator:
    """Judges paths: inside the workspace, and no secret of it."""

    def __init__(self, workspace_root: Union[str, "os.PathLike[str]"]) -> None:
        self.workspace_root = os.path.abspath(os.fspath(workspace_root))
        self._box = Sandbox(policy={"inspection": "guard"})

    def validate(self, path: Union[str, "os.PathLike[str]"]) -> Validation:
        named = os.fspath(path)
        inside = os.path.join(self.workspace_root, named)
        real = os.path.realpath(inside)
        if real != self.workspace_root and not real.startswith(
            self.workspace_root.rstrip("/") + "/"
        ):
            return Validation(False, f"{named!r} is outside of the workspace {self.workspace_root}")
        below = os.path.relpath(os.path.normpath(inside), self.workspace_root)
        return validation_of(self._box.check(below, kind="path"))

    def is_safe(self, path: Union[str, "os.PathLike[str]"]) -> bool:
        return self.validate(path).is_valid
