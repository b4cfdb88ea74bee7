# SPDX-License-Identifier: Apache-2.0
"""What a session has beside runs and files: watches, terminals, snapshots."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional, Type, TypeVar, Union
from types import TracebackType

from ._result import Files as FetchedFiles, Result

if TYPE_CHECKING:
    from ._session import Session

T = TypeVar("T", bound="_Listening")


@dataclass(frozen=True)
class Snapshot:
    """Files of a session that are kept: `Session(snapshot=...)` begins with them."""

    id: str
    name: Optional[str]
    files: int
    bytes: int

    @staticmethod
    def of(row: Mapping[str, Any]) -> "Snapshot":
        name = row.get("name")
        return Snapshot(
            str(row["id"]), None if name is None else str(name), int(row["files"]), int(row["bytes"])
        )


@dataclass(frozen=True)
class FileChange:
    """What became of a file: `created`, `written`, `removed`, `renamed`, `chmod`, or `lost` in the place of changes
    that were too many to be told."""

    change: str
    name: str


class _Listening:
    """Somebody to whom the service tells things, until either has enough."""

    def __init__(self, session: "Session", rest: str) -> None:
        service = session._service
        self._session = session
        self._call = service.begin()
        self._rows = service.events(session._at + rest, None, self._call, "GET")
        self._first: Optional[Dict[str, Any]] = next(self._rows, None)  # it is told from now on

    def close(self) -> None:
        """Nothing more is told.  Another thread may wait for it."""
        self._call.close()

    def __enter__(self: T) -> T:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Watch(_Listening):
    """What changes below a folder, as it happens: `for change in files.watch("out"): ...`.  It lasts until close(), or
    until the session ends."""

    def __iter__(self) -> Iterator[FileChange]:
        for row in self._rows:
            if row.get("event") == "changed":
                yield FileChange(str(row["change"]), str(row.get("name", "")))


class Terminal(_Listening):
    """A program on a terminal: iteration gives the bytes that it writes, until its end, when `result` is there."""

    def __init__(self, session: "Session", body: Mapping[str, Any]) -> None:
        wish = {**body, "pty": True, "interactive": True, "async": True}
        self.process = int(session._json("POST", "/processes", wish)["process"])
        self._at = f"/processes/{self.process}"
        self.result: Optional[Result] = None
        super().__init__(session, self._at + "/events")

    def __iter__(self) -> Iterator[bytes]:
        for row in self._rows:
            if "verdict" in row:
                self.result = Result(row["result"], FetchedFiles(b""), None)
                return
            if row.get("event") == "stdout":
                data = str(row["data"])
                yield base64.b64decode(data) if row.get("encoding") else data.encode("utf-8")

    def write(self, data: Union[str, bytes]) -> None:
        """Types something."""
        raw = data.encode("utf-8") if isinstance(data, str) else bytes(data)
        body = {"data": {"base64": base64.b64encode(raw).decode("ascii")}}
        self._session._json("POST", self._at + "/input", body)

    def resize(self, rows: int, columns: int) -> None:
        self._session._json("POST", self._at + "/resize", {"rows": rows, "columns": columns})

    def kill(self, signal: str = "SIGKILL") -> None:
        self._session._json("POST", self._at + "/signal", {"signal": signal})

    def wait(self) -> Result:
        """Its result; what it still writes is passed over."""
        for _ in self:
            pass
        assert self.result is not None
        return self.result
