# SPDX-License-Identifier: Apache-2.0
"""Requests as parts of a trace (W3C Trace Context), in answers and in the log."""
import json
import re

from client import Server, wait_until
from harness import case

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
