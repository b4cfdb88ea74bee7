# SPDX-License-Identifier: Apache-2.0
"""A service (`brig serve`) over HTTP: where it is, one's own if there is none, requests and streams of events.

    $BRIG_HOST          http://HOST:PORT, https://HOST:PORT, or unix:PATH of `brig serve --unix PATH`; none: one's own
    the usual places    $XDG_RUNTIME_DIR/brig/brig.sock, then /run/brig/brig.sock
    one's own           `brig serve` is started beside this process, and ends with it however it ends

Each call has a connection of its own for as long as it lasts: who closes it gives up, and the service ends the run.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import secrets
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import urllib.parse
import weakref
from typing import IO, Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ._binary import find_binary
from ._errors import ServiceError, TransportError, UsageError

USUAL = "/run/brig/brig.sock"
_IDLE = 20.0  # seconds that a connection waits for the next call; the service would wait for 60
_PATH_MAX = 107  # bytes of a socket's address
_PATIENCE = 60  # seconds for a service of one's own to say that it is ready


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        try:
            self.sock.connect(self._path)
        except OSError:
            self.sock.close()
            raise


def _new_path() -> str:
    """A name that nobody knows, which fits into the address of a socket: a long $TMPDIR would not."""
    name = f"brig-session-{secrets.token_hex(8)}.sock"
    path = os.path.join(tempfile.gettempdir(), name)
    return path if len(os.fsencode(path)) <= _PATH_MAX else os.path.join("/tmp", name)


class Own:
    """A service of one's own: it ends when its standard input does, which is when this process closes it or is gone.

    Its socket has a name that nobody knows, is this user's alone, and goes with the service: nothing stays behind.
    """

    def __init__(self, words: List[str], environ: Mapping[str, str], policy: Optional[bytes]) -> None:
        self.path = _new_path()
        line = [find_binary(), "serve", "--unix", self.path, "--socket", "none", "--no-auth"]
        line += ["--end-with-stdin", "--drain", "1s", *words]
        env = {name: value for name, value in os.environ.items() if name != "BRIG_HOST"}
        with contextlib.ExitStack() as stack:
            if policy is not None:
                file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".json"))
                file.write(policy)
                file.flush()
                line += ["--policy", file.name]
            log = stack.enter_context(tempfile.TemporaryFile())
            self._process = _start(line, {**env, **environ}, log)
        self._finalizer = weakref.finalize(self, _end, self._process)

    def close(self) -> None:
        self._finalizer()


def _start(line: List[str], env: Mapping[str, str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """The service, when it is ready."""
    try:
        process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=dict(env),
            start_new_session=True,  # Ctrl-C is for us, and we end it
        )
    except OSError as e:
        raise TransportError(f"brig serve cannot be started: {e}") from e
    assert process.stdout is not None
    is_ready = select.select([process.stdout], [], [], _PATIENCE)[0]
    if is_ready and process.stdout.readline().startswith(b"ready"):
        return process
    process.kill()
    _end(process)
    log.seek(0)
    said = log.read().decode("utf-8", "replace").strip().splitlines()
    raise TransportError(f"brig serve did not begin: {said[-1] if said else 'without a word'}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()


def find(host: Optional[str]) -> Optional[str]:
    """The address of a service that was named or is at a usual place; None: there is none."""
    named = host if host is not None else os.environ.get("BRIG_HOST", "")
    if named == "none":
        return None
    if named:
        return named
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    usual = ([f"{runtime}/brig/brig.sock"] if runtime else []) + [USUAL]
    return next(("unix:" + path for path in usual if _answers(path)), None)


def _answers(path: str) -> bool:
    """Whether somebody listens there who is root or ourselves: nobody has named it."""
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as sock:
        try:
            sock.connect(path)
            cred = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return False
    return struct.unpack("3i", cred)[1] in (0, os.geteuid())


class Call:
    """One request; close() gives up what has not been answered."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self.closed = False

    def close(self) -> None:
        self.closed = True
        sock = self._connection.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Service:
    """Requests to one service.  It may be used by several threads."""

    def __init__(self, address: str, token: Optional[str] = None) -> None:
        self.address = address
        self._token = token if token is not None else os.environ.get("BRIG_TOKEN") or None
        self._url = urllib.parse.urlsplit(address)
        if self._url.scheme not in ("http", "https", "unix") or not (
            self._url.netloc or self._url.scheme == "unix"
        ):
            raise UsageError(
                f"{address!r} is no service: it is http://HOST:PORT, https://HOST:PORT, unix:PATH or none"
            )
        self._idle: List[Tuple[float, http.client.HTTPConnection]] = []
        self._lock = threading.Lock()

    # ---- connections ----

    def _new(self) -> http.client.HTTPConnection:
        if self._url.scheme == "unix":
            return _UnixConnection(self.address[len("unix:") :])
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(
                self._url.netloc, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(self._url.netloc)

    def _take(self) -> http.client.HTTPConnection:
        """One that waits, if it has not waited long: the service closes those that do."""
        now = time.monotonic()
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if now - since < _IDLE:
                    return connection
                connection.close()
        return self._new()

    def _give(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < 8:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            for _, connection in self._idle:
                connection.close()
            self._idle.clear()

    # ---- requests ----

    def _send(
        self, call: Call, method: str, path: str, body: Any, accept: str
    ) -> http.client.HTTPResponse:
        headers = {"Accept": accept}
        data: Optional[bytes] = None
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if isinstance(body, bytes):
            data, headers["Content-Type"] = body, "application/octet-stream"
        elif body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        try:
            if call._connection.sock is None:
                call._connection.connect()
            if call.closed:  # from now on close() finds the socket
                raise TransportError("it was given up before it was asked for")
            call._connection.request(method, path, data, headers)
            return call._connection.getresponse()
        except (OSError, http.client.HTTPException) as e:
            raise self._trouble(e) from e

    def _trouble(self, e: Exception) -> TransportError:
        hint = ""
        if isinstance(e, OSError) and e.errno == errno.EPROTOTYPE:
            hint = ": that is the socket of commands; name the one of 'brig serve --unix PATH'"
        return TransportError(f"the service at {self.address} does not answer: {e}{hint}")

    def begin(self) -> Call:
        """For a request that somebody may want to give up."""
        return Call(self._take())

    def ask(self, method: str, path: str, body: Any = None, call: Optional[Call] = None) -> bytes:
        """The bytes of the answer; ServiceError if it is a refusal."""
        call = call or self.begin()
        done = False
        try:
            answer = self._send(call, method, path, body, "*/*")
            try:
                data = answer.read()
            except (OSError, http.client.HTTPException) as e:
                raise self._trouble(e) from e
            done = not answer.will_close and not call.closed
            if answer.status >= 400:
                raise _refusal(answer.status, data)
            return data
        finally:
            if done:
                self._give(call._connection)
            else:
                call._connection.close()

    def json(self, method: str, path: str, body: Any = None, call: Optional[Call] = None) -> Any:
        data = self.ask(method, path, body, call)
        try:
            return json.loads(data)
        except ValueError as e:
            raise TransportError(f"the service at {self.address} gave no document: {e}") from e

    def events(
        self, path: str, body: Any, call: Call, method: str = "POST"
    ) -> Iterator[Dict[str, Any]]:
        """The events of a run while it lasts; the last one has the member `result`.  Leaving early ends the run."""
        try:
            answer = self._send(call, method, path, body, "text/event-stream")
            if answer.status >= 400:
                raise _refusal(answer.status, answer.read())
            while True:
                try:
                    line = answer.readline()
                except (OSError, ValueError, http.client.HTTPException) as e:
                    raise self._trouble(e) from e
                if not line:
                    return
                if line.startswith(b"data: "):
                    yield json.loads(line[len(b"data: ") :])
        finally:
            call.close()
            call._connection.close()


def _refusal(status: int, data: bytes) -> ServiceError:
    try:
        row = json.loads(data)["error"]
        return ServiceError(str(row["message"]), status, str(row["code"]))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answers {status}", status, "")
