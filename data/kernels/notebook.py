# SPDX-License-Identifier: Apache-2.0
# Lines of a notebook that are no Python: commands (!ls), magics (%time, %%bash) and questions (len?).  The kernel of Python contexts has
# this file as a text (tools/join-kernel) and reads it when a piece of code does not compile: until then it costs nothing.
#
# Each such line becomes a call of get_ipython(), in its place and on its line.  Which ones do is Python's word: only a line that it
# stumbles over is replaced, so text in strings stays text.  src/inspect/notebook.c reads the same lines before anything runs: its table
# has the names that are here, and what is blank to one of them is blank to the other.
import builtins, os, re, subprocess, sys, time

BLANK = " \t"
ASSIGNED = re.compile(r"([ \t]*)([A-Za-z_][A-Za-z0-9_.\[\]'\", ]*=[ \t]*)([!%])(?!=)(.*)", re.S)
ASKED = re.compile(r"[ \t]*(?:\?{1,2}[ \t]*([%A-Za-z0-9_.]+)|([%A-Za-z0-9_.]+)\?{1,2})[ \t]*")
MAGIC = re.compile(r"%{1,2}([A-Za-z_][A-Za-z0-9_]*)(?![\w(\[.=])[ \t]*(.*)", re.S)
EXPRESSION = re.compile(r"(?<!\$)\{([^{}]*)\}|\$\$|\$([A-Za-z_]\w*)")
INSTALLS = re.compile(r"\s*(?:sudo\s+)?(?:pip3?|python3?\s+-m\s+pip|uv\s+pip|conda|mamba)\s+(?:install|download|wheel)\b")
NO_PACKAGES = ("packages cannot be installed while a sandbox runs, for it has no network: the operator of the service makes an "
               "environment with them (brig env create), whose name is the template's")


class UsageError(Exception):
    pass


# ---- from lines to calls ----------------------------------------------------------------------------------------------------------

def call(method, *words):
    return f"get_ipython().{method}({', '.join(map(repr, words))})"


def replaced(line):
    """The Python that a line stands for; None: it is none of ours."""
    assigned = ASSIGNED.fullmatch(line)
    indent = line[:len(line) - len(line.lstrip(BLANK))]
    left, rest = (assigned[2], assigned[3] + assigned[4]) if assigned else ("", line[len(indent):])
    indent = assigned[1] if assigned else indent
    asked = None if left else ASKED.fullmatch(line)
    if rest.startswith("!") and not rest.startswith("!="):
        twice = rest.startswith("!!")
        return indent + left + call("getoutput" if left or twice else "system", rest[1 + twice:].strip())
    if asked:
        return indent + call("show_help", asked[1] or asked[2])
    magic = MAGIC.fullmatch(rest) if rest.startswith("%") and not rest.startswith("%%") else None
    return indent + left + call("run_line_magic", magic[1], magic[2].strip()) if magic else None


def joined(lines, at):
    """A line with those that continue it, and how many they are."""
    text, n = lines[at], 1
    while text.endswith("\\") and at + n < len(lines):
        text, n = text[:-1] + lines[at + n], n + 1
    return text, n


def replace_at(lines, at):
    text, n = joined(lines, at)
    new = replaced(text)
    if new is None:
        return False
    lines[at:at + n] = [new] + [""] * (n - 1)
    return True


def without_indent(code):
    """Code that is indented as a whole, as it is in the middle of another program, begins at the margin."""
    first = next((line for line in code.split("\n") if line.strip(BLANK) and not line.strip(BLANK).startswith("#")), "")
    indent = first[:len(first) - len(first.lstrip(BLANK))]
    return "\n".join(line.removeprefix(indent) for line in code.split("\n")) if indent else code


def as_python(code, parse):
    """What parse() makes of the code once its lines are Python."""
    code = without_indent(code.replace("\r\n", "\n").replace("\r", "\n"))
    if code.lstrip(BLANK + "\n").startswith("%%"):
        code = cell(code)
    lines, error = code.split("\n"), None
    for _ in range(2 * len(lines) + 1):
        try:
            return parse("\n".join(lines))
        except SyntaxError as why:
            error = why
        # A quote of a command may have Python stumble later than over the command.
        at = min(error.lineno or 1, len(lines)) - 1
        while at >= 0 and not replace_at(lines, at):
            at -= 1
        if at < 0:
            break
    raise error


def cell(code):
    """A piece that is a magic's as a whole: what begins it on its first line; the body stays where it is if it is Python."""
    head, _, body = code.lstrip(BLANK + "\n").partition("\n")
    magic = MAGIC.fullmatch(head)
    if not magic:
        return code
    if magic[1] in CELLS_AROUND:
        blank = "\n" * (code[:len(code) - len(code.lstrip(BLANK + "\n"))].count("\n"))
        return f"{blank}{call('begin_cell', magic[1], magic[2].strip())}\n{body}"
    return call("run_cell_magic", magic[1], magic[2].strip(), body)


# ---- what they do ------------------------------------------------------------------------------------------------------------------

class Lines(list):
    """What a command wrote."""
    l = list = property(lambda self: [*self])
    n = nlstr = property("\n".join)
    s = spstr = property(" ".join)


def expand(text, names):
    """{expressions} and $names of the program in a command; what is none stays the shell's."""
    def value(match):
        if match[0] == "$$":
            return "$"
        try:
            return str(names[match[2]]) if match[2] else str(eval(match[1], space, names))
        except Exception:
            return match[0]
    return EXPRESSION.sub(value, text)


def shell(command, **how):
    flush()
    return subprocess.Popen(["/bin/bash", "-c", command], stdin=subprocess.DEVNULL, **how)


def has_way_out():
    return any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"))


def pip(words):
    installs = re.match(r"(install|download|wheel)\b", words)
    if installs and not has_way_out():
        raise UsageError(NO_PACKAGES)
    own = " --user --break-system-packages" if installs and installs[1] == "install" and "--target" not in words else ""
    status = shell(f"{sys.executable} -m pip {words}{own}").wait()
    if own and status == 0:
        import importlib, site
        site.addsitedir(site.getusersitepackages())
        importlib.invalidate_caches()


def seconds(n):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if n * scale >= 1:
            return f"{n * scale:.3g} {unit}"
    return f"{n * 1e9:.3g} ns"


def stop_watch():
    begun, used = time.perf_counter(), os.times()

    def tell():
        now, wall = os.times(), time.perf_counter() - begun
        user, system = now[0] - used[0], now[1] - used[1]
        print(f"CPU times: user {seconds(user)}, sys: {seconds(system)}, total: {seconds(user + system)}\nWall time: {seconds(wall)}")
    return tell


def evaluate(code, names):
    """The value of code that is an expression; other code is run."""
    try:
        what = compile(code, "<magic>", "eval", dont_inherit=True)
    except SyntaxError:
        return exec(as_python(code, lambda text: compile(text, "<magic>", "exec", dont_inherit=True)), space)
    return eval(what, space, names)


def timed(line, names):
    tell = stop_watch()
    try:
        return evaluate(line, names)
    finally:
        tell()


TIMEIT = re.compile(r"\s*-(?:([nr])\s*(\d+)|[qtcpov]+(?:\s*\d+)?(?=\s|$))\s*")


def timeit(line, body=None):
    """%timeit statement, or a piece of code behind a line of what is done before it."""
    import statistics, timeit as times
    given, quiet, keep = {}, False, False
    while (option := TIMEIT.match(line)) is not None:
        if option[1]:
            given[option[1]] = int(option[2])
        quiet, keep = quiet or "q" in option[0], keep or "o" in option[0]
        line = line[option.end():]
    timer = times.Timer(line if body is None else body, "pass" if body is None else line or "pass", globals=space)
    number = given.get("n") or timer.autorange()[0]
    runs = [took / number for took in timer.repeat(given.get("r") or 7, number)]
    mean, spread = statistics.fmean(runs), statistics.pstdev(runs)
    if not quiet:
        print(f"{seconds(mean)} ± {seconds(spread)} per loop (mean ± std. dev. of {len(runs)} runs, {number:,} loops each)")
    return type("TimeitResult", (), {"average": mean, "stdev": spread, "best": min(runs), "worst": max(runs), "all_runs": runs, "loops": number}) if keep else None


def change_folder(line):
    global came_from
    words = [word for word in line.split(" ") if word != "-q"]
    where = os.path.expanduser(" ".join(words).strip().strip("'\"") or "~")
    where, before = came_from if where == "-" else where, os.getcwd()
    os.chdir(where)
    came_from = before
    if "-q" not in line.split():
        print(os.getcwd())


def environment(line):
    name, equals, value = line.partition("=" if "=" in line else " ")
    if not line:
        return dict(os.environ)
    if not equals:
        return os.environ[name] if name in os.environ else fail(f"Environment does not have key: {name}")
    os.environ[name.strip()] = value.strip()
    print(f"env: {name.strip()}={value.strip()}")
    return None


def fail(why):
    raise UsageError(why)


def names_of_user():
    return sorted(name for name, value in space.items() if not name.startswith("_") and not isinstance(value, type(sys)) and name not in ("In", "Out"))


def who(_line):
    print("\t".join(names_of_user()) or "Interactive namespace is empty.")


def whos(_line):
    names = names_of_user()
    width = max(map(len, names), default=8) + 4
    print(f"{'Variable':<{width}}{'Type':<16}Data/Info\n{'-' * (width + 30)}")
    for name in names:
        print(f"{name:<{width}}{type(space[name]).__name__:<16}{repr(space[name])[:60]}")


def reset(_line):
    for name in names_of_user():
        del space[name]


def run_file(line):
    import runpy, shlex
    words = [word for word in shlex.split(line) if word not in ("-i", "-n")]
    path, argv = words[0] if os.path.exists(words[0]) else words[0] + ".py", sys.argv
    sys.argv = words
    try:
        names = runpy.run_path(path, dict(space) if "-i" in line.split() else None, "__main__")
    finally:
        sys.argv = argv
    space.update((name, value) for name, value in names.items() if not name.startswith("__"))


def write_file(line, body):
    path = line.removeprefix("-a").strip().strip("'\"")
    there = os.path.exists(path)
    with open(path, "a" if line.startswith("-a ") else "w") as file:
        file.write(body if body.endswith("\n") else body + "\n")
    print(f"{'Appending to' if line.startswith('-a ') else 'Overwriting' if there else 'Writing'} {path}")


def script(program):
    def run(line, body):
        flush()
        words = program.split() + (line.split() if program else line.split() or fail("%%script needs a program"))
        status = subprocess.run([word for word in words if not word.startswith("--")], input=body.encode()).returncode
        if status and "--no-raise-error" not in words:
            raise subprocess.CalledProcessError(status, words)
    return run


def shown(form):
    return lambda _line, body: display({f"text/{form}" if "/" not in form else form: body, "text/plain": body}, raw=True)


def command(name):
    def run(line):
        shell(f"{name} {line}").wait()
    return run


def no_effect(_line):
    """How things are shown and loaded is the kernel's."""


LINES = {
    "time": None, "timeit": timeit, "cd": change_folder, "pwd": lambda _line: os.getcwd(), "env": environment, "set_env": environment,
    "pip": pip, "conda": lambda _line: fail(NO_PACKAGES), "mamba": lambda _line: fail(NO_PACKAGES), "run": run_file, "who": who, "whos": whos, "who_ls": lambda _line: names_of_user(), "reset": reset,
    "reset_selective": no_effect, "sx": lambda line: builtins.get_ipython().getoutput(line), "system": lambda line: builtins.get_ipython().getoutput(line),
    "lsmagic": lambda _line: print("line magics:", *sorted("%" + name for name in LINES), "\ncell magics:", *sorted("%%" + name for name in (*CELLS, *CELLS_AROUND))),
    **{name: command(name) for name in ("ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir")}, "ll": command("ls -l"),
    **dict.fromkeys(("matplotlib", "config", "load_ext", "reload_ext", "unload_ext", "autoreload", "precision", "xmode", "pdb", "colors", "autosave", "alias",
                     "automagic", "pprint", "gui", "logstop", "page", "doctest_mode"), no_effect),
}
CELLS = {
    "bash": script("bash"), "sh": script("sh"), "script": script(""), "python": script("python3"), "python3": script("python3"), "perl": script("perl"),
    "ruby": script("ruby"), "writefile": write_file, "file": write_file, "timeit": timeit, "html": shown("html"), "HTML": shown("html"), "markdown": shown("markdown"),
    "latex": shown("latex"), "svg": shown("image/svg+xml"), "SVG": shown("image/svg+xml"), "javascript": shown("application/javascript"), "js": shown("application/javascript"),
}
came_from = "~"


class Captured:
    def __init__(self, out, err):
        self.stdout, self.stderr, self.outputs = out, err, []

    def show(self):
        print(self.stdout, end="")
        print(self.stderr, end="", file=sys.stderr)

    __call__ = show
    __str__ = lambda self: self.stdout


def capture(line):
    import io
    before, words = (sys.stdout, sys.stderr), [word for word in line.split() if not word.startswith("-")]
    streams = (sys.stdout if "--no-stdout" in line else io.StringIO(), sys.stderr if "--no-stderr" in line else io.StringIO())
    sys.stdout, sys.stderr = streams

    def finish(_value):
        sys.stdout, sys.stderr = before
        if words:
            space[words[0]] = Captured(*(stream.getvalue() if isinstance(stream, io.StringIO) else "" for stream in streams))
    return finish


def time_cell(_line):
    tell = stop_watch()
    return lambda value: tell() or value


CELLS_AROUND = {"time": time_cell, "capture": capture, "prun": lambda _line: lambda value: value}


class Shell:
    """What is there of IPython's shell for programs that ask for it."""
    user_ns = space
    events = config = None
    around = ()

    def system(self, command):
        text = expand(command, sys._getframe(1).f_locals)
        if INSTALLS.match(text) and not has_way_out():
            raise UsageError(NO_PACKAGES)
        if text.startswith("cd ") and not re.search(r"[;&|]", text):
            print("brig: a command has a folder of its own; %cd changes the program's", file=sys.stderr)
        space["_exit_code"] = shell(text).wait()

    def getoutput(self, command):
        text = shell(expand(command, sys._getframe(1).f_locals), stdout=subprocess.PIPE, stderr=subprocess.STDOUT).communicate()[0]
        return Lines(text.decode("utf-8", "replace").splitlines())

    def run_line_magic(self, name, line, _depth=1):
        if name not in LINES:
            raise UsageError(f"Line magic function `%{name}` not found." + (f" But cell magic `%%{name}` exists." if name in CELLS else ""))
        names = sys._getframe(1).f_locals
        return timed(line, names) if name == "time" else LINES[name](line if name == "timeit" else expand(line, names))

    magic = lambda self, line: self.run_line_magic(*(line.lstrip("%").split(None, 1) + [""])[:2])

    def run_cell_magic(self, name, line, body):
        if name not in CELLS:
            raise UsageError(f"Cell magic `%%{name}` not found." + (f" But line magic `%{name}` exists." if name in LINES else ""))
        return timeit(line, body) if name == "timeit" else CELLS[name](expand(line, space), body)

    def begin_cell(self, name, line):
        self.around += (CELLS_AROUND[name](line),)

    def finish_cell(self, value):
        """When a piece has ended, however it did."""
        around, self.around = self.around, ()
        for finish in reversed(around):
            value = finish(value)
        return value

    def run_cell(self, code, **_):
        return evaluate(code, space)

    ev = lambda self, code: eval(code, space)
    ex = lambda self, code: exec(code, space)

    def show_help(self, name):
        import inspect
        if name.startswith("%"):
            return print((LINES.get(name.strip("%")) or CELLS.get(name.strip("%")) or fail(f"there is no magic {name}")).__doc__ or name)
        try:
            value = eval(name, space)
        except Exception:
            return print(f"Object `{name}` not found.")
        try:
            print(f"Signature: {name}{inspect.signature(value)}")
        except (TypeError, ValueError):
            pass
        print(f"Type:      {type(value).__name__}\nDocstring:\n{inspect.getdoc(value) or '<no docstring>'}")
