# SPDX-License-Identifier: Apache-2.0
"""Large files of sessions: carried in pieces, while others are served."""
import hashlib
import os
import threading

from client import Server
from harness import case

BYTES = {"Content-Type": "application/octet-stream"}
MOST = 64 << 20


def begin(c, **wish):
	return "/v1/sessions/" + c.ask("POST", "/v1/sessions", wish, status=201).json["id"]


def sh(c, at, text):
	return c.ask("POST", at + "/processes", {"args": ["sh", "-c", text]}, status=200).json["stdout"]


@case("files of every size come and go as they are, several at once; larger ones than may be are refused; runs go on meanwhile")
def whole(t):
	with Server(t) as s:
		c = s.client()
		at = begin(c, options={"disk_limit": "400MB", "mem_limit": "1GB"})
		other = begin(c)
		troubles = []

		def both_ways(i, size):
			data = os.urandom(1 << 20) * (size >> 20) + os.urandom(size & ((1 << 20) - 1))
			own = s.client()
			put = own.ask("PUT", f"{at}/files/f{i}", data, headers=BYTES, status=200).json
			got = own.ask("GET", f"{at}/files/f{i}", status=200)
			if put != {"bytes": size} or hashlib.sha256(got.body).digest() != hashlib.sha256(data).digest():
				troubles.append((i, size, put, len(got.body)))
		sizes = [0, 1, 100000, 1 << 20, (1 << 20) + 1, (7 << 20) + 12345, MOST]
		threads = [threading.Thread(target=both_ways, args=pair) for pair in enumerate(sizes)]
		for thread in threads:
			thread.start()
		while any(thread.is_alive() for thread in threads):
			t.equal(sh(c, other, "echo on"), "on\n", "somebody else")
		for thread in threads:
			thread.join()
		t.equal(troubles, [], "files")
		t.equal(sh(c, at, "stat -c %s f?").split(), [str(n) for n in sizes], "seen inside")
		sh(c, at, f"head -c {MOST + 1} /dev/zero > more; truncate -s 300M hole")
		for name in ("more", "hole"):
			t.check("64 MB" in c.ask("GET", f"{at}/files/{name}", status=413).message, name)


@case("who goes while a file is on its way, and a session that ends then, leave nothing and hold nobody up")
def gone(t):
	with Server(t) as s:
		c = s.client()
		at = begin(c, options={"disk_limit": "200MB", "mem_limit": "1GB"})
		sh(c, at, f"head -c {MOST} /dev/urandom > big")
		for method, path, body in (("GET", "/files/big", None), ("PUT", "/files/new", bytes(MOST)), ("GET", "/files/big", None)):
			own = s.client()
			own.c.request(method, at + path, body, BYTES)
			own.c.close()
		t.equal(sh(c, at, "stat -c %s big"), f"{MOST}\n", "it goes on")
		answers = []
		reader = threading.Thread(target=lambda: answers.append(s.client().ask("GET", at + "/files/big").status))
		reader.start()
		c.ask("DELETE", at, status=202)
		reader.join()
		t.check(answers in ([200], [410]), "who reads then", answers)
		t.equal(sh(c, begin(c), "echo on"), "on\n", "others")
