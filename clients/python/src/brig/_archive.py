# SPDX-License-Identifier: Apache-2.0
"""Files as tar archives in memory, in both directions.

What comes back was named by a program that nobody trusts: only regular files are taken, and names that are no plain
relative paths are left out.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Dict, Iterable, List, Mapping, NamedTuple, Tuple

from ._errors import UsageError

if TYPE_CHECKING:
    import tarfile

EMPTY = bytes(1024)  # two blocks of zeros end an archive


class Entry(NamedTuple):
    """A regular file: its bytes, and whether it can be executed."""

    data: bytes
    executable: bool = False


class Changes(NamedTuple):
    """What a program did to files: those that are there now, folders, other things (links ...), and what is gone."""

    files: Dict[str, Entry]
    folders: List[str]
    others: List[str]
    gone: List[str]


def clean_path(path: str) -> str:
    """A path below the workspace in its one form; UsageError if it leads elsewhere."""
    text = path[len("/workspace/") :] if path.startswith("/workspace/") else path
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if not parts or text.startswith("/") or ".." in parts or "\0" in text:
        raise UsageError(
            f"{path!r} is no path in the workspace: it has to be relative, without '..'"
        )
    return "/".join(parts)


def pack(files: Mapping[str, Entry], folders: Iterable[str] = ()) -> bytes:
    """An archive that is the same for the same files."""
    import tarfile

    folders = sorted(folders)
    if not files and not folders:
        return EMPTY
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        for path in folders:
            info = tarfile.TarInfo(path)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for path in sorted(files):
            entry = files[path]
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(entry.data), 0o755 if entry.executable else 0o644
            tar.addfile(info, io.BytesIO(entry.data))
    return out.getvalue()


def _member(tar: "tarfile.TarFile", info: "tarfile.TarInfo") -> Tuple[str, Entry]:
    stream = tar.extractfile(info)
    data = stream.read() if stream else b""
    return clean_path(info.name), Entry(data, bool(info.mode & 0o100))


def unpack(archive: bytes) -> Dict[str, Entry]:
    """The regular files of an archive that brig wrote."""
    if not archive.strip(b"\0"):
        return {}
    import tarfile

    found: Dict[str, Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:", encoding="utf-8") as tar:
        for info in tar:
            if not info.isreg() or info.name.startswith("/"):
                continue
            try:
                path, entry = _member(tar, info)
            except UsageError:
                continue
            found[path] = entry
    return found
