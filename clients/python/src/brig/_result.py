# SPDX-License-Identifier: Apache-2.0
"""Results: the document that brig prints, with names and types.

A result is made of that document (docs/RESULT.md) and of the files that came back with it; members are read from it
when they are asked for.  What a program wrote is data: nothing of it is rendered as HTML or SVG in a notebook.
"""

from __future__ import annotations

import base64
import html
import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Dict, List, Mapping, Optional

from ._archive import Changes, Entry, unpack
from ._errors import UsageError, error_of, remedy_of

Json = Mapping[str, Any]

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_SHOWN = 4000  # characters of each stream in a notebook


def _path(row: Json) -> str:
    """A path as Python's own functions take it, whatever bytes it has."""
    text = str(row.get("path", ""))
    return os.fsdecode(base64.b64decode(text)) if row.get("path_encoding") == "base64" else text


def _optional_int(value: Any) -> Optional[int]:
    return None if value is None else int(value)


def _optional_str(value: Any) -> Optional[str]:
    return None if value is None else str(value)


@dataclass(frozen=True)
class Finding:
    """A remark of the inspection.  Columns count characters from 1; the end is behind the last one."""

    rule: str
    severity: str
    message: str
    remedy: str
    line: int
    column: int
    end_line: int
    end_column: int
    name: str

    @staticmethod
    def of(row: Json) -> "Finding":
        return Finding(
            rule=str(row.get("rule") or ""),
            severity=str(row.get("severity") or ""),
            message=str(row.get("message") or ""),
            remedy=str(row.get("remedy") or ""),
            line=int(row.get("line") or 0),
            column=int(row.get("column") or 0),
            end_line=int(row.get("end_line") or 0),
            end_column=int(row.get("end_column") or 0),
            name=str(row.get("name") or ""),
        )

    @property
    def blocks(self) -> bool:
        return self.severity == "CRITICAL"

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.severity}: {self.message} [{self.rule}]"


@dataclass(frozen=True)
class Evidence:
    """One promise: what was declared, what the kernel or the engine said was in force, and where that was read."""

    check: str
    declared: str
    enforced: str
    kept: bool
    source: str

    @staticmethod
    def of(row: Json) -> "Evidence":
        words = {k: str(row.get(k) or "") for k in ("check", "declared", "enforced", "source")}
        return Evidence(kept=bool(row.get("kept")), **words)


@dataclass(frozen=True)
class Denied:
    """Something the program tried and did not get; `fix` is what in the policy would allow it."""

    kind: str
    what: str
    count: int
    why: str
    fix: Optional[str]

    @staticmethod
    def of(row: Json) -> "Denied":
        words = {k: str(row.get(k) or "") for k in ("kind", "what", "why")}
        return Denied(count=int(row.get("count") or 0), fix=_optional_str(row.get("fix")), **words)


@dataclass(frozen=True)
class NetworkUse:
    """A host that the program asked the egress proxy for."""

    host: str
    port: int
    allowed: bool
    reason: str
    count: int
    sent_bytes: int
    received_bytes: int

    @staticmethod
    def of(row: Json) -> "NetworkUse":
        return NetworkUse(
            host=str(row.get("host") or ""),
            port=int(row.get("port") or 0),
            allowed=bool(row.get("allowed")),
            reason=str(row.get("reason") or ""),
            count=int(row.get("count") or 0),
            sent_bytes=int(row.get("sent_bytes") or 0),
            received_bytes=int(row.get("received_bytes") or 0),
        )


@dataclass(frozen=True)
class Usage:
    """What the program took; 0 where the kernel does not tell."""

    wall_ms: int
    cpu_ms: int
    memory_peak_bytes: int
    pids_peak: int
    output_bytes: int

    @staticmethod
    def of(row: Json) -> "Usage":
        names = ("wall_ms", "cpu_ms", "memory_peak_bytes", "pids_peak", "output_bytes")
        return Usage(**{k: int(row.get(k) or 0) for k in names})


@dataclass(frozen=True)
class Sample:
    """A reading of the running cell."""

    at_ms: int
    cpu_ms: int
    memory_bytes: int
    pids: int
    output_bytes: int

    @staticmethod
    def of(row: Json) -> "Sample":
        names = ("at_ms", "cpu_ms", "memory_bytes", "pids", "output_bytes")
        return Sample(**{k: int(row.get(k) or 0) for k in names})


@dataclass(frozen=True)
class Change:
    """Something the program did to the workspace: `change` is added, modified or deleted; `type` file, directory ..."""

    path: str
    change: str
    type: str
    size: int
    mode: Optional[int]
    sha256: Optional[str]

    @staticmethod
    def of(row: Json) -> "Change":
        return Change(
            path=_path(row),
            change=str(row.get("change") or ""),
            type=str(row.get("type") or ""),
            size=int(row.get("size") or 0),
            mode=_optional_int(row.get("mode")),
            sha256=_optional_str(row.get("sha256")),
        )

    def __str__(self) -> str:
        return f"{self.change} {self.path}"


@dataclass(frozen=True)
class Degraded:
    """A protection that this host could not give and that was allowed to be missing."""

    protection: str
    lost: str
    fix: str

    @staticmethod
    def of(row: Json) -> "Degraded":
        return Degraded(**{k: str(row.get(k) or "") for k in ("protection", "lost", "fix")})


@dataclass(frozen=True)
class TestFailure:
    """One test that failed."""

    __test__ = False  # no class of tests

    name: str
    message: str
    file: Optional[str]
    line: Optional[int]

    @staticmethod
    def of(row: Json) -> "TestFailure":
        return TestFailure(
            name=str(row.get("name") or ""),
            message=str(row.get("message") or ""),
            file=_optional_str(row.get("file")),
            line=_optional_int(row.get("line")),
        )


@dataclass(frozen=True)
class TestReport:
    """What became of a project's tests; `report` says whose word the counts are (docs/TESTS.md)."""

    __test__ = False

    framework: str
    complete: bool
    report: str
    passed: int
    failed: int
    skipped: int
    failures: List[TestFailure]

    @staticmethod
    def of(row: Json) -> "TestReport":
        return TestReport(
            framework=str(row.get("framework") or ""),
            complete=bool(row.get("complete")),
            report=str(row.get("report") or ""),
            passed=int(row.get("passed") or 0),
            failed=int(row.get("failed") or 0),
            skipped=int(row.get("skipped") or 0),
            failures=[TestFailure.of(r) for r in row.get("failures") or ()],
        )


@dataclass(frozen=True)
class Artifact:
    """A file that the program made or changed.  `data` has its bytes; a notebook shows PNG and JPEG pictures."""

    path: str
    size: int
    sha256: str
    _files: "Files" = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def data(self) -> bytes:
        """Its bytes; UsageError if they did not come back with the result."""
        entry = self._files.get(self.path)
        if entry is None:
            raise UsageError(f"the bytes of {self.path!r} were not fetched with the result")
        return entry.data

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def save(self, path: "str | os.PathLike[str]") -> str:
        """Writes it to a path of the caller's choice, and returns that; the name it has in the cell is not used."""
        where = os.fspath(path)
        with open(where, "wb") as f:
            f.write(self.data)
        return where

    def _has(self, magic: bytes) -> bool:
        entry = self._files.get(self.path)
        return entry is not None and entry.data.startswith(magic)

    def _repr_png_(self) -> Optional[bytes]:
        return self.data if self._has(_PNG) else None

    def _repr_jpeg_(self) -> Optional[bytes]:
        return self.data if self._has(_JPEG) else None


class Files:
    """The files that came back with a result, unpacked when the first of them is asked for."""

    def __init__(self, archive: bytes = b"") -> None:
        self._archive = archive

    @cached_property
    def entries(self) -> Dict[str, Entry]:
        return unpack(self._archive)

    def get(self, path: str) -> Optional[Entry]:
        return self.entries.get(path)


class Result:
    """What became of one request: on every path, refused and failed ones included.

    `raw` is the whole document, with whatever a newer brig says that has no name here.
    """

    def __init__(
        self, raw: Json, files: Optional[Files] = None, receipt: Optional[Json] = None
    ) -> None:
        self.raw = raw
        self.receipt = receipt  #: the signed statement about the run, if one was asked for
        self._files = files if files is not None else Files()
        self._remarks: List[str] = []

    # ---- the outcome ----

    @property
    def id(self) -> str:
        """Names the run in brig's records; "" if it never became one."""
        return str(self.raw["id"])

    @property
    def verdict(self) -> str:
        """One word for the outcome: ok, error, timeout, blocked ..."""
        return str(self.raw["verdict"])

    @property
    def reason(self) -> str:
        """A sentence for people; "" when the verdict says it all."""
        return str(self.raw.get("reason") or "")

    @property
    def hint(self) -> Optional[str]:
        """What would help a program that lacks a package."""
        return _optional_str(self.raw.get("hint"))

    @property
    def remedy(self) -> str:
        """What would help, "" if nothing is known."""
        return remedy_of(self)

    @property
    def ok(self) -> bool:
        """The program ran, ended by itself with 0, and every promise was kept."""
        return self.verdict == "ok"

    @property
    def success(self) -> bool:
        """The same as `ok`."""
        return self.ok

    @property
    def exit_code(self) -> Optional[int]:
        """The program's own; None if it has none: it did not run, or was killed."""
        return _optional_int(self.raw.get("exit_code"))

    @property
    def signal(self) -> Optional[str]:
        """The name of the signal that ended the program."""
        return _optional_str(self.raw.get("signal"))

    @property
    def step(self) -> Optional[str]:
        """What decided: "run", or "compile" or "install" if the program never ran."""
        return _optional_str(self.raw.get("step"))

    @property
    def language(self) -> Optional[str]:
        return _optional_str(self.raw.get("language"))

    @property
    def backend(self) -> Optional[str]:
        return _optional_str(self.raw.get("backend"))

    @property
    def trust(self) -> str:
        return str(self.raw.get("trust") or "")

    def raise_for_verdict(self) -> "Result":
        """Returns itself if the verdict is ok; else raises the VerdictError of the verdict."""
        if not self.ok:
            raise error_of(self)
        return self

    # ---- output ----

    def _bytes(self, stream: str) -> bytes:
        text = str(self.raw.get(stream) or "")
        if self.raw.get(f"{stream}_encoding") == "base64":
            return base64.b64decode(text)
        return text.encode("utf-8", "replace")

    @cached_property
    def stdout_bytes(self) -> bytes:
        """Exactly what the program wrote."""
        return self._bytes("stdout")

    @cached_property
    def stderr_bytes(self) -> bytes:
        return self._bytes("stderr")

    @property
    def stdout(self) -> str:
        """As text; bytes that are no UTF-8 are replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """The program wrote more than is kept."""
        return bool(self.raw.get("stdout_truncated") or self.raw.get("stderr_truncated"))

    # ---- what it did, and what was enforced ----

    @cached_property
    def findings(self) -> List[Finding]:
        """What the inspection said about the code."""
        return [Finding.of(r) for r in self.raw.get("findings") or ()]

    @property
    def security_violations(self) -> List[Finding]:
        """The findings that block (CRITICAL) or warn (HIGH)."""
        return [f for f in self.findings if f.severity in ("CRITICAL", "HIGH")]

    @cached_property
    def evidence(self) -> List[Evidence]:
        """One row per promise."""
        return [Evidence.of(r) for r in self.raw.get("evidence") or ()]

    @cached_property
    def denied(self) -> List[Denied]:
        """What the program tried and was refused."""
        return [Denied.of(r) for r in self.raw.get("denied") or ()]

    @cached_property
    def network(self) -> List[NetworkUse]:
        """The hosts it asked for."""
        return [NetworkUse.of(r) for r in self.raw.get("network") or ()]

    @cached_property
    def usage(self) -> Usage:
        return Usage.of(self.raw.get("usage") or {})

    @cached_property
    def samples(self) -> List[Sample]:
        return [Sample.of(r) for r in self.raw.get("samples") or ()]

    @property
    def timing(self) -> Dict[str, float]:
        """Where the time went, in milliseconds."""
        return {str(k): float(v) for k, v in (self.raw.get("timing") or {}).items()}

    @property
    def limits(self) -> Dict[str, int]:
        return {str(k): int(v) for k, v in (self.raw.get("limits") or {}).items()}

    @cached_property
    def degraded(self) -> List[Degraded]:
        """Protections that it ran without."""
        return [Degraded.of(r) for r in self.raw.get("degraded") or ()]

    @property
    def warnings(self) -> List[str]:
        """Remarks that change no verdict, brig's and this package's."""
        return [str(w) for w in self.raw.get("warnings") or ()] + self._remarks

    @cached_property
    def tests(self) -> Optional[TestReport]:
        """What became of the tests; None if none were run."""
        row = self.raw.get("tests")
        return TestReport.of(row) if row else None

    # ---- what code in a session shows ----

    @property
    def results(self) -> List[Mapping[str, Any]]:
        """All that was shown, each in every form it has: "text", "html", "png" (base64) ...; [] without a session."""
        return list(self.raw.get("results") or ())

    @property
    def text(self) -> Optional[str]:
        """The value of the last expression as text; None if it has none, or this is no run of a session's context."""
        for shown in reversed(self.results):
            if shown.get("main"):
                return _optional_str(shown.get("text"))
        return None

    @property
    def error(self) -> Optional[Mapping[str, Any]]:
        """What code in a session raised: "name", "value" and "traceback"."""
        error = self.raw.get("error")
        return dict(error) if error else None

    # ---- files ----

    @cached_property
    def changes(self) -> List[Change]:
        """What the program did to the files of the workspace."""
        return [Change.of(r) for r in self.raw.get("changes") or ()]

    @cached_property
    def artifacts(self) -> List[Artifact]:
        """The files that the program made or changed."""
        return [
            Artifact(_path(r), int(r.get("size") or 0), str(r.get("sha256") or ""), self._files)
            for r in self.raw.get("artifacts") or ()
        ]

    def artifact(self, path: str) -> Artifact:
        """The artifact of that path, or of that name if only one has it; KeyError if there is none."""
        named = [a for a in self.artifacts if a.path == path] or [
            a for a in self.artifacts if a.name == path
        ]
        if len(named) != 1:
            made = ", ".join(a.path for a in self.artifacts) or "none"
            raise KeyError(f"{len(named)} artifacts are called {path!r}; there are: {made}")
        return named[0]

    @property
    def images(self) -> List[Artifact]:
        """The artifacts that are PNG or JPEG pictures, by their first bytes."""
        return [a for a in self.artifacts if a._has(_PNG) or a._has(_JPEG)]

    # ---- for people ----

    def to_dict(self) -> Dict[str, Any]:
        return dict(self.raw)

    def __repr__(self) -> str:
        words = [self.verdict]
        if self.exit_code:
            words.append(f"exit_code={self.exit_code}")
        if self.signal:
            words.append(f"signal={self.signal}")
        if self.reason:
            words.append(f"reason={_short(self.reason, 120)!r}")
        for stream in ("stdout", "stderr"):
            text = getattr(self, stream)
            if text:
                words.append(f"{stream}={_short(text, 60)!r}")
        if self.artifacts:
            words.append(f"artifacts={[a.path for a in self.artifacts][:5]!r}")
        return f"<brig.Result {' '.join(words)} wall={self.usage.wall_ms}ms>"

    def _summary(self) -> str:
        took = f"{self.usage.wall_ms} ms, {self.usage.memory_peak_bytes / (1 << 20):.1f} MB"
        where = " · ".join(w for w in (self.language, self.backend, self.trust) if w)
        return f"{self.reason + ' · ' if self.reason else ''}{where} · {took}"

    def _repr_html_(self) -> str:
        """For notebooks: verdict, findings, output, pictures.  Everything of the program's is escaped."""
        colour = "#1a7f37" if self.ok else "#cf222e"
        parts = [
            f'<div><b style="color:{colour}">{html.escape(self.verdict)}</b> '
            f"<small>{html.escape(self._summary())}</small></div>"
        ]
        for finding in self.security_violations:
            parts.append(
                f"<div>{html.escape(str(finding))}<br><small>{html.escape(finding.remedy)}</small></div>"
            )
        for stream in ("stdout", "stderr"):
            text = getattr(self, stream)
            if text:
                parts.append(f"<pre>{html.escape(_short(text, _SHOWN))}</pre>")
        for image in self.images:
            kind = "png" if image._has(_PNG) else "jpeg"
            data = base64.b64encode(image.data).decode("ascii")
            parts.append(
                f'<img alt="{html.escape(image.path)}" src="data:image/{kind};base64,{data}">'
            )
        others = [a for a in self.artifacts if a not in self.images]
        if others:
            names = ", ".join(f"{html.escape(a.path)} ({a.size} bytes)" for a in others)
            parts.append(f"<div><small>files: {names}</small></div>")
        return "".join(parts)

    def _repr_png_(self) -> Optional[bytes]:
        """The picture, if exactly one was made."""
        pictures = [a for a in self.images if a._has(_PNG)]
        return pictures[0].data if len(pictures) == 1 else None


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


@dataclass(frozen=True)
class Check:
    """What the inspection says about code that was not run."""

    blocked: bool
    worst: Optional[str]
    language: Optional[str]
    level: str
    inspected: bool
    findings: List[Finding]
    raw: Json = field(repr=False, compare=False)

    @staticmethod
    def of(row: Json) -> "Check":
        return Check(
            blocked=bool(row.get("blocked")),
            worst=_optional_str(row.get("worst")),
            language=_optional_str(row.get("language")),
            level=str(row.get("level") or ""),
            inspected=bool(row.get("inspected")),
            findings=[Finding.of(r) for r in row.get("findings") or ()],
            raw=row,
        )

    @property
    def ok(self) -> bool:
        """It would be run.  No finding does not mean harmless."""
        return not self.blocked

    def __bool__(self) -> bool:
        return self.ok


def merged_changes(result: Result) -> Changes:
    """What a run did to files in memory."""
    there = [c for c in result.changes if c.change != "deleted"]
    return Changes(
        files=result._files.entries,
        folders=[c.path for c in there if c.type == "directory"],
        others=[c.path for c in there if c.type not in ("file", "directory")],
        gone=[c.path for c in result.changes if c.change == "deleted"],
    )
