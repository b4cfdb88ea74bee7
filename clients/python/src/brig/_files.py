# SPDX-License-Identifier: Apache-2.0
"""The files of a sandbox: in memory, or a project's folder.

In memory they are a bounded map of paths to bytes that goes into each cell and is brought up to date after it.  A
project's folder is the caller's own: reading and writing it here is not what a program in a cell does, whose changes
are kept aside until they are applied.  But programs may have put links into it by then, so every path is walked from
the folder's descriptor on, one component after the other, and no link is followed.
"""

from __future__ import annotations

import abc
import errno
import logging
import os
import secrets
import stat
import threading
from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

from ._archive import Changes, Entry, clean_path, pack
from ._errors import BrigError, UsageError

logger = logging.getLogger("brig")

Data = Union[str, bytes, bytearray, memoryview]
PathLike = Union[str, "os.PathLike[str]"]

MAX_BYTES = 64 << 20
MAX_FILES = 10_000
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileMissing(BrigError, FileNotFoundError):
    """There is no such file in the sandbox."""


def _bytes(data: Data) -> bytes:
    return data.encode("utf-8") if isinstance(data, str) else bytes(data)


# ---- folders of the host ----


def _refuse_link(path: str, e: OSError) -> OSError:
    if e.errno in (errno.ELOOP, errno.ENOTDIR):
        return UsageOSError(e.errno, "a link or no folder is in the way", path)
    return e


class UsageOSError(BrigError, OSError):
    """A path of the host that is not gone along."""


def _open_parent(root: int, path: str, make: bool) -> Tuple[int, str]:
    """A descriptor of the folder that path's last component is in, and that component."""
    *folders, name = path.split("/")
    at = os.dup(root)
    try:
        for folder in folders:
            if make:
                try:
                    os.mkdir(folder, 0o777, dir_fd=at)
                except FileExistsError:
                    pass
            below = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
    except OSError as e:
        os.close(at)
        raise _refuse_link(path, e) from None
    return at, name


def write_beneath(root: int, path: str, entry: Entry, overwrite: bool) -> None:
    """Writes a file below the folder, whole or not at all; what is in its place is replaced, never written through."""
    parent, name = _open_parent(root, path, make=True)
    temporary = f".brig-{secrets.token_hex(8)}"
    try:
        fd = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=parent
        )
        try:
            with os.fdopen(fd, "wb") as f:
                f.write(entry.data)
                if entry.executable:
                    mode = stat.S_IMODE(os.fstat(f.fileno()).st_mode)
                    os.fchmod(f.fileno(), mode | (mode & 0o444) >> 2)
            if overwrite:
                os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            else:
                os.link(
                    temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False
                )
        finally:
            try:
                os.unlink(temporary, dir_fd=parent)
            except FileNotFoundError:
                pass
    finally:
        os.close(parent)


def read_beneath(root: int, path: str) -> Entry:
    """Reads a regular file below the folder."""
    parent, name = _open_parent(root, path, make=False)
    try:
        fd = os.open(
            name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent
        )
    except OSError as e:
        raise _refuse_link(path, e) from None
    finally:
        os.close(parent)
    with os.fdopen(fd, "rb") as f:
        status = os.fstat(f.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UsageOSError(errno.EINVAL, "no regular file", path)
        return Entry(f.read(), bool(status.st_mode & 0o100))


def walk_beneath(root: int, prefix: str = "") -> Iterator[str]:
    """The regular files below the folder, without following links, sorted within each folder."""
    for item in sorted(os.scandir(root), key=lambda i: i.name):
        path = prefix + item.name
        if item.is_file(follow_symlinks=False):
            yield path
        elif item.is_dir(follow_symlinks=False):
            try:
                below = os.open(item.name, _FOLDER, dir_fd=root)
            except OSError:
                continue
            try:
                yield from walk_beneath(below, path + "/")
            finally:
                os.close(below)


# ---- what a sandbox has ----


class Files(abc.ABC):
    """Paths are relative to the workspace; a leading /workspace/ is taken away.  `in` and iteration work, too."""

    @abc.abstractmethod
    def read(self, path: str) -> bytes:
        """The bytes of a file; FileMissing if there is none."""

    @abc.abstractmethod
    def write(self, path: str, data: Data, executable: bool = False) -> None:
        """Makes or replaces a file; text is written as UTF-8."""

    @abc.abstractmethod
    def remove(self, path: str) -> None:
        """Removes a file, or in memory a folder with everything below."""

    @abc.abstractmethod
    def list(self, folder: str = "") -> "List[str]":
        """The paths of the files below a folder, sorted."""

    @abc.abstractmethod
    def _entry(self, path: str) -> Entry:
        """A file with its kind."""

    def read_text(self, path: str) -> str:
        return self.read(path).decode("utf-8")

    def __contains__(self, path: str) -> bool:
        try:
            self._entry(clean_path(path))
        except OSError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def upload(self, source: PathLike, path: Optional[str] = None) -> "List[str]":
        """Copies a file of the host, or a folder with everything below, to `path`; returns the paths that it made.

        Links below the folder are left out.  Without `path` a file keeps its name and a folder's files lie at the top.
        """
        where = os.fspath(source)
        if not os.path.isdir(where):
            target = path or os.path.basename(where)
            with open(where, "rb") as f:
                self.write(target, f.read(), bool(os.fstat(f.fileno()).st_mode & 0o100))
            return [clean_path(target)]
        root = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made = []
            for name in walk_beneath(root):
                target = clean_path(f"{path}/{name}" if path else name)
                entry = read_beneath(root, name)
                self.write(target, entry.data, entry.executable)
                made.append(target)
            return made
        finally:
            os.close(root)

    def download(self, path: str, target: PathLike, overwrite: bool = False) -> "List[str]":
        """Copies a file to the path `target`, or everything below a folder into the folder `target`.

        "." is everything.  Of a folder, names that begin with a dot are left out, as tools read such files unasked, and
        no link on the way is followed.  A file that is there already stays, and FileExistsError says so, unless
        `overwrite` is given.  Returns the paths on the host.
        """
        where = os.fspath(target)
        cleaned = "" if path in ("", ".", "/workspace") else clean_path(path)
        if cleaned and cleaned in self:
            return [self._download_one(cleaned, where, overwrite)]
        names = self.list(cleaned)
        if not names:
            raise FileMissing(errno.ENOENT, "no such file or folder in the sandbox", path)
        os.makedirs(where, exist_ok=True)
        root = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return [
                os.path.join(where, n)
                for n in self._download_below(root, cleaned, names, overwrite)
            ]
        finally:
            os.close(root)

    def _download_one(self, path: str, where: str, overwrite: bool) -> str:
        folder, name = os.path.split(
            os.path.join(where, path.rsplit("/", 1)[-1]) if os.path.isdir(where) else where
        )
        root = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            write_beneath(root, name, self._entry(path), overwrite)
        finally:
            os.close(root)
        return os.path.join(folder, name)

    def _download_below(
        self, root: int, folder: str, names: Iterable[str], overwrite: bool
    ) -> Iterator[str]:
        for path in names:
            name = path[len(folder) + 1 :] if folder else path
            if any(part.startswith(".") for part in name.split("/")):
                logger.warning(
                    "%s was not copied: names that begin with a dot have to be asked for", path
                )
                continue
            write_beneath(root, name, self._entry(path), overwrite)
            yield name


class MemoryFiles(Files):
    """Files in memory; what does not fit into `max_bytes` or `max_files` is refused."""

    def __init__(self, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
        self.max_bytes, self.max_files = max_bytes, max_files
        self._files: Dict[str, Entry] = {}
        self._folders: Set[str] = set()
        self._bytes = 0
        self._packed: Optional[bytes] = None
        self._lock = threading.RLock()

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return self._bytes

    def _put(self, path: str, entry: Entry) -> None:
        before = self._files.get(path)
        total = self._bytes + len(entry.data) - (len(before.data) if before else 0)
        if total > self.max_bytes:
            raise UsageError(
                f"{path!r} does not fit: the sandbox holds at most {self.max_bytes} bytes of files"
            )
        if before is None and len(self._files) >= self.max_files:
            raise UsageError(
                f"{path!r} does not fit: the sandbox holds at most {self.max_files} files"
            )
        self._check_place(path)
        self._folders.discard(path)
        self._files[path], self._bytes, self._packed = entry, total, None

    def _check_place(self, path: str) -> None:
        parts = path.split("/")
        for n in range(1, len(parts)):
            if "/".join(parts[:n]) in self._files:
                raise UsageError(f"{path!r} cannot be: {'/'.join(parts[:n])!r} is a file")
        if path not in self._files and any(name.startswith(path + "/") for name in self._files):
            raise UsageError(f"{path!r} cannot be a file: it is a folder")

    def _drop(self, path: str) -> bool:
        gone = [p for p in self._files if p == path or p.startswith(path + "/")]
        for name in gone:
            self._bytes -= len(self._files.pop(name).data)
        folders = {p for p in self._folders if p == path or p.startswith(path + "/")}
        self._folders -= folders
        self._packed = None
        return bool(gone or folders)

    def _entry(self, path: str) -> Entry:
        with self._lock:
            try:
                return self._files[path]
            except KeyError:
                raise FileMissing(errno.ENOENT, "no such file in the sandbox", path) from None

    def read(self, path: str) -> bytes:
        return self._entry(clean_path(path)).data

    def write(self, path: str, data: Data, executable: bool = False) -> None:
        with self._lock:
            self._put(clean_path(path), Entry(_bytes(data), executable))

    def remove(self, path: str) -> None:
        with self._lock:
            if not self._drop(clean_path(path)):
                raise FileMissing(errno.ENOENT, "no such file in the sandbox", path)

    def clear(self) -> None:
        """Removes everything."""
        with self._lock:
            self._files.clear()
            self._folders.clear()
            self._bytes, self._packed = 0, None

    def list(self, folder: str = "") -> "List[str]":
        prefix = "" if folder in ("", ".", "/workspace") else clean_path(folder) + "/"
        with self._lock:
            return sorted(path for path in self._files if path.startswith(prefix))

    def packed(self) -> bytes:
        """All of them as an archive."""
        with self._lock:
            if self._packed is None:
                self._packed = pack(self._files, self._folders)
            return self._packed

    def merge(self, changes: Changes) -> "List[str]":
        """Takes over what a program did; returns the paths of what did not fit."""
        missed = []
        with self._lock:
            for path in changes.gone:
                self._drop(path)
            for path in (*changes.folders, *changes.others):
                if path in self._files:  # something else is in the file's place
                    self._drop(path)
            for path, entry in changes.files.items():
                try:
                    self._put(path, entry)
                except UsageError as e:
                    logger.warning("not kept for later runs: %s", e)
                    missed.append(path)
            self._folders.update(path for path in changes.folders if path not in self._files)
            if changes.folders:
                self._packed = None
        return missed


class ProjectFiles(Files):
    """The files of a project's folder on the host, as they are: without what runs have changed and nobody applied."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def _root(self) -> int:
        return os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _entry(self, path: str) -> Entry:
        root = self._root()
        try:
            return read_beneath(root, path)
        except FileNotFoundError:
            raise FileMissing(errno.ENOENT, "no such file in the project", path) from None
        finally:
            os.close(root)

    def read(self, path: str) -> bytes:
        return self._entry(clean_path(path)).data

    def write(self, path: str, data: Data, executable: bool = False) -> None:
        root = self._root()
        try:
            write_beneath(root, clean_path(path), Entry(_bytes(data), executable), overwrite=True)
        finally:
            os.close(root)

    def remove(self, path: str) -> None:
        root = self._root()
        try:
            parent, name = _open_parent(root, clean_path(path), make=False)
            try:
                os.unlink(name, dir_fd=parent)
            finally:
                os.close(parent)
        except FileNotFoundError:
            raise FileMissing(errno.ENOENT, "no such file in the project", path) from None
        finally:
            os.close(root)

    def list(self, folder: str = "") -> "List[str]":
        prefix = "" if folder in ("", ".", "/workspace") else clean_path(folder) + "/"
        root = self._root()
        try:
            if not prefix:
                return list(walk_beneath(root))
            parent, _ = _open_parent(root, prefix + ".", make=False)
            try:
                return list(walk_beneath(parent, prefix))
            finally:
                os.close(parent)
        except FileNotFoundError:
            return []
        finally:
            os.close(root)
