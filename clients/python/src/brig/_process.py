# SPDX-License-Identifier: Apache-2.0
"""The transport over the brig program itself: one process for each request.

How it works.  Everything that goes in (code, input, files, policy) lies in memory files that the child inherits, and
what comes out beside the result (files, receipt, remarks) is written to such files: nothing touches a disk, no name of
anything can be guessed, and nobody has to feed a pipe while reading another.  Only the result comes over a pipe, for
two reasons: events are wanted as they come, and brig watches that pipe.  When its reader is gone, however that comes,
brig cancels the run; so a Python that is killed with -9 leaves no cell.

Cancelling sends SIGTERM, on which brig kills the cell and still tells the result; a brig that has not ended GRACE
seconds later is killed, and the kernel takes the cell with it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._binary import find_binary
from ._errors import BinaryNotFound, TransportError, UsageError
from ._transport import Answer, Line, Question, Reply, Request, Stdin

if TYPE_CHECKING:
    from ._process_async import ProcessAsyncRunning

logger = logging.getLogger("brig")

GRACE = 5.0
CHUNK = 1 << 18
_OWN_VARIABLES = ("BRIG_BIN",)  # this package's, which brig would take for a misspelt setting
_ONE_ARGUMENT = 128 * 1024 - 1  # the kernel's limit


# ---- memory files ----


class _Descriptors:
    """The memory files of one child: made for it, closed with it."""

    def __init__(self) -> None:
        self._all: List[int] = []
        self.passed: List[int] = []

    def make(self, data: Optional[bytes] = None) -> int:
        fd = os.memfd_create("brig", os.MFD_CLOEXEC)
        if fd <= 2:  # a daemon without standard streams: these numbers have a meaning in the child
            low, fd = fd, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(low)
        self._all.append(fd)
        if data:
            _write_all(fd, data)
            os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def share(self, fd: int) -> int:
        self.passed.append(fd)
        return fd

    def close(self, keep: Tuple[Optional[int], ...] = ()) -> None:
        for fd in self._all:
            if fd not in keep:
                os.close(fd)
        self._all = [fd for fd in self._all if fd in keep]


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read_whole(fd: Optional[int]) -> bytes:
    if fd is None:
        return b""
    pieces: List[bytes] = []
    at = 0
    while True:
        piece = os.pread(fd, 1 << 24, at)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        at += len(piece)


# ---- command lines ----


def _environment(extra: Mapping[str, str]) -> Optional[Dict[str, str]]:
    """None, for as it is, where that will do: it saves a copy."""
    if not extra and not any(name in os.environ for name in _OWN_VARIABLES):
        return None
    env = {name: value for name, value in os.environ.items() if name not in _OWN_VARIABLES}
    env.update(extra)
    return env


def _stdin_option(stdin: Stdin, files: _Descriptors) -> List[str]:
    if stdin is None:
        return ["--stdin", "none"]
    if isinstance(stdin, str):
        stdin = stdin.encode("utf-8")
    fd = files.make(stdin) if isinstance(stdin, (bytes, bytearray, memoryview)) else stdin.fileno()
    return ["--stdin", f"/dev/fd/{files.share(fd)}"]


def _check_words(words: List[str]) -> List[str]:
    for word in words:
        if "\0" in word:
            raise UsageError(f"an argument has a NUL character in it: {word[:60]!r}")
        if len(word) > _ONE_ARGUMENT // 4 and len(os.fsencode(word)) > _ONE_ARGUMENT:
            raise UsageError(
                "an argument is longer than the 128 KB that the kernel allows: pass it as a file or as input"
            )
    return words


class _Invocation:
    """The words of the child, and its descriptors."""

    def __init__(self, request: Request, output: str) -> None:
        self.files = _Descriptors()
        self.out: Optional[int] = None
        self.receipt: Optional[int] = None
        self.input: Optional[int] = None
        try:
            self.words = _check_words(self._words(request, output))
            self.stderr = self.files.make()
        except BaseException:
            self.files.close()
            raise

    def _words(self, request: Request, output: str) -> List[str]:
        files = self.files
        words = [request.kind, output]
        for name, value in request.options:
            words += [name] if value is None else [name, value]
        words += _stdin_option(request.stdin, files)
        if request.policy is not None:
            words += ["--policy", f"/dev/fd/{files.share(files.make(request.policy))}"]
        if request.files is not None:
            words += ["--files", f"fd:{files.share(files.make(request.files))}"]
        if request.fetch:
            self.out = files.make()
            words += ["--out-tar", f"fd:{files.share(self.out)}"]
        if request.receipt:
            self.receipt = files.make()
            words += ["--receipt", f"/dev/fd/{files.share(self.receipt)}"]
        return words + self._subject(request)

    def _subject(self, request: Request) -> List[str]:
        if request.kind == "run":
            # Not as an argument: those have a limit, and everybody on the host can read them.
            self.input = self.files.make(request.code or b"")
            return ["-", *(["--", *request.args] if request.args else [])]
        if request.shell is not None:
            return ["--shell", request.shell]
        if request.kind == "exec":
            return ["--", *request.command]
        # A path is no option, whatever it begins with.
        return [f"./{path}" if path.startswith("-") else path for path in request.args]


def _spawn(
    program: str,
    words: List[str],
    stdin: Optional[int],
    stderr: int,
    passed: List[int],
    env: Optional[Dict[str, str]],
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=passed,
            env=env,
            bufsize=0,
        )
    except (FileNotFoundError, PermissionError) as e:
        raise BinaryNotFound(f"cannot start {program}: {e.strerror}") from e
    except OSError as e:
        if e.errno == errno.E2BIG:
            raise UsageError("arguments and environment are longer than the kernel allows") from e
        raise TransportError(f"cannot start {program}: {e.strerror or e}") from e
    except ValueError as e:
        raise UsageError(f"cannot start brig: {e}") from e


# ---- a child ----


class Child:
    """A brig process whose stdout is read here."""

    def __init__(self, program: str, request: Request, output: str) -> None:
        invocation = _Invocation(request, output)
        self._files, self._out, self._receipt, self._stderr = (
            invocation.files,
            invocation.out,
            invocation.receipt,
            invocation.stderr,
        )
        try:
            env = _environment(request.environ)
            self.process = _spawn(
                program,
                invocation.words,
                invocation.input,
                invocation.stderr,
                invocation.files.passed,
                env,
            )
        except BaseException:
            invocation.files.close()
            raise
        self._files.close(keep=(self._out, self._receipt, self._stderr))
        assert self.process.stdout is not None
        self.fd = self.process.stdout.fileno()
        self.closed = False
        logger.debug("brig %s: process %d", request.kind, self.process.pid)

    def terminate(self) -> None:
        if not self.closed and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)

    def abort(self) -> None:
        """Cancels, waits for the end, and gives everything back.  brig goes on by itself when its pipe closes."""
        if self.closed:
            return
        try:
            self.terminate()
            if not self._drain(time.monotonic() + GRACE):
                self.process.kill()
            try:
                self.process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        finally:
            self.release()

    def _drain(self, until: float) -> bool:
        """Reads what nobody wants any more, so that brig can write its result and end; False: it takes too long."""
        os.set_blocking(self.fd, False)
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return False
            if poll.poll(left * 1000):
                try:
                    if not os.read(self.fd, CHUNK):
                        return True
                except BlockingIOError:
                    pass

    def release(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self.process.stdout:
            self.process.stdout.close()
        self._files.close()

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.process.kill()
            self.process.wait()
            self.release()

    def reply(self, document: Mapping[str, Any]) -> Reply:
        """When it has ended."""
        text = _read_whole(self._receipt)
        return Reply(document, _read_whole(self._out), json.loads(text) if text else None)

    def no_result(self) -> TransportError:
        status = self.process.returncode
        how = (
            f"was killed by signal {-status}"
            if status and status < 0
            else f"ended with status {status}"
        )
        said = _read_whole(self._stderr).decode("utf-8", "replace").strip()
        return TransportError(
            f"brig {how} and gave no result" + (f": {said[-500:]}" if said else "")
        )


def checked(reply: Reply, status: Optional[int]) -> Reply:
    """Wrong use of brig is a mistake of the caller's, not an outcome."""
    if status == 2 and reply.document.get("verdict") == "refused" and not reply.document.get("id"):
        raise UsageError(
            str(reply.document.get("reason") or "brig does not understand the request")
        )
    return reply


def _document(data: bytes, child: Child) -> Dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        raise child.no_result() from None
    if not isinstance(document, dict) or "verdict" not in document:
        raise child.no_result()
    return document


class Lines:
    """Bytes in, documents of whole lines out."""

    def __init__(self) -> None:
        self._rest: List[bytes] = []

    def feed(self, data: bytes) -> List[Dict[str, Any]]:
        if b"\n" not in data:
            self._rest.append(data)
            return []
        *lines, rest = (b"".join(self._rest) + data).split(b"\n")
        self._rest = [rest] if rest else []
        return [_object(line) for line in lines if line.strip()]

    def end(self) -> List[Dict[str, Any]]:
        """The last line, if nothing ends it."""
        rest = b"".join(self._rest).strip()
        return [_object(rest)] if rest else []


def _object(line: bytes) -> Dict[str, Any]:
    """ValueError if it is none: whoever wrote it is no brig, or was killed meanwhile."""
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


# ---- streams ----


class ProcessRunning:
    """A request under way, event by event; the last thing it gives is the Reply."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def __iter__(self) -> Iterator[Line]:
        child, lines = self._child, Lines()
        reply: Optional[Mapping[str, Any]] = None
        try:
            while True:
                data = os.read(child.fd, CHUNK)
                if not data:
                    break
                for line in self._feed(lines, data):
                    if line.get("event") == "result":
                        reply = line["result"]
                    else:
                        yield line
            child.process.wait()
            if reply is None:
                raise child.no_result()
            yield checked(child.reply(reply), child.process.returncode)
            child.release()
        finally:
            child.abort()

    def _feed(self, lines: Lines, data: bytes) -> List[Dict[str, Any]]:
        try:
            return lines.feed(data)
        except ValueError:
            self._child.process.kill()
            self._child.process.wait()
            raise self._child.no_result() from None

    def cancel(self) -> None:
        """brig ends the program; the stream goes on to its result, whose verdict is `cancelled`."""
        self._child.terminate()

    def close(self) -> None:
        self._child.abort()


# ---- the transport ----


class ProcessTransport:
    """Runs every request with the brig program at `binary`; without it the one that find_binary() finds."""

    def __init__(self, binary: Optional[str] = None) -> None:
        self._binary = binary

    @property
    def binary(self) -> str:
        if self._binary is None:
            self._binary = find_binary()
        return self._binary

    def run(self, request: Request) -> Reply:
        child = Child(self.binary, request, "--json")
        try:
            pieces = []
            while True:
                data = os.read(child.fd, CHUNK)
                if not data:
                    break
                pieces.append(data)
            child.process.wait()
            reply = child.reply(_document(b"".join(pieces), child))
            child.release()
        finally:
            child.abort()
        return checked(reply, child.process.returncode)

    def stream(self, request: Request) -> ProcessRunning:
        return ProcessRunning(Child(self.binary, request, "--events"))

    async def run_async(self, request: Request) -> Reply:
        from ._process_async import ProcessAsyncRunning

        return await ProcessAsyncRunning(Child(self.binary, request, "--json")).reply()

    def stream_async(self, request: Request) -> "ProcessAsyncRunning":
        from ._process_async import ProcessAsyncRunning

        return ProcessAsyncRunning(Child(self.binary, request, "--events"))

    def _ask(
        self, question: Question, files: _Descriptors
    ) -> "Tuple[subprocess.Popen[bytes], int]":
        words = list(question.words)
        if question.policy is not None:
            # Behind "--" it would be a part of what is asked about.
            end = words.index("--") if "--" in words else len(words)
            words[end:end] = ["--policy", f"/dev/fd/{files.share(files.make(question.policy))}"]
        stderr = files.make()
        env = _environment(question.environ)
        return (
            _spawn(
                self.binary,
                _check_words(words),
                files.make(question.stdin),
                stderr,
                files.passed,
                env,
            ),
            stderr,
        )

    def query(self, question: Question) -> Answer:
        files = _Descriptors()
        try:
            process, stderr = self._ask(question, files)
            with process:
                assert process.stdout is not None
                try:
                    text = process.stdout.read()
                    process.wait()
                except BaseException:
                    process.kill()
                    raise
            return Answer(
                process.returncode, text, _read_whole(stderr).decode("utf-8", "replace").strip()
            )
        finally:
            files.close()

    async def query_async(self, question: Question) -> Answer:
        """Queries take milliseconds and cannot be cancelled half way: they run in the loop's pool of threads."""
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(None, self.query, question)
