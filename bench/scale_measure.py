# SPDX-License-Identifier: Apache-2.0
"""scale_measure.py - the numbers that bench/scale calculates with: what a run costs a node, and what a message costs NATS.

Both are accounted as cpu time, by control group and by process: on a machine that others use, that stays what it is while wall clocks do
not.  Nodes are control groups (v1: cpu and cpuacct) with a share of a cpu, so that three of them fit on a machine with two.
"""
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import measure
import memory
import nats_lines

GROUPS = "/sys/fs/cgroup"
PERIOD_US = 20000
CONNECTIONS = 16
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scale-worker")


class CannotMeasure(Exception):
    pass


# ---- nodes -------------------------------------------------------------------------------------------------------------------------


class Group:
    """A control group that a node's processes live in; its cells are made below it, and are counted with it."""
    def __init__(self, name, share=None):
        self.paths = [os.path.join(GROUPS, tree, name) for tree in ("cpu", "cpuacct")]
        self.share = share

    def __enter__(self):
        for path in self.paths:
            if not os.path.exists(os.path.dirname(path) + "/cgroup.procs"):
                raise CannotMeasure(f"needs the v1 hierarchies cpu and cpuacct below {GROUPS}, and to be root")
            os.mkdir(path)
        if self.share:
            self.write(0, "cpu.cfs_period_us", PERIOD_US)
            self.write(0, "cpu.cfs_quota_us", int(self.share * PERIOD_US))
        return self

    def __exit__(self, *_):
        for path in self.paths:
            deadline = time.monotonic() + 20
            while True:
                try:
                    for folder, _, _ in os.walk(path, topdown=False):
                        os.rmdir(folder)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.05)

    def write(self, tree, name, value):
        with open(os.path.join(self.paths[tree], name), "w", encoding="ascii") as f:
            f.write(str(value))

    def enter(self):
        """For preexec_fn: this process and what it starts are the node's."""
        for path in self.paths:
            with open(os.path.join(path, "cgroup.procs"), "w", encoding="ascii") as f:
                f.write(str(os.getpid()))

    def cpu_seconds(self):
        with open(os.path.join(self.paths[1], "cpuacct.usage"), encoding="ascii") as f:
            return int(f.read()) / 1e9


def jobs_file(path, count, members):
    with open(path, "w", encoding="utf-8") as f:
        for number in range(count):
            f.write(json.dumps({"id": f"j{number}", "language": "python", "code": "pass", **members}) + "\n")


def batch_cpu(work, count, members):
    """Cpu seconds of a job, bytes of a result, and jobs that had a warm cell, by `brig batch` in a group of its own."""
    jobs, out, state = (os.path.join(work, name) for name in ("jobs", "out", "state"))
    jobs_file(jobs, count, members)
    with Group(f"brig-scale-{os.getpid()}") as group:
        with open(jobs, "rb") as stdin, open(out, "wb") as stdout:
            begin = time.monotonic()
            done = subprocess.run([measure.find_brig(), "batch", "--local", "--quiet", "--state", state, "--jobs", "2", "--warm", "4", "-"], stdin=stdin, stdout=stdout,
                                  stderr=subprocess.PIPE, env=measure.ENV, preexec_fn=group.enter, check=False)
            seconds = time.monotonic() - begin
        cpu = group.cpu_seconds()
    if done.returncode:
        raise CannotMeasure(f"brig batch ended with {done.returncode}: {done.stderr.decode()[-300:]}")
    with open(out, "rb") as f:
        lines = f.read().splitlines()
    results = [json.loads(line) for line in lines]
    bad = [r for r in results if r["verdict"] != "ok"]
    if bad or len(results) != count:
        raise CannotMeasure(f"{len(results)} of {count} results, {len(bad)} not ok: {bad[:1]}")
    return {"cpu_ms": 1000 * cpu / count, "result_bytes": statistics.mean(map(len, lines)), "warm": sum(bool(r["warm"]) for r in results) / count,
            "wall_per_second": count / seconds, "program_cpu_ms": statistics.mean(r["usage"]["cpu_ms"] for r in results)}


# A program with an argument gets no cell that was there before it.
KINDS = {"warm": {}, "cold": {"args": ["x"]}}


def measure_node(runs):
    """The marginal cost: what the jobs of a long batch take more than those of a short one, so that its start does not count."""
    found = {}
    with tempfile.TemporaryDirectory() as work:
        for name, members in KINDS.items():
            short, long = batch_cpu(work, runs // 4, members), batch_cpu(work, runs, members)
            cpu = (long["cpu_ms"] * runs - short["cpu_ms"] * (runs // 4)) / (runs - runs // 4)
            found[name] = {**long, "cpu_ms": cpu, "runs": runs}
    return found


def measure_imports(code):
    """Milliseconds of cpu that an interpreter takes to import something: what a node without that environment warm pays besides."""
    def cpu(text):
        before = os.times()
        if subprocess.run(["/usr/bin/python3", "-I", "-c", text], env=measure.ENV, stderr=subprocess.DEVNULL, check=False).returncode:
            return None
        after = os.times()
        return 1000 * (after.children_user + after.children_system - before.children_user - before.children_system)
    with_it, without = ([cpu(text) for _ in range(5)] for text in (code, "pass"))
    return None if None in with_it else statistics.median(with_it) - statistics.median(without)


def warm_runs(pause, count):
    """A program that runs `count` requests with pauses between them, and says a line after each."""
    return [os.path.join(measure.REPO, "build", "bench", "warm-runs"), "--lang", "python", "--code", "pass", "--pause", str(pause), str(count), "/bin/true"]


def measure_cell():
    """MiB of private memory of a cell that waits, its init and its janitor with it."""
    with tempfile.TemporaryDirectory() as state:
        found = memory.waiting(warm_runs(60000, 1), {**measure.ENV, "BRIG_STATE": state})
    if not found:
        raise CannotMeasure("no cell came to rest")
    return found["cell_kib"] / 1024


def measure_zygote():
    """MiB of private memory of an interpreter that others are forked from: the keeper's own child that is no program of brig's."""
    with tempfile.TemporaryDirectory() as state, subprocess.Popen(warm_runs(500, 12), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                                                  env={**measure.ENV, "BRIG_STATE": state}) as run:
        try:
            for _ in range(10):
                run.stdout.readline()
            keeper = next(p for p in memory.children(run.pid) if memory.comm(p) == "brig-keeper")
            found = [memory.private_kib(p) for p in memory.children(keeper) if not memory.comm(p).startswith("brig-")]
        finally:
            run.kill()
    if not found:
        raise CannotMeasure("the keeper has no interpreter to fork from; it takes root")
    return max(found) / 1024


def measure_front(count):
    """Milliseconds of cpu of the processes of `brig serve`, without cells, for a request that is refused before anything runs: what is left
    when executions go elsewhere is reading, checking and answering, and this is the nearest that a service without a queue does."""
    with tempfile.TemporaryDirectory() as work, Group(f"brig-scale-{os.getpid()}") as group:
        server = subprocess.Popen([measure.find_brig(), "serve", "--no-auth", "--listen", "127.0.0.1:0", "--socket", "none", "--state", work],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=measure.ENV, preexec_fn=group.enter)
        try:
            port = int(server.stdout.readline().rsplit(b":", 1)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            body = json.dumps({"language": "no such language", "code": "pass"})
            ask_all(connection, body, 50)
            before = group.cpu_seconds()
            ask_all(connection, body, count)
            return 1000 * (group.cpu_seconds() - before) / count
        finally:
            server.terminate()
            server.wait()


def ask_all(connection, body, count):
    for _ in range(count):
        connection.request("POST", "/v1/executions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200 or b'"refused"' not in text:
            raise CannotMeasure(f"the service answers {answer.status}: {text[:200]}")


# ---- NATS --------------------------------------------------------------------------------------------------------------------------


def leader_of(connection, stream):
    return int(connection.api(f"STREAM.INFO.{stream}", {})["cluster"]["leader"][1:])


def pipelined(connection, subject, data, count, window=64):
    """Publishes `count` messages, `window` without an answer at a time."""
    sent = answered = 0
    while answered < count:
        while sent < count and sent - answered < window:
            connection.publish(subject, data, f"{connection.inbox}.p")
            sent += 1
        connection.flush()
        message = connection.read()
        if b'"error"' in message.data or message.status:
            raise CannotMeasure(f"a publication was refused: {message.data[:200]} {message.status}")
        answered += 1


def measure_publishing(servers, connection, size, count):
    """Cpu of the leader's server for a message of `size` bytes, and messages in a second as the clock saw it."""
    leader, data = leader_of(connection, "JOBS"), os.urandom(size // 2).hex().encode()
    before, begin = servers.cpu_seconds(leader), time.monotonic()
    pipelined(connection, "jobs.a", data, count)
    seconds, cpu = time.monotonic() - begin, servers.cpu_seconds(leader) - before
    return {"size": size, "messages": count, "leader_cpu_us": 1e6 * cpu / count, "per_second": count / seconds}


def measure_waits(connection, count=200):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        connection.ask("jobs.a", b"x" * 1024)
        times.append(1000 * (time.perf_counter() - begin))
    return {"median_ms": statistics.median(times), "min_ms": min(times)}


def measure_fetching(servers, connection, count):
    """Cpu of the leader's server for handing a message over and hearing that it was done."""
    connection.make_consumer("JOBS", "w")
    leader = leader_of(connection, "JOBS")
    before, begin, got, place = servers.cpu_seconds(leader), time.monotonic(), 0, f"{connection.inbox}.f"
    wanted = 0
    while got < count:
        if wanted == 0:
            wanted = min(64, count - got)
            connection.pull("JOBS", "w", wanted, place)
            connection.flush()
        message = connection.read()
        if message.subject == place and message.status:
            wanted = 0
        elif message.reply.startswith("$JS.ACK"):
            connection.publish(message.reply, nats_lines.ACK)
            got, wanted = got + 1, wanted - 1
    connection.flush()
    # The acknowledgements are written when the consumer says that none is missing.
    while connection.api("CONSUMER.INFO.JOBS.w", {})["num_ack_pending"]:
        time.sleep(0.02)
    seconds, cpu = time.monotonic() - begin, servers.cpu_seconds(leader) - before
    return {"messages": count, "leader_cpu_us": 1e6 * cpu / count, "per_second": count / seconds}


def measure_election(servers, connection):
    """Seconds without an answer after the stream's leader was killed."""
    leader = leader_of(connection, "JOBS")
    other = servers.connect((leader + 1) % servers.count)
    begin = time.monotonic()
    servers.children[leader].kill()
    while True:
        try:
            answer = other.ask("jobs.a", b"after", patience=0.5)
            if answer.data and b'"seq"' in answer.data:
                return time.monotonic() - begin
        except (TimeoutError, OSError):
            pass
        if time.monotonic() - begin > 60:
            raise CannotMeasure("no server has become leader of the stream")
        time.sleep(0.02)


def measure_nats(count):
    if not nats_lines.find_server():
        raise CannotMeasure("needs nats-server (package nats-server)")
    with tempfile.TemporaryDirectory() as work, nats_lines.Servers(3, work) as servers:
        connection = servers.connect()
        connection.make_stream("JOBS", "jobs.*", 3)
        connection = servers.connect(leader_of(connection, "JOBS"))
        waits = measure_waits(connection)
        found = {"publish": [measure_publishing(servers, connection, size, max(200, count // max(1, size // 2048))) for size in (1024, 16384, 65536)]}
        found.update({"publish_wait": waits, "fetch": measure_fetching(servers, connection, count), "election_s": measure_election(servers, connection)})
    small, large = found["publish"][0], found["publish"][-1]
    found["leader_ns_per_byte"] = max(0.0, 1000 * (large["leader_cpu_us"] - small["leader_cpu_us"]) / (large["size"] - small["size"]))
    return found


# ---- three nodes -------------------------------------------------------------------------------------------------------------------

# Cpu that a program takes, most of it in one loop.
BURN = "n = 0\nfor i in range(200000):\n    n += i * i\nprint(n)"


def has_worker():
    """Whether this brig has workers of its own; without them bench/scale-worker stands in."""
    done = subprocess.run([measure.find_brig(), "worker", "--help"], capture_output=True, env=measure.ENV, check=False)
    return done.returncode == 0 and b"--nodes" in done.stdout


class StandIns:
    """Nodes without `brig worker`: bench/scale-worker says what they do of a worker's work, and what they leave out."""
    name, results = "bench/scale-worker with brig batch as nodes", "RESULTS"

    def __init__(self, servers, work, nodes):
        self.servers, self.work, self.nodes, self.children = servers, work, nodes, []

    def __enter__(self):
        connection = self.servers.connect()
        for name in ("JOBS", "CLAIMS", "RESULTS"):
            connection.make_stream(name, f"{name.lower()}.*", 3, "workqueue" if name == "JOBS" else "limits")
        connection.make_consumer("JOBS", "w")
        self.connection = connection
        return self

    def publish(self, count):
        for number in range(count):
            self.connection.publish("jobs.a", json.dumps({"id": f"j{number}", "language": "python", "code": BURN}).encode())
        self.connection.flush()

    def start(self, number, group):
        self.spawn([sys.executable, WORKER, str(self.servers.ports[number % self.servers.count]), measure.find_brig(), os.path.join(self.work, f"state{number}")],
                   f"worker{number}.log", preexec_fn=group.enter)

    def spawn(self, words, log, **options):
        with open(os.path.join(self.work, log), "wb") as f:
            self.children.append(subprocess.Popen(words, stdin=subprocess.PIPE, stderr=f, env=measure.ENV, **{"stdout": f, **options}))
        return self.children[-1]

    def __exit__(self, *_):
        for child in self.children:
            child.stdin.close()
        for child in self.children:
            child.wait()


class Workers(StandIns):
    """`brig worker` as nodes, and a front that belongs to none of them."""
    name, results = "brig worker", "KV_brig-results"

    def __enter__(self):
        self.queue = "nats://" + ",".join(f"127.0.0.1:{port}" for port in self.servers.ports)
        self.list = os.path.join(self.work, "nodes")
        names = ["front", *(f"w{i}" for i in range(self.nodes))]
        with open(self.list, "w", encoding="utf-8") as f:
            for name in names:
                key = subprocess.run([measure.find_brig(), "worker", "--show-key", "--state", os.path.join(self.work, name)], capture_output=True,
                                     env=measure.ENV, check=True).stdout.decode().strip()
                f.write(f"{'front' if name == 'front' else 'worker'} {name} {key}\n")
        front = self.spawn(self.words("serve", "front", "--no-auth", "--listen", "127.0.0.1:0", "--socket", "none"), "front.log", stdout=subprocess.PIPE)
        self.port = int(front.stdout.readline().rsplit(b":", 1)[1])
        self.connection = self.servers.connect()
        return self

    def words(self, command, name, *more):
        return [measure.find_brig(), command, "--queue", self.queue, "--nodes", self.list, "--node-name", name, "--state", os.path.join(self.work, name),
                "--end-with-stdin", *more]

    def publish(self, count):
        """Beside what counts the results, on several connections: a front answers when the stream has the job."""
        waiting = list(range(count))
        for _ in range(CONNECTIONS):
            threading.Thread(target=self.publish_some, args=(waiting,), daemon=True).start()

    def publish_some(self, waiting):
        front, body = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600), json.dumps({"language": "python", "code": BURN, "async": True})
        while waiting:
            waiting.pop()
            answered = False
            while not answered:
                front.request("POST", "/v1/executions", body, {"Content-Type": "application/json"})
                answer = front.getresponse()
                answer.read()
                answered = answer.status == 202
                # A full queue says so; anything else is tried again, too, and the count of results says whether all came.
                if not answered:
                    time.sleep(0.2)

    def start(self, number, group):
        self.spawn(self.words("worker", f"w{number}", "--jobs", "4", "--drain", "1s"), f"worker{number}.log", preexec_fn=group.enter)


def measure_nodes(nodes, share, jobs, settle=30):
    """`jobs` programs by `nodes` nodes of `share` of a cpu each, published as fast as a front takes them.

    What came before the first `settle` results of each node, while it started and filled its cells, does not count.
    """
    kind = Workers if has_worker() else StandIns
    with contextlib.ExitStack() as stack:
        work = stack.enter_context(tempfile.TemporaryDirectory())
        servers = stack.enter_context(nats_lines.Servers(3, work))
        groups = [stack.enter_context(Group(f"brig-scale-{os.getpid()}-{i}", share)) for i in range(nodes)]
        cluster = stack.enter_context(kind(servers, work, nodes))
        for number, group in enumerate(groups):
            cluster.start(number, group)
        cluster.publish(jobs + nodes * settle)
        return {"worker": kind.name, **count_results(cluster, groups, jobs, nodes * settle)}


def messages_written(connection):
    """By all streams but that of nodes, which tell of themselves every so often whether jobs come or not."""
    names = [name for name in connection.api("STREAM.NAMES", {})["streams"] if not name.endswith("nodes")]
    return sum(connection.api(f"STREAM.INFO.{name}", {})["state"]["last_seq"] for name in names)


def count_results(cluster, groups, jobs, settle):
    begin = cpu = None
    first, deadline = 0, time.monotonic() + 600
    while True:
        if time.monotonic() > deadline:
            raise CannotMeasure("the results did not come within ten minutes")
        info = cluster.connection.api(f"STREAM.INFO.{cluster.results}", {})
        count = info["state"]["messages"]
        if begin is None and count >= settle:
            begin, first, cpu = time.monotonic(), count, [group.cpu_seconds() for group in groups]
        if count >= settle + jobs:
            break
        time.sleep(0.02)
    seconds = time.monotonic() - begin
    used = [group.cpu_seconds() - before for group, before in zip(groups, cpu)]
    done = count - first
    return {"messages": messages_written(cluster.connection) / count, "nodes": len(groups), "jobs": done, "seconds": seconds, "per_second": done / seconds, "cpu_s": used, "cpu_ms_per_job": 1000 * sum(used) / done,
            "got": [u / seconds for u in used]}
