#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The warm suite: programs run by an interpreter that was started cold, and by one that waited for them; nothing may differ.

    tests/warm/run.py [--way harness|brig] [--manner M] [--python PATH] [--jobs N] [--case ID]

A program is an entry of programs/*.txt (programs.py).  It is run cold once, and once in each manner of the way:

  harness  no cell: build/tests/warm/wait_harness starts the interpreter with brig's library in it.
           exact    it only waits
           frozen   and what lives is put aside from Python's collector before that (BRIG_WARM, empty); Node has loaded modules of its own
           warmed   and json, re and datetime were imported before that
  brig     in cells: `brig run` against `brig run` with BRIG_WARM_CELLS, whose cell is made by the keeper and waits; that is frozen
           as far as Python is concerned, and a shell is not started before it has its program.  With BRIG_TEST_FORKS, and BRIG
           of a build with faults, Python's are forks of a zygote

What is compared are stdout, stderr and the way it ended, byte for byte.  DIFFERENCES lists what is known to differ, and why; a row that
does not differ any more fails, so that the list stays true.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import harness
import programs

# With a build for the fault suite: what the keeper fills with forks is filled so from the first request on.
FORKS = "BRIG_TEST_FORKS" in os.environ
BUILD = os.path.join(harness.ROOT, "build") if FORKS else os.path.dirname(harness.brig_path())
HARNESS = os.path.join(BUILD, "tests/warm/wait_harness")
LIBRARY = os.path.join(BUILD, "src/backend/guest/brig-guest-wait.so")
WARM_LIST = "json,re,datetime"
FAILED = 125  # GUEST_WAIT_FAILED
OWN_FAULT = 99  # of wait_harness

# The variables of a cell's program (src/lang/languages.def), and some of anybody's.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8", "MINE": "of the program", "EMPTY": ""}
LANGUAGES = {
    "python": (["/usr/bin/python3", "/usr/local/bin/python3"], "main.py", ("exact", "frozen", "warmed"), (),
               {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}),
    "php": (["/usr/bin/php", "/usr/local/bin/php"], "main.php", ("exact",), (), {}),
    # Nobody stops in it: in a cell its process waits before exec.
    "shell": (["/usr/bin/sh", "/bin/sh"], "main.sh", (), (), {}),
    # Node looks for package.json before it opens the program.
    "javascript": (["/usr/bin/node", "/usr/bin/nodejs", "/usr/local/bin/node"], "main.js", ("exact", "frozen"), ("package.json",), {"UV_USE_IO_URING": "0"}),
}

LIBRARY_IN_MEMORY = "the library stays mapped, and shows as a memfd"
ZEROS = "the kernel noted the length of the environment at exec: zeros are where the library's variables were"
FROZEN = "what was alive at the wait is put aside from the collector"
LOST = "what a program ties to a class, or puts into a container, of a module that was put aside is not finalised"
IMPORTED = "modules of the warm list are there already"
LOADED = "modules of Node's own for its streams are loaded already"
SHADOWED = "a file beside the program has the name of a module of the warm list: it says so and ends, and brig runs it cold"

# (program, manners, reason); * is every manner.
DIFFERENCES = [
    ("python.proc_maps", "*", LIBRARY_IN_MEMORY),
    ("python.proc_environ_exact", "*", ZEROS),
    ("python.gc_counts", "frozen warmed", FROZEN),
    ("python.gc_objects", "frozen warmed", FROZEN),
    ("python.del_in_early_container", "frozen warmed", LOST),
    ("python.del_on_library_class", "warmed", LOST),
    ("python.del_on_library_object", "warmed", LOST),
    ("python.sys_modules", "warmed", IMPORTED),
    ("python.importer_cache", "warmed", IMPORTED),
    ("python.neighbour_hides_warm", "warmed", SHADOWED),
    ("javascript.builtin_modules", "frozen", LOADED),
]


def difference(ident, manner):
    for name, manners, reason in DIFFERENCES:
        if name == ident and (manners == "*" or manner in manners.split()):
            return reason
    return None


class Outcome:
    """What is compared."""
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def parts(self):
        return {"end": self.status, "stdout": self.out, "stderr": self.err}


def without_addresses(text):
    """Every start has its own (python.random_addresses), as in <function f at 0x7f...>."""
    return re.sub(rb"0x[0-9a-f]{8,16}\b", b"0xADDRESS", text)


def differing(cold, warm):
    """Names of the parts that differ, with both sides as far as they are of use."""
    found = []
    for part, one in cold.parts().items():
        two = warm.parts()[part]
        if one != two:
            at = next((i for i, (a, b) in enumerate(zip(one, two)) if a != b), 0) if isinstance(one, bytes) else 0
            start = max(0, at - 60)
            found.append(f"{part}: cold {one[start:at + 200]!r}, warm {two[start:at + 200]!r}" if isinstance(one, bytes) else f"{part}: cold {one}, warm {two}")
    return found


def fresh_folder(t, name):
    """Always the same path, so that nothing need be replaced before comparing."""
    place = os.path.join(t.dir, name)
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    return place


def brought_files(t, program):
    """What a request has beside its program is not there when the interpreter starts."""
    place = fresh_folder(t, "brought")
    programs.write_files(program, place)
    return ["--bring", place] if program.files else []


def interpreter(t, language):
    found = next(filter(os.path.exists, LANGUAGES[language][0]), None)
    return found or t.skip(f"needs {language}")


def harness_options(program, manner, place):
    also = LANGUAGES[program.language][3]
    words = ["--library", LIBRARY] + [w for name in also for w in ("--also", os.path.join(place, name))]
    return words + {"exact": [], "frozen": ["--warm", ""], "warmed": ["--warm", WARM_LIST]}[manner]


def run_in_harness(t, program, manner):
    _, source, _, _, env = LANGUAGES[program.language]
    place = fresh_folder(t, "workspace")
    main, content = os.path.join(place, source), t.path("content", program.content)
    words = [HARNESS, *brought_files(t, program)] + (harness_options(program, manner, place) if manner != "cold" else [])
    words += [main, content, "--", interpreter(t, program.language), main, *program.args]
    variables = {**ENVIRONMENT, **env, "BRIG_WAIT": "/of/the/program", "BRIG_WARM": "of_the_program"}
    p = t.run(["/usr/bin/env", "-i", *[f"{k}={v}" for k, v in variables.items()], *words], stdin=program.stdin, cwd=place)
    t.check(p.rc != OWN_FAULT, "the harness did its part", p)
    return Outcome(p.rc, without_addresses(p.out), without_addresses(p.err))


def run_in_brig(t, program, manner):
    extra = []
    if program.files:
        extra += ["--files", programs.archive_of(program, t.path("files.tar"))]
    source = t.path(LANGUAGES[program.language][1], program.content)
    r = t.cell(*extra, "--lang", program.language, source, "--", *program.args, stdin=program.stdin,
               env={"BRIG_WARM_CELLS": "1"} if manner != "cold" else {})
    forks = FORKS and manner != "cold" and program.language == "python" and not program.files and not program.args
    t.equal(r.json["forked"], forks, "whether it is a fork", r)
    return Outcome((r.verdict, r.json["exit_code"], r.json["signal"]), without_addresses(r.stdout), without_addresses(r.stderr))


WAYS = {"harness": run_in_harness, "brig": run_in_brig}


def compare(t, run, program, manners):
    cold = run(t, program, "cold")
    if program.differs:
        return compare_random(t, run, program, manners, cold)
    for manner in manners:
        found, reason = differing(cold, run(t, program, manner)), difference(program.ident, manner)
        if reason:
            t.check(found, f"{manner}: equal, so the row of DIFFERENCES is not true any more", reason)
        else:
            t.check(not found, f"{manner} differs from cold", "; ".join(found))


def compare_random(t, run, program, manners, cold):
    """Every run has an output of its own, two waiting ones in each manner included."""
    outputs = [cold.out] + [run(t, program, manner).out for manner in manners for _ in range(2)]
    t.check(all(outputs), "every run has written something", outputs)
    t.equal(len(set(outputs)), len(outputs), "the number of different outputs", outputs)


def add_programs(way, manner):
    for program in programs.load(os.path.join(HERE, "programs")):
        manners = LANGUAGES[program.language][2] if way == "harness" else (manner,)
        if not manners:
            continue
        harness.add(program.ident, program.title, lambda t, p=program, m=manners: compare(t, WAYS[way], p, m), category=program.language)


# ---- the words between the library and a supervisor ----------------------------------------------------

SOUND = ("one", "two")
UNSOUND = ("silence", "no-go", "go-first", "claim-twice", "short", "long", "magic", "no-descriptor", "two-descriptors", "too-small", "too-large",
           "unreadable")


def play(t, name, *options, content="print('ran')\n"):
    place = os.path.join(t.dir, "workspace")
    os.makedirs(place, exist_ok=True)
    main = os.path.join(place, "main.py")
    return t.run([HARNESS, "--library", LIBRARY, "--play", name, *options, main, t.path("content", content), "--", interpreter(t, "python"), main], stdin=b"")


@harness.case("sound words let the program run, in one record or in two")
def words_sound(t):
    for name in SOUND:
        p = play(t, name)
        t.equal((p.rc, p.out, p.err), (0, b"ran\n", b""), name, p)


@harness.case("after an unsound word, or none, nothing runs", final="a program ran without a claim")
def words_unsound(t):
    for name in UNSOUND:
        p = play(t, name)
        t.equal((p.rc, p.out, p.err), (FAILED, b"", b""), name, p)


@harness.case("an interpreter with the library, but not started as agreed, ends at once", final="a program ran without a claim")
def not_agreed(t):
    python = interpreter(t, "python")
    for variables in (["LD_PRELOAD=" + LIBRARY], ["BRIG_WAIT=/main.py", "LD_PRELOAD=" + LIBRARY], ["LD_PRELOAD=" + LIBRARY, "BRIG_WAIT=/main.py"]):
        p = t.run(["/usr/bin/env", "-i", "PATH=/usr/bin", *variables, python, "-c", "print('ran')"], stdin=b"")
        t.equal((p.rc, p.out, p.err), (FAILED, b"", b""), "end", p)


@harness.case("a module that cannot be imported is named, and nothing runs")
def warm_missing(t):
    p = play(t, "one", "--warm", "json,no_such_module,re")
    t.equal((p.rc, p.out), (FAILED, b""), "end", p)
    t.check(b"module 1 failed" in p.err, "the second of the list is named", p)


@harness.case("a file beside the program that a warm module would hide is told of, and nothing runs")
def shadowed(t):
    for name, unfit in (("json.py", True), ("datetime/__init__.py", True), ("enum.cpython-311-x86_64-linux-gnu.so", True), ("os.py", False), ("jason.py", False)):
        place = fresh_folder(t, "brought")
        os.makedirs(os.path.dirname(os.path.join(place, name)), exist_ok=True)
        t.path(os.path.join("brought", name), "x = 1\n")
        fresh_folder(t, "workspace")
        p = play(t, "one", "--warm", WARM_LIST, "--bring", place)
        want = (FAILED, b"", b"wait_harness: unfit\n") if unfit else (0, b"ran\n", b"")
        t.equal((p.rc, p.out, p.err), want, name, p)


@harness.case("a program file that is a link is not written through")
def link_refused(t):
    place = os.path.join(t.dir, "workspace")
    os.makedirs(place)
    target = t.path("target", "kept")
    main = os.path.join(place, "main.py")
    # The harness makes the file through the link as well, so what counts is the library's own open.
    os.symlink(target, main)
    p = play(t, "one")
    t.equal((p.rc, p.out), (FAILED, b""), "end", p)


# ---- behind a cell's walls, and with other interpreters -------------------------------------------------

# Node asks for it by itself; only the filter for Node has it, and here the cell is a Python's.
OF_NODE = ("pkey_alloc",)


def tar_with(t, files):
    holder = programs.Program("python", "files", "")
    holder.files = files
    return programs.archive_of(holder, t.path("files.tar"))


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def wait_in_cell(t, language, content, warm, *options):
    program = "/workspace/" + LANGUAGES[language][1].replace("main", "waits")
    files = tar_with(t, {"library": read_bytes(LIBRARY), "content": content.encode()})
    source = t.path("main.py", read_bytes(os.path.join(HERE, "in_cell.py")))
    r = t.cell("--files", files, *options, source, "--", interpreter(t, language), program, warm, stdin=b"")
    t.verdict(r, "ok")
    t.equal((r.stdout, r.stderr), (b"ran\n", b""), "output", r)
    refused = [row["what"] for row in r.json.get("denied", []) if row["what"] not in OF_NODE]
    t.equal(refused, [], "the list of refused calls", r)


@harness.case("behind a cell's walls a Python waits, imports and runs, and no call is refused")
def cell_python(t):
    content = "import sys; print('ran' if 'json' in sys.modules else 'not warmed')\n"
    for preset in ("standard", "strict"):
        wait_in_cell(t, "python", content, WARM_LIST, "--preset", preset)
        wait_in_cell(t, "python", "print('ran')\n", "-", "--preset", preset)


@harness.case("behind a cell's walls a Node waits and runs, and no call is refused")
def cell_node(t):
    wait_in_cell(t, "javascript", "console.log('ran')\n", "-", "--memory", "512m", "--pids", "64")


# (name, programs, file name, content): the other interpreters that stop as well.
OTHERS = [
    ("perl", ["/usr/bin/perl"], "main.pl", 'print "ran $0 @ARGV\\n"; exit 3;'),
    ("ruby", ["/usr/bin/ruby"], "main.rb", 'puts "ran #{$0} #{ARGV}"; exit 3'),
    ("php", ["/usr/bin/php"], "main.php", '<?php echo "ran ", __FILE__, $argv[1], "\\n"; exit(3);'),
    ("lua", ["/usr/bin/lua"], "main.lua", 'print("ran", arg[0], arg[1]) os.exit(3)'),
    ("module", ["/usr/bin/node"], "main.mjs", 'console.log("ran", import.meta.url, process.argv[2]); process.exitCode = 3'),
    ("commonjs", ["/usr/bin/node"], "main.cjs", 'console.log("ran", __filename, process.argv[2]); process.exitCode = 3'),
]


def run_other(t, found, name, content, options):
    main = os.path.join(fresh_folder(t, "workspace"), name)
    words = [HARNESS, *options, main, t.path("content", content), "--", found, main, "word"]
    p = t.run(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", *words], stdin=b"")
    return p, Outcome(p.rc, p.out, p.err)


def add_other(ident, paths, name, content):
    def run(t):
        found = next(filter(os.path.exists, paths), None) or t.skip(f"needs {paths[0]}")
        p, cold = run_other(t, found, name, content, [])
        t.check(p.rc == 3 and p.out.startswith(b"ran"), "it runs cold", p)
        # A list of modules is for Python: others do not look at it.
        for options in ([], ["--warm", WARM_LIST]):
            p, waited = run_other(t, found, name, content, ["--library", LIBRARY, *options])
            t.check(not differing(cold, waited), "it differs", p)
    harness.add(f"others.{ident}", f"{ident} waits at {name}, and runs as it does cold", run)


for row in OTHERS:
    add_other(*row)


def main():
    parser = harness.arguments("warm")
    parser.add_argument("--way", choices=sorted(WAYS), default="harness", help="what starts the programs")
    parser.add_argument("--manner", choices=("exact", "frozen", "warmed"), default="frozen", help="what --way brig does")
    parser.add_argument("--python", metavar="PATH", help="another Python; only with --way harness")
    options = parser.parse_args()
    if options.python:
        LANGUAGES["python"][0].insert(0, options.python)
    add_programs(options.way, options.manner)
    return harness.main("warm", options, probe=options.way == "brig")


if __name__ == "__main__":
    sys.exit(main())
