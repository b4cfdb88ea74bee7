# SPDX-License-Identifier: Apache-2.0
"""What callers wish, as options, variables and a policy document of brig's.

The values themselves are brig's to judge: it knows its policy, and says what is wrong with one.  Here they only get the
form that the command line has.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import UsageError

Time = Union[int, float, str]
Size = Union[int, str]
Policy = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Pairs = List[Tuple[str, Optional[str]]]


def time_text(value: Time) -> str:
    """Seconds as a number, or brig's own form: "1.5s", "200ms", "2m"."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise UsageError(
            f"{value!r} is no time: give seconds as a number, or text like '1.5s', '200ms', '2m'"
        )
    if isinstance(value, str):
        return value
    milliseconds = round(value * 1000) if value == value and abs(value) < 1e12 else -1
    if milliseconds <= 0:
        raise UsageError(f"{value!r} is no time limit: it has to be more than 0 seconds")
    return f"{milliseconds}ms"


_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def seconds_of(value: Time) -> float:
    """The same as a number of seconds, as services take it."""
    if isinstance(value, str):
        number = value.rstrip("hms")
        try:
            return float(number) * _UNITS[value[len(number) :] or "s"]
        except (KeyError, ValueError):
            raise UsageError(f"{value!r} is no time: '1.5s', '200ms', '2m' are") from None
    time_text(value)
    return float(value)


def value_text(value: Any) -> str:
    """A value of any setting as the command line and variables take it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(value_text(v) for v in value)
    return str(value)


def words(value: Union[str, Sequence[str]]) -> List[str]:
    """One text or several."""
    return [value] if isinstance(value, str) else list(value)


@dataclass(frozen=True)
class Options:
    """Wishes of a sandbox, or of one run over those; None means: whatever lies below says."""

    timeout: Optional[Time] = None
    memory: Optional[Size] = None
    cpus: Optional[float] = None
    pids: Optional[int] = None
    disk: Optional[Size] = None
    output_limit: Optional[Size] = None
    trust: Optional[str] = None
    backend: Optional[str] = None
    preset: Optional[str] = None
    inspect: Optional[str] = None
    rules: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ()
    project_packages: bool = False
    environment: Optional[str] = None
    network: Optional[Sequence[str]] = None
    allow_degraded: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    policy: Optional[Policy] = None
    state: Optional[Union[str, "os.PathLike[str]"]] = None

    def over(self, **wishes: Any) -> "Options":
        """These with others on top: None leaves what is there, mappings are joined, names of packages added up."""
        changed: Dict[str, Any] = {}
        for name, value in wishes.items():
            if value is None:
                continue
            before = getattr(self, name)
            if name in ("rules", "settings", "env"):
                value = {**before, **value}
            elif name in ("packages", "allow_degraded"):
                value = [*before, *words(value)]
            changed[name] = value
        return replace(self, **changed) if changed else self

    def pairs(self) -> Pairs:
        """For `brig run`, `exec` and `test`."""
        out: Pairs = []
        if self.timeout is not None:
            out.append(("--timeout", time_text(self.timeout)))
        for name in ("memory", "cpus", "pids", "disk", "output_limit", "inspect"):
            value = getattr(self, name)
            if value is not None:
                out.append(("--" + name.replace("_", "-"), value_text(value)))
        if self.backend not in (None, "auto"):
            out.append(("--backend", self.backend))
        if self.preset is not None:
            out.append(("--preset", self.preset))
        out += self.judged()
        for package in words(self.packages):
            out.append(("--packages", package))
        if self.project_packages:
            out.append(("--project-packages", None))
        if self.environment is not None:
            out.append(("--env-name", self.environment))
        if self.allow_degraded:
            out.append(("--allow-degraded", ",".join(words(self.allow_degraded))))
        for key, value in self.settings.items():
            out.append(("--set", f"{key}={value_text(value)}"))
        for key, value in self.env.items():
            if not key or "=" in key:
                raise UsageError(f"{key!r} is no name of a variable")
            out.append(("--env", f"{key}={value}"))
        return out + self.place()

    def judged(self) -> Pairs:
        """Who judges, and how; `brig check` takes these, too."""
        out: Pairs = []
        if self.trust is not None:
            out.append(("--trust", self.trust))
        for rule, action in self.rules.items():
            out.append(("--rule", f"{rule}={action}"))
        return out + self.policy_file()

    def policy_file(self) -> Pairs:
        if self.policy is None or isinstance(self.policy, Mapping):
            return []
        return [("--policy", os.fspath(self.policy))]

    def place(self) -> Pairs:
        return [] if self.state is None else [("--state", os.fspath(self.state))]

    def policy_document(self) -> Optional[bytes]:
        """A policy that was given as a mapping: JSON is YAML."""
        if not isinstance(self.policy, Mapping):
            return None
        return json.dumps(self.policy).encode("utf-8")

    def environ(self) -> Dict[str, str]:
        """Which hosts may be reached is for the policy to say, not for a request.  The program that makes a sandbox is
        the person's own, so it says that as brig's environment does; a policy file that has decided it refuses that.
        """
        if self.network is None:
            return {}
        hosts = words(self.network)
        if not hosts:
            return {"BRIG_NETWORK_MODE": "none"}
        return {"BRIG_NETWORK_MODE": "allowlist", "BRIG_WHITELIST": ",".join(hosts)}


def flat(pairs: Pairs) -> List[str]:
    return [word for name, value in pairs for word in ((name,) if value is None else (name, value))]
