# SPDX-License-Identifier: Apache-2.0
"""Everything that this package raises on its own account is a BrigError."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Type

if TYPE_CHECKING:
    from ._result import Denied, Finding, Result


class BrigError(Exception):
    """The base of all errors of this package."""


class BinaryNotFound(BrigError):
    """There is no brig program to work with."""


class UsageError(BrigError, ValueError):
    """The call itself makes no sense, here or to brig; nothing ran."""


class TransportError(BrigError):
    """brig gave no result: it could not be started, or it was killed."""


class CommandError(BrigError):
    """A brig command that runs no program (apply, history ...) failed; `status` is its exit status."""

    def __init__(self, message: str, status: int = 121) -> None:
        super().__init__(message)
        self.status = status


class ServiceError(BrigError):
    """A service refused what was asked of it; `status` is that of HTTP, `code` its word for it."""

    def __init__(self, message: str, status: int, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code

    def __reduce__(self) -> "tuple[type[ServiceError], tuple[str, int, str]]":
        return type(self), (str(self), self.status, self.code)


class ClosedError(BrigError):
    """The sandbox was closed before."""


class VerdictError(BrigError):
    """A run did not end well.  `result` is all of it; `findings` say why code was blocked, `remedy` what would help."""

    def __init__(self, result: "Result") -> None:
        self.result = result
        super().__init__(_describe(result))

    def __reduce__(self) -> "tuple[type[VerdictError], tuple[Result]]":
        return type(self), (self.result,)

    @property
    def verdict(self) -> str:
        return self.result.verdict

    @property
    def findings(self) -> "List[Finding]":
        return self.result.findings

    @property
    def denied(self) -> "List[Denied]":
        return self.result.denied

    @property
    def remedy(self) -> str:
        """What would help, "" if nothing is known: the remedies of what blocks, the hint, fixes of what was denied."""
        return remedy_of(self.result)


class Blocked(VerdictError):
    """The inspection found something that blocks; nothing ran."""


class Refused(VerdictError):
    """It cannot be enforced here, or asks for more than it may; nothing ran."""


class LimitReached(VerdictError):
    """A limit ended the program, or made it fail."""


class TimeLimit(LimitReached):
    """The wall clock or the cpu time (verdicts timeout, cpu_limit)."""


class MemoryLimit(LimitReached):
    """It was killed at the memory limit."""


class OutputLimit(LimitReached):
    """It wrote more than it may."""


class DiskLimit(LimitReached):
    """It filled its disk."""


class ProcessLimit(LimitReached):
    """It started more processes and threads than it may."""


class ProgramError(VerdictError):
    """The program ended by itself with another code than 0."""


class Crashed(VerdictError):
    """The program died of a signal it caused."""


class Violated(VerdictError):
    """It ran, and the evidence shows a promise that was not kept."""


class Failed(VerdictError):
    """brig's own fault, or its engine's."""


class Cancelled(VerdictError):
    """The caller gave up."""


VERDICT_ERRORS: Dict[str, Type[VerdictError]] = {
    "error": ProgramError,
    "crash": Crashed,
    "timeout": TimeLimit,
    "cpu_limit": TimeLimit,
    "memory_limit": MemoryLimit,
    "output_limit": OutputLimit,
    "disk_limit": DiskLimit,
    "pids_limit": ProcessLimit,
    "blocked": Blocked,
    "refused": Refused,
    "violated": Violated,
    "failed": Failed,
    "cancelled": Cancelled,
}


def error_of(result: "Result") -> VerdictError:
    """The error for a result that is not ok; a verdict of a newer brig gives a plain VerdictError."""
    return VERDICT_ERRORS.get(result.verdict, VerdictError)(result)


def remedy_of(result: "Result") -> str:
    lines = [f.remedy for f in result.findings if f.blocks and f.remedy]
    if result.hint:
        lines.append(result.hint)
    if not result.ok:
        lines += [d.fix for d in result.denied if d.fix]
    return "\n".join(dict.fromkeys(lines))


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:200] if lines else ""


def _describe(result: "Result") -> str:
    text = f"{result.verdict}: {result.reason}" if result.reason else result.verdict
    last = _last_line(result.stderr) if result.verdict == "error" else ""
    if last:
        text += f": {last}"
    blocking = [f for f in result.findings if f.blocks]
    if len(blocking) > 1:  # the reason names the first
        text += "".join(f"\n  also line {f.line}: {f.message} [{f.rule}]" for f in blocking[1:])
    remedy = remedy_of(result)
    return f"{text}\n  what would help: {remedy}" if remedy else text
