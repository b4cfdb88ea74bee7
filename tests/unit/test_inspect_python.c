/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python inspector: what is found however it is written, what is not found where a name only looks alike, what
 * constants are calculated, bounds.  Where CPython and the parser see different programs, CPython is asked to prove it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "inspect/inspect.h"
#include "inspect_helpers.h"

static struct rule_set *rules;

static struct findings inspect(const char *text, size_t len, enum inspection level)
{
	struct inspect_request req = { .kind = INSPECT_PYTHON, .level = level, .text = text, .len = len };
	struct findings found = { 0 };

	assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
	return found;
}

struct row {
	const char *rule; /* NULL: nothing above MEDIUM */
	const char *code;
	const char *name; /* of the finding, if it matters */
};

/* What a rule is for is asked where capabilities block too; what is let through, where most code is judged. */
static enum inspection level_of(const struct row *row)
{
	return row->rule ? INSPECTION_STRICT : INSPECTION_GUARD;
}

static void check_rows(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct findings f = inspect(row[i].code, strlen(row[i].code), level_of(&row[i]));
		const struct finding *hit = row[i].rule ? by_rule(&f, row[i].rule) : NULL;
		bool right = row[i].rule ? hit && (!row[i].name || str_eq(hit->name, row[i].name))
					 : f.worst <= SEVERITY_MEDIUM;

		if (!right)
			print_error("wanted %s %s, worst is %s (%s %s):\n%s\n", row[i].rule ? row[i].rule : "nothing",
				    row[i].name ? row[i].name : "", severity_name[f.worst],
				    f.n ? f.row[0].rule : "no finding", f.n ? f.row[0].name : "", row[i].code);
		findings_release(&f);
		assert_true(right);
	}
}

/* ---- references ---- */

static void a_module_is_known_by_any_name(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-os-process", "import os\nos.system('ls')", "os.system" },
		{ "py-os-process", "import os as o\no.system('ls')", "os.system" },
		{ "py-os-process", "from os import system as s", "os.system" },
		{ "py-os-process", "import math, \\\n  os, re\nos . system ('ls')", "os.system" },
		{ "py-os-process", "import os\na = b = os\nb.system('ls')", "os.system" },
		{ "py-os-process", "import os\n(o := os).system('ls')", "os.system" },
		{ "py-os-process", "import os\nx = os if y else z\nx.system('ls')", "os.system" },
		{ "py-os-process", "def f():\n    global os\n    import os\nos.system('ls')", "os.system" },
		{ "py-os-process", "def f():\n    import os\n    return os\nf().system('ls')", "os.system" },
		{ "py-os-process", "class A:\n    import os\nA.os.system('ls')", "os.system" },
		{ "py-os-process",
		  "class A:\n    def __init__(self, m): self.m = m\n    def f(self): self.m.system('ls')\nimport "
		  "os\nA(os)",
		  "os.system" },
		{ "py-os-process", "import os\nfor m in [os]: m.system('ls')", "os.system" },
		{ "py-os-process", "import os\na, *b = os, 1\na.system('ls')", "os.system" },
		{ "py-os-process", "import glob\nglob.os.system('ls')", "os.system" },
		{ "py-os-process", "from random import _os as o\no.system('ls')", "os.system" },
		{ "py-os-process", "import sys\nsys.modules['o' 's'].system('ls')", "os.system" },
		{ "py-os-process", "import os\nos.__dict__['sys' + 'tem']('ls')", "os.system" },
		{ "py-os-process", "import os\nvars(os).get('system')('ls')", "os.system" },
		{ "py-os-process", "import os\ngetattr(os, 'metsys'[::-1])('ls')", "os.system" },
		{ "py-os-process", "import os\nos.__getattribute__('system')('ls')", "os.system" },
		{ "py-network", "from urllib import request" },
		{ "py-network-call", "import urllib.parse\nurllib.request.urlopen('x')", "urllib.request.urlopen" },
		{ "py-star-import-inside", "from os import *" },
	};

	check_rows(row, ARRAY_LEN(row));
}

static void a_module_out_of_sight_is_reported(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-os", "import os\nf(os)" },
		{ "py-os", "import os\nx = {'a': os}" },
		{ "py-os", "import os\nself.o = os" },
		{ "py-os", "import os\ndef f(o=os): pass" },
		{ "py-os", "import os\nreturn os" },
		{ "py-os", "import os\nf(vars(os))" },
		{ NULL, "import os\no = os\nprint(o.path.join('a', 'b'))" },
		{ NULL, "import os\nprint(os.path.join('a', os.sep), os.linesep)" },
	};

	check_rows(row, ARRAY_LEN(row));
}

static void a_builtin_counts_wherever_it_is_mentioned(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-eval", "[eval][0]('1')" },
		{ "py-eval", "{'k': exec}['k']('1')" },
		{ "py-eval", "list(map(exec, ['1']))" },
		{ "py-eval", "def f(x, g=eval): pass" },
		{ "py-eval", "@exec\nclass X: pass" },
		{ "py-eval", "class X:\n    __add__ = lambda s, o: eval(o)" },
		{ "py-eval", "class X(metaclass=exec): pass" },
		{ "py-eval", "def f(x: eval('1')): pass" },
		{ "py-eval", "def f() -> eval('1'): pass" },
		{ "py-eval", "f'{1:{eval(x)}}'" },
		{ "py-eval", "match eval(x):\n    case _: pass" },
		{ "py-eval", "match 1:\n    case y if eval(x): pass" },
		{ "py-eval", "print.__self__.exec('1')" },
		{ "py-eval", "__builtins__['ev' + 'al']('1')" },
		{ "py-reflection-inside", "globals()['__builtins__']" },
		{ "py-debugger", "breakpoint()" },
	};

	check_rows(row, ARRAY_LEN(row));
}

static void a_shadowed_name_is_no_finding(void **state UNUSED)
{
	static const struct row row[] = {
		{ NULL, "def f(eval, *open, **exec): return eval(open, exec)" },
		{ NULL, "lambda eval: eval(1)" },
		{ NULL, "def f():\n    x = eval(1)\n    eval = 1" }, /* an UnboundLocalError, never the builtin */
		{ NULL, "def compile(x): pass\ncompile(1)" },
		{ NULL, "from m import open\nopen(1)" },
		{ NULL, "for eval in x:\n    eval(1)" },
		{ NULL, "with x as eval:\n    eval(1)" },
		{ NULL, "try: pass\nexcept E as eval:\n    eval(1)" },
		{ NULL, "match x:\n    case [eval, *exec]:\n        eval(exec)" },
		{ NULL, "[eval(1) for eval in x]" },
		{ NULL, "def f():\n    eval = 1\n    def g():\n        nonlocal eval\n        return eval(1)" },
		{ NULL, "class M:\n    def eval(self): pass\nM().eval()" },
		{ NULL, "f(eval=1, open=2)" },
		{ NULL, "os = 1\nos.system('ls')" },
		{ NULL, "def f(os): os.system('ls')" },
		{ NULL, "print('import os; eval(1)') # eval(1)" },
	};

	check_rows(row, ARRAY_LEN(row));
}

static void a_name_that_may_be_unbound_does_not_shadow(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-eval", "if 0: eval = 1\neval('1')" },
		{ "py-eval", "eval('1')\neval = 1" },
		{ "py-eval", "eval = 1\ndel eval\neval('1')" },
		{ "py-eval", "for eval in []: pass\neval('1')" },
		{ "py-eval", "for eval in []: pass\nelse: eval('1')" },
		{ "py-eval", "False and (eval := 1)\neval('1')" },
		{ "py-eval", "try: pass\nexcept E as eval: pass\neval('1')" },
		{ "py-eval", "def f():\n    global eval\n    eval = 1\neval('1')" },
		{ "py-eval", "class A:\n    def f(self): return eval('1')\n    eval = 1" },
		{ "py-eval", "class A:\n    x = eval('1')\n    eval = 1" },
		{ "py-eval", "[eval('1') for eval in [eval]]" },
		{ "py-eval", "def f(eval=eval): pass" },
	};

	check_rows(row, ARRAY_LEN(row));
}

/* ---- constants ---- */

/* Each expression is "os": the import inside is found only if it was calculated. */
static void constants_are_calculated(void **state UNUSED)
{
	static const char *const expression[] = {
		"'o' + 's'",
		"'o' 's'",
		"'so'[::-1]",
		"''.join(['o', 's'])",
		"'\\x6f\\x73'",
		"'\\157\\163'",
		"'\\u006f\\U00000073'",
		"'\\N{LATIN SMALL LETTER O}s'",
		"f'{\"o\"}s'",
		"'%s%s' % ('o', 's')",
		"'{}{}'.format('o', 's')",
		"'{1}{0}'.format('s', 'o')",
		"'{a}s'.format(a='o')",
		"'oXs'.replace('X', '')",
		"'OS'.lower()",
		"' os '.strip()",
		"chr(111) + chr(0x73)",
		"''.join(map(chr, [111, 115]))",
		"''.join(chr(c) for c in (111, 115))",
		"''.join([chr(ord(c) - 1) for c in 'pt'])",
		"''.join(reversed('so'))",
		"bytes([111, 115]).decode()",
		"b'os'.decode('ascii')",
		"bytes.fromhex('6f73').decode()",
		"__import__('base64').b64decode('b3M=').decode()",
		"__import__('codecs').decode('bf', 'rot13')",
		"'o,s'.split(',')[0] + 's'",
		"'aosb'[1:3]",
		"'%c%c' % (111, 115)",
		"(28531).to_bytes(2, 'big').decode()",
		"str(b'os', 'utf8')",
		"('o' * 1) + 's'",
		"'xos'.removeprefix('x')",
		"r'os'",
		"'o\\\ns'",
		"{'a': 'os'}['a']",
		"('os', 'x')[0]",
		"(lambda: 'os')()",
	};

	for (size_t i = 0; i < ARRAY_LEN(expression); i++) {
		char code[256];
		struct findings f;
		bool found = false;

		(void)snprintf(code, sizeof(code), "__import__(%s)", expression[i]);
		f = inspect(code, strlen(code), INSPECTION_STRICT);
		for (size_t k = 0; k < f.n; k++)
			found |= str_eq(f.row[k].name, "os");
		if (!found)
			print_error("not calculated: %s\n", expression[i]);
		findings_release(&f);
		assert_true(found);
	}
}

static void strings_that_are_code_commands_or_paths_are_judged_as_such(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-os-process", "eval('__import__(\"os\").system(1)')" },
		{ "py-os-process", "import base64\nexec(base64.b64decode('aW1wb3J0IG9zO29zLnN5c3RlbSgxKQ=='))" },
		{ "py-file-outside", "p = '/usr'\np += '/x'\nopen(p)" },
		{ "py-file-outside", "def f(p):\n    return open(p)\nf('/srv/x')" },
		{ "py-file-outside",
		  "class R:\n    def __init__(self, p): self.p = p\n    def go(self): open(self.p)\nR('/srv/x').go()" },
		{ "py-file-outside", "import os\nopen(os.path.join('/srv', x))" },
		{ "py-file-outside", "open(f'/srv/{x}')" },
		{ "py-file-outside", "list(map(open, ['/srv/x']))" },
		{ "path-accounts", "open('/e' 'tc/passwd')" },
		{ NULL, "x = '/usr/lib'\nprint('/etc/passwd')" },
		{ NULL, "import re\nre.sub('/etc/passwd', '', x)" },
	};

	check_rows(row, ARRAY_LEN(row));
}

/* ---- reflection ---- */

static void reflection_is_judged_by_what_is_read(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-reflection", "().__class__.__bases__[0].__subclasses__()" },
		{ "py-reflection", "getattr((), '__cl' + 'ass__').__base__.__subclasses__()" },
		{ "py-reflection", "match print:\n    case object(__self__=b): pass" },
		{ "py-reflection-inside", "import operator\noperator.attrgetter('__init__.__globals__')" },
		{ "py-reflection-string", "import functools\nfunctools.reduce(f, ['__class__', '__globals__'], ())" },
		{ "py-format-attribute", "'{0.__class__}'.format(1)" },
		{ "py-dynamic-attribute", "def f(x, y): return getattr(x, y)" },
		{ "py-dynamic-module-attribute", "import os\nn = [x for x in dir(os) if x][0]\ngetattr(os, n)" },
		{ NULL, "class A:\n    def __repr__(self): return type(self).__name__ + self.__class__.__name__" },
		{ NULL, "class A:\n    def __init__(self): super().__init__()\n    def __add__(self, o): return "
			"self.__class__(o)" },
		{ NULL, "if __name__ == '__main__': pass" },
		{ NULL, "getattr(x, 'name', None)" },
	};

	check_rows(row, ARRAY_LEN(row));
}

/* ---- intent ---- */

static void check_blocked(const struct row *row, size_t n)
{
	check_rows(row, n);
	for (size_t i = 0; i < n; i++) {
		struct findings f = inspect(row[i].code, strlen(row[i].code), INSPECTION_GUARD);

		if (f.worst != SEVERITY_CRITICAL)
			print_error("only %s:\n%s\n", severity_name[f.worst], row[i].code);
		assert_int_equal(f.worst, SEVERITY_CRITICAL);
		findings_release(&f);
	}
}

static void guard_blocks_what_hides(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-hidden-call", "__import__('so'[::-1]).system('ls')" },
		{ "py-hidden-call", "import operator, os\noperator.methodcaller('system', 'ls')(os)" },
		{ "py-hidden-call", "import importlib.util as u\ns = u.find_spec('os')\nm = u.module_from_spec(s)" },
		{ "py-hidden-call", "__spec__.loader.load_module('os')" },
		{ "py-hidden-call",
		  "def f():\n    x = 1\n    return lambda: x\nf().__closure__[0].cell_contents('ls')" },
		{ "py-hidden-call", "import os\nos._exit.__self__.system('ls')" },
		{ "py-hidden-call", "import os\nobject.__getattribute__(os, 'system')('ls')" },
		{ "py-hidden-call", "getattr((), '__cla' + 'ss__')" },
		{ "py-hidden-call", "import os, builtins\nbuiltins.print = os.system\nprint('ls')" },
		{ "py-hidden-call", "exec(\"import os; os.system('ls')\")" },
		{ "py-hidden-call", "import sys, os\nsys.excepthook = lambda *a: os.system('ls')" },
		{ "py-hidden-call", "import sys, os\nsys.settrace(lambda *a: os.system('ls'))" },
		{ "py-hidden-call", "import os\nx = {}\ndel x[os.system('ls')]" },
		{ "py-hidden-call", "import os\n[1][os.system('ls'):]" },
		{ "py-hidden-call", "import os\nmatch 1:\n    case _ if os.system('ls'): pass" },
		{ "py-hidden-call", "import pydoc\npydoc.pipepager('x', 'ls')" },
		{ "py-hidden-call", "import \xef\xbd\x8f\xef\xbd\x93\n\xef\xbd\x8f\xef\xbd\x93.system('ls')" },
		{ "py-hidden-code", "exec('pri' + 'nt(1)')" },
		{ "py-hidden-code", "code = ''.join(['pri', 'nt(1)'])\nexec(code)" },
		{ "py-hidden-code", "import io, pickle\npickle.Unpickler(io.BytesIO(b'cos\\nsystem\\n.')).load()" },
		{ "py-hidden-code", "import code\ncode.InteractiveInterpreter().runsource('print(1)')" },
		{ "py-inside-module", "import posix\nposix.system('ls')" },
		{ "py-debugger-member", "import pdb\npdb.run('main()')" },
		{ "py-hidden-call", "import os\ngetattr(os, ''.join(['sys', 'tem']))('ls')" },
		{ "py-hidden-call", "import sys\nsys.modules['subprocess'].run(['ls'])" },
		{ "py-hidden-call", "import importlib\nimportlib.import_module('os').system('ls')" },
		{ "py-hidden-call", "from shutil import os as tools\ntools.system('ls')" },
		{ "py-hidden-call", "import os\nrun = {'a': os.system}\nrun['a']('ls')" },
		{ "py-hidden-call", "import os\nclass A:\n    def __getitem__(self, c): return os.system(c)" },
		{ "py-hidden-call", "import os\ndef f(x: os.system('ls')): pass" },
		{ "py-hidden-call", "import os\nclass A(metaclass=lambda *a: os.system('ls')): pass" },
		{ "py-hidden-call", "import os\nos . system('ls')" },
		{ "py-hidden-call", "f = eval if x else exec\n(lambda g: g)(exec)('1')" },
		{ "py-hidden-code", "import base64, zlib\nexec(zlib.decompress(base64.b64decode(b'eJw=')))" },
		{ "py-hidden-code",
		  "import base64\na = 'cHJp'\nb = a + 'bnQoMSk='\nc = base64.b64decode(b)\nexec(c.decode())" },
		{ "py-hidden-code", "exec(''.join(chr(c) for c in [112, 97, 115, 115]))" },
		{ "py-hidden-code", "eval(')1(tnirp'[::-1])" },
		{ "py-hidden-code", "import marshal, types\nexec(marshal.loads(open('x', 'rb').read()))" },
		{ "py-subclass-walk", "x = ''.__class__.mro()[1].__subclasses__()" },
		{ "py-dynamic-module-attribute", "import os\ngetattr(os, input())('ls')" },
		{ "lone-return", "# see below\rimport math\nprint(1)\n" },
	};

	check_blocked(row, ARRAY_LEN(row));
}

static void guard_blocks_what_harms(void **state UNUSED)
{
	static const struct row row[] = {
		{ "py-fetched-code", "from urllib.request import urlopen\nwith urlopen(u) as r:\n    code = "
				     "r.read().decode()\nexec(code)" },
		{ "py-fetched-code", "import socket, os\nclass A:\n    def __init__(self): self.s = socket.socket()\n"
				     "    def f(self): os.popen(self.s.recv(99).decode())" },
		{ "py-reverse-shell",
		  "import os, socket\ns = socket.socket()\nfor fd in (0, 1, 2):\n    os.dup2(s.fileno(), fd)" },
		{ "py-reverse-shell", "import socket, subprocess\ns = socket.create_connection((h, 1))\n"
				      "t = socket.socket()\nsubprocess.call(['sh', '-i'], stdin=t.fileno())" },
		{ "py-fork-bomb", "import os\nwhile True:\n    os.fork()" },
		{ "py-secret-flow", "import os, json\nfrom urllib.request import Request, urlopen\ndef send(data):\n"
				    "    urlopen(Request(u, data=data))\nsend(json.dumps(dict(os.environ)).encode())" },
		{ "py-metadata", "import requests\nrequests.get('http://169.254.169.254/latest/meta-data/iam/')" },
		{ "py-file-change", "import shutil\nshutil.rmtree('/')" },
		{ "py-file-change", "from pathlib import Path\nPath('/opt/tool/x').unlink()" },
		{ "py-file-change", "import os\nwith open(os.path.join('/usr', 'lib', n), 'wb') as f: f.write(b)" },
		{ "py-file-change", "import shutil\nshutil.copy('a', dst='/usr/lib/b')" },
		{ "py-native-escape", "from ctypes import CDLL\nlibc = CDLL('libc.so.6')\nlibc.unshare(1)" },
		{ "py-machine", "import os, signal\nos.kill(1, signal.SIGKILL)" },
		{ "py-machine", "import os\nos.chmod('a', 0o4711)" },
		{ "path-ssh", "import os\nopen(os.path.expanduser('~/.ssh/id_rsa')).read()" },
		{ "path-accounts", "from pathlib import Path\nPath('/etc/shadow').read_text()" },
		{ "path-process", "open('/proc/self/environ').read()" },
	};

	check_blocked(row, ARRAY_LEN(row));
}

/* Not even a line: nothing above MEDIUM. */
static void guard_leaves_everyday_programs_alone(void **state UNUSED)
{
	static const struct row row[] = {
		{ NULL, "import os, shutil\nos.makedirs('a/b', exist_ok=True)\nfor n in os.listdir('a'): "
			"shutil.copy(n, 'b')\n"
			"shutil.rmtree('a')\nprint(os.environ.get('HOME'), os.cpu_count())" },
		{ NULL, "from pathlib import Path\np = Path('out') / 'x.txt'\np.write_text('a')\nprint(p.read_text(), "
			"Path('/home/u/x.md').stem)" },
		{ NULL, "import subprocess, sys\nprint(subprocess.run(['ls', '-l'], capture_output=True).stdout)\n"
			"subprocess.run([sys.executable, '-c', 'print(1)'])" },
		{ NULL, "import os\nos.system('ls -la')\nclear = lambda: os.system('clear')" },
		{ NULL, "import os, subprocess\nsubprocess.run(['make'], env={**os.environ, 'A': '1'})" },
		{ NULL,
		  "import http.server, threading, urllib.request\ns = http.server.HTTPServer(('127.0.0.1', 0), H)\n"
		  "threading.Thread(target=s.serve_forever).start()\n"
		  "urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/').read()" },
		{ NULL, "import socket\na, b = socket.socketpair()\na.sendall(b'x')\nprint(b.recv(1))" },
		{ NULL, "import pickle\nwith open('x.pkl', 'rb') as f: print(pickle.load(f), "
			"pickle.loads(pickle.dumps(1)))" },
		{ NULL,
		  "print(eval('1 + x', {'__builtins__': {}}, {'x': 2}))\nns = {}\nexec('def f(): return 1', ns)" },
		{ NULL, "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.strlen(b'abc'))" },
		{ NULL, "import importlib\nfor n in names: print(importlib.import_module(n).__name__)" },
		{ NULL, "import multiprocessing, threading, signal, mmap, fcntl, sqlite3, tempfile, logging, zipfile" },
		{ NULL, "class B: pass\nprint([c.__name__ for c in B.__subclasses__()], f.__code__.co_varnames)" },
		{ NULL,
		  "from flask import Flask\napp = Flask(__name__)\n@app.route('/etc/login')\ndef f(): return ''" },
		{ NULL,
		  "import base64\nprint(base64.b64decode('aGk=').decode(), 'abc'[::-1], ''.join(map(chr, [97])))" },
		{ NULL, "import sys\nsys.path.append('../lib')\nname = raw_input()\nimport turtle" },
		{ NULL, "with open('/etc/os-release') as f: print(f.read())" },
		{ NULL, "print 'python 2'" },
	};

	check_rows(row, ARRAY_LEN(row));
}

static void a_network_call_is_told_and_not_blocked(void **state UNUSED)
{
	static const char *const code[] = {
		"import requests\nprint(requests.get('https://pypi.org').text)",
		"import socket\nsocket.create_connection(('127.0.0.1', 80))",
		"import smtplib, getpass\nsmtplib.SMTP('h').login('u', getpass.getpass())"
	};

	for (size_t i = 0; i < ARRAY_LEN(code); i++) {
		struct findings f = inspect(code[i], strlen(code[i]), INSPECTION_GUARD);

		assert_int_equal(f.worst, SEVERITY_HIGH);
		assert_non_null(by_rule(&f, "py-network-call"));
		findings_release(&f);
	}
}

/* ---- where CPython and the parser differ ---- */

/* What CPython prints for the program; false: there is no CPython here. */
static bool run_python(const char *text, size_t len, char *line, size_t size)
{
	char path[] = "/tmp/unit-test-python-XXXXXX", command[96];
	int fd = mkstemp(path);
	FILE *out;

	if (access("/usr/bin/python3", X_OK) < 0) {
		if (fd >= 0)
			close(fd);
		unlink(path);
		return false;
	}
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	(void)snprintf(command, sizeof(command), "/usr/bin/python3 -IB %s 2>/dev/null", path);
	out = popen(command, "r");
	assert_non_null(out);
	if (!fgets(line, (int)size, out))
		line[0] = '\0';
	(void)pclose(out);
	unlink(path);
	return true;
}

/* Programs that print "ran" by way of something forbidden, although the parser shows it as something else. */
static void what_the_parser_does_not_see_is_found(void **state UNUSED)
{
	static const char *const program[] = {
		"# comment\reval(\"print('ran')\")", /* a lone CR ends the comment */
		"x = 1\r# y\reval(\"print('ran')\")\r",
		"# -*- coding: utf-7 -*-\n# +AAo-eval(\"print('ran')\")", /* the codec makes a line end */
		"#!/usr/bin/python3\n# vim: set fileencoding=utf-7 :\n# +AAo-eval(\"print('ran')\")",
		"\xf0\x9d\x93\xae\xf0\x9d\x94\x81\xf0\x9d\x93\xae\xf0\x9d\x93\xac(\"print('ran')\")", /* exec in script letters */
		"\xef\xbd\x85val(\"print('ran')\")",                                                  /* fullwidth e */
		"\xe2\x84\xafval(\"print('ran')\")",                    /* script small e */
		"import os\nprint([*os.popen('echo ran')][0].strip())", /* the star binds inside the attribute */
		"import os\nclass A: pass\ntype(A()).x = os.system('echo ran')", /* an alias statement, says the parser */
		"import os\ntype(os).x = os.system('echo ran')",
		"print >>eval(\"[print('ran')] and __import__('sys').stdout\") if 0 else "
		"eval(\"print('ran')\")", /* a print statement? */
	};

	for (size_t i = 0; i < ARRAY_LEN(program); i++) {
		struct findings f = inspect(program[i], strlen(program[i]), INSPECTION_STRICT);
		char line[64] = "";

		if (f.worst != SEVERITY_CRITICAL)
			print_error("not seen: %s\n", program[i]);
		assert_int_equal(f.worst, SEVERITY_CRITICAL);
		findings_release(&f);
		if (run_python(program[i], strlen(program[i]), line, sizeof(line)) && strncmp(line, "ran", 3) != 0)
			print_error("CPython does not run it: %s\n", program[i]);
		assert_true(line[0] == '\0' || strncmp(line, "ran", 3) == 0);
	}
}

/* ---- levels and bounds ---- */

static void the_lowest_level_knows_only_its_list(void **state UNUSED)
{
	static const char *const refused[] = { "import asyncio", "import os.path", "from . import x",
					       "import xml.sax" };
	static const char *const taken[] = { "import math, json", "from collections.abc import Iterable",
					     "import sys\nsys.argv" };

	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct findings f = inspect(refused[i], strlen(refused[i]), INSPECTION_STRICT);

		if (f.worst != SEVERITY_CRITICAL)
			print_error("taken: %s\n", refused[i]);
		assert_int_equal(f.worst, SEVERITY_CRITICAL);
		findings_release(&f);
	}
	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		struct findings f = inspect(taken[i], strlen(taken[i]), INSPECTION_STRICT);

		assert_int_equal(f.n, 0);
		findings_release(&f);
	}
}

static void a_parse_error_weighs_by_level(void **state UNUSED)
{
	static const enum severity want[] = { [INSPECTION_STRICT] = SEVERITY_CRITICAL,
					      [INSPECTION_GUARD] = SEVERITY_HIGH,
					      [INSPECTION_REPORT] = SEVERITY_MEDIUM };

	for (size_t t = INSPECTION_REPORT; t < ARRAY_LEN(want); t++) {
		struct findings f = inspect("def (:\n", 7, (enum inspection)t);

		assert_int_equal(f.worst, want[t]);
		assert_non_null(by_rule(&f, "parse-error"));
		findings_release(&f);
	}
}

static void a_finding_tells_its_place(void **state UNUSED)
{
	static const char code[] = "import os as o\nx = 1\ny = o.system('ls')\n";
	struct findings f = inspect(code, strlen(code), INSPECTION_GUARD);
	const struct finding *hit = by_rule(&f, "py-os-process");

	assert_non_null(hit);
	if (hit) { /* the compiler does not know that the assertion ends the test */
		assert_int_equal(hit->line, 3);
		assert_int_equal(hit->column, 5);
		assert_int_equal(hit->span.end - hit->span.start, strlen("o.system"));
	}
	findings_release(&f);
}

static void repeated(struct buf *b, const char *head, const char *piece, size_t times, const char *tail)
{
	buf_adds(b, head);
	for (size_t i = 0; i < times; i++)
		buf_adds(b, piece);
	buf_adds(b, tail);
}

/* Depth, width and values that grow: without bounds these would not end, or take all memory. */
static void hostile_texts_end(void **state UNUSED)
{
	static const struct {
		const char *head, *piece, *tail;
	} shape[] = {
		{ "", "(", "" },
		{ "", "[", "" },
		{ "x = ", "a[", "" },
		{ "x = ", "-", "1" },
		{ "x = ", "f(", "" },
		{ "x = 'a'\n", "x = x + x\n", "" },
		{ "x = [1]\n", "x = [x, x]\n", "" },
		{ "x = ", "'a' + ", "'b'" },
		{ "x = a", ".b", "" },
		{ "x = ", "lambda: ", "1" },
		{ "x = ", "a if b else ", "c" },
		{ "", "import os\n", "" },
		{ "", "x = f(x)\n", "" },
		{ "def f(x): return f(x)\n", "f(f('a' + f('b')))\n", "" },
		{ "", "[[y for y in 'abcdefgh'] for x in 'abcdefgh']\n", "" },
		{ "", "eval(x)\n", "" },
		{ "x = f'", "{f'{x}'}", "'" },
		{ "", "class A:\n  x = 1\n  def f(self): self.x = self.x + 'a'\n", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(shape); i++) {
		struct buf b = BUF_INIT(256 * KiB - 16);
		struct findings f;

		repeated(&b, shape[i].head, shape[i].piece, 250 * KiB / strlen(shape[i].piece), shape[i].tail);
		buf_adds(&b, "\n");
		f = inspect(buf_str(&b), b.len, INSPECTION_GUARD);
		findings_release(&f);
		buf_release(&b);
	}
}

static int open_rules(void **state UNUSED)
{
	return rules_builtin(&rules, NULL);
}

static int close_rules(void **state UNUSED)
{
	rules_free(rules);
	return 0;
}

/* ---- notebooks ---- */

/* Lines that are no Python are judged as what they are, and the rest of the code as ever. */
static void lines_of_notebooks(void **state)
{
	static const struct {
		bool blocked; /* else nothing above MEDIUM */
		const char *code;
	} rows[] = {
		{ false, "!ls -la" },
		{ true, "!rm -rf /" },
		{ true, "x = !rm -rf /" },
		{ true, "for i in range(3):\n    !rm \\\n  -rf /" },
		{ true, "!echo it's\n!rm -rf /" },
		{ true, "%sx rm -rf /" },
		{ true, "%rm -rf /" },
		{ true, "%%bash\nls\nrm -rf /" },
		{ false, "%%bash\nfor i in 1 2; do\n  echo $i\ndone" },
		{ true, "%%script bash -e\nrm -rf /" },
		{ true, "\n%%time\nimport os\nos.system('rm -rf /')" },
		{ false, "%%time\nfor i in range(3): pass" },
		{ false, "%%writefile x.sh\nrm -rf /" },
		{ false, "%time f()" },
		{ false, "r = %timeit -o -n 10 -r3 f()\nr" },
		{ true, "import os\n%time os.system('rm -rf /')" },
		{ true, "import os\nr = %timeit -n 10 os.system('rm -rf /')" },
		{ true, "%%timeit __import__('os').system('rm -rf /')\npass" },
		{ false, "%matplotlib inline\n%cd /tmp\nimport math\nmath.pi" },
		{ false, "len?\n?len\nx = 1 if a else 2" },
		{ false, "s = '''\n%time\n'''\na = (1\n %2)" },
		{ true, "import os\na = (1\n%os.system('rm -rf /'))\n!ls" },
		{ true, "import os\na = (1\n%time(os.system('rm -rf /')))\n!ls" },
		{ true, "import os\na = (1\n%env[os.system('rm -rf /')])\n!ls" },
		{ true, "import os\na = 7 \\\n%env [os.system('rm -rf /')]\n!ls" },
		{ true, "(\n%sx rm -rf /\n)" },
		{ true, "import os\n(\n%time os.system('rm -rf /')\n)" },
		{ false, "if (a\n    != b):\n    print('%d' % 3)" },
		{ false, "\n    x = 1\n    if x:\n        print(x)\n" },
		{ true, "\n    import os\n    os.system('rm -rf /')\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct inspect_request req = { .kind = INSPECT_NOTEBOOK,
					       .level = INSPECTION_GUARD,
					       .text = rows[i].code,
					       .len = strlen(rows[i].code) };
		struct findings found = { 0 };
		bool right;

		assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
		right = rows[i].blocked ? found.worst == SEVERITY_CRITICAL : found.worst <= SEVERITY_MEDIUM;
		if (!right)
			print_error("worst is %s (%s):\n%s\n", severity_name[found.worst],
				    found.n ? found.row[0].rule : "no finding", rows[i].code);
		findings_release(&found);
		assert_true(right);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_notebooks),
		cmocka_unit_test(a_module_is_known_by_any_name),
		cmocka_unit_test(a_module_out_of_sight_is_reported),
		cmocka_unit_test(a_builtin_counts_wherever_it_is_mentioned),
		cmocka_unit_test(a_shadowed_name_is_no_finding),
		cmocka_unit_test(a_name_that_may_be_unbound_does_not_shadow),
		cmocka_unit_test(constants_are_calculated),
		cmocka_unit_test(strings_that_are_code_commands_or_paths_are_judged_as_such),
		cmocka_unit_test(reflection_is_judged_by_what_is_read),
		cmocka_unit_test(guard_blocks_what_hides),
		cmocka_unit_test(guard_blocks_what_harms),
		cmocka_unit_test(guard_leaves_everyday_programs_alone),
		cmocka_unit_test(a_network_call_is_told_and_not_blocked),
		cmocka_unit_test(what_the_parser_does_not_see_is_found),
		cmocka_unit_test(the_lowest_level_knows_only_its_list),
		cmocka_unit_test(a_parse_error_weighs_by_level),
		cmocka_unit_test(a_finding_tells_its_place),
		cmocka_unit_test(hostile_texts_end),
	};

	return cmocka_run_group_tests(tests, open_rules, close_rules);
}
