# SPDX-License-Identifier: Apache-2.0
"""Requests as parts of a trace (W3C Trace Context), in answers and in the log; executions as spans, for a collector made here."""
import http.server
import json
import re
import socket
import threading
import time

from client import Server, children, read_quietly, status_field, tree, wait_until
from harness import Failed, case
from session import Session

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


@case("traceparent: the answer and the log have the trace with a span of its own; what is malformed is ignored")
def trace(t):
	with Server(t, "--log", "json") as s:
		with s.client() as c:
			spans = set()
			for method, target, body in (("GET", "/healthz", None), ("GET", "/v1/whoami", None), ("GET", "/nothing", None), ("POST", "/v1/executions", {"kind": "command", "args": ["true"]})):
				a = c.ask(method, target, body, {"traceparent": PARENT})
				found = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", a.header("traceparent"))
				t.check(found and found.group(1) not in (SPAN, "0" * 16), target, a)
				spans.add(found.group(1))
			t.equal(len(spans), 4, "spans")
			a = c.send("POST", "/v1/executions", {"kind": "command", "args": ["true"]}, {"traceparent": PARENT, "Accept": "text/event-stream"})
			t.check(a.getheader("traceparent", "").startswith(f"00-{TRACE}-"), "a stream", a.getheaders())
			a.read()
			a = c.ask("GET", "/healthz", headers={"traceparent": f"cc-{TRACE}-{SPAN}-00-what-comes-later"})
			t.check(re.fullmatch(rf"00-{TRACE}-[0-9a-f]{{16}}-00", a.header("traceparent")), "a later version", a)
			for bad in ("", "x", PARENT[:-1], PARENT + "0", PARENT + "-more", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", PARENT.upper(), PARENT.replace("-", "_"), f"00-{TRACE[:-1]}g-{SPAN}-01", "0" * 3000):
				a = c.ask("GET", "/healthz", headers={"traceparent": bad}, status=200)
				t.equal(a.header("traceparent"), "", f"{bad[:70]}", a)
			t.equal(c.ask("GET", "/healthz").header("traceparent"), "", "none came")
		lines = wait_until("the log has them", lambda: [d for d in (json.loads(x) for x in s.stderr().splitlines() if x.startswith("{")) if d.get("trace_id") == TRACE])
		wait_until("each span", lambda: spans <= {json.loads(x).get("span_id") for x in s.stderr().splitlines() if x.startswith("{")})
		t.check(all(re.fullmatch("[0-9a-f]{16}", d["span_id"]) for d in lines), "spans in the log", lines)
	with Server(t) as s:
		s.get("/healthz", headers={"traceparent": PARENT})
		wait_until("text has it, too", lambda: f"trace_id={TRACE}" in s.stderr())


# ---- OTLP ----------------------------------------------------------------------------------------

class Collector:
	"""Takes POST /v1/traces and keeps the spans; answers 503 while it is `sick`, and nothing at all while it is `stuck`."""
	def __init__(self):
		self.spans, self.bodies, self.sick, self.free = [], [], False, threading.Event()
		self.free.set()
		collector = self

		class Handler(http.server.BaseHTTPRequestHandler):
			protocol_version = "HTTP/1.1"

			def do_POST(self):
				body = self.rfile.read(int(self.headers["Content-Length"]))
				collector.free.wait()
				self.send_response(503 if collector.sick else 200)
				self.send_header("Content-Type", "application/json")
				self.send_header("Content-Length", "2")
				self.end_headers()
				self.wfile.write(b"{}")
				if not collector.sick:
					collector.bodies.append((self.path, self.headers["Content-Type"], body))
					collector.spans += sound_spans(body)

			def log_message(self, *args):
				pass
		self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
		self.server.daemon_threads = True
		self.server.handle_error = lambda *args: None
		self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
		threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

	def __enter__(self):
		return self

	def __exit__(self, *args):
		self.free.set()
		self.server.shutdown()
		self.server.server_close()

	def of(self, trace):
		return [s for s in self.spans if s["traceId"] == trace]


def attributes(node):
	return {a["key"]: a["value"]["stringValue"] for a in node["attributes"]}


def sound_spans(body):
	"""The spans of a request, each held against OTLP's JSON: ids in hex, times as strings of digits, known members only."""
	document = json.loads(body)
	if set(document) != {"resourceSpans"}:
		raise Failed(f"a request with {set(document)}")
	found = []
	for group in document["resourceSpans"]:
		if attributes(group["resource"])["service.name"] != "brig":
			raise Failed(f"the resource is {group['resource']}")
		for scope in group["scopeSpans"]:
			if not scope["scope"]["name"] or not scope["scope"]["version"]:
				raise Failed(f"the scope is {scope['scope']}")
			found += scope["spans"]
	for s in found:
		good = (re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"]) and re.fullmatch("[0-9a-f]{16}|", s.get("parentSpanId", ""))
			and re.fullmatch("[0-9]{19}", s["startTimeUnixNano"]) and re.fullmatch("[0-9]{19}", s["endTimeUnixNano"]) and int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"])
			and s["kind"] in (1, 2) and s["status"]["code"] in (0, 1, 2) and s["name"]
			and set(s) <= {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"})
		if not good:
			raise Failed(f"a span that is none: {s}")
	return found


def metric(s, name):
	return int(re.search(rf"^{name} (\d+)$", s.get("/metrics", status=200).body.decode(), re.M).group(1))


@case("executions are told to a collector as spans of the request's trace (OTLP/HTTP with JSON); what is not sampled is not; a run never waits for it")
def exported(t):
	job = {"kind": "command", "args": ["true"]}
	with Collector() as collector, Server(t, env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/"}) as s:
		before = time.time_ns()
		a = s.run(headers={"traceparent": PARENT}, **job)
		root = wait_until("the spans come", lambda: [x for x in collector.of(TRACE) if x["name"] == "execution"])[0]
		t.equal(collector.bodies[0][:2], ("/v1/traces", "application/json"), "how they come")
		t.equal([root["spanId"], root["parentSpanId"], root["kind"], root["status"]["code"]], [a.header("traceparent").split("-")[2], SPAN, 2, 1], "the execution's own", root)
		said = attributes(root)
		t.equal([said["brig.execution.id"], said["brig.verdict"], said["brig.token"], said["brig.kind"]], [a.json["id"], "ok", "anonymous", "command"], "what it says", said)
		t.check(before - 10**9 < int(root["startTimeUnixNano"]) < int(root["endTimeUnixNano"]) < time.time_ns() + 10**9, "the time of day", root)
		steps = [x for x in collector.of(TRACE) if x is not root]
		t.check({"queued", "resolve", "run.begin", "run.watch"} <= {x["name"] for x in steps}, "its steps", [x["name"] for x in steps])
		t.check(all(x["parentSpanId"] == root["spanId"] and x["kind"] == 1 for x in steps) and len({x["spanId"] for x in steps}) == len(steps), "are below it", steps)
		wall = [x for x in steps if x["name"] == "run.watch"][0]
		t.check(int(root["startTimeUnixNano"]) - 10**7 < int(wall["startTimeUnixNano"]) and int(wall["endTimeUnixNano"]) < int(root["endTimeUnixNano"]) + 10**7, "and within it", [root, wall])
		t.equal(s.run(headers={"traceparent": f"00-{'a' * 32}-{SPAN}-00"}, **job).json["verdict"], "ok", "one that is not sampled")
		ident = s.result(kind="command", args=["false"])["id"]	# nobody's trace: one of its own
		root = wait_until("its spans", lambda: [x for x in collector.spans if attributes(x).get("brig.execution.id") == ident])[0]
		t.equal(["parentSpanId" in root, root["status"]["code"]], [False, 2], "without a parent", root)
		t.equal(collector.of("a" * 32), [], "what is not sampled")
		with Session(s) as x:
			for rest, body, name, verdict in (("/runs", {"code": "1"}, "run", "ok"), ("/runs", {"code": "1 / 0"}, "run", "error"), ("/processes", {"args": ["true"]}, "process", "ok")):
				trace_id = f"{len(collector.spans):032x}"
				a = x.ask("POST", rest, body, headers={"traceparent": f"00-{trace_id}-{SPAN}-01"})
				root = wait_until("the span of what is run in a session", lambda: collector.of(trace_id))[0]
				said = attributes(root)
				t.equal([root["name"], root["spanId"], root["parentSpanId"], root["status"]["code"]], [name, a.header("traceparent").split("-")[2], SPAN, 1 if verdict == "ok" else 2], "it", root)
				t.equal([said["brig.execution.id"], said["brig.verdict"], said["brig.session.id"]], [a.json["id"], verdict, x.id], "what it says", said)
		wait_until("it is counted", lambda: metric(s, "brig_service_spans_exported_total") == len(collector.spans))
		t.equal(metric(s, "brig_service_spans_dropped_total"), 0, "dropped")
		runner = s.processes()["runner"]
		exporter = [p for p in children(runner) if read_quietly(f"/proc/{p}/comm") == b"brig-exporter\n"][0]
		t.equal([status_field(exporter, n) for n in ("CapEff", "CapPrm", "NoNewPrivs", "Seccomp")], ["0" * 16, "0" * 16, "1", status_field(s.processes()["front"], "Seccomp")], "what the exporter has")	# a sanitized build has no filters
		# A collector that is sick: spans are counted and gone.  One that answers nothing: nobody waits for it.
		collector.sick = True
		s.result(**job)
		wait_until("it is counted", lambda: metric(s, "brig_service_spans_dropped_total") > 0)
		collector.sick = False
		collector.free.clear()
		for _ in range(5):
			t.equal(s.result(**job)["verdict"], "ok", "while the collector is stuck")
		collector.free.set()
	with Collector() as collector, Server(t, "--otlp", collector.url.replace("127.0.0.1", "localhost") + "/v1/traces") as s:
		t.equal(s.result(**job)["verdict"], "ok", "a collector that has a name")
		wait_until("the spans come", lambda: collector.spans)
	with Server(t, "--otlp", f"http://127.0.0.1:{unused_port()}") as s:
		t.equal(s.result(**job)["verdict"], "ok", "without a collector")
		wait_until("it is counted", lambda: metric(s, "brig_service_spans_dropped_total") > 0)
		pids = tree(s.pid)
	t.equal([p for p in pids if read_quietly(f"/proc/{p}/comm") == b"brig-exporter\n"], [], "it ends with the service")
	for url in ("127.0.0.1:4318", "ftp://a", "http://", "http://a:b/", "http://u:p@h/", "http://h:99999"):
		p = t.brig("serve", "--listen", "127.0.0.1:0", "--socket", "none", "--no-auth", "--state", t.state, "--otlp", url)
		t.check(p.rc != 0 and b"collector" in p.err, f"--otlp {url}", p)
	with Server(t) as s:
		t.check(b"brig_service_spans" not in s.get("/metrics").body, "it is off unless it is asked for")


def unused_port():
	with socket.socket() as s:
		s.bind(("127.0.0.1", 0))
		return s.getsockname()[1]
