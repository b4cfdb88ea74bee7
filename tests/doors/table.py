# SPDX-License-Identifier: Apache-2.0
"""table.py - requests and what their answers must be, row by row, against one server."""
import http.client
import json
import re

from client import PATIENCE, Server
from harness import Failed


def serve(t, doors, *args, auth=False):
	return Server(t, "--doors", doors, *args, auth=auth, env={"BRIG_INSPECTION": "guard"})


class Reply:
	def __init__(self, r):
		self.status, self.body = r.status, r.read()
		self.headers = {name.lower(): value for name, value in r.getheaders()}

	@property
	def json(self):
		try:
			return json.loads(self.body)
		except ValueError:
			raise Failed(f"no JSON: {self}") from None

	def __str__(self):
		return f"{self.status} {self.headers.get('content-type')} {self.body[:600]!r}"


def ask(server, method, path, body=None, headers=None):
	"""One request on a connection of its own; a body that is no text is sent as JSON."""
	headers = dict(headers or {})
	if body is not None and not isinstance(body, (bytes, str)):
		body = json.dumps(body)
		headers.setdefault("Content-Type", "application/json")
	c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
	try:
		c.request(method, path, body.encode() if isinstance(body, str) else body, headers)
		return Reply(c.getresponse())
	finally:
		c.close()


ANY = object()


def differs(have, want, at=""):
	"""Where a document is not as wanted, or nothing: a pattern for texts, ANY, a function that says yes; an object may have more."""
	if want is ANY or (callable(want) and want(have)):
		return None
	if isinstance(want, re.Pattern):
		return None if isinstance(have, str) and want.search(have) else f"{at}: {have!r} is not like {want.pattern!r}"
	if isinstance(want, dict) and isinstance(have, dict):
		for name, value in want.items():
			found = differs(have[name], value, f"{at}.{name}") if name in have else f"{at}.{name} is missing"
			if found:
				return found
		return None
	if isinstance(want, list) and isinstance(have, list) and len(have) == len(want):
		for i, value in enumerate(want):
			found = differs(have[i], value, f"{at}[{i}]")
			if found:
				return found
		return None
	return None if have == want and type(have) is type(want) else f"{at}: {have!r} is not {want!r}"


def check(t, rows, one):
	"""Every row (name, ...) with one(*rest), which gives what is wrong or nothing; all that are wrong are told."""
	wrong = []
	for name, *rest in rows:
		try:
			found = one(*rest)
		except Failed as e:
			found = str(e)
		if found:
			wrong.append(f"{name}: {found}")
	t.check(not wrong, f"{len(rows)} rows", "\n".join(wrong))


def answer(reply, status, want=ANY):
	"""What is wrong with an answer; want: a document, or bytes."""
	if reply.status != status:
		return f"status is not {status}: {reply}"
	if want is ANY:
		return None
	if isinstance(want, bytes):
		return None if reply.body == want else f"the body is not {want!r}: {reply}"
	found = differs(reply.json, want)
	return f"{found}; {reply}" if found else None


like = re.compile
# Bodies that are no document of any door; the first is none at all.
BODIES = [b"", b"{", b"[" * 100000, b'{"a":' * 5000, b"\xff\xfe", b"null", b"5", b'"x"', b'{"a":1,"a":2}', b"{}" * 3, b"[" + b"0," * 250000 + b"0]", b'{"language":"\\ud800"}']
