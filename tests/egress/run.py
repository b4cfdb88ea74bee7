#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The egress suite: what programs can reach through the proxy of network_mode allowlist, and everything they try instead.

Programs run in real cells against servers of a small internet of the test's own (internet.py).  cells.py has what they begin
with, plain.py those that know nothing of a proxy."""
import json
import os
import shutil
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import cells
import harness
import internet
import plain  # registers its cases
from cells import PRELUDE, ran, run
from harness import case

NET = None


def hooks(world, base):
	global NET
	NET = cells.NET = internet.Internet(world, base)
	return []


# ---- what is allowed works ------------------------------------------------------------------------

@case("plain HTTP to a listed name: one request, our own head, exact bytes")
def http(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, "done(a=get('http://listed.test/x?y=1', 'LISTED.test', 'X-A: b\\r\\nProxy-Authorization: c\\r\\n'))", ["listed.test"])
	head, _, body = p.said["a"].partition("\r\n\r\n")
	t.check(head.startswith("HTTP/1.1 200"), "answer", head)
	seen = json.loads(body)
	t.equal(seen["line"], "GET /x?y=1 HTTP/1.1", "request line at the server")
	t.equal(seen["head"], ["Host: listed.test", "X-A: b", "Connection: close"], "head at the server")
	sent = len("GET /x?y=1 HTTP/1.1\r\nHost: listed.test\r\nX-A: b\r\nConnection: close\r\n\r\n")
	p.served("listed.test", 80, sent, len(p.said["a"]))
	t.equal(sorted(set(NET.seen(mark, "dns"))), ["listed.test A", "listed.test AAAA"], "lookups")
	t.equal(p.r.json["denied"], [], "denied")


@case("a body with a length, and one in chunks")
def bodies(t):
	p = ran(t, """
a = say(b"POST http://listed.test/ HTTP/1.1\\r\\nHost: listed.test\\r\\nContent-Length: 50000\\r\\n\\r\\n" + b"x" * 50000)
b = say(b"POST http://listed.test/ HTTP/1.1\\r\\nHost: listed.test\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nhello\\r\\n0\\r\\n\\r\\n")
done(a=len(json.loads(a.partition("\\r\\n\\r\\n")[2])["body"]), b=json.loads(b.partition("\\r\\n\\r\\n")[2])["body"])
""", ["listed.test"])
	t.equal(p.said, {"a": 50000, "b": "5\r\nhello\r\n0\r\n\r\n"}, "bodies at the server")
	p.served("listed.test", 80, count=2)


@case("a tunnel: both directions, half-closed, exact bytes, early bytes kept")
def tunnel(t):
	p = ran(t, """
a = connect("listed.test:443", b"\\x16" + b"z" * 299999)
head, _, body = a.partition("\\r\\n\\r\\n")
done(head=head, n=len(body), same=body == "\\x16" + "z" * 299999)
""", ["listed.test"])
	t.equal(p.said, {"head": "HTTP/1.1 200 Connection established", "n": 300000, "same": True}, "what came back")
	p.served("listed.test", 443, 300000, 300000)


@case("SOCKS5 with names and addresses")
def socks(t):
	p = ran(t, """
done(name=socks(3, name("listed.test"), 443, b"\\x01abc"), four=socks(1, socket.inet_aton("8.9.10.3"), 8080, b"\\x02d"),
     six=socks(4, socket.inet_pton(socket.AF_INET6, "2a00:1450::2"), 80, b"\\x03e"))
""", ["listed.test", "8.9.10.3:8080", "[2a00:1450::2]:80"])
	t.equal(p.said, {"name": ["0500", "00", "\x01abc"], "four": ["0500", "00", "\x02d"], "six": ["0500", "00", "\x03e"]}, "answers")
	p.served("listed.test", 443, 4, 4)
	p.served("8.9.10.3", 8080, 2, 2)
	p.served("2a00:1450::2", 80, 2, 2)


@case("names below a wildcard, names of /etc/hosts, IPv6, trailing dots and capitals")
def names(t):
	p = ran(t, """
done(a=connect("A.Wild.TEST.:443", b"\\x01")[-1:], b=connect("hosts-listed.test:80", b"\\x02")[-1:], c=connect("six.test:443", b"\\x03")[-1:],
     d=connect("wild.test:443"))
""", ["*.wild.test", "hosts-listed.test", "six.test"])
	t.equal([p.said[k] for k in "abc"], ["\x01", "\x02", "\x03"], "echoes")
	p.served("a.wild.test", 443, 1, 1)
	p.served("hosts-listed.test", 80, 1, 1)
	p.served("six.test", 443, 1, 1)
	p.refused("wild.test", 443, "not on the whitelist", "add wild.test to whitelist")


@case("urllib finds the proxy by itself")
def urllib(t):
	p = ran(t, """
import urllib.request
done(line=json.loads(urllib.request.urlopen("http://listed.test:8080/u", timeout=20).read())["line"])
""", ["listed.test:8080"])
	t.equal(p.said["line"], "GET /u HTTP/1.1", "request at the server")
	p.served("listed.test", 8080)


@case("curl finds the proxy by itself, also as a SOCKS proxy")
def curl(t):
	if not shutil.which("curl", path="/usr/bin"):
		t.skip("needs curl (package curl)")
	r = run(t, "curl -sS http://listed.test/c && curl -sS --proxy socks5h://127.0.0.1:3128 http://listed.test/d && "
		"curl -sS -p http://listed.test/e; curl -sS http://other.test/\n", ["listed.test"], lang="shell", prelude=False)
	t.check(all(f"GET /{x} HTTP/1.1".encode() in r.stdout for x in "cde"), "requests at the server", r)
	t.check(b"brig: other.test: not on the whitelist" in r.stdout, "the answer for the other", r)


@case("node finds the proxy: fetch where it can, a tunnel by hand elsewhere")
def node(t):
	if not os.path.exists("/usr/bin/node"):
		t.skip("needs node (package nodejs)")
	r = run(t, """
const http = require('http');
const major = Number(process.versions.node.split('.')[0]);
if (major >= 24) fetch('http://listed.test/n').then(r => r.text()).then(x => console.log(x));
http.request({ host: '127.0.0.1', port: 3128, method: 'CONNECT', path: 'listed.test:443' }).on('connect', (res, s) => {
	s.write(Buffer.from([1, 65, 66])); s.once('data', d => { console.log(res.statusCode, d.toString().slice(1)); s.end(); });
}).end();
""", ["listed.test"], lang="javascript", prelude=False)
	t.check(b"200 AB" in r.stdout, "the tunnel's echo", r)
	rows = [n for n in r.json["network"] if n["port"] == 443]
	t.check(len(rows) == 1 and rows[0]["sent_bytes"] == rows[0]["received_bytes"] == 3, "rows", r.json["network"])


@case("what a program sends right before its end is still delivered")
def last_words(t):
	mark = NET.mark() if not NET.why else 0
	ran(t, """
s = socket.create_connection(PROXY)
s.sendall(b"GET http://listed.test/last HTTP/1.1\\r\\nHost: listed.test\\r\\n\\r\\n")
done(x=1)
sys.stdout.flush()
os._exit(0)
""", ["listed.test"])
	deadline = time.monotonic() + harness.GUARD
	while time.monotonic() < deadline and not NET.seen(mark, "http"):
		time.sleep(0.05)
	t.check(any("/last" in line for line in NET.seen(mark, "http")), "it never came", NET.seen(mark, "tcp"))


# ---- what is not allowed ----------------------------------------------------------------------------

@case("unlisted names are refused and never looked up; ports follow the list", final="not contained")
def unlisted(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, """
done(a=connect("other.test:443"), b=connect("secret-data.other.test:443"), c=connect("listed.test:22"), d=socks(3, name("other.test"), 443),
     e=get("http://other.test/", "other.test"), f=connect("any.test:22")[:12])
""", ["listed.test", "any.test:*"])
	for key in "abce":
		t.check(p.said[key].startswith("HTTP/1.1 403"), f"answer {key}", p.said)
	t.equal(p.said["d"][:2], ["0500", "02"], "SOCKS answer")
	p.refused("other.test", 443, "not on the whitelist", "add other.test to whitelist")
	p.refused("secret-data.other.test", 443, "not on the whitelist")
	p.refused("listed.test", 22, "not with this port", "add listed.test:22 to whitelist")
	t.equal(sorted({q.split()[0] for q in NET.seen(mark, "dns")}), ["any.test"], "names that were looked up")
	t.check(p.rows("any.test", 22, True)[0]["reason"].startswith("the name cannot be resolved"), "a name that is nobody's", p.r.json["network"])


@case("an empty whitelist lets nothing through, and says what was tried", final="not contained")
def empty(t):
	p = ran(t, "done(a=connect('example.org:443'), b=connect('127.0.0.1:80'))", [], names=False)
	p.refused("example.org", 443, "not on the whitelist", "add example.org to whitelist")
	p.refused("127.0.0.1", 80, "not on the whitelist")


@case("listed names that lead to loopback, private, link-local and other special addresses", final="not contained")
def special(t):
	mark = NET.mark() if not NET.why else 0
	hosts = ["loop.test", "loop6.test", "private.test", "meta.test", "mapped.test", "zero.test", "nat64.test", "hosts-loop.test", "localhost"]
	p = ran(t, f"done(a=[connect(h + ':80') for h in {hosts!r}], b=socks(3, name('loop.test'), 80))", hosts)
	for host, answer in zip(hosts, p.said["a"]):
		t.check(answer.startswith("HTTP/1.1 403"), f"answer for {host}", answer)
		p.refused(host, 80, "not public")
	p.refused("private.test", 80, "10.9.8.2 (private)", "add 10.9.8.2 to whitelist, if it is meant")
	t.equal(p.said["b"][1], "02", "SOCKS answer")
	t.equal(NET.seen(mark, "tcp"), [], "connections that were made")


@case("the same, when the address itself is listed with that port")
def special_listed(t):
	p = ran(t, """
done(a=connect("loop.test:5432", b"\\x01")[-1:], b=connect("private.test:80", b"\\x02")[-1:], c=connect("loop.test:80"), d=connect("127.0.0.1:5432", b"\\x03")[-1:])
""", ["loop.test:*", "127.0.0.1:5432", "private.test", "10.9.8.2"])
	t.equal([p.said[k] for k in "abd"], ["\x01", "\x02", "\x03"], "echoes")
	p.refused("loop.test", 80, "not public: 127.0.0.1 (loopback)", "add 127.0.0.1 to whitelist, if it is meant")


@case("addresses of this host itself, although public, are refused", final="not contained")
def own(t):
	p = ran(t, "done(a=connect('own.test:80'))", ["own.test"])
	p.refused("own.test", 80, "this host itself: 8.9.10.1")


@case("DNS rebinding: each connection goes to an address that was judged for it", final="not contained")
def rebinding(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, """
done(a=connect("rebind.test:80", b"\\x01")[-1:], b=[connect("rebind.test:80")[:12] for _ in range(3)], c=connect("rebind-back.test:80")[:12])
""", ["rebind.test", "rebind-back.test"])
	t.equal(p.said["a"], "\x01", "the first, to its public address")
	t.equal(p.said["b"], ["HTTP/1.1 403"] * 3, "the others")
	t.equal(p.said["c"], "HTTP/1.1 403", "loopback first")
	t.equal(NET.seen(mark, "tcp"), ["8.9.10.2 80"], "connections that were made")
	p.served("rebind.test", 80, 1, 1)
	p.refused("rebind.test", 80, "not public")


@case("of several addresses only the public ones are used", final="not contained")
def mixed(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, "done(a=connect('mixed.test:80', b'\\x01')[-1:])", ["mixed.test"])
	t.equal(p.said["a"], "\x01", "echo")
	t.equal(NET.seen(mark, "tcp"), ["8.9.10.2 80"], "connections that were made")


@case("host@evil, decimal, octal, hex, short and mapped addresses", final="not contained")
def forms(t):
	targets = ["listed.test@other.test:80", "2130706433:80", "0177.0.0.1:80", "0x7f000001:80", "127.1:80", "0x7f.1:80", "[::ffff:127.0.0.1]:80",
		   "[::127.0.0.1]:80", "[::1%25lo]:80", "127.0.0.1.:80", "listed.test:80:80", "listed.test :80", "listed.test/:80", "\xe4.test:80"]
	p = ran(t, f"""
done(a=[connect(x)[:12] for x in {targets!r}], b=[get(u, "listed.test")[:12] for u in ("http://listed.test@other.test/", "http://listed.test\\\\@other.test/",
     "http://listed.test#@other.test/", "http://2130706433/", "http://listed.test%00.other.test/", "http:/listed.test/")],
     c=socks(3, name("0x7f.1"), 80)[1], d=socks(4, b"\\0" * 10 + b"\\xff\\xff\\x7f\\0\\0\\1", 80)[1])
""", ["listed.test"])
	for target, answer in zip(targets, p.said["a"]):
		t.check(answer in ("HTTP/1.1 400", "HTTP/1.1 403"), f"answer for {target}", answer)
	t.equal(p.said["b"], ["HTTP/1.1 400"] * 6, "addresses in requests")
	t.check(p.said["c"] in ("01", "02") and p.said["d"] in ("01", "02"), "SOCKS answers", p.said)
	p.refused("0x7f.1", 80, "usual spelling", "")
	t.check(p.rows("other.test") and all("user part" in n["reason"] for n in p.rows("other.test")), "host@evil is not visible", p.r.json["network"])
	t.check(not any(n["allowed"] for n in p.r.json["network"]), "something was let through", p.r.json["network"])


@case("a Host header that is not the host of the request", final="not contained")
def host_header(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, """
done(a=get("http://listed.test/", "other.test")[:12], b=get("http://listed.test/", "listed.test:8080")[:12],
     c=get("http://listed.test/", "listed.test", "Host: other.test\\r\\n")[:12],
     e=say(b"GET http://listed.test/ HTTP/1.1\\r\\n\\r\\n")[:12])
""", ["listed.test"])
	t.equal(set(p.said.values()), {"HTTP/1.1 400"}, "answers", p.said)
	p.refused("listed.test", 80, "Host header", "")
	t.equal(NET.seen(mark, "tcp"), [], "connections that were made")


@case("request smuggling: two lengths, folded lines, bare line feeds, NUL, a second request", final="not contained")
def smuggling(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, r"""
def post(extra, body=b""):
	return say(b"POST http://listed.test/ HTTP/1.1\r\nHost: listed.test\r\n" + extra + b"\r\n" + body)[:12]
evil = b"GET http://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n"
bad = [post(b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + evil), post(b"Content-Length: 4\r\nContent-Length: 4\r\n", b"abcd"),
       post(b"Transfer-Encoding: xchunked\r\n"), post(b"Transfer-Encoding: chunked, identity\r\n"), post(b"X: y\r\n Content-Length: 4\r\n"),
       post(b"X: y\nContent-Length: 4\r\n"), post(b"X: \0\r\n"), post(b"Content-Length : 4\r\n"), post(b"Content-Length: +4\r\n"),
       post(b"Connection: Content-Length\r\nContent-Length: 4\r\n")]
second = say(b"POST http://listed.test/ok HTTP/1.1\r\nHost: listed.test\r\nContent-Length: 2\r\n\r\nhi" + evil)
chunk = say(b"POST http://listed.test/ HTTP/1.1\r\nHost: listed.test\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n0\r\n\r\n")[:12]
done(bad=bad, second=second.count("HTTP/1.1 200"), chunk=chunk)
""", ["listed.test"])
	t.equal(p.said["bad"], ["HTTP/1.1 400"] * 10, "answers")
	t.equal(p.said["second"], 1, "answers to two requests in one")
	t.equal(p.said["chunk"], "", "the answer to unsound chunks")
	t.equal([line for line in NET.seen(mark, "http")], ["8.9.10.2 80 POST /ok HTTP/1.1"], "requests at the server")
	t.equal(NET.seen(mark, "second"), [], "second requests at the server")
	for why in ("more than one way", "unsound HTTP", "more than one request"):
		t.check(any(why in n["reason"] and not n["allowed"] for n in p.r.json["network"]), f"no row says '{why}'", p.r.json["network"])


@case("bytes that are neither HTTP nor SOCKS5")
def nonsense(t):
	p = ran(t, r"""
tongues = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 500, b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b"SSH-2.0-x\r\n\r\n", b"\0" * 9000,
	   b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nHost: listed.test\r\n\r\n", b"A" * 20000]
done(a=[say(x)[:12] for x in tongues], b=socks(1, b"\0\0\0\0", 0, command=3)[1], c=say(b"\5\1\2").encode("latin-1").hex())
""", ["listed.test"], names=False)
	t.equal(p.said["a"], ["HTTP/1.1 400"] * 6 + ["HTTP/1.1 431"], "answers")
	t.equal([p.said["b"], p.said["c"]], ["07", "05ff"], "SOCKS answers")
	for why in ("neither an HTTP request nor SOCKS5", "names no host", "too long", "SOCKS5 for something else", "SOCKS5 with a password"):
		t.check(any(why in n["reason"] for n in p.r.json["network"]), f"no row says '{why}'", p.r.json["network"])


@case("slow heads are cut off, and do not keep others waiting")
def slowloris(t):
	p = ran(t, r"""
slow = [socket.create_connection(PROXY) for _ in range(60)]
for s in slow:
	s.sendall(b"GET http://listed.test/ HTTP/1.1\r\nX: ")
a = get("http://listed.test/", "listed.test")[:12]
ends = 0
for s in slow[1:]:
	s.settimeout(25)
	ends += read_all(s).startswith(b"HTTP/1.1 408")
done(a=a, ends=ends)
""", ["listed.test"])
	t.equal(p.said, {"a": "HTTP/1.1 200", "ends": 59}, "what became of them")
	t.check(any("no complete request in time" in n["reason"] and n["count"] == 60 for n in p.r.json["network"]), "rows", p.r.json["network"])


@case("a thousand connections: the limit is kept, and said")
def thousand(t):
	p = ran(t, r"""
answers = {}
for i in range(1000):
	a = connect("listed.test:443", b"\1")[9:12]
	answers[a] = answers.get(a, 0) + 1
done(**answers)
""", ["listed.test"], extra="  egress_connections: 200\n")
	t.equal(p.said, {"200": 200, "403": 800}, "answers")
	p.served("listed.test", 443, 200, 200, count=200)
	p.refused("listed.test", 443, "all its egress_connections", "raise egress_connections")


@case("many at once wait for their turn; endless attempts end")
def crowd(t):
	p = ran(t, r"""
many = [socket.create_connection(PROXY, 20) for _ in range(200)]
for s in many:
	s.sendall(b"CONNECT listed.test:443 HTTP/1.1\r\n\r\n\1")
	s.shutdown(socket.SHUT_WR)
n = sum(read_all(s).endswith(b"\1") for s in many)
over = 0
for i in range(400):
	try:
		over += say(b"x") != ""
	except OSError:
		break
done(n=n, over=over, tries=i)
""", ["listed.test"], extra="  egress_connections: 60\n", args=("--set", "open_files=1024"))
	t.equal(p.said["n"], 60, "tunnels")
	t.check(p.said["tries"] < 399, "it went on listening", p.said)
	t.check(any("listens no more" in n["reason"] for n in p.r.json["network"]), "rows", p.r.json["network"])


@case("the limit of bytes: not one more, and said", final="not contained")
def byte_limit(t):
	p = ran(t, r"""
a = connect("listed.test:80", b"GET /bytes/200000 HTTP/1.1\r\nHost: listed.test\r\n\r\n")
b = connect("listed.test:80")[:12]
done(n=len(a.partition("\r\n\r\n")[2]), b=b)
""", ["listed.test"], extra="  egress_bytes: 100000\n")
	t.equal(p.said["b"], "HTTP/1.1 403", "the next connection")
	rows = p.rows("listed.test", 80, True)
	t.equal(rows[0]["sent_bytes"] + rows[0]["received_bytes"], 100000, "bytes in both directions", rows)
	t.check(p.said["n"] <= rows[0]["received_bytes"], "more was received than counted", p.said)
	p.refused("listed.test", 80, "all its egress_bytes", "raise egress_bytes")


@case("the same for what a program sends", final="not contained")
def byte_limit_up(t):
	p = ran(t, r"""
s = socket.create_connection(PROXY, 20)
s.sendall(b"CONNECT listed.test:443 HTTP/1.1\r\n\r\n")
s.recv(100)
sent = 0
try:
	while sent < 10000000:
		sent += s.send(b"\1" * 10000)
		s.setblocking(False)
		try:
			while s.recv(65536): pass
		except BlockingIOError: pass
		s.setblocking(True)
except OSError: pass
done(sent=sent)
""", ["listed.test"], extra="  egress_bytes: 100000\n")
	rows = p.rows("listed.test", 443, True)
	t.equal(rows[0]["sent_bytes"] + rows[0]["received_bytes"], 100000, "bytes in both directions", rows)
	p.refused("listed.test", 443, "all its egress_bytes")


# ---- round the proxy -----------------------------------------------------------------------------

@case("there is no way but the proxy: TCP, UDP, DNS, IPv6, the host's loopback", final="not contained")
def around(t):
	mark = NET.mark() if not NET.why else 0
	p = ran(t, r"""
def attempt(fn):
	try:
		return repr(fn())
	except OSError as e:
		return "no"
def tcp(address, port):
	return socket.create_connection((address, port), 2).getpeername()
def udp(address, port):
	s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
	s.settimeout(1)
	s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\6listed\4test\0\0\1\0\1", (address, port))
	return s.recvfrom(512)
done(tcp=[attempt(lambda: tcp(a, p)) for a, p in (("8.9.10.2", 443), ("10.9.8.2", 80), ("127.0.0.1", 8080), ("169.254.169.254", 80), ("2a00:1450::2", 80))],
     udp=[attempt(lambda: udp(a, 53)) for a in ("8.9.10.2", "127.0.0.2", "2a00:1450::2", "127.0.0.53")],
     dns=attempt(lambda: socket.getaddrinfo("other.test", 80)), names=sorted(n for _, n in socket.if_nameindex()))
""", ["listed.test", "8.9.10.2"])
	t.equal(p.said["tcp"], ["no"] * 5, "connections")
	t.equal(p.said["udp"], ["no"] * 4, "datagrams")
	t.equal(p.said["dns"], "no", "the lookup of a name that is not listed")
	t.equal(p.said["names"], ["lo"], "interfaces")
	t.equal(NET.seen(mark, "tcp") + NET.seen(mark, "dns"), [], "what was seen outside")


@case("a proxy that is killed: the program gets nowhere, and the result says so", final="not contained")
def killed(t):
	if NET.why:
		t.skip(NET.why)
	policy = t.path("policy.yaml", "network: {network_mode: allowlist, whitelist: [listed.test]}\n")
	program = t.path("program.py", PRELUDE + r"""
print(connect("listed.test:443", b"\1")[-1:] == "\1", flush=True)
try:
	connect("listed.test:443", b"\1")	# is seen outside: the first one is over
except OSError:
	pass
sys.stdin.read()
try:
	got = connect("listed.test:443", b"\1")
	print("nothing" if got.startswith("!") else got)	# refused at once, or reset before the first byte
except OSError:
	print("nothing")
""")
	mark = NET.mark()
	p = t.popen(t.run_args("--policy", policy, "--json", "--timeout", "30", program), stdin=harness.subprocess.PIPE, stdout=harness.subprocess.PIPE)
	found, deadline = [], time.monotonic() + harness.GUARD
	while not found and time.monotonic() < deadline:
		found = [int(row.split()[0]) for row in t.world.processes() if row.endswith("brig-egress")]
		time.sleep(0.05)
	t.check(len(found) == 1, "processes of the proxy", found)
	while len(NET.seen(mark, "tcp")) < 2 and time.monotonic() < deadline:
		time.sleep(0.05)
	with open(f"/proc/{found[0]}/status", encoding="ascii") as f:	# it has served: so it has confined itself
		status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
	os.kill(found[0], signal.SIGKILL)
	out, _ = p.communicate(b"", timeout=harness.GUARD)
	doc = json.loads(out)
	t.check(doc["stdout"].endswith("nothing\n"), "the program got somewhere", (doc["verdict"], doc["reason"], doc["stdout"], doc["stderr"]))
	t.check(any("proxy ended before the program" in (n["reason"] or "") for n in doc["network"]), "rows", doc["network"])
	t.equal([status[k] for k in ("CapEff", "CapPrm", "CapBnd" if harness.is_root() else "CapInh")], ["0" * 16] * 3, "capabilities of the proxy")
	t.equal([status["NoNewPrivs"], status["Seccomp"]], ["1", "2"], "no_new_privs and filter of the proxy")
	ids = {int(x) for x in status["Uid"].split()} | {int(x) for x in status["Gid"].split()}
	wanted = harness.test_ids() or (None, None)
	t.check(all(i >= 0x70000000 for i in ids) if harness.is_root() else ids == set(wanted), "ids of the proxy", status["Uid"])
	t.equal(status["Groups"].strip(), "", "groups of the proxy")


@case("a brig that is killed takes its proxy along", final="not contained")
def orphan(t):
	policy = t.path("policy.yaml", "network: {network_mode: allowlist}\n")
	p = t.popen(t.run_args("--policy", policy, t.path("program.py", "import time\nprint('up', flush=True)\ntime.sleep(100)\n")), stdout=harness.subprocess.PIPE)
	t.equal(p.stdout.readline(), b"up\n", "first line")
	p.send_signal(signal.SIGKILL)
	p.wait()
	t.after_kill()


# ---- refusals of the policy ------------------------------------------------------------------------

@case("a whitelist that makes no sense is refused before anything runs")
def nonsense_list(t):
	for item, piece in (("https://a.test", "without a scheme"), ("*", "list of everything"), ("10.0.0.0/8", "each address"), ("a.test:0", "1 to 65535")):
		policy = t.path("policy.yaml", "network:\n  network_mode: allowlist\n  whitelist: " + json.dumps([item]) + "\n")
		p = t.run(t.run_args("--policy", policy, "-c", "print(1)"))
		t.equal(p.rc, 125, "exit status", p)
		t.check(piece in p.text() and item in p.text() and b"1\n" not in p.out, f"the reason for {item}", p)


@case("the direct backend has no network to guard: refused")
def direct(t):
	policy = t.path("policy.yaml", "backend: direct\nnetwork: {network_mode: allowlist}\n")
	r = t.cell("--policy", policy, code="print(1)", lang="python", env={"BRIG_BACKEND": "direct"})
	t.verdict(r, "refused")
	t.check("network_mode" in r.reason or "direct" in r.reason, "the reason", r)


@case("without network_mode allowlist there is no proxy and no variable that names one")
def off(t):
	r = t.cell(code=PRELUDE + "try:\n\tsocket.create_connection(PROXY, 2)\n\tprint('there')\nexcept OSError:\n\tprint(sorted(k for k in os.environ if 'proxy' in k.lower()))\n",
		   lang="python")
	t.verdict(r, "ok")
	t.equal([r.stdout, r.json["network"]], [b"[]\n", []], "the proxy")


@case("the inspection does not warn of talking to the network, where the policy lets it")
def inspected(t):
	code = "import urllib.request\ntry:\n    urllib.request.urlopen('http://not-listed.example')\nexcept OSError:\n    print(1)\n"
	open_ = t.path("open.yaml", "network: {network_mode: allowlist}\n")
	guard = {"BRIG_INSPECTION": "guard"}
	for words, severity in ((("--policy", open_), "MEDIUM"), ((), "HIGH")):
		r = t.verdict(t.cell(*words, code=code, lang="python", env=guard), "ok")
		t.equal([f["severity"] for f in r.json["findings"] if f["rule"] == "py-network-call"], [severity], "findings", words)
	t.verdict(t.cell("--policy", open_, code=code + "import os\nos.kill(-1, 0)\n", lang="python", env=guard), "blocked")


if __name__ == "__main__":
	sys.exit(harness.main("egress", make_hooks=hooks))
