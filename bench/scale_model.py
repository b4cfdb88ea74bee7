# SPDX-License-Identifier: Apache-2.0
"""scale_model.py - many nodes on a queue, as a discrete-event simulation.

A job goes this way, and each station is where it may wait:

    front          cpu of the front that reads the request and seals the job; fronts take turns
    jobs stream    its leader writes the job; one at a time, so many microseconds for a message and so many for each byte
    a node         that has a place free pulls the job; one that has its environment warm is preferred, if there is one
    claims stream  its leader writes that this node has it
    a cpu          of the node: what brig itself takes for a warm or a cold cell, and what the program takes
    results        its leader writes the result, and the jobs stream's the acknowledgement

Leaders and fronts serve who comes first.  What a message needs to travel and to be copied to the other servers is a delay: it
makes a job later and keeps nobody busy.  A node that dies takes its jobs with it; they are handed out anew when their lease is over.
A stream whose leader dies is without one for as long as an election takes.

Everything random comes from one generator with one seed: the same parameters give the same numbers.
"""
import collections
import dataclasses
import heapq
import itertools
import random

ARRIVE, PUBLISH, OFFER, END, FAIL, AGAIN = range(6)


@dataclasses.dataclass
class Params:
    """Times are seconds, rates per second."""
    nodes: int = 3
    cores: int = 8
    places: int = 2                # jobs that a node holds, for each of its cpus
    jobs: int = 20000
    rate: float = 100.0            # jobs that come, in a Poisson process
    work: float = 0.0              # cpu of the program itself
    work_spread: str = "exponential"  # or "fixed"
    warm: float = 0.0              # cpu of brig's own for a job in a warm cell
    cold: float = 0.0              # and in one that has to be made, its interpreter started
    environments: int = 1
    warm_kinds: int = 64           # that a node has warm at one time
    placement: str = "warm"        # who has the environment first; "any": whoever is free first
    fronts: int = 1
    front: float = 0.0             # cpu of a front for a job
    streams: int = 1               # jobs are spread over so many sets of three streams
    publish: float = 0.0           # of the leader, for each job
    claim: float = 0.0
    result: float = 0.0
    ack: float = 0.0
    byte: float = 0.0              # of the leader, for each byte
    job_bytes: int = 0
    result_bytes: int = 0
    delay: float = 0.0             # until a message is written by enough servers
    regions: int = 1
    fail_at: float = 0.0           # when the first region goes; 0: never
    lease: float = 30.0            # until a job of a dead node is handed out anew
    election: float = 5.0          # until a stream whose leader went has another
    seed: int = 1


class Job:
    __slots__ = ("number", "came", "environment", "work", "stream", "node", "tries", "finished", "offered", "wait", "cold")

    def __init__(self, number, came, environment, work, stream):
        self.number, self.came, self.environment, self.work, self.stream = number, came, environment, work, stream
        self.node, self.tries, self.finished, self.offered, self.wait, self.cold = None, 0, None, 0.0, 0.0, False


class Node:
    __slots__ = ("number", "region", "free", "cpus", "warm", "dead", "busy", "listed")

    def __init__(self, number, region, places, cores):
        self.number, self.region, self.free, self.cpus = number, region, places, [0.0] * cores
        self.warm, self.dead, self.busy, self.listed = collections.OrderedDict(), False, 0.0, set()


class Server:
    """One at a time, who comes first."""
    __slots__ = ("until", "busy")

    def __init__(self):
        self.until, self.busy = 0.0, 0.0

    def serve(self, now, seconds):
        self.until = max(self.until, now) + seconds
        self.busy += seconds
        return self.until


class Simulation:
    def __init__(self, params):
        self.p, self.random = params, random.Random(params.seed)
        self.events, self.order, self.now = [], itertools.count(), 0.0
        self.nodes = [Node(i, i % params.regions, params.places * params.cores, params.cores) for i in range(params.nodes)]
        self.fronts = [Server() for _ in range(params.fronts)]
        self.leaders = {kind: [Server() for _ in range(params.streams)] for kind in ("jobs", "claims", "results")}
        self.waiting = [collections.deque() for _ in range(params.environments)]
        self.all_waiting, self.n_waiting, self.most_waiting = collections.deque(), 0, 0
        self.idle, self.idle_of = collections.deque(self.nodes), [collections.deque() for _ in range(params.environments)]
        self.done, self.jobs, self.again = [], [], 0
        for node in self.nodes:
            node.listed.add(-1)
        # Zipf: the environment of rank k is asked for 1/k as often as the first.
        weights = [1 / rank for rank in range(1, params.environments + 1)]
        self.popularity = list(itertools.accumulate(weights))

    def at(self, when, what, thing=None):
        heapq.heappush(self.events, (when, next(self.order), what, thing))

    def run(self):
        handlers = {ARRIVE: self.arrive, PUBLISH: self.publish, OFFER: self.offer, END: self.end, FAIL: self.fail, AGAIN: self.offer}
        self.at(self.random.expovariate(self.p.rate), ARRIVE)
        if self.p.fail_at:
            self.at(self.p.fail_at, FAIL)
        while self.events:
            self.now, _, what, thing = heapq.heappop(self.events)
            handlers[what](thing)
        return self

    # ---- on the way to a node -----------------------------------------------------------------------------------------------

    def arrive(self, _):
        p, number = self.p, len(self.jobs)
        environment = 0
        if p.environments > 1:
            environment = self.random.choices(range(p.environments), cum_weights=self.popularity)[0]
        work = self.random.expovariate(1 / p.work) if p.work and p.work_spread == "exponential" else p.work
        job = Job(number, self.now, environment, work, number % p.streams)
        self.jobs.append(job)
        if p.front:
            self.at(self.fronts[number % p.fronts].serve(self.now, p.front), PUBLISH, job)
        else:
            self.publish(job)
        if number + 1 < p.jobs:
            self.at(self.now + self.random.expovariate(p.rate), ARRIVE)

    def publish(self, job):
        written = self.leaders["jobs"][job.stream].serve(self.now, self.p.publish + self.p.byte * self.p.job_bytes)
        if written + self.p.delay > self.now:
            self.at(written + self.p.delay, OFFER, job)
        else:
            self.offer(job)

    def offer(self, job):
        """The job is in the stream: a node that waits gets it, or it waits for one."""
        job.offered, job.node = self.now, None
        node = self.find_node(job.environment)
        if node:
            self.begin(job, node)
            return
        self.waiting[job.environment].append(job)
        self.all_waiting.append((job, self.now))
        self.n_waiting += 1
        self.most_waiting = max(self.most_waiting, self.n_waiting)

    @staticmethod
    def take(row, mark):
        """The first node of a row that still has a place; those that have none leave it."""
        while row:
            node = row[0]
            if node.dead or node.free == 0 or (mark >= 0 and mark not in node.warm):
                row.popleft()
                node.listed.discard(mark)
                continue
            row.rotate(-1)
            return node
        return None

    def find_node(self, environment):
        node = self.take(self.idle_of[environment], environment) if self.p.placement == "warm" else None
        return node or self.take(self.idle, -1)

    def find_job(self, node):
        """For a node that has a place: a job of what it has warm, else the oldest."""
        if self.n_waiting == 0:
            return None
        if self.p.placement == "warm" and self.p.environments > 1:
            heads = [row[0] for row in (self.waiting[e] for e in node.warm) if row]
            job = min(heads, key=lambda j: (j.offered, j.number), default=None)
            if job:
                return self.pick(job)
        while self.is_stale(*self.all_waiting[0]):
            self.all_waiting.popleft()
        return self.pick(self.all_waiting.popleft()[0])

    @staticmethod
    def is_stale(job, offered):
        """Taken meanwhile, and perhaps offered again."""
        return job.node is not None or job.offered != offered

    def pick(self, job):
        if self.waiting[job.environment].popleft() is not job:
            raise AssertionError(f"job {job.number} is not the oldest of its environment")
        self.n_waiting -= 1
        return job

    # ---- on a node ----------------------------------------------------------------------------------------------------------

    def begin(self, job, node):
        p = self.p
        job.node, job.tries = node, job.tries + 1
        node.free -= 1
        job.cold = job.environment not in node.warm
        self.warm_up(node, job.environment)
        ready = self.leaders["claims"][job.stream].serve(self.now, p.claim) + p.delay
        start = max(ready, heapq.heappop(node.cpus))
        seconds = (p.cold if job.cold else p.warm) + job.work
        heapq.heappush(node.cpus, start + seconds)
        node.busy += seconds
        job.wait = start - job.came
        self.at(start + seconds, END, (job, node))

    def warm_up(self, node, environment):
        node.warm[environment] = True
        node.warm.move_to_end(environment)
        if len(node.warm) > self.p.warm_kinds:
            node.warm.popitem(last=False)

    def end(self, thing):
        job, node = thing
        p = self.p
        if node.dead:
            self.again += 1
            self.at(max(self.now, p.fail_at + p.lease), AGAIN, job)
            return
        written = self.leaders["results"][job.stream].serve(self.now, p.result + p.byte * p.result_bytes)
        self.leaders["jobs"][job.stream].serve(self.now, p.ack)
        if job.finished is not None:
            raise AssertionError(f"job {job.number} has two results")
        job.finished = written + p.delay
        self.done.append(job)
        node.free += 1
        following = self.find_job(node)
        if following:
            self.begin(following, node)
        else:
            self.list_idle(node)

    def list_idle(self, node):
        if -1 not in node.listed:
            node.listed.add(-1)
            self.idle.append(node)
        if self.p.placement == "warm" and self.p.environments > 1:
            for environment in node.warm:
                if environment not in node.listed:
                    node.listed.add(environment)
                    self.idle_of[environment].append(node)

    # ---- mishaps -------------------------------------------------------------------------------------------------------------

    def fail(self, _):
        """The first region goes, with its nodes and with its share of the leaders."""
        for node in self.nodes:
            node.dead = node.dead or node.region == 0
        number = 0
        for servers in self.leaders.values():
            for server in servers:
                if number % self.p.regions == 0:
                    server.until = max(server.until, self.now + self.p.election)
                number += 1


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def summary(simulation):
    """What the second half of the time says in which jobs come: by then places are used and cells are warm, or never will be."""
    end = simulation.jobs[-1].came
    begin = end / 2
    finished = sum(begin < j.finished <= end for j in simulation.done)
    jobs = [j for j in simulation.done if j.came > begin]
    times = [j.finished - j.came for j in jobs]
    return {"throughput": finished / (end - begin), "p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "cold": sum(j.cold for j in jobs) / len(jobs),
            "again": simulation.again, "most_waiting": simulation.most_waiting}
