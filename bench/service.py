# SPDX-License-Identifier: Apache-2.0
"""A `brig serve` of the benchmark's own, and requests to it on connections that stay."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time

import measure
import memory


class Server:
    def __init__(self, brig, folder, *words, auth=False):
        command = [brig, "serve", *["--no-auth"] * (not auth), "--listen", "127.0.0.1:0", "--state", os.path.join(folder, "state"), "--socket", os.path.join(folder, "run.sock"), *words]
        self.command_env = {**{key: value for key, value in measure.ENV.items() if not key.startswith("BRIG_")}, "BRIG_HOST": "unix:" + os.path.join(folder, "run.sock")}
        self.log = open(os.path.join(folder, "serve.log"), "w+b")
        self.p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=measure.ENV)
        line = self.p.stdout.readline()
        if not line.startswith(b"ready http://127.0.0.1:"):
            self.log.seek(0)
            raise measure.CommandFailed(f"brig serve: {self.log.read().decode().strip()}")
        self.port = int(line.rsplit(b":", 1)[1])

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        self.p.wait()
        self.p.stdout.close()
        self.log.close()

    def request(self, method, path, body=None, token=None):
        """The bytes of one; what is no bytes is sent as JSON."""
        data = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Content-Length: {len(data)}"]
        head += ["Content-Type: application/json"] * (body is not None) + [f"Authorization: Bearer {token}"] * (token is not None)
        return "\r\n".join(head).encode() + b"\r\n\r\n" + data

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def processes(self):
        """Master, front, runner, keeper and inspectors: not cells, which are below the keeper."""
        found = [self.p.pid]
        for pid in found:
            if memory.comm(pid) != "brig-keeper":
                found += memory.children(pid)
        return found

    def resident_kib(self):
        """(resident sets added up, the same with pages that several of them share counted once)"""
        sets = shares = 0
        for pid in self.processes():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup") as f:
                fields = dict(line.split()[:2] for line in f.readlines()[1:])
                sets, shares = sets + int(fields["Rss:"]), shares + int(fields["Pss:"])
        return sets, shares


class Reader:
    """What has come of an answer: True when it is whole."""
    def __init__(self):
        self.data, self.need = b"", None

    def take(self, piece):
        if not piece:
            raise measure.CommandFailed("the server closed a connection")
        self.data += piece
        if self.need is None and b"\r\n\r\n" in self.data:
            head, _, _ = self.data.partition(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 20"):
                raise measure.CommandFailed(f"the server answered {self.data[:300]!r}")
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.need = len(head) + 4 + length
        return self.need is not None and len(self.data) >= self.need

    def json(self):
        return json.loads(self.data.partition(b"\r\n\r\n")[2])

    def verdict(self):
        return self.json()["verdict"]


def timed(sock, request):
    """(milliseconds of one request, from its first byte to the last of the answer; the answer)"""
    reader = Reader()
    begin = time.perf_counter_ns()
    sock.sendall(request)
    while not reader.take(sock.recv(1 << 18)):
        pass
    return (time.perf_counter_ns() - begin) / 1e6, reader
