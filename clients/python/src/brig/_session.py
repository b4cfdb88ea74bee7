# SPDX-License-Identifier: Apache-2.0
"""Session: a sandbox whose cell stays.  Interpreters keep their state, processes run beside them, files stay where they
are.  `Sandbox(session=True)` makes one."""

from __future__ import annotations

import base64
import threading
import urllib.parse
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Union

from . import _service
from ._archive import Entry, clean_path
from ._core import Code, Command
from ._errors import ServiceError, UsageError
from ._events import Event, ResultEvent, ShownEvent, event_of
from ._files import Data, FileMissing, Files
from ._options import Options, Time, seconds_of, value_text
from ._result import Files as FetchedFiles, Result
from ._sandbox import Sandbox, Stream
from ._session_parts import Snapshot, Terminal, Watch
from ._transport import Reply, Stdin

MAX_STDIN = 1 << 20


@dataclass(frozen=True)
class Context:
    """An interpreter of a session."""

    id: int
    language: str

    @staticmethod
    def of(row: Mapping[str, Any]) -> "Context":
        return Context(int(row["id"]), str(row["language"]))


ContextLike = Union[int, Context]


def _number(context: ContextLike) -> int:
    return context.id if isinstance(context, Context) else int(context)


def _folder(path: str) -> str:
    return clean_path(path) if path.strip("/") not in ("", ".", "workspace") else "."


class Contexts:
    """The interpreters of a session: iteration gives them, `create()` makes one more."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def list(self) -> "List[Context]":
        return [Context.of(row) for row in self._session.info()["contexts"]]

    def create(self, language: str = "python", cwd: Optional[str] = None) -> Context:
        body = {"language": language, **({} if cwd is None else {"cwd": cwd})}
        return Context.of(self._session._json("POST", "/contexts", body))

    def remove(self, context: ContextLike) -> None:
        self._session._json("DELETE", f"/contexts/{_number(context)}")

    def __iter__(self) -> Iterator[Context]:
        return iter(self.list())

    def __len__(self) -> int:
        return len(self.list())


class SessionFiles(Files):
    """The files of a session, which its cell opens: with the rights of its programs, and where its links lead."""

    def __init__(self, session: "Session") -> None:
        self._session = session

    def _ask(self, method: str, rest: str, body: Any = None, path: str = "") -> bytes:
        try:
            return self._session._bytes(method, rest, body)
        except ServiceError as e:
            if e.status == 404:
                raise FileMissing(2, "there is no such file in the session", path) from e
            raise

    @staticmethod
    def _url(path: str) -> str:
        return "/files/" + urllib.parse.quote(clean_path(path))

    def read(self, path: str) -> bytes:
        return self._ask("GET", self._url(path), path=path)

    def write(self, path: str, data: Data, executable: bool = False) -> None:
        raw = data.encode("utf-8") if isinstance(data, str) else bytes(data)
        self._ask("PUT", self._url(path), raw, path)
        if executable:
            self._session.exec(["chmod", "+x", "--", clean_path(path)], check=True)

    def remove(self, path: str) -> None:
        self._ask("DELETE", self._url(path), path=path)

    def move(self, path: str, to: str) -> None:
        """Gives a file or a folder another name."""
        self._ask("POST", "/moves", {"path": clean_path(path), "to": clean_path(to)}, path)

    def mkdir(self, path: str) -> None:
        """Makes a folder, and those above it."""
        self._ask("POST", "/folders", {"path": clean_path(path)}, path)

    def watch(self, folder: str = "", recursive: bool = False) -> Watch:
        """What changes below a folder, from now on and as it happens."""
        query = {"path": _folder(folder), **({"recursive": "1"} if recursive else {})}
        return Watch(self._session, "/watches?" + urllib.parse.urlencode(query))

    def _rows(self, folder: str, depth: int = 64) -> "List[Dict[str, Any]]":
        query = urllib.parse.urlencode({"path": _folder(folder), "depth": depth})
        answer = self._session._json("GET", f"/files?{query}")
        return [dict(row) for row in answer["files"]]

    def list(self, folder: str = "") -> "List[str]":
        paths = (str(row["path"]) for row in self._rows(folder) if row["type"] == "file")
        return sorted(path[2:] if path.startswith("./") else path for path in paths)

    def _row(self, path: str) -> "Optional[Dict[str, Any]]":
        """What the folder of a regular file tells of it; None: there is none."""
        folder, _, name = clean_path(path).rpartition("/")
        try:
            rows = self._rows(folder, 1)
        except ServiceError:
            return None
        named = (r for r in rows if r["type"] == "file" and r["path"].rpartition("/")[2] == name)
        return next(named, None)

    def __contains__(self, path: str) -> bool:
        return self._row(path) is not None

    def _entry(self, path: str) -> Entry:
        row = self._row(path)
        return Entry(self.read(path), row is not None and bool(int(row["mode"]) & 0o100))


class _Running:
    """A run of a session under way, as the streams of a sandbox have it."""

    def __init__(self, session: "Session", rest: str, body: Mapping[str, Any]) -> None:
        self._session, self._context = session, body.get("context")
        self._call = session._service.begin()
        self._events = session._service.events(session._at + rest, body, self._call)

    def __iter__(self) -> Iterator[Union[Dict[str, Any], Reply]]:
        for row in self._events:
            if row.get("event") == "started":
                self._context = row.get("context", self._context)
            if "verdict" in row:
                yield Reply(row["result"])
                return
            yield row

    def cancel(self) -> None:
        self._session.interrupt(self._context)

    def close(self) -> None:
        self._call.close()


class SessionStream(Stream):
    """The events of one run in a session, as they come; ShownEvent is what the code shows."""

    def __next__(self) -> Event:
        line = next(self._lines)
        if isinstance(line, Reply):
            self.result = self._box._finish(line, check=self._check)
            return ResultEvent("result", {"event": "result", "result": line.document}, self.result)
        if line.get("event") == "result":
            return ShownEvent("shown", line, dict(line.get("result") or {}))
        return event_of(line)

    def close(self) -> None:
        """Interrupts the code, or kills the command; nothing more is told.  Another thread may wait for events."""
        try:
            super().close()
        except ValueError:  # it does, and finds the connection closed
            pass


class Session(Sandbox):
    """A cell that stays, at a service: `with Sandbox(session=True) as s: s.run("x = 1"); s.run("x + 1").text`.

    The service is `host`, else $BRIG_HOST (http://HOST:PORT, https://HOST:PORT or unix:PATH) with `token`, else
    $BRIG_TOKEN; else one at the usual place; else one that is started for this session and ends with it.  The session
    begins with the first thing that is asked of it.  `timeout` is the limit of each run, `session_timeout` that of the
    session.  `snapshot` is one of snapshot(), whose files it begins with.  It may be used by several threads: contexts
    run side by side.
    """

    def __init__(
        self,
        *,
        host: Optional[str] = None,
        token: Optional[str] = None,
        session_timeout: Optional[Time] = None,
        session: bool = True,
        snapshot: Union[str, Snapshot, None] = None,
        files: Optional[Mapping[str, Data]] = None,
        **wishes: Any,
    ) -> None:
        if not session:
            raise UsageError("a Session is one: session=False is for Sandbox")
        if wishes.get("workspace") is not None:
            raise UsageError("a session has no workspace of the host's: use files.upload()")
        super().__init__(**wishes)
        self._first = dict(files or {})
        self._host, self._token, self._session_timeout = host, token, session_timeout
        self._snapshot, self._wishes = snapshot, wishes
        self._begin_lock = threading.Lock()
        self._own: Optional[_service.Own] = None
        self._id: Optional[str] = None
        self._service_or_none: Optional[_service.Service] = None
        self._session_files = SessionFiles(self)
        _refuse_what_sessions_lack(self.options)

    def __repr__(self) -> str:
        return f"<brig.Session {self._id or 'not begun'}{', closed' if self._closed else ''}>"

    # ---- the beginning and the end ----

    def _connect(self) -> _service.Service:
        address = _service.find(self._host)
        o = self.options
        if address is not None:
            if o.policy is not None or o.preset is not None or o.network is not None:
                raise UsageError(
                    f"the service at {address} has a policy of its own: leave policy, preset and network out"
                )
            return _service.Service(address, self._token)
        words = [w for name, value in o.policy_file() + o.place() for w in (name, value or "")]
        if o.preset is not None:
            words += ["--preset", o.preset]
        self._own = _service.Own(words, o.environ(), o.policy_document())
        return _service.Service("unix:" + self._own.path)

    def _begin(self) -> None:
        with self._begin_lock:
            self._check_open()
            if self._id is not None:
                return
            if self._service_or_none is None:
                self._service_or_none = self._connect()
            made = self._service_or_none.json("POST", "/v1/sessions", self._wish())
            self._id = str(made["id"])
        first, self._first = self._first, {}
        for path, data in first.items():
            self.files.write(path, data)

    def _wish(self) -> Dict[str, Any]:
        o = self.options
        settings = {**o.settings, **_settings_of(o)}
        wish: Dict[str, Any] = {"options": {k: value_text(v) for k, v in settings.items()}}
        if o.trust is not None:
            wish["trust"] = o.trust
        if o.environment is not None:
            wish["environment"] = o.environment
        if o.env:
            wish["env"] = dict(o.env)
        if self._session_timeout is not None:
            wish["timeout"] = seconds_of(self._session_timeout)
        if self._snapshot is not None:
            snapshot = self._snapshot
            wish["snapshot"] = snapshot.id if isinstance(snapshot, Snapshot) else snapshot
        return wish

    @property
    def id(self) -> str:
        """The session's, as `brig session` and the service know it."""
        self._begin()
        assert self._id is not None
        return self._id

    @property
    def _service(self) -> _service.Service:
        self._begin()
        assert self._service_or_none is not None
        return self._service_or_none

    @property
    def _at(self) -> str:
        return f"/v1/sessions/{self.id}"

    def __enter__(self) -> "Session":
        self._begin()
        return self

    def close(self) -> None:
        """Ends the session and all that runs in it."""
        with self._begin_lock:
            if self._closed:
                return
            self._closed = True
        for stream in list(self._streams):
            stream.close()
        service = self._service_or_none
        try:
            if service is not None and self._id is not None:
                service.ask("DELETE", f"/v1/sessions/{self._id}")
        except ServiceError:
            pass  # it has ended by itself, or the service forgot it
        finally:
            if service is not None:
                service.close()
            if self._own is not None:
                self._own.close()

    # ---- asks ----

    def _json(self, method: str, rest: str, body: Any = None) -> Any:
        self._check_open()
        return self._service.json(method, self._at + rest, body)

    def _bytes(self, method: str, rest: str, body: Any = None) -> bytes:
        self._check_open()
        return self._service.ask(method, self._at + rest, body)

    def info(self) -> Mapping[str, Any]:
        """What the service tells of the session: id, state, trust, created, contexts ..."""
        document: Mapping[str, Any] = self._json("GET", "")
        return document

    @property
    def files(self) -> SessionFiles:
        """The files of the session."""
        return self._session_files

    @property
    def contexts(self) -> Contexts:
        """Its interpreters."""
        return Contexts(self)

    def _chosen(self, context: Optional[ContextLike]) -> int:
        if context is not None:
            return _number(context)
        there = self.contexts.list()
        if len(there) != 1:
            raise UsageError(f"the session has {len(there)} contexts: name one")
        return there[0].id

    def interrupt(self, context: Optional[ContextLike] = None) -> None:
        """Interrupts what runs in a context, as Ctrl-C would; without one in the only one there is."""
        self._json("POST", f"/contexts/{self._chosen(context)}/interrupt")

    def restart(self, context: Optional[ContextLike] = None) -> None:
        """Begins an interpreter anew, without what it knew."""
        self._json("POST", f"/contexts/{self._chosen(context)}/restart")

    def pause(self) -> None:
        """Stops the processes of the session."""
        self._json("POST", "/pause")

    def resume(self) -> None:
        """Lets them go on."""
        self._json("POST", "/resume")

    def set_timeout(self, timeout: Time) -> None:
        """How long the session lasts from now on."""
        self._json("POST", "/timeout", {"timeout": seconds_of(timeout)})

    # ---- copies ----

    def fork(self, session_timeout: Optional[Time] = None) -> "Session":
        """A new session with a copy of its files, options and variables, and none of its processes.  Where the service
        is one's own it ends with the first."""
        body = {} if session_timeout is None else {"timeout": seconds_of(session_timeout)}
        made = self._json("POST", "/fork", body)
        own = ("policy", "preset", "network")  # the service has them
        wishes = {name: wish for name, wish in self._wishes.items() if name not in own}
        other = type(self)(host=self._service.address, token=self._token, **wishes)
        other._service_or_none = _service.Service(self._service.address, self._token)
        other._id = str(made["id"])
        return other

    def snapshot(self, name: Optional[str] = None) -> Snapshot:
        """Keeps its files for sessions to come."""
        return Snapshot.of(self._json("POST", "/snapshots", {} if name is None else {"name": name}))

    def snapshots(self) -> "List[Snapshot]":
        """Those that there are, of every session of this token; the newest first."""
        rows = self._service.json("GET", "/v1/snapshots")["snapshots"]
        return [Snapshot.of(row) for row in rows]

    def remove_snapshot(self, snapshot: Union[str, Snapshot]) -> None:
        named = snapshot.id if isinstance(snapshot, Snapshot) else snapshot
        self._service.json("DELETE", "/v1/snapshots/" + urllib.parse.quote(named, safe=""))

    # ---- runs ----

    def terminal(
        self,
        command: Command = "exec bash -i",
        *,
        rows: int = 24,
        columns: int = 80,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
    ) -> Terminal:
        """A shell, or another command, on a terminal."""
        body = self._process_body(command, None, cwd, env, timeout, {})
        return Terminal(self, {**body, "rows": rows, "columns": columns})

    def _run_body(
        self,
        code: Code,
        language: Optional[str],
        context: Optional[ContextLike],
        env: Optional[Mapping[str, str]],
        timeout: Optional[Time],
        others: Mapping[str, Any],
    ) -> Dict[str, Any]:
        _refuse_others(others)
        text = code if isinstance(code, str) else bytes(code).decode("utf-8")
        body: Dict[str, Any] = {"code": text}
        if context is not None:
            body["context"] = _number(context)
        else:
            body["language"] = language or self.language
        return self._limited(body, env, timeout)

    def _limited(
        self, body: Dict[str, Any], env: Optional[Mapping[str, str]], timeout: Optional[Time]
    ) -> Dict[str, Any]:
        wanted = timeout if timeout is not None else self.options.timeout
        if env:
            body["env"] = dict(env)
        if wanted is not None:
            body["timeout"] = seconds_of(wanted)
        return body

    def _process_body(
        self,
        command: Command,
        stdin: Stdin,
        cwd: Optional[str],
        env: Optional[Mapping[str, str]],
        timeout: Optional[Time],
        others: Mapping[str, Any],
    ) -> Dict[str, Any]:
        _refuse_others(others)
        if not command:
            raise UsageError(
                "there is no command: give one line for the shell, or a program and its arguments"
            )
        args = ["sh", "-c", command] if isinstance(command, str) else list(command)
        body: Dict[str, Any] = {"args": args}
        if stdin is not None:
            body["stdin"] = _input_of(stdin)
        if cwd is not None:
            body["cwd"] = cwd
        return self._limited(body, env, timeout)

    def _finish(self, reply: Reply, check: bool) -> Result:
        result = Result(reply.document, FetchedFiles(b""), None)
        self.last = result
        return result.raise_for_verdict() if check else result

    def _told(
        self,
        rest: str,
        body: Dict[str, Any],
        check: bool,
        on_event: Optional[Callable[[Event], None]] = None,
    ) -> Result:
        if on_event is None:
            return self._finish(Reply(self._json("POST", rest, body)), check)
        with self._opened(SessionStream(self, _Running(self, rest, body), check)) as stream:
            for event in stream:
                on_event(event)
            return stream.wait()

    def run(
        self,
        code: Code,
        language: Optional[str] = None,
        *,
        context: Optional[ContextLike] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        on_event: Optional[Callable[[Event], None]] = None,
        check: bool = False,
        **others: Any,
    ) -> Result:
        """Runs code in a context: the one that is named, else the first one of the language, which is made if need be.

        `text` of the result is the value of the last expression, `results` is all that was shown.  `on_event` is told
        of output and of what is shown while the code runs.
        """
        body = self._run_body(code, language, context, env, timeout, others)
        return self._told("/runs", body, check, on_event)

    def exec(
        self,
        command: Command,
        *,
        stdin: Stdin = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        on_event: Optional[Callable[[Event], None]] = None,
        check: bool = False,
        **others: Any,
    ) -> Result:
        """Runs a command beside the interpreters: a text is a line for the shell, a list is a program and its
        arguments.  `stdin` has at most 1 MB."""
        body = self._process_body(command, stdin, cwd, env, timeout, others)
        return self._told("/processes", body, check, on_event)

    def stream(
        self,
        code: Code,
        language: Optional[str] = None,
        *,
        context: Optional[ContextLike] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        check: bool = False,
        **others: Any,
    ) -> Stream:
        """Like run(), but gives the events while they happen; leaving early interrupts the code."""
        body = self._run_body(code, language, context, env, timeout, others)
        return self._opened(SessionStream(self, _Running(self, "/runs", body), check))

    def stream_exec(
        self,
        command: Command,
        *,
        stdin: Stdin = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[Time] = None,
        check: bool = False,
        **others: Any,
    ) -> Stream:
        """Like exec(), but gives the events while they happen; leaving early kills the command."""
        body = self._process_body(command, stdin, cwd, env, timeout, others)
        return self._opened(SessionStream(self, _Running(self, "/processes", body), check))

    def test(self, *_: Any, **__: Any) -> NoReturn:
        """Sessions run no test suites: a Sandbox does."""
        raise UsageError("a session runs no tests: use a Sandbox, or exec()")


# Wishes of a sandbox by the names that settings have.
_NAMES = {
    "memory": "mem_limit",
    "cpus": "cpu_count",
    "pids": "pids_limit",
    "disk": "disk_limit",
    "output_limit": "output_limit",
    "inspect": "inspection",
}


def _settings_of(o: Options) -> Dict[str, Any]:
    out = {key: getattr(o, name) for name, key in _NAMES.items() if getattr(o, name) is not None}
    if o.rules:
        out["rules"] = ",".join(f"{rule}={action}" for rule, action in o.rules.items())
    if o.allow_degraded:
        out["allow_degraded"] = ",".join(o.allow_degraded)
    return out


def _refuse_what_sessions_lack(o: Options) -> None:
    if o.packages or o.project_packages:
        raise UsageError("a session installs no packages: make an environment, and name that")
    if o.backend not in (None, "auto", "native"):
        raise UsageError(f"sessions need native cells: backend={o.backend!r} has none")


def _refuse_others(others: Mapping[str, Any]) -> None:
    wanted = [name for name, value in others.items() if value not in (None, (), False)]
    if wanted:
        raise UsageError(f"in a session there is no {', '.join(wanted)} of a single run")


def _input_of(stdin: Stdin) -> Any:
    if isinstance(stdin, str):
        data = stdin.encode("utf-8")
    elif isinstance(stdin, (bytes, bytearray)):
        data = bytes(stdin)
    else:
        read = getattr(stdin, "read", None)
        if read is None:
            raise UsageError("stdin of a session's command is text, bytes or an open file")
        got = read(MAX_STDIN + 1)
        data = got.encode("utf-8") if isinstance(got, str) else bytes(got)
    if len(data) > MAX_STDIN:
        raise UsageError("stdin has more than 1 MB: write it to a file of the session")
    return {"base64": base64.b64encode(data).decode("ascii")}
