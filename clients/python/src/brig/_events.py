# SPDX-License-Identifier: Apache-2.0
"""What a run tells while it runs: the lines of `brig run --events`, as objects."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping

from ._result import Finding, Result, Sample


@dataclass(frozen=True)
class Event:
    """Something that happened; events of a newer brig are plain ones, and `raw` has all of them."""

    kind: str
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class FindingEvent(Event):
    """A remark of the inspection, before the program starts."""

    finding: Finding


@dataclass(frozen=True)
class NoticeEvent(Event):
    """A sentence for people that cannot wait."""

    text: str


@dataclass(frozen=True)
class StartedEvent(Event):
    """The program is let go."""

    id: str
    backend: str
    language: str
    trust: str


@dataclass(frozen=True)
class OutputEvent(Event):
    """A piece of the program's output; `stream` is "stdout" or "stderr"."""

    stream: str
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class SampleEvent(Event):
    """A reading of the running cell."""

    sample: Sample


@dataclass(frozen=True)
class ShownEvent(Event):
    """What code in a session shows: a value in every form it has ("text", "html", "png" ...), or an error."""

    forms: Mapping[str, Any]


@dataclass(frozen=True)
class ResultEvent(Event):
    """The last one."""

    result: Result


def _output(raw: Mapping[str, Any]) -> OutputEvent:
    text = str(raw.get("data", ""))
    data = (
        base64.b64decode(text)
        if raw.get("encoding") == "base64"
        else text.encode("utf-8", "replace")
    )
    return OutputEvent(str(raw["event"]), raw, str(raw["event"]), data)


def _started(raw: Mapping[str, Any]) -> StartedEvent:
    words: Dict[str, str] = {
        k: str(raw.get(k) or "") for k in ("id", "backend", "language", "trust")
    }
    return StartedEvent("started", raw, **words)


def event_of(raw: Mapping[str, Any]) -> Event:
    """The event of one line that is not the result's."""
    kind = str(raw.get("event", ""))
    if kind in ("stdout", "stderr"):
        return _output(raw)
    if kind == "finding":
        return FindingEvent(kind, raw, Finding.of(raw))
    if kind == "notice":
        return NoticeEvent(kind, raw, str(raw.get("text", "")))
    if kind == "started":
        return _started(raw)
    if kind == "sample":
        return SampleEvent(kind, raw, Sample.of(raw))
    return Event(kind, raw)
