#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The packages suite: real installers, registries on loopback that are made here, and cells that use what was installed."""
import fcntl
import glob
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import harness
from harness import case
from registries import Registry, sdist, wheel

# Not the machine's own configuration; waiting for a registry that is gone decides nothing here.
QUIET = {"PIP_CONFIG_FILE": "/dev/null", "NPM_CONFIG_USERCONFIG": "/dev/null"}
# Installing is slow where everything is; that is not what is tested.
LIMITS = {"BRIG_INSTALL_TIMEOUT_MS": "300000", "BRIG_EXECUTION_TIMEOUT_MS": "30000", "BRIG_STARTUP_TIMEOUT_MS": "60000"}
GUARD = 240

# What an installation or a program tries: a host path, another server, the way out.  Prints or is FOUND: what worked.
PROBE = """
import os, socket, urllib.request
FOUND = []
for path in %(paths)r:
	try:
		open(path, "w").write("was here")
		FOUND.append("wrote " + path)
	except OSError:
		pass
for host, port in %(hosts)r:
	try:
		socket.create_connection((host, port), 5).close()
		FOUND.append("connected to " + host)
	except OSError:
		pass
	try:
		urllib.request.urlopen("http://%%s:%%d/simple/" %% (host, port), timeout=20).read()
		FOUND.append("asked " + host)
	except OSError as e:
		if getattr(e, "code", 0) in (200, 404):
			FOUND.append("asked " + host)
"""


def need(*tools):
	def wrap(fn):
		def run(t):
			for tool, package in tools:
				if not glob.glob(tool):
					t.skip(f"needs {package}")
			t.native_only("packages")
			fn(t)
		run.__code__ = run.__code__.replace(co_filename=fn.__code__.co_filename)
		run.__name__ = fn.__name__
		return run
	return wrap


pip = need(("/usr/lib/python3*/*-packages/pip", "python3-pip"))
npm = need(("/usr/bin/npm", "npm"))
go = need(("/usr/bin/go", "golang-go"))


def env_for(registry=None, **more):
	url = registry.url if registry else "http://127.0.0.1:9"
	return {**QUIET, **LIMITS, "PIP_INDEX_URL": url + "/simple", "npm_config_registry": url + "/", "GOPROXY": url, **more}


def cell(t, registry, *args, **kw):
	env = kw.pop("env", {})
	return t.cell(*args, env=env_for(registry, **env), guard=GUARD, **kw)


def state_of(t, r, wanted):
	t.equal((r.json["packages"] or {}).get("state"), wanted, "the state of the packages", r)
	return r.json["packages"]


def hello(registry, name="hello", **more):
	registry.put_pip(name, wheel(name, {f"{name}/__init__.py": "VALUE = 6 * 7\n", **more}))


# ---- pip -----------------------------------------------------------------------------------------

@case("a package is installed once, used without network, and found again when the registry is gone")
@pip
def pip_cache(t):
	code = ("import hello, os, socket\nprint(hello.VALUE, hello.__file__, os.path.exists(hello.__cached__))\n"
		"for port in (%s, 3128):\n"
		"	try:\n\t\tsocket.create_connection(('127.0.0.1', port), 5)\n\t\tprint('connected')\n"
		"	except OSError:\n\t\tprint('no way')\n"
		"try:\n\topen(hello.__file__, 'a')\n\tprint('writable')\nexcept OSError:\n\tprint('read-only')\n")
	with Registry() as registry:
		hello(registry)
		code %= registry.place.split(":")[1]
		first = t.verdict(cell(t, registry, "--packages", "hello", code=code, lang="python"), "ok")
		made = state_of(t, first, "installed")
		t.equal(registry.count(".whl"), 1, "downloads", registry.asked)
	t.equal(first.stdout, b"42 /opt/packages/pip/hello/__init__.py True\nno way\nno way\nread-only\n", "output", first)
	t.check(made["files"] >= 5 and made["bytes"] > 100 and made["ecosystem"] == "pip", "what was installed", made)
	t.check(any(row["host"] == "127.0.0.1" and row["allowed"] for row in first.json["network"]), "the registry is in network[]", first.json["network"])
	second = t.verdict(cell(t, registry, "--packages", "hello", code=code, lang="python"), "ok")
	found = state_of(t, second, "hit")
	t.equal((found["key"], found["content"]), (made["key"], made["content"]), "key and content")
	t.equal(second.stdout, first.stdout, "output of the second run")
	t.equal(second.json["network"], [], "network of the second run")
	listed = json.loads(t.brig("cache", "list", "--json").out)
	t.equal([(row["kind"], row["key"], row["hits"]) for row in listed["entries"]], [("pip", made["key"], 1)], "cache list", listed)
	p = t.brig("cache", "verify")
	t.equal(p.rc, 0, "cache verify", p)
	third = cell(t, registry, "--packages", "hello", "--trust", "untrusted", "--inspect", "off", code=code, lang="python")
	t.check(third.verdict == "error" and third.json["step"] == "install", "another trust level shares nothing", third)
	p = t.brig("cache", "prune", "--all", "--json")
	t.equal((json.loads(p.out)["removed"], json.loads(p.out)["entries"]), (1, 0), "cache prune --all", p)
	t.equal(os.listdir(os.path.join(t.state, "packages", "content")), [], "sets that are left")


@case("an entry that was tampered with is refused, said so, and installed again", final="not contained")
@pip
def pip_tampered(t):
	with Registry() as registry:
		hello(registry)
		ask = dict(code="import hello\nprint(hello.VALUE)\n", lang="python")
		made = state_of(t, t.verdict(cell(t, registry, "--packages", "hello", **ask), "ok"), "installed")
		for again in ("used", "verified"):
			(top,) = glob.glob(os.path.join(t.state, "packages", "content", "*"))
			file = os.path.join(top, "hello", "__init__.py")
			os.chmod(file, 0o644)
			with open(file, "a", encoding="ascii") as f:
				f.write("VALUE = 666\n")
			os.chmod(file, 0o444)
			if again == "verified":
				p = t.brig("cache", "verify", "--json")
				t.equal((p.rc, json.loads(p.out)["damaged"]), (1, 1), "cache verify", p)
			r = t.verdict(cell(t, registry, "--packages", "hello", **ask), "ok")
			t.equal(r.stdout, b"42\n", "output", r)
			t.equal(state_of(t, r, "installed")["content"], made["content"], "content")
			if again == "used":
				t.check(any("tree that was kept" in w for w in r.json["warnings"]), "it is said", r.json["warnings"])


@case("strict: packages that are asked for are built and may be imported, and the allow-list holds for all others")
@pip
def pip_strict(t):
	strict = ["--preset", "strict", "--trust", "untrusted"]
	with Registry() as registry:
		registry.put_pip("sly", sdist("sly", "FOUND = 42\n"))
		registry.put_pip("pyyaml", wheel("PyYAML", {"yaml/__init__.py": "VALUE = 6\n"}))
		code = "import sly, yaml\nfrom sly import FOUND\nprint(sly.FOUND, yaml.VALUE)\n"
		r = t.verdict(cell(t, registry, *strict, "--packages", "sly,PyYAML", code=code, lang="python"), "ok")
		t.equal((r.stdout, r.json["inspection"]), (b"42 6\n", "strict"), "output", r)
		top = project(t, requirements_DOT_txt="sly==1.0\nPyYAML ; python_version > '3'\n", app_DOT_py=code)
		r = cell(t, registry, *strict, "--workspace", top, "--project-packages", os.path.join(top, "app.py"))
		t.equal(t.verdict(r, "ok").stdout, b"42 6\n", "a project's own", r)
	for packages, module in (("sly", "yaml"), ("asyncio", "asyncio"), ("subprocess", "subprocess"), ("os-path", "os.path")):
		r = cell(t, None, *strict, "--packages", packages, code=f"import {module}\n", lang="python")
		t.check(r.verdict == "blocked" and not r.json["packages"], f"{module} with the package {packages}", r)


@case("a set that a cell shows is not removed, whoever makes room")
@pip
def pip_in_use(t):
	with Registry() as registry:
		hello(registry)
		code = "import sys\nprint('ready', flush=True)\nsys.stdin.readline()\nimport hello\nprint(hello.VALUE)\n"
		p = t.popen(t.run_args("--packages", "hello", t.path("program.py", code)), env=env_for(registry), stdin=subprocess.PIPE,
			    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
		t.equal(p.stdout.readline(), b"ready\n", "the program's first line")
		pruned = t.brig("cache", "prune", "--all", "--json")
		t.equal((json.loads(pruned.out)["removed"], json.loads(pruned.out)["entries"]), (0, 1), "prune while it runs", pruned)
		out, _ = p.communicate(b"go on\n", timeout=GUARD)
		t.equal((p.returncode, out), (0, b"42\n"), "the program")
		pruned = t.brig("cache", "prune", "--all", "--json")
		t.equal((json.loads(pruned.out)["removed"], json.loads(pruned.out)["entries"]), (1, 0), "prune afterwards", pruned)


@case("several that want the same set at the same time install it once")
@pip
def pip_concurrent(t):
	with Registry() as registry:
		hello(registry)
		program = t.path("program.py", "import hello\nprint(hello.VALUE)\n")
		started = [t.popen(t.run_args("--json", "--packages", "hello", program), env=env_for(registry), stdin=subprocess.DEVNULL,
				   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(3)]
		results = [json.loads(p.communicate(timeout=GUARD)[0]) for p in started]
		t.equal([r["stdout"] for r in results], ["42\n"] * 3, "outputs")
		t.equal(sorted(r["packages"]["state"] for r in results), ["hit", "hit", "installed"], "states")
		t.equal(registry.count(".whl"), 1, "downloads", registry.asked)


@case("what a package runs while it is installed runs in the cell: no host file, no other server", final="not contained")
@pip
def pip_build_is_contained(t):
	with Registry() as registry, Registry() as other:
		paths = [t.path("marker"), os.path.join(t.tmp, "marker"), "/etc/brig-was-here", "/usr/brig-was-here", "/opt/brig-was-here"]
		hosts = [(o.place.split(":")[0], int(o.place.split(":")[1])) for o in (other,)] + [("192.0.2.7", 80)]
		probe = PROBE % {"paths": paths, "hosts": hosts} + "FOUND.append(sorted(os.listdir('/workspace')))\n"
		registry.put_pip("sly", sdist("sly", probe))
		r = t.verdict(cell(t, registry, "--packages", "sly", code="import sly\nprint(sly.FOUND)\n", lang="python"), "ok")
		t.equal(r.stdout, b"[['packages', 'tmp']]\n", "what worked", r)
		t.equal(other.asked, [], "what the other server was asked")
		t.equal([p for p in paths if os.path.exists(p)], [], "files on the host")
		t.check(any(row["kind"] == "host" and other.place in row["what"] for row in r.json["denied"]), "the attempt is listed", r.json["denied"])


@case("a host that is not allowed ends the installation, and the reason says what to add")
@pip
def pip_denied_host(t):
	with Registry() as registry, Registry() as files:
		archives = wheel("hello", {"hello/__init__.py": "VALUE = 1\n"})
		registry.put_pip("hello", archives, f"http://{files.place}")
		files.put_archives(archives)
		ask = dict(code="import hello\nprint(hello.VALUE)\n", lang="python")
		r = cell(t, registry, "--packages", "hello", **ask)
		t.equal((r.verdict, r.json["step"], r.json["packages"]), ("error", "install", None), "verdict", r)
		t.check(r.rc != 0 and files.place in r.reason and "package_hosts" in r.reason, "the reason", r)
		t.check(b"hello" in r.stdout + r.stderr, "the installer's own words", r)
		t.equal(files.asked, [], "what the other server was asked")
		r = t.verdict(cell(t, registry, "--packages", "hello", env={"BRIG_PACKAGE_HOSTS": files.place}, **ask), "ok")
		t.equal(r.stdout, b"1\n", "output", r)


@case("what is wrong with a registry is said, with what to do about it")
@pip
def registry_troubles(t):
	python = dict(code="import hello\n", lang="python")
	node = dict(code="require('hello')\n", lang="javascript")
	with Registry() as registry, Registry(tls=t.path("certificate.pem")) as tls:
		port = registry.place.split(":")[1]
		for index, package, program, words in (
			("http://no-such-host.invalid", "hello", python, "the name no-such-host.invalid cannot be resolved on this host; check its DNS, or name"),
			("http://127.0.0.1:9", "hello", python, "no connection to 127.0.0.1:9"),
			(f"http://localhost:{port}", "hello", python, f"not public: 127.0.0.1 (loopback); add 127.0.0.1:{port} to package_hosts"),
			(tls.url, "hello", python, "certificate of the registry is not trusted; name the file"),
			(registry.url, "hello==9", python, "nothing for this Python that is hello==9"),
			(registry.url, "nosuch", node, f"does not know {registry.url}/nosuch"),
		):
			if program is node and not os.path.exists("/usr/bin/npm"):
				continue
			r = cell(t, None, "--packages", package, env={"PIP_INDEX_URL": index + "/simple", "npm_config_registry": index + "/"}, **program)
			t.check(r.verdict == "error" and words in r.reason, f"the reason has '{words}'", r)
		hello(registry)
		r = t.brig("run", "--packages", "hello", t.path("program.py", "import hello\n"), env=env_for(registry), guard=GUARD)
		t.check(r.rc == 0 and r.err.startswith(b"brig: installing hello with pip ...\nbrig: installed hello in ") and b"kept for 30 days)\n" in r.err,
			"progress on what is no terminal", r)
		t.brig("cache", "prune", "--all")
		r = t.brig("run", "--quiet", "--packages", "hello", t.path("program.py"), env=env_for(registry), guard=GUARD)
		t.equal((r.rc, r.err), (0, b""), "quiet", r)


@case("an installation that takes too long ends with its step; one whose brig is killed leaves nothing in the way of the next")
@pip
def pip_ends(t):
	with Registry() as registry:
		hello(registry)
		registry.open.clear()
		ask = dict(code="import hello\nprint(hello.VALUE)\n", lang="python")
		r = t.verdict(cell(t, registry, "--packages", "hello", env={"BRIG_INSTALL_TIMEOUT_MS": "2000"}, **ask), "timeout")
		t.check(r.json["step"] == "install" and "could not be installed" in r.reason, "the step and the reason", r)
		asked = registry.count(".whl")
		p = t.popen(t.run_args("--packages", "hello", t.path("program.py")), env=env_for(registry), stdin=subprocess.DEVNULL,
			    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
		end = time.monotonic() + GUARD
		while registry.count(".whl") == asked and time.monotonic() < end:
			time.sleep(0.05)
		p.kill()
		p.wait()
		registry.open.set()
		t.verdict(cell(t, registry, "--packages", "hello", **ask), "ok")
		left = os.listdir(os.path.join(t.state, "packages"))
		t.equal(sorted(left), ["content", "index", "lock"], "what is in the folder")


@case("credentials of a registry are used and never shown", final="not contained")
@pip
def pip_credentials(t):
	with Registry(login="reader:s3cr3t-word") as registry:
		hello(registry)
		ask = dict(code="import hello\nprint(hello.VALUE)\n", lang="python")
		r = t.verdict(cell(t, registry, "--packages", "hello", **ask), "ok")
		failed = cell(t, registry, "--packages", "missing", **ask)
		t.equal((failed.verdict, failed.json["step"]), ("error", "install"), "verdict", failed)
	for seen in (r, failed):
		t.check(b"s3cr3t" not in seen.out + seen.err, "no credentials in a result", seen)
	for top, _, names in os.walk(t.state):
		for name in names:
			with open(os.path.join(top, name), "rb") as f:
				t.check(b"s3cr3t" not in f.read(), "no credentials in the state folder", os.path.join(top, name))


def project(t, **files):
	top = os.path.join(t.dir, "project")
	os.mkdir(top)
	for name, text in files.items():
		path = os.path.join(top, name.replace("__", "/").replace("_DOT_", "."))
		os.makedirs(os.path.dirname(path), exist_ok=True)
		with open(path, "w", encoding="ascii") as f:
			f.write(text)
	if harness.test_ids():
		subprocess.run(["chown", "-R", "%d:%d" % harness.test_ids(), top], check=True)
	return top


@case("a project's requirement files are followed inside the workspace, and only they reach the install cell")
@pip
def pip_project(t):
	with Registry() as registry:
		hello(registry)
		registry.put_pip("sly", sdist("sly", "import os\nFOUND = sorted(os.listdir('/workspace'))\n"))
		top = project(t, requirements_DOT_txt="hello==1.0\n-r more/needs.txt\n", more__needs_DOT_txt="sly\n",
			      app_DOT_py="import hello, sly\nprint(hello.VALUE, sly.FOUND)\n", _DOT_env="KEY=1\n")
		app = os.path.join(top, "app.py")
		r = t.verdict(cell(t, registry, "--workspace", top, "--project-packages", app), "ok")
		t.equal(r.stdout, b"42 ['packages', 'requirements-1.txt', 'requirements.txt', 'tmp']\n", "output", r)
		state_of(t, r, "installed")
		t.equal(r.json["changes"], [], "changes of the workspace", r)
		downloads = len(registry.asked)
		p = t.brig("exec", "--workspace", top, "--project-packages", "--", "python3", "app.py", env=env_for(registry), guard=GUARD)
		t.equal((p.rc, p.out), (0, r.stdout), "a command in the same project", p)
		with open(os.path.join(top, "test_app.py"), "w", encoding="ascii") as f:
			f.write("import unittest, hello\nclass T(unittest.TestCase):\n\tdef test(self): self.assertEqual(hello.VALUE, 42)\n")
		os.chmod(f.name, 0o644)
		p = t.brig("test", "--framework", "unittest", "--workspace", top, "--project-packages", env=env_for(registry), guard=GUARD)
		t.check(p.rc == 0 and b"1 passed" in p.out, "the project's tests", p)
		t.equal(len(registry.asked), downloads, "requests for the second and third use", registry.asked)
		with open(os.path.join(top, "more", "needs.txt"), "w", encoding="ascii") as f:
			f.write("-r ../.env\n")
		r = cell(t, registry, "--workspace", top, "--project-packages", app)
		t.check(r.verdict == "refused" and ".env" in r.reason and "hidden" in r.reason, "hidden files stay hidden", r)


# Runs in the place of a later step of the installation, which ends well: nothing is left of what pip had installed.
EMPTY = """
text = "import os, shutil\\nfor name in os.listdir('packages'):\\n\\tshutil.rmtree('packages/' + name)\\n"
open("/workspace/compileall.py", "w").write(text)
FOUND = []
"""


@case("pk1: a set without its packages is not kept, and the next request installs again (pip)")
@pip
def pk1_pip(t):
	with Registry() as registry:
		registry.put_pip("sly", sdist("sly", EMPTY))
		r = cell(t, registry, "--packages", "sly", code="print('ran')\n", lang="python")
		t.check(r.verdict == "refused" and "'sly' is not in what it left" in r.reason and b"ran\n" not in r.stdout, "an emptied set", r)
		t.equal(json.loads(t.brig("cache", "list", "--json").out)["entries"], [], "what is kept", r)
		registry.put_pip("sly", sdist("sly", "FOUND = 42\n"))
		r = cell(t, registry, "--packages", "Sly == 1.0", code="import sly\nprint(sly.FOUND)\n", lang="python")
		t.equal((t.verdict(r, "ok").stdout, r.json["packages"]["state"]), (b"42\n", "installed"), "an honest one", r)


def make_venv(top, first_line):
	"""What python3 -m venv makes, and a package and a program in it."""
	(version,) = {os.path.basename(os.path.realpath("/usr/bin/python3"))}
	for name, text, mode in ((f"lib/{version}/site-packages/inside/__init__.py", "VALUE = 8\n", 0o644), ("pyvenv.cfg", "home = /usr/bin\n", 0o644),
				 ("bin/tool", f"#!{first_line}\nimport inside, sys\nprint(inside.VALUE, sys.prefix)\n", 0o755),
				 ("pip.conf", "index-url = https://user:s3cr3t@h/\n", 0o644)):
		path = os.path.join(top, name)
		os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
		with open(path, "w", encoding="ascii") as f:
			f.write(text)
		os.chmod(path, mode)
	os.symlink("/usr/bin/python3", os.path.join(top, "bin", "python3"))
	os.chmod(top, 0o755)
	return top, version


@case("a virtual environment of the host is used, read-only, and no more of it is shown than is needed")
@pip
def venv_of_host(t):
	code = ("import inside, os\nprint(inside.VALUE, sorted(os.listdir(os.environ['VIRTUAL_ENV'])))\n"
		"try:\n\topen(inside.__file__, 'a')\n\tprint('writable')\nexcept OSError:\n\tprint('read-only')\n")
	ask = dict(code=code, lang="python")
	wanted = b"8 ['bin', 'lib', 'pyvenv.cfg']\nread-only\n"
	outside = tempfile.mkdtemp(dir="/var/tmp")
	try:
		top, version = make_venv(outside, outside + "/bin/python3")
		r = t.verdict(cell(t, None, "--venv", top, **ask), "ok")
		t.equal((r.stdout, r.json["warnings"]), (wanted, []), "output", r)
		p = t.brig("exec", "--venv", top, "--", "tool")
		t.equal((p.rc, p.out), (0, f"8 {top}\n".encode()), "a program of it, by its name", p)
		tests = project(t, test_it_DOT_py="import unittest, inside\nclass T(unittest.TestCase):\n\tdef test(self): self.assertEqual(inside.VALUE, 8)\n")
		p = t.brig("test", "--venv", top, "--framework", "unittest", "--workspace", tests)
		t.check(p.rc == 0 and b"1 passed" in p.out, "tests with it", p)
		with Registry() as registry:
			hello(registry)
			r = cell(t, registry, "--venv", top, "--packages", "hello", code="import inside, hello\nprint(inside.VALUE, hello.VALUE)\n", lang="python")
			t.equal(t.verdict(r, "ok").stdout, b"8 42\n", "beside packages", r)
		os.chmod(os.path.join(top, "lib"), 0o700)
		r = cell(t, None, "--venv", top, **ask)
		t.check(r.verdict == "refused" and "chmod" in r.reason, "one that cells cannot read", r)
		os.chmod(os.path.join(top, "lib"), 0o755)
		os.rename(os.path.join(top, "lib", version), os.path.join(top, "lib", "python3.2"))
		r = cell(t, None, "--venv", top, **ask)
		t.check(r.verdict == "refused" and f"for python3.2, and cells have {version}" in r.reason, "one for another Python", r)
	finally:
		shutil.rmtree(outside)
	inside = tempfile.mkdtemp(dir="/tmp")	# cells have a /tmp of their own
	try:
		make_venv(inside, "/nowhere/python3")
		r = t.verdict(cell(t, None, "--venv", inside, **ask), "ok")
		t.equal(r.stdout, wanted, "one that lies where cells have something else", r)
		t.check(any("/opt/venv" in w and "python3 -m" in w for w in r.json["warnings"]), "a warning", r.json["warnings"])
	finally:
		shutil.rmtree(inside)
	for path, words in ((tests, "is no virtual environment"), (os.path.join(t.dir, "none"), "cannot open"), ("/etc", "/etc")):
		r = cell(t, None, "--venv", path, **ask)
		t.check(r.verdict == "refused" and words in r.reason, f"{path} is refused", r)


# ---- npm -----------------------------------------------------------------------------------------

POSTINSTALL = """
const fs = require("fs"), http = require("http"), found = [];
for (const path of %s)
	try { fs.writeFileSync(path, "was here"); found.push("wrote " + path); } catch (e) {}
const end = () => fs.writeFileSync("found.json", JSON.stringify(found));
const req = http.get("http://%s/", r => { found.push("asked"); r.resume(); r.on("end", end); });
req.on("error", end);
"""


@case("npm: scripts of packages run in the cell, require and import find the package, the second time from the cache")
@npm
def npm_cache(t):
	with Registry() as registry, Registry() as other:
		paths = [t.path("marker"), "/etc/brig-was-here", "/usr/brig-was-here"]
		registry.put_npm("hello", {"index.js": "module.exports = 42\n", "post.js": POSTINSTALL % (json.dumps(paths), other.place)},
				 scripts={"postinstall": "node post.js"})
		code = "console.log(require('hello'), require('hello/found.json'))\n"
		r = t.verdict(cell(t, registry, "--packages", "hello", code=code, lang="javascript"), "ok")
		made = state_of(t, r, "installed")
		t.equal((r.stdout, made["ecosystem"]), (b"42 []\n", "npm"), "output", r)
		strict = cell(t, registry, "--preset", "strict", "--trust", "untrusted", "--packages", "hello",
			      code="console.log(require('hello'))\n", lang="javascript")
		t.equal((t.verdict(strict, "ok").stdout, strict.json["packages"]["state"]), (b"42\n", "installed"), "strict", strict)
		t.equal(other.asked, [], "what the other server was asked")
		t.equal([p for p in paths if os.path.exists(p)], [], "files on the host")
	module = t.path("program.mjs", "import hello from 'hello'\nconsole.log(hello)\n")
	r = t.verdict(cell(t, registry, "--packages", "hello", module), "ok")
	t.equal((state_of(t, r, "hit")["content"], r.stdout), (made["content"], b"42\n"), "the second run", r)
	r = cell(t, None, "--trust", "untrusted", "--packages", "fs", code="require('fs')\n", lang="javascript")
	t.equal(r.verdict, "blocked", "a package with the name of Node's own module", r)
	r = cell(t, registry, "--packages", "hello", code="import hello from 'hello'\nconsole.log(hello as number)\n", lang="typescript")
	if not (r.verdict == "refused" and "esbuild" in r.reason):
		t.equal((t.verdict(r, "ok").stdout, r.json["packages"]["state"]), (b"42\n", "hit"), "TypeScript", r)


@case("npm: a project with a lock file, its modules in the workspace, its own scripts not run")
@npm
def npm_project(t):
	with Registry() as registry:
		locked = registry.put_npm("hello", {"index.js": "module.exports = 42\n"})
		manifest = {"name": "app", "version": "1.0.0", "scripts": {"postinstall": "exit 1"}, "dependencies": {"hello": "^1.0.0"}}
		lock = {"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": True,
			"packages": {"": {"name": "app", "version": "1.0.0", "dependencies": {"hello": "^1.0.0"}}, "node_modules/hello": locked}}
		top = project(t, package_DOT_json=json.dumps(manifest), **{"package-lock_DOT_json": json.dumps(lock)},
			      app_DOT_mjs="import hello from 'hello'\nconsole.log(hello)\n")
		app = os.path.join(top, "app.mjs")
		r = t.verdict(cell(t, registry, "--workspace", top, "--project-packages", app), "ok")
		t.equal((r.stdout, r.json["changes"]), (b"42\n", []), "output and changes", r)
		t.equal(os.listdir(top).count("node_modules"), 0, "node_modules in the project")


@case("pk1: a set without its packages is not kept (npm)")
@npm
def pk1_npm(t):
	with Registry() as registry:
		registry.put_npm("sly", {"post.js": "require('fs').rmSync('/workspace/packages/node_modules', { recursive: true });\n"},
				 scripts={"postinstall": "node post.js"})
		r = cell(t, registry, "--packages", "sly@^1.0.0", code="console.log('ran')\n", lang="javascript")
		t.check(r.verdict in ("refused", "error") and r.json["step"] == "install" and b"ran\n" not in r.stdout, "nothing is run", r)
		t.equal(json.loads(t.brig("cache", "list", "--json").out)["entries"], [], "what is kept", r)


# ---- go ------------------------------------------------------------------------------------------

def second_address(t):
	"""An address of this machine that is not 127.*, which go would ask without a proxy: only in a world of our own."""
	if not t.world.private:
		t.skip("needs a network namespace of its own")
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
		fcntl.ioctl(s, 0x8916, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton("192.0.2.1")))	# SIOCSIFADDR
	return "192.0.2.1"


@case("go: a module is downloaded, and the program built with it without network")
@go
def go_cache(t):
	with Registry(second_address(t)) as registry:
		registry.put_go("example.test/hello", "v1.0.0", {"hello.go": "package hello\n\nconst Value = 42\n"})
		code = 'package main\n\nimport (\n\t"example.test/hello"\n)\n\nfunc main() { println(hello.Value) }\n'
		ask = dict(code=code, lang="go", env={"GOSUMDB": "off"})
		r = t.verdict(cell(t, registry, "--packages", "example.test/hello@v1.0.0", **ask), "ok")
		t.equal((r.stderr, state_of(t, r, "installed")["ecosystem"]), (b"42\n", "go"), "output", r)
		strict = cell(t, registry, "--preset", "strict", "--trust", "untrusted", "--packages", "example.test/hello@v1.0.0", **ask)
		t.equal((t.verdict(strict, "ok").stderr, strict.json["packages"]["state"]), (b"42\n", "installed"), "strict", strict)
	r = t.verdict(cell(t, registry, "--packages", "example.test/hello@v1.0.0", **ask), "ok")
	state_of(t, r, "hit")
	t.equal((r.stderr, r.json["cache"]["compile"]), (b"42\n", "hit"), "the second run", r)


@case("go: a project's modules, offline in the workspace")
@go
def go_project(t):
	with Registry(second_address(t)) as registry:
		registry.put_go("example.test/hello", "v1.0.0", {"hello.go": "package hello\n\nconst Value = 42\n"})
		top = project(t, go_DOT_mod="module example.test/app\n\ngo 1.18\n\nrequire example.test/hello v1.0.0\n",
			      app_DOT_go='package main\n\nimport "example.test/hello"\n\nfunc main() { println(hello.Value) }\n')
		args = ["exec", "--workspace", top, "--project-packages", "--trust", "trusted", "-e", "GOCACHE=/tmp/go", "--json", "--shell", "go build -o app . && ./app"]
		p = t.brig(*args, env=env_for(registry, GOSUMDB="off", BRIG_PIDS_LIMIT="64"), guard=GUARD)
		r = harness.Result(p)
		t.check(r.verdict == "ok" and r.stderr.endswith(b"42\n"), "go run in the project", r)


# ---- containers ----------------------------------------------------------------------------------

@case("docker: a package is installed in a container, kept, and shown read-only to another one", final="not contained")
def docker_packages(t):
	if harness.BACKEND != "docker":
		t.skip("needs an engine: tests/docker/run")
	code = ("import hello, os\nprint(hello.FOUND, hello.__file__, os.listdir('.'))\n"
		"for change in (lambda: open(hello.__file__, 'a'), lambda: os.unlink(hello.__file__), lambda: os.mkdir('/opt/packages/pip/new')):\n"
		"\ttry:\n\t\tchange()\n\t\tprint('changed')\n\texcept OSError:\n\t\tprint('read-only')\n")
	with Registry() as registry, Registry() as other:
		registry.put_pip("hello", sdist("hello", PROBE % {"paths": ["/usr/brig-was-here"], "hosts": [("127.0.0.1", int(other.place.split(":")[1]))]}
						+ "FOUND = FOUND or 42\n"))
		first = t.verdict(cell(t, registry, "--no-inspect", "--packages", "hello", code=code, lang="python"), "ok")
		made = state_of(t, first, "installed")
		t.equal(other.asked, [], "what the other server was asked")
	wanted = b"42 /opt/packages/pip/hello/__init__.py ['program.py']\n" + 3 * b"read-only\n"
	t.equal(first.stdout, wanted, "output", first)
	t.check(all(row["kept"] for row in first.json["evidence"] if row["check"] in ("writable_places", "root_unchanged")), "evidence", first.json["evidence"])
	again = cell(t, registry, "--no-inspect", "--packages", "hello", code=code, lang="python")
	t.equal((t.verdict(again, "ok").stdout, state_of(t, again, "hit")["content"]), (wanted, made["content"]), "from what is kept", again)


# ---- environments --------------------------------------------------------------------------------

def env(t, *args, registry=None, **more):
	return t.brig("env", *args, env=env_for(registry, **more), guard=GUARD)


def listed(t):
	return {row["name"]: row for row in json.loads(env(t, "list", "--json").out)["environments"]}


@case("an environment is made once and is that very set: without its registry, whatever is pruned or installed since")
@pip
def env_life(t):
	ask = dict(code="import hello, os\nprint(hello.VALUE, hello.__file__, os.access(hello.__file__, os.W_OK))\n", lang="python")
	with Registry() as registry:
		hello(registry)
		p = env(t, "create", "data", "--python", "hello", "--warm", "json,hello", registry=registry)
		t.check(p.rc == 0 and b"--env-name data" in p.err and b"kept for" not in p.err, "env create", p)
		again = env(t, "create", "data", "--python", "hello", registry=registry)
		t.check(again.rc == 125 and b"already" in again.err, "the same name again", again)
	row = listed(t)["data"]
	t.equal((row["packages"], row["warm"], row["ecosystem"], row["backend"], row["trust"], row["set"]), (["hello"], ["json", "hello"], "pip", "native", "unknown", "there"), "env list", row)
	t.equal(json.loads(env(t, "show", "--json", "data").out), row, "env show")
	t.check(b"json, hello" in env(t, "show", "data").out and b"data" in env(t, "list").out, "as text")
	first = t.verdict(cell(t, None, "--env-name", "data", **ask), "ok")
	t.equal(first.stdout, b"42 /opt/packages/pip/hello/__init__.py False\n", "output", first)
	t.equal((first.json["environment"], state_of(t, first, "hit")["content"], first.json["network"]), ("data", row["content"], []), "the result", first.json)
	ident = first.json["id"]
	listing = json.loads(t.brig("history", "--json").out)["executions"]
	entries = [json.loads(line) for line in t.brig("audit", "show", "--json").out.splitlines()]
	told = {"history": next(e for e in listing if e["id"] == ident), "show": json.loads(t.brig("show", "--json", ident).out),
		"audit": next(e for e in entries if e.get("id") == ident)}
	t.equal({where: doc["environment"] for where, doc in told.items()}, dict.fromkeys(told, "data"), "where its name is recorded")
	t.check(b"environment" in t.brig("show", ident).out, "brig show as text")
	p = t.brig("cache", "prune", "--all", "--json")
	t.equal((json.loads(p.out)["removed"], json.loads(p.out)["entries"]), (1, 1), "what cache prune --all removed and left", p)
	t.equal(t.verdict(cell(t, None, "--env-name", "data", **ask), "ok").stdout, first.stdout, "after cache prune --all")
	with Registry() as registry:
		hello(registry, **{"hello/more.py": "X = 1\n"})
		other = state_of(t, t.verdict(cell(t, registry, "--packages", "hello", **ask), "ok"), "installed")
	t.check(other["content"] != row["content"], "the registry has another one now", other)
	r = t.verdict(cell(t, None, "--env-name", "data", **ask), "ok")
	t.equal(state_of(t, r, "hit")["content"], row["content"], "the set of the environment since", r)
	p = t.brig("exec", "--env-name", "data", "--json", "--", "python3", "-c", "import hello; print(hello.VALUE)", env=env_for())
	t.equal(json.loads(p.out)["stdout"], "42\n", "brig exec", p)
	p = env(t, "remove", "data")
	t.check(p.rc == 0 and b"gone" in p.out, "env remove", p)
	t.equal(len(os.listdir(os.path.join(t.state, "packages", "content"))), 1, "sets that are left")
	r = cell(t, None, "--env-name", "data", **ask)
	t.check(r.verdict == "refused" and "there is none" in r.reason, "a removed one", r)
	p = env(t, "remove", "data")
	t.check(p.rc != 0 and b"no environment 'data'" in p.err, "env remove of none", p)


@case("what stays when an environment is removed: a set that others have")
@pip
def env_shared(t):
	with Registry() as registry:
		hello(registry)
		t.equal(env(t, "create", "one", "--python", "hello", registry=registry).rc, 0, "env create")
		t.equal(env(t, "create", "two", "--python", "hello", registry=registry).rc, 0, "a second of the same set")
		t.equal(registry.count(".whl"), 1, "downloads", registry.asked)
	p = env(t, "remove", "one")
	t.check(p.rc == 0 and b"stay" in p.out, "env remove", p)
	r = t.verdict(cell(t, None, "--env-name", "two", code="import hello\n", lang="python"), "ok")
	t.equal(r.json["environment"], "two", "the other one", r)


@case("of several that make an environment of the same name at the same time one does, and it is whole")
@pip
def env_concurrent(t):
	with Registry() as registry:
		hello(registry)
		argv = [harness.brig_path(), "env", "create", "data", "--python", "hello", "--warm", "hello"]
		each = [t.popen(argv, env=env_for(registry), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
		t.equal(sorted(p.wait(GUARD) for p in each), [0, 125, 125, 125], "exit statuses")
	t.verdict(cell(t, None, "--env-name", "data", code="import hello\n", lang="python"), "ok")
	entries = json.loads(t.brig("cache", "list", "--json").out)["entries"]
	t.equal(sorted(row["pinned"] for row in entries), [False, True], "one pin beside the set", entries)


@case("a warm-up list is tried in a cell: a module that cannot be loaded is named, and nothing is kept")
@pip
def env_warm(t):
	with Registry() as registry:
		hello(registry)
		registry.put_pip("leaves", wheel("leaves", {"leaves/__init__.py": "raise SystemExit(0)\n"}))
		registry.put_pip("calls", wheel("calls", {"calls/__init__.py": "import socket\nsocket.create_connection(('127.0.0.1', %s), 5)\n" % registry.place.split(":")[1]}))
		for packages, warm, words in (
			("hello", "hello,nope", b"'nope' of the warm-up list cannot be loaded: ModuleNotFoundError: No module named 'nope'"),
			("leaves", "leaves,json", b"'leaves' of the warm-up list cannot be loaded: it ends the program"),
			("calls", "calls", b"'calls' of the warm-up list cannot be loaded: ConnectionRefusedError"),
		):
			p = env(t, "create", "data", "--python", packages, "--warm", warm, registry=registry)
			t.check(p.rc not in (0, 125) and words in p.err, f"--warm {warm}", p)
	t.equal(listed(t), {}, "environments")
	for warm in ("a;b", "-m", "a b", "a'"):
		p = env(t, "create", "data", f"--warm={warm}")
		t.check(p.rc == 2 and b"no name of a module" in p.err, f"--warm={warm}", p)
	p = env(t, "create", "base", "--warm", "json,re")
	t.check(p.rc == 0, "without packages", p)
	r = t.verdict(cell(t, None, "--env-name", "base", code="import json\nprint(json.dumps(1))\n", lang="python"), "ok")
	t.equal((r.json["environment"], r.json["packages"], r.stdout), ("base", None, b"1\n"), "a run in it", r)
	p = env(t, "remove", "--json", "base")
	t.equal(json.loads(p.out), {"name": "base", "packages": None}, "env remove --json", p)


@case("which environment a run gets: the policy's, the request's, never both an environment and packages")
@pip
def env_policy(t):
	ask = dict(code="try:\n\timport hello\n\tprint(hello.VALUE)\nexcept ImportError:\n\tprint('none')\n", lang="python")
	with Registry() as registry:
		hello(registry)
		t.equal(env(t, "create", "data", "--python", "hello", registry=registry).rc, 0, "env create")
		t.equal(env(t, "create", "low", "--trust", "untrusted", "--python", "hello", registry=registry).rc, 0, "env create --trust untrusted")
	default = {"BRIG_ENVIRONMENT": "data"}
	for args, more, wanted in (([], default, ("data", b"42\n")), (["--env-name", "none"], default, (None, b"none\n")), ([], {}, (None, b"none\n")),
				   (["--env-name", "data"], {"BRIG_PACKAGES": "false"}, ("data", b"42\n"))):
		r = t.verdict(cell(t, None, *args, env=more, **ask), "ok")
		t.equal((r.json["environment"], r.stdout), wanted, f"{args} {more}", r)
	r = t.verdict(cell(t, None, env=default, code="echo shell\n", lang="shell"), "ok")
	t.equal(r.json["environment"], None, "the policy's is for its language", r)
	strict = ["--preset", "strict", "--trust", "untrusted", "--env-name", "data"]
	r = t.verdict(cell(t, None, *strict, code="import hello\nprint(hello.VALUE)\n", lang="python"), "ok")
	t.equal(r.stdout, b"42\n", "strict knows that its packages are asked for", r)
	for args, more, words in (
		(["--env-name", "data", "--packages", "hello"], {}, "exclude each other"),
		(["--env-name", "nope"], {}, "there are: data, low"),
		(["--env-name", "../data"], {}, "no name"),
		(["--env-name", "data"], {"BRIG_ENVIRONMENTS": "low"}, "[low] (environments"),
		(["--env-name", "low"], {}, "made at trust 'untrusted'"),
		([], {"BRIG_ENVIRONMENT": "nope"}, "no environment 'nope'"),
	):
		r = cell(t, None, *args, env=more, **ask)
		t.check(r.verdict == "refused" and words in r.reason, f"{args} {more}: '{words}'", r)
	r = cell(t, None, "--env-name", "data", code="echo 1\n", lang="javascript")
	t.check(r.verdict == "refused" and "is for python" in r.reason, "another language", r)
	for name in ("", "Data", "none", ".x", "a/b", "..", "x" * 65):
		p = env(t, "create", "--warm", "json", "--", name) if name.startswith("-") else env(t, "create", "--warm", "json", name)
		t.check(p.rc == 2 and b"no name" in p.err, f"the name '{name}'", p)
	p = env(t, "create", "empty")
	t.check(p.rc == 2 and b"would have nothing" in p.err, "nothing in it", p)
	p = env(t, "create", "new", "--python", "hello", BRIG_PACKAGES="false")
	t.check(p.rc == 125 and b"packages: false" in p.err, "packages are not allowed", p)
	t.equal(sorted(listed(t)), ["data", "low"], "environments")


@case("an environment that somebody has been at is refused, listed as what it is, and can be removed", final="not contained")
@pip
def env_damaged(t):
	ask = dict(code="import hello\nprint(hello.VALUE)\n", lang="python")
	with Registry() as registry:
		hello(registry)
		t.equal(env(t, "create", "data", "--python", "hello", registry=registry).rc, 0, "env create")
	file = os.path.join(t.state, "environments", "data.json")
	with open(file, encoding="ascii") as f:
		good = f.read()
	other = os.path.join(t.state, "environments", "other.json")
	for bad in ("", "{}", good[:-20], good.replace('"data"', '"other"'), good.replace('"files"', '"more": 1, "files"'), "x" * 200000):
		with open(file, "w", encoding="ascii") as f:
			f.write(bad)
		r = cell(t, None, "--env-name", "data", **ask)
		t.check(r.verdict in ("refused", "failed") and "data" in r.reason, f"the document {bad[:30]!r}", r)
		t.check("problem" in listed(t)["data"], "env list tells", listed(t))
	with open(other, "w", encoding="ascii") as f:
		f.write(good.replace('"data"', '"other"'))
	harness.give(other)
	os.chmod(other, 0o666)
	r = cell(t, None, "--env-name", "other", **ask)
	t.check(r.verdict == "refused" and "written by others" in r.reason, "a document that others can write", r)
	os.unlink(other)
	with open(file, "w", encoding="ascii") as f:
		f.write(good)
	(tree,) = glob.glob(os.path.join(t.state, "packages", "content", "*"))
	inside = os.path.join(tree, "hello", "__init__.py")
	os.chmod(inside, 0o644)
	with open(inside, "a", encoding="ascii") as f:
		f.write("VALUE = 666\n")
	r = cell(t, None, "--env-name", "data", **ask)
	t.check(r.verdict == "refused" and "not what was kept" in r.reason, "a set that was changed", r)
	r = cell(t, None, "--env-name", "data", **ask)
	t.check(r.verdict == "refused" and "not there any more" in r.reason, "and then is gone", r)
	t.equal(listed(t)["data"]["set"], "missing", "env list")
	with open(file, "w", encoding="ascii") as f:
		f.write("nonsense")
	p = env(t, "remove", "data")
	t.equal((p.rc, listed(t)), (0, {}), "env remove", p)
	p = env(t, "remove", "../audit/x")
	t.check(p.rc != 0 and b"no environment" in p.err, "a name that is a path", p)


@case("environments of one state folder are nobody else's, and a pin that no document names goes")
@pip
def env_states(t):
	other = t.path("other-state")
	with Registry() as registry:
		hello(registry)
		t.equal(env(t, "create", "data", "--python", "hello", registry=registry).rc, 0, "env create")
		t.equal(env(t, "list", "--json", "--state", other).out.strip(), b'{"environments":[]}', "the other folder")
		r = cell(t, None, "--state", other, "--env-name", "data", code="pass\n", lang="python")
		t.check(r.verdict == "refused" and "there is none" in r.reason, "a run with the other folder", r)
		os.unlink(os.path.join(t.state, "environments", "data.json"))	# as if killed between document and pin
		t.equal(json.loads(t.brig("cache", "prune", "--all", "--json").out)["entries"], 1, "the pin is there")
		p = env(t, "create", "base", "--warm", "json")
		t.equal((p.rc, env(t, "remove", "base").rc), (0, 0), "somebody makes and removes another", p)
	t.equal(os.listdir(os.path.join(t.state, "packages", "content")), [], "sets that are left")


@case("packages of npm have environments too, and one environment is for one language")
@npm
def env_npm(t):
	with Registry() as registry:
		registry.put_npm("hello", {"index.js": "module.exports = 42\n"})
		p = env(t, "create", "web", "--node", "hello", "--warm", "hello,node:fs", registry=registry)
		t.equal(p.rc, 0, "env create --node", p)
		p = env(t, "create", "bad", "--node", "hello", "--warm", "nope", registry=registry)
		t.check(p.rc != 0 and b"Cannot find module 'nope'" in p.err, "a module that is not there", p)
	r = t.verdict(cell(t, None, "--env-name", "web", code="console.log(require('hello'));\n", lang="javascript"), "ok")
	t.equal((r.json["environment"], r.json["packages"]["ecosystem"]), ("web", "npm"), "the result", r)
	p = env(t, "create", "bad", "--go", "example.org/x", "--warm", "x")
	t.check(p.rc == 2 and b"loaded beforehand" in p.err, "Go loads nothing beforehand", p)
	p = env(t, "create", "bad", "--go", "example.org/x", "--node", "x")
	t.check(p.rc == 2 and b"exclude" in p.err, "two languages", p)


@case("an environment of Go modules is there for the compile step")
@go
def env_go(t):
	with Registry(second_address(t)) as registry:
		registry.put_go("example.test/hello", "v1.0.0", {"hello.go": "package hello\n\nconst Value = 42\n"})
		p = env(t, "create", "mods", "--go", "example.test/hello@v1.0.0", registry=registry, GOSUMDB="off")
		t.equal(p.rc, 0, "env create --go", p)
	code = 'package main\n\nimport "example.test/hello"\n\nfunc main() { println(hello.Value) }\n'
	r = t.verdict(cell(t, None, "--env-name", "mods", code=code, lang="go"), "ok")
	t.equal((r.stderr, r.json["environment"], r.json["packages"]["ecosystem"]), (b"42\n", "mods", "go"), "the result", r)


# ---- refusals ------------------------------------------------------------------------------------

@case("what cannot or may not be installed is refused before anything runs")
@need()
def refusals(t):
	python = dict(code="print(1)\n", lang="python")
	for args, env, words in (
		(["--packages", "a"], {"BRIG_PACKAGES": "false"}, "packages: false"),
		(["--packages=--help"], {}, "option"),
		(["--packages", "a\nb"], {}, "0x0a"),
		(["--packages", "a"], {"PIP_INDEX_URL": "ftp://u:pw@h/"}, "no http address"),
		(["--packages", "a"], {"BRIG_BACKEND": "direct"}, "native backend with the host's own runtimes, or docker"),
	):
		r = cell(t, None, *args, env=env, **python)
		t.equal((r.verdict, r.json["step"]), ("refused", None), "verdict", r)
		t.check(words in r.reason and "pw" not in r.reason, f"the reason has '{words}'", r)
	r = cell(t, None, "--packages", "a", code="int main(void) { return 0; }\n", lang="c")
	t.check(r.verdict == "refused" and "'c'" in r.reason, "no packages for C", r)
	t.check(not os.path.exists(os.path.join(t.state, "packages", "index")) or not os.listdir(os.path.join(t.state, "packages", "index")), "nothing is kept")


if __name__ == "__main__":
	sys.exit(harness.main("packages"))
