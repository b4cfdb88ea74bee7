# SPDX-License-Identifier: Apache-2.0
"""SECURITY_* settings, from the environment or a .env file.

brig reads SECURITY_ENABLE_SANDBOX, SECURITY_DOCKER_IMAGE and SECURITY_MAX_EXECUTION_TIME from its environment by
itself; what is read here is for callers who look at the values, and for those that only a file has.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Dict, Mapping, Optional, Union

_NAMES = ("SECURITY_ENABLE_SANDBOX", "SECURITY_DOCKER_IMAGE", "SECURITY_MAX_EXECUTION_TIME")
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")


def read_env_file(path: Union[str, "os.PathLike[str]"]) -> Dict[str, str]:
    """The SECURITY_* lines of a file of NAME=VALUE lines; {} if it is not there."""
    values: Dict[str, str] = {}
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.read(65536).splitlines()
    except FileNotFoundError:
        return values
    for line in lines:
        name, equals, value = line.strip().partition("=")
        name = name[len("export ") :].strip() if name.startswith("export ") else name.strip()
        if equals and name in _NAMES:
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            values[name] = value[1:-1] if quoted else value.split(" #")[0].strip()
    return values


def _truth(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"{name} is {text!r}: write true or false")


@dataclass(frozen=True)
class SecuritySettings:
    """The settings in force."""

    enable_sandbox: bool = True
    docker_image: Optional[str] = None
    max_execution_time: Optional[float] = None

    @classmethod
    def load(
        cls,
        env_file: Union[None, str, "os.PathLike[str]"] = ".env",
        environ: Optional[Mapping[str, str]] = None,
    ) -> "SecuritySettings":
        """From the environment, and for what that does not say from a file."""
        values = read_env_file(env_file) if env_file is not None else {}
        around = os.environ if environ is None else environ
        values.update({name: around[name] for name in _NAMES if name in around})
        limit = values.get("SECURITY_MAX_EXECUTION_TIME")
        return cls(
            enable_sandbox=_truth(_NAMES[0], values.get("SECURITY_ENABLE_SANDBOX", "true")),
            docker_image=values.get("SECURITY_DOCKER_IMAGE") or None,
            max_execution_time=float(limit) if limit else None,
        )

    def policy(self) -> Dict[str, object]:
        """The same as settings of a policy."""
        wanted: Dict[str, object] = {}
        if not self.enable_sandbox:
            wanted["enable_sandbox"] = False
        if self.docker_image:
            wanted["docker_image"] = self.docker_image
        return wanted
