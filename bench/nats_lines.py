# SPDX-License-Identifier: Apache-2.0
"""nats_lines.py - as much of NATS' protocol as the benchmarks speak: publish, subscribe, JetStream by its requests; and servers of our own.

The protocol is lines of text (PUB, SUB, MSG, HMSG ...), so a socket is all it takes.  One thread, no reconnecting.
"""
import json
import os
import shutil
import socket
import subprocess
import time

PATIENCE = 30.0
ACK = b"+ACK"


class Trouble(Exception):
    pass


class Message:
    __slots__ = ("sid", "subject", "reply", "status", "data")

    def __init__(self, sid, subject, reply, status, data):
        self.sid, self.subject, self.reply, self.status, self.data = sid, subject, reply, status, data


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes, self.at, self.sid, self.out = bytearray(), 0, 0, []
        self.inbox = f"_INBOX.{os.urandom(8).hex()}"
        self.line()
        self.send(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n')
        self.inbox_sid = self.subscribe(self.inbox + ".*")

    def close(self):
        self.socket.close()

    def send(self, data):
        self.out.append(data)

    def flush(self):
        if self.out:
            self.socket.sendall(b"".join(self.out))
            self.out = []

    def subscribe(self, subject):
        self.sid += 1
        self.send(f"SUB {subject} {self.sid}\r\n".encode())
        return self.sid

    def publish(self, subject, data, reply=""):
        self.send(f"PUB {subject} {reply + ' ' if reply else ''}{len(data)}\r\n".encode() + data + b"\r\n")

    def more(self):
        """A file object would be of no use after its first timeout."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise Trouble("the server has closed the connection")
        del self.bytes[:self.at]
        self.at = 0
        self.bytes += data

    def line(self):
        while (end := self.bytes.find(b"\r\n", self.at)) < 0:
            self.more()
        words = bytes(self.bytes[self.at:end]).split()
        self.at = end + 2
        return words

    def exactly(self, count):
        while len(self.bytes) - self.at < count:
            self.more()
        self.at += count
        return bytes(self.bytes[self.at - count:self.at])

    def read(self):
        """The next message of any subscription."""
        while True:
            words = self.line()
            if words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif words[0] == b"-ERR":
                raise Trouble(b" ".join(words).decode())
            elif words[0] in (b"MSG", b"HMSG"):
                return self.read_body([word.decode() for word in words])

    def read_body(self, words):
        head = int(words[-2]) if words[0] == "HMSG" else 0
        data = self.exactly(int(words[-1]) + 2)[:-2]
        status = data[:head].split(b"\r\n")[0].split()[1:2] if head else []
        n_sizes = 2 if words[0] == "HMSG" else 1
        reply = words[3] if len(words) == 4 + n_sizes else ""
        return Message(int(words[2]), words[1], reply, int(status[0]) if status else 0, data[head:])

    def ask(self, subject, data=b"", patience=PATIENCE):
        place = f"{self.inbox}.{os.urandom(4).hex()}"
        self.publish(subject, data, place)
        self.flush()
        self.socket.settimeout(patience)
        try:
            while True:
                message = self.read()
                if message.subject == place:
                    return message
        finally:
            self.socket.settimeout(PATIENCE)

    def api(self, name, request):
        """A request of JetStream's; tried again while the servers have not agreed on a leader yet."""
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = self.ask(f"$JS.API.{name}", json.dumps(request).encode(), 2.0)
                document = json.loads(answer.data) if answer.data else {"error": {"description": f"status {answer.status}"}}
            except TimeoutError:
                document = {"error": {"description": "no answer"}}
            if "error" not in document:
                return document
            if time.monotonic() > deadline:
                raise Trouble(f"{name}: {document['error'].get('description')}")
            time.sleep(0.1)

    def make_stream(self, name, subject, replicas, retention="limits"):
        return self.api(f"STREAM.CREATE.{name}", {"name": name, "subjects": [subject], "num_replicas": replicas, "retention": retention, "storage": "file"})

    def make_consumer(self, stream, name):
        config = {"durable_name": name, "ack_policy": "explicit", "ack_wait": 30 * 10**9, "max_ack_pending": 65536}
        return self.api(f"CONSUMER.DURABLE.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})

    def pull(self, stream, name, batch, place, seconds=10):
        self.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", json.dumps({"batch": batch, "expires": seconds * 10**9}).encode(), place)


# ---- servers -----------------------------------------------------------------------------------------------------------------------


def find_server():
    return shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Servers:
    """`count` servers with JetStream on loopback, ended with the block."""
    def __init__(self, count, folder):
        self.folder, self.count, self.children, self.ports = folder, count, [], []

    def __enter__(self):
        ports = free_ports(2 * self.count)
        self.ports, routes = ports[:self.count], ports[self.count:]
        for i in range(self.count):
            store = os.path.join(self.folder, f"server{i}")
            os.makedirs(store)
            lines = [f'server_name: "s{i}"', f"listen: 127.0.0.1:{self.ports[i]}", f'jetstream {{ store_dir: "{store}" }}']
            if self.count > 1:
                others = ", ".join(f'"nats://127.0.0.1:{port}"' for port in routes)
                lines.append(f'cluster {{ name: "bench", listen: "127.0.0.1:{routes[i]}", routes: [{others}] }}')
            with open(os.path.join(store, "conf"), "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")
            with open(os.path.join(store, "log"), "wb") as log:
                self.children.append(subprocess.Popen([find_server(), "-c", os.path.join(store, "conf")], stdout=log, stderr=log))
        return self

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()

    def connect(self, number=0):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return Connection(self.ports[number])
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def cpu_seconds(self, number):
        """Cpu time of one of them so far."""
        with open(f"/proc/{self.children[number].pid}/stat", encoding="utf-8") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
