# SPDX-License-Identifier: Apache-2.0
"""--srt-settings: what becomes of each member of a settings file of sandbox-runtime, and which files are refused."""
import copy
import http.server
import json
import os
import socket
import threading

from harness import Result, brig_path, case, give

NATIVE = "the settings ask for a native cell"
PLAIN = {"network": {"allowedDomains": [], "deniedDomains": []},
	 "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}


def settings(**members):
	"""PLAIN with some members of its objects, or others beside them."""
	s = copy.deepcopy(PLAIN)
	for name, value in members.items():
		if name in s and isinstance(value, dict):
			s[name].update(value)
		else:
			s[name] = value
	return s


def project(t, **files):
	"""A folder with files in it; "__" in a name is a slash."""
	top = os.path.join(t.dir, "project")
	for name, text in {"old.txt": "old\n", **files}.items():
		path = os.path.join(top, name.replace("__", "/"))
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, "w") as f:
			f.write(text)
	for folder, _, names in os.walk(top):
		for path in [folder, *(os.path.join(folder, n) for n in names)]:
			give(path)
	return top


def ask(t, top, file, *words, env=None):
	if not isinstance(file, bytes):
		file = json.dumps(file).encode()
	path = t.path("srt.json", file)
	return t.run([brig_path(), *words[:1], "--local", "--srt-settings", path, *words[1:]], cwd=top, env=env)


def line(t, top, file, text, *options, env=None):
	"""A line for the shell, with its result."""
	r = Result(ask(t, top, file, "exec", "--no-inspect", "--json", *options, "--shell", text, env=env))
	t.ids.append(r.json.get("id"))
	return r


def read(top, name):
	try:
		with open(os.path.join(top, name)) as f:
			return f.read()
	except FileNotFoundError:
		return None


@case("allowWrite: what is written in the current folder is there afterwards, and nowhere else")
def allow_write(t):
	t.native_only(NATIVE)
	top = project(t)
	for allowed in (".", top, "./**", t.dir):
		r = t.verdict(line(t, top, settings(filesystem={"allowWrite": [allowed]}),
				   f"echo new >new.txt; echo more >>old.txt; echo x >{t.dir}/outside; true"), "ok")
		t.equal((read(top, "new.txt"), read(top, "old.txt")), ("new\n", "old\nmore\n"), f"files with {allowed}", r)
		t.equal(read(t.dir, "outside"), None, "a file outside", r)
		os.unlink(os.path.join(top, "new.txt"))
		with open(os.path.join(top, "old.txt"), "w") as f:
			f.write("old\n")
	r = t.verdict(line(t, top, settings(filesystem={"allowWrite": ["."]}), "echo new >new.txt; exit 3"), "error")
	t.equal(read(top, "new.txt"), None, "a file of a program that failed", r)


@case("without allowWrite the current folder can be read and not written; denyWrite above it beats allowWrite")
def read_only(t):
	t.native_only(NATIVE)
	top = project(t)
	for fs in ({}, {"allowWrite": ["."], "denyWrite": ["."]}, {"allowWrite": ["."], "denyWrite": [t.dir]},
		   {"allowWrite": ["/var/cache/other"]}):
		r = t.verdict(line(t, top, settings(filesystem=fs), "cat old.txt; echo x >new.txt"), "error", "ok")
		t.equal((r.stdout, read(top, "new.txt")), (b"old\n", None), f"{fs}: what was read and written", r)
		t.check(b"Read-only" in r.stderr, f"{fs}: it is read-only", r)


@case("denyWrite below the workspace, and what srt always protects, stay as they are")
def deny_write(t):
	t.native_only(NATIVE)
	files = {"keep__a": "a\n", "lib__x.lock": "lock\n", ".bashrc": "rc\n", "sub__.claude__commands__c": "c\n", ".vscode__t": "t\n"}
	top = project(t, **files)
	os.symlink("keep", os.path.join(top, "link"))
	tries = "".join(f"echo bad >{n.replace('__', '/')}; rm -rf {n.replace('__', '/')}; " for n in files)
	r = t.verdict(line(t, top, settings(filesystem={"allowWrite": ["."], "denyWrite": ["./link", "**/*.lock", "later"]}),
			   f"({tries} rm -rf keep; mv sub sub2; mkdir later; echo x >later/x; echo x >made) 2>/dev/null; true"), "ok")
	for name, text in files.items():
		t.equal(read(top, name.replace("__", "/")), text, name, r)
	t.equal((read(top, "later/x"), read(top, "made")), (None, "x\n"), "what is new", r)
	t.check(b"filesystem.denyWrite[0]" in r.err and b"hiding" in r.err, "a notice says that it is hidden", r)


@case("denyRead hides, allowRead takes back, credentials are final, and a folder that is denied is no workspace")
def deny_read(t):
	t.native_only(NATIVE)
	top = project(t, data__secret="TOPSECRET\n", a__b__deep="TOPSECRET\n", token="TOPSECRET\n")
	os.symlink("/", os.path.join(t.dir, "root"))
	show = "cat data/secret a/b/deep token old.txt"
	rows = [
		({"denyRead": ["./data", "**/deep", f"{top}/token"]}, None, 0, True),
		({"denyRead": ["data/**", "a/*/deep"]}, {"files": [{"path": "token", "mode": "deny"}]}, 0, True),
		({"denyRead": [f"{t.dir}/root{top}/data", "./token", "/etc/shadow", "/etc/ssl/private"]}, None, 1, True),
		({"denyRead": ["data"], "allowRead": ["data"]}, None, 3, True),
		({"denyRead": ["data"], "allowRead": ["."]}, None, 2, True),
		({"denyRead": [t.dir], "allowRead": ["."]}, None, 3, True),
		({"allowRead": ["token"]}, {"files": [{"path": "token", "mode": "deny"}]}, 2, True),
		({"denyRead": [t.dir]}, None, 0, False),
		({"denyRead": ["."], "allowWrite": ["."]}, None, 0, False),
		({"denyRead": ["."], "allowRead": ["data"]}, None, 0, False),
		({"denyRead": ["~"]}, None, 0, False),
	]
	for fs, credentials, secrets, is_shown in rows:
		s = settings(filesystem=fs, **({"credentials": credentials} if credentials else {}))
		r = t.verdict(line(t, top, s, show, env={"HOME": t.dir}), "ok", "error")
		t.equal((r.stdout.count(b"TOPSECRET"), b"old" in r.stdout), (secrets, is_shown), f"{fs}: secrets, and the rest", r)
	r = ask(t, top, settings(filesystem={"denyRead": ["."]}), "exec", "--workspace", top, "--", "ls")
	t.check(r.rc == 2 and b"filesystem.denyRead hides the workspace" in r.err, "a workspace that is denied is refused", r)


class Page(http.server.BaseHTTPRequestHandler):
	def do_GET(self):
		self.send_response(200)
		self.end_headers()
		self.wfile.write(b"reached")

	def log_message(self, *args):
		pass


@case("allowedDomains are reached, everything else is not, and what is denied whole is not either")
def domains(t):
	t.native_only(NATIVE)
	top = project(t)
	server = http.server.HTTPServer(("127.0.0.1", 0), Page)
	port = server.server_port
	threading.Thread(target=server.serve_forever, daemon=True).start()
	program = ("import os, urllib.request as u\n"
		   "for name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name, None)\n"
		   "try: print(u.build_opener(u.ProxyHandler({'http': 'http://127.0.0.1:3128'}))"
		   f".open('http://127.0.0.1:{port}/').read().decode())\n"
		   "except Exception as e: print('not', e)\n")
	try:
		for allowed, denied, is_reached in (([f"127.0.0.1:{port}"], [], True), (["127.0.0.1"], ["*.example.org"], True),
						    (["example.org"], [], False), (["127.0.0.1"], ["127.0.0.1"], False),
						    ([f"127.0.0.1:{port}"], ["*"], False), ([], [], False)):
			r = Result(ask(t, top, settings(network={"allowedDomains": allowed, "deniedDomains": denied}), "run", "--json",
				       "--no-inspect", "-l", "python", "-c", program))
			t.verdict(r, "ok")
			t.equal(r.stdout.startswith(b"reached"), is_reached, f"{allowed} without {denied}", r)
	finally:
		server.shutdown()
		server.server_close()


@case("a policy file that gives no network is not overruled, and one with a network is")
def network_policy(t):
	t.native_only(NATIVE)
	top = project(t)
	file = settings(network={"allowedDomains": ["example.org"]})
	none = t.path("none.yaml", b"network_mode: none\n")
	r = ask(t, top, file, "exec", "--policy", none, "--", "true")
	t.check(r.rc != 0 and b"loosen" in r.err, "refused under network_mode none", r)
	wide = t.path("wide.yaml", b"network_mode: allowlist\nwhitelist: [example.org]\n")
	r = t.verdict(line(t, top, PLAIN, "echo p=$HTTP_PROXY", "--policy", wide), "ok")
	t.equal(r.stdout, b"p=\n", "proxy without allowedDomains", r)
	r = ask(t, top, file, "exec", "--", "true", env={"BRIG_WHITELIST": "example.net"})
	t.check(r.rc == 2 and b"BRIG_WHITELIST" in r.err, "a variable that says otherwise is refused", r)


@case("a socket of the host that lies in the workspace leads nowhere, writable or not")
def host_sockets(t):
	t.native_only(NATIVE)
	top = project(t)
	dial = "import socket; socket.socket(socket.AF_UNIX).connect('s')"
	here = os.getcwd()
	with socket.socket(socket.AF_UNIX) as listener:
		os.chdir(top)	# a path of a socket is short
		listener.bind("s")
		os.chdir(here)
		os.chmod(os.path.join(top, "s"), 0o777)
		listener.listen(4)
		for allowed in ([], ["."]):
			r = Result(ask(t, top, settings(filesystem={"allowWrite": allowed}), "exec", "--no-inspect", "--json", "--", "python3", "-c", dial))
			t.verdict(r, "error")
			t.check(b"refused" in r.stderr, f"allowWrite {allowed}: nobody listens there", r)


@case("options that would undo the file are refused")
def undone(t):
	t.native_only(NATIVE)
	top = project(t)
	for words in (["--workspace-mode", "cow"], ["--workspace-mode", "rw", "--trust", "trusted"], ["--set", "network_mode=allowlist"]):
		r = ask(t, top, PLAIN, "exec", *words, "--", "touch", "ran")
		t.check(r.rc == 125 and b"set twice" in r.err, f"{words} is refused", r)
	r = ask(t, top, PLAIN, "exec", "--", "touch", "ran", env={"BRIG_BACKEND": "direct"})
	t.check(r.rc == 125 and b"native" in r.err, "a policy that isolates nothing is refused", r)
	t.equal(read(top, "ran"), None, "what a refused run made")


@case("'brig run' runs a file in its place, and not a folder that is denied")
def run_file(t):
	t.native_only(NATIVE)
	top = project(t, **{"sub__main.py": "import near; print(near.X)\n", "sub__near.py": "X = 7\n"})
	r = ask(t, top, PLAIN, "run", "sub/main.py")
	t.equal((r.rc, r.out), (0, b"7\n"), "status and output", r)
	r = ask(t, top, settings(filesystem={"denyRead": ["."]}), "run", "sub")
	t.check(r.rc == 2 and b"denyRead hides the workspace" in r.err, "a folder in what is denied", r)


@case("what is stricter than the file says is said, unless --quiet")
def notices(t):
	t.native_only(NATIVE)
	top = project(t)
	file = settings(network={"allowAllUnixSockets": True, "allowLocalBinding": True, "strictAllowlist": False,
				 "allowUnixSockets": ["/run/x.sock"]},
			filesystem={"allowWrite": ["/var/cache/x"], "allowRead": ["/srv/x"], "allowGitConfig": True, "disabled": False},
			ignoreViolations={"*": ["/x"]}, enableWeakerNestedSandbox=True, bwrapPath="/usr/bin/bwrap")
	r = ask(t, top, file, "exec", "--", "true")
	said = r.err.decode().splitlines()
	for name in ("network.allowAllUnixSockets", "network.allowLocalBinding", "network.allowUnixSockets", "filesystem.allowWrite[0]",
		     "filesystem.allowRead[0]", "filesystem.allowGitConfig", "ignoreViolations", "enableWeakerNestedSandbox"):
		t.check(any(f"srt.json: {name}: " in x for x in said), f"a notice about {name}", r)
	t.equal((r.rc, len(said)), (0, 8), "status and number of notices", r)
	r = ask(t, top, file, "exec", "--quiet", "--", "true")
	t.equal((r.rc, r.err), (0, b""), "status and stderr with --quiet", r)


def fs(**members):
	return settings(filesystem=members)


def net(**members):
	return settings(network=members)


REFUSED = [
	# file, what the complaint says
	(b"", "column"), (b"{", "column"), (b"[]", "must be an object"), (b"null", "column"), (b"\xff{}", "not UTF-8"),
	(b"[" * 100000, "maximum parsing depth"), (b'{"a":' * 5000 + b"1" + b"}" * 5000, "maximum parsing depth"),
	(b" " * (1 << 20) + b"{}", "larger than 1 MB"),
	(b'{"network": {}, "network": {}}', "duplicate"),
	(b'{"filesystem": {"denyRead": [], "denyRead": ["."]}}', "duplicate"),
	({}, "network is missing"), ({"network": PLAIN["network"]}, "filesystem is missing"),
	(settings(network={"allowedDomains": None}), "network.allowedDomains must be a list of strings"),
	({"network": PLAIN["network"], "filesystem": {"denyRead": [], "allowWrite": []}}, "filesystem.denyWrite is missing"),
	(settings(network=3), "network must be an object"), (settings(filesystem=[]), "filesystem must be an object"),
	(settings(networks={}), "unknown member 'networks'; did you mean 'network'"),
	(fs(denyreads=[]), "filesystem: unknown member 'denyreads'; did you mean 'denyRead'"),
	(net(allowedDomain=[]), "network: unknown member 'allowedDomain'"),
	(fs(denyRead="x"), "filesystem.denyRead must be a list"), (fs(denyRead=[1]), "filesystem.denyRead[0] must be a string"),
	(fs(denyRead=["a\0b"]), "NUL"), (fs(denyRead=[""]), "is empty"), (fs(denyRead=["a\nb"]), "control characters"),
	(fs(denyRead=["x"] * 257), "more than 256"),
	(fs(denyRead=["../x"]), "filesystem.denyRead[0] '../x' has '..'"), (fs(allowWrite=["a/../.."]), "has '..'"),
	(fs(denyRead=["~root/x"]), "home of somebody"), (fs(denyRead=["a\\b"]), "has control characters"),
	(fs(denyRead=["./" + "x" * 5000]), "is too long"), (fs(denyRead=["./" + "x" * 100]), "cannot be hidden"),
	(fs(denyRead=["./a,b"]), "cannot be hidden"), (fs(allowWrite=["."], denyWrite=["./a,b"]), "cannot be hidden"),
	(fs(denyRead=["/**/id_rsa"]), "every cell shows"), (fs(denyRead=["/home*/**/x", "@TOP@/../x"]), "has '..'"),
	(fs(denyRead=["@DIR@/*/x"]), "wild-cards begin above the workspace"),
	(fs(denyWrite=["@DIR@/*/x"], allowWrite=["."]), "wild-cards begin above the workspace"),
	(fs(allowWrite=["./*.txt"]), "wild-cards cannot allow"), (fs(allowRead=["./*"]), "wild-cards cannot allow"),
	(fs(allowWrite=["./dist"]), "filesystem.allowWrite[0] './dist' cannot be honoured: a workspace is writable as a whole"),
	(fs(denyRead=["/usr/share/doc"]), "every cell shows /usr"), (fs(denyRead=["/"]), "every cell shows"),
	(fs(denyRead=["/etc"]), "every cell shows /etc/"), (fs(denyRead=["/"], allowRead=["/usr", "."]), "every cell shows /bin"),
	(fs(disabled=True), "filesystem.disabled cannot be honoured"), (fs(disabled=1), "must be true or false"),
	(net(httpProxyPort=3128), "network.httpProxyPort cannot be honoured"), (net(socksProxyPort=1), "cannot be honoured"),
	(net(mitmProxy={"socketPath": "/x", "domains": ["a.b"]}), "cannot be honoured"), (net(tlsTerminate={}), "cannot be honoured"),
	(net(parentProxy={}), "cannot be honoured"), (net(deniedResolvedAddresses=["10.0.0.0/8"]), "cannot be honoured"),
	(net(allowedDomains=["*"]), "network.allowedDomains[0] is no domain"), (net(allowedDomains=["*.com"]), "is no domain"),
	(net(allowedDomains=["a.b", "https://a.b"]), "network.allowedDomains[1] is no domain"),
	(net(allowedDomains=["a.b,c.d"]), "is no domain"), (net(allowedDomains=["a.b:0"]), "is no domain"),
	(net(allowedDomains=["::1"]), "is no domain"), (net(allowedDomains=["[::1"]), "is no domain"),
	(net(allowedDomains=["x." * 200 + "org"]), "is no domain"), (net(deniedDomains=["a b.c"]), "network.deniedDomains[0] is no"),
	(net(allowedDomains=["*.a.org"], deniedDomains=["x.a.org"]), "takes 'x.a.org' out of it"),
	(net(allowedDomains=["a.org"], deniedDomains=["*:22"]), "takes '*:22' out of it"),
	(settings(credentials={"files": [{"path": "x", "mode": "mask"}]}), "credentials.files[0] has a mode"),
	(settings(credentials={"envVars": [{"name": "X"}]}), "credentials.envVars[0] must have 'name' and 'mode'"),
	(settings(credentials={"envVars": [{"name": "TOKEN", "mode": "deny"}]}), "denies 'TOKEN'"),
	(settings(credentials={"injectHosts": []}), "credentials: unknown member"),
	(settings(enableWeakerNestedSandbox="yes"), "enableWeakerNestedSandbox must be true or false"),
]


@case("files that are wrong, hostile or ask for what a cell cannot give are refused with their place, and nothing runs")
def refused(t):
	top = project(t)
	for file, why in REFUSED:
		if not isinstance(file, bytes):
			file = json.dumps(file).replace("@TOP@", top).replace("@DIR@", t.dir).encode()
		r = ask(t, top, file, "exec", "--env", "TOKEN=x", "--", "touch", "ran")
		t.check(r.rc == 2 and why in r.err.decode(), f"{file[:100]} is refused with '{why}'", r)
		t.check(b"srt.json: " in r.err and len(r.err) < 2000, f"{file[:100]}: the complaint names the file", r)
	for words, why in ((["--backend", "direct"], b"may not isolate"), (["--venv", "x"], b"--venv shows")):
		r = ask(t, top, PLAIN, "exec", *words, "--", "true")
		t.check(r.rc == 2 and why in r.err, f"{words} is refused", r)
	for path in ("no-such-file", ".", "/dev/zero"):
		r = t.run([brig_path(), "exec", "--local", "--srt-settings", path, "--", "true"], cwd=top)
		t.check(r.rc == 2 and path.encode() in r.err, f"{path} is no settings file", r)
	r = t.run([brig_path(), "exec", "--srt-settings", t.path("srt.json", json.dumps(PLAIN).encode()), "--", "true"], cwd=top,
		  env={"BRIG_HOST": "unix:///no/such/socket"})
	t.check(r.rc != 0 and b"--srt-settings" in r.err, "it does not travel to a service", r)
