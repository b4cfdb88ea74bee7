# SPDX-License-Identifier: Apache-2.0
"""commands.py - commands here and through a service, as oneself and as somebody else, and what may differ between them."""
import array
import contextlib
import http.client
import json
import os
import socket
import subprocess
import tempfile

import harness
from client import PATIENCE, Server, client_env
from harness import Proc

STRANGER = 64987	# a uid that no account has
OWN = ("id", "usage", "timing", "samples", "audit", "warm", "forked")	# of each run, whoever made it
PYTHON = ("-l", "python", "-c")


@contextlib.contextmanager
def service(t, *args, auth=True):
	"""A server with a socket that every user can reach: (server, path)."""
	with tempfile.TemporaryDirectory() as folder:
		os.chmod(folder, 0o755)
		path = os.path.join(folder, "brig", "run.sock")
		with Server(t, "--socket", path, *args, auth=auth) as s:
			yield s, path
		t.check(not os.path.exists(path), "the socket is gone")


def known(s, token, target):
	"""What the service says of itself over HTTP; whether its documents are as described is not the question here."""
	with contextlib.closing(http.client.HTTPConnection("127.0.0.1", s.port, timeout=PATIENCE)) as c:
		c.request("GET", target, headers={"Authorization": "Bearer " + token})
		return json.loads(c.getresponse().read())


def away_words(t, *words):
	"""A command that asks a service.  What it keeps of the caller's own, as changes that are not applied, is in the usual place, since
	a variable that names another would not travel: root's is given the case's folder there."""
	words = [harness.brig_path(), *map(str, words)]
	if os.getuid() != 0:
		return words
	place = t.path("var-lib")
	os.makedirs(place, exist_ok=True)
	return ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /var/lib && exec "$@"', place, *words]


def away(t, path, *words, **kw):
	"""It asks the one at path."""
	return t.run(away_words(t, *words), env=client_env(path), **kw)


def both(t, path, *words, **kw):
	"""One command here and there: two Procs."""
	return t.brig(*words, **kw), away(t, path, *words, **kw)


def rows(result):
	"""A result without what is a run's own; of evidence what was promised and kept."""
	kept = {key: value for key, value in result.items() if key not in OWN}
	kept["evidence"] = [(e["check"], e["declared"], e["kept"]) for e in result["evidence"]]
	return kept


def differences(here, there):
	a, b = rows(here), rows(there)
	return {key: (a.get(key), b.get(key)) for key in sorted(set(a) | set(b)) if a.get(key) != b.get(key)}


def becomes(uid, groups=()):
	"""What a child does first to be an ordinary user."""
	def become():
		os.setgroups(groups)
		os.setresgid(uid, uid, uid)
		os.setresuid(uid, uid, uid)
	return become


def as_stranger(t, path, *words, uid=STRANGER, groups=(), cwd=None, stdin=b"", **more):
	"""A command of an ordinary user's, with nothing of ours."""
	with tempfile.TemporaryDirectory() as home:
		os.chown(home, uid, uid)
		env = harness.clean_env(client_env(path, HOME=home, TMPDIR=home, **more))
		p = subprocess.run([harness.brig_path(), *map(str, words)], env=env, cwd=cwd or home, input=stdin, capture_output=True, preexec_fn=becomes(uid, groups), timeout=PATIENCE)
	return Proc(p.returncode, p.stdout, p.stderr, 0, words)


def need_users(t):
	if os.getuid() != 0:
		t.skip("needs root, to be several users")


def overheard(t, *words):
	"""What a command sends: its first record and the descriptors beside it, taken by a service that says nothing."""
	with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as fake:
		path = os.path.join(folder, "fake.sock")
		fake.bind(path)
		fake.listen()
		p = t.popen([harness.brig_path(), *words], client_env(path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		fake.settimeout(PATIENCE)
		with fake.accept()[0] as s:
			data, fds, _, _ = socket.recv_fds(s, 1 << 20, 8)
		out, err = p.communicate(timeout=PATIENCE)
		t.check(p.returncode == 121 and b"service" in err, "a service that hangs up is an error", err)
	return data, fds


def tried(path, *records):
	"""Records sent one after the other: statuses of the answers until the service hangs up or has no more to say."""
	answers = []
	with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
		s.connect(path)
		s.settimeout(PATIENCE)
		for data, fds in records:
			try:
				s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
			except OSError:
				break
		while True:
			try:
				data = s.recv(1 << 20)
			except OSError:
				return answers + ["reset"]
			if not data:
				return answers + ["end"]
			kind, status = int.from_bytes(data[4:6], "little"), int.from_bytes(data[6:8], "little")
			if kind == 3:	# RECORD_ANSWER
				return answers + [status]
