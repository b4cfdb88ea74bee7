# SPDX-License-Identifier: Apache-2.0
"""
Runs a project's Python tests and reports about each: staged by brig at the top of the workspace, with a key in its last
line, and started as

    python3 -I -u -B RUNNER pytest|unittest|any REPORT [PATH]

First it takes the key, deletes itself and makes the report; only then anything of the project can be loaded (-I keeps
the project's folder out of the module path until then).  A line of the report is

    NUMBER KIND FIELDS... SEAL

with bytes outside of printable ASCII, spaces and percent signs as %XX, an empty field as "-", and an HMAC-SHA-256 of what
stands before it as the seal.  Kinds: begin FRAMEWORK VERSION; passed NAME; skipped NAME; failed NAME FILE LINE MESSAGE;
stopped REASON; end PASSED FAILED SKIPPED.  Without its end a report is not complete.

The process ends with 0 if every test that ran passed, with 1 if one failed, with 3 if there is no complete report.
"""
import hashlib
import hmac
import os
import sys

MESSAGE_MAX = 4000
NAME_MAX = 500


def take_key(path):
    with open(path, "rb") as f:
        key = f.read().rstrip().rpartition(b"key:")[2]
    os.unlink(path)
    return bytes.fromhex(key.decode("ascii"))


def make_report(path, key):
    """The one function that writes, with everything that it needs taken now."""
    seal = hmac.new(key, digestmod=hashlib.sha256)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
    table = [chr(b) if 33 <= b < 127 and b != 37 else "%%%02x" % b for b in range(256)]
    write, getpid, owner = os.write, os.getpid, os.getpid()
    texts, join, number = str, "".join, 0

    def field(value, limit):
        data = texts(value).encode("utf-8", "backslashreplace")[:limit]
        return "%2d" if data == b"-" else join([table[b] for b in data]) or "-"

    def put(kind, *fields):
        nonlocal number
        if getpid() != owner:
            return  # a test has forked and its child goes on where the parent does
        words = [texts(number), kind] + [field(v, MESSAGE_MAX if i == 3 else NAME_MAX) for i, v in enumerate(fields)]
        line = " ".join(words).encode("ascii")
        one = seal.copy()
        one.update(line)
        write(fd, line + b" " + one.hexdigest().encode("ascii") + b"\n")
        number += 1

    return put


def forget_byte_code(top):
    """Test files cannot be changed while tests run; byte code that somebody puts beside one would be taken for it."""
    from importlib import _bootstrap_external as loaders
    cache_from_source = loaders.cache_from_source

    def of_others_only(path, *args, **more):
        if os.path.abspath(path).startswith(top + os.sep):
            raise NotImplementedError  # what a loader takes for: there is no byte code
        return cache_from_source(path, *args, **more)

    loaders.cache_from_source = of_others_only


class Stopped(Exception):
    """There will be no complete report, for this reason."""


class Counts:
    def __init__(self, put):
        self.put, self.passed, self.failed, self.skipped = put, 0, 0, 0

    def total(self):
        return self.passed + self.failed + self.skipped

    def add_passed(self, name):
        self.passed += 1
        self.put("passed", name)

    def add_skipped(self, name):
        self.skipped += 1
        self.put("skipped", name)

    def add_failed(self, name, message, file="", line=0):
        self.failed += 1
        self.put("failed", name, file, line or 0, message)


# ---- pytest ------------------------------------------------------------------------------------

class PytestPlugin:
    """Adds up the phases of each test: it failed if one of them did."""

    def __init__(self, counts):
        self.counts, self.phases, self.finished, self.session, self.status = counts, {}, 0, None, None

    def pytest_runtest_logreport(self, report):
        self.phases.setdefault(report.nodeid, []).append(report)

    def pytest_runtest_logfinish(self, nodeid):
        reports = self.phases.pop(nodeid, [])
        self.finished += 1
        bad = [r for r in reports if r.outcome == "failed"]
        if bad:
            self.add_failure(nodeid, bad[0])
        elif any(r.outcome == "skipped" for r in reports):
            self.counts.add_skipped(nodeid)
        elif any(r.when == "call" for r in reports):
            self.counts.add_passed(nodeid)
        else:
            self.counts.add_failed(nodeid, "the test has no outcome")

    def pytest_collectreport(self, report):
        if report.outcome == "failed":
            self.add_failure(report.nodeid or "collection", report)
        elif report.outcome == "skipped":
            self.counts.add_skipped(report.nodeid)

    def pytest_sessionfinish(self, session, exitstatus):
        self.session, self.status = session, int(exitstatus)

    def add_failure(self, nodeid, report):
        crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
        file, line = (crash.path, crash.lineno) if crash else (None, 0)
        if not crash and getattr(report, "location", None):
            file, line = report.location[0], (report.location[1] or 0) + 1
        if file and os.path.isabs(file):
            file = os.path.relpath(file)
        head = crash.message if crash else ""
        text = getattr(report, "longreprtext", "")
        self.counts.add_failed(nodeid, head + ("\n\n" if head and text else "") + text, file or "", line)

    def check(self):
        """Whether pytest has told everything."""
        s = self.session
        if s is None:
            raise Stopped("pytest did not tell of the end of its session")
        if self.status not in (0, 1, 5) and not (self.status == 2 and self.counts.failed):
            raise Stopped(f"pytest ended with status {self.status}; its output says why")
        if not (s.shouldstop or s.shouldfail) and self.status != 2 and self.finished != len(getattr(s, "items", ())):
            raise Stopped(f"{len(s.items)} tests were collected, but {self.finished} have an outcome")


def run_pytest(counts, path):
    import pytest
    from _pytest.assertion import rewrite
    if not hasattr(rewrite, "_read_pyc"):
        raise Stopped("this pytest keeps byte code in a way that is not known here; --framework unittest does not")
    rewrite._read_pyc = lambda *args, **more: None  # it has files of its own beside tests
    counts.put("begin", "pytest", pytest.__version__)
    plugin = PytestPlugin(counts)
    args = ["-o", "cache_dir=" + os.environ.get("TMPDIR", "/tmp") + "/pytest-cache", "--color=no"] + ([path] if path else [])
    pytest.main(args, plugins=[plugin])
    plugin.check()


# ---- unittest ----------------------------------------------------------------------------------

def find_unittests(unittest, path):
    if path and os.path.isfile(path):
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        return unittest.TestLoader().loadTestsFromName(os.path.basename(path).rpartition(".")[0])
    suite = unittest.TestLoader().discover(path or ".")
    for folder in ("tests", "test"):  # without an __init__.py they are not looked into
        if not path and suite.countTestCases() == 0 and os.path.isdir(folder):
            suite = unittest.TestLoader().discover(folder)
    return suite


def run_unittest(counts, path):
    import platform
    import traceback
    import unittest

    class Result(unittest.TextTestResult):
        started = ended = 0
        told = False  # of the test that runs: a failing subtest is an outcome of it

        def startTest(self, test):
            super().startTest(test)
            self.started, self.told = self.started + 1, False

        def stopTest(self, test):
            super().stopTest(test)
            self.ended += 1
            if not self.told:
                counts.add_failed(test.id(), "the test has no outcome")

        def fail(self, test, error):
            frames = [f for f in traceback.extract_tb(error[2]) if "unittest" not in f.filename]
            file, line = (os.path.relpath(frames[-1].filename), frames[-1].lineno) if frames else ("", 0)
            text = "".join(traceback.format_exception_only(error[0], error[1])).strip()
            self.told = True
            counts.add_failed(test.id(), text + "\n\n" + self._exc_info_to_string(error, test), file, line)

        def addSuccess(self, test):
            super().addSuccess(test)
            self.told = True
            counts.add_passed(test.id())

        def addError(self, test, err):
            super().addError(test, err)
            self.fail(test, err)

        def addFailure(self, test, err):
            super().addFailure(test, err)
            self.fail(test, err)

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None:
                self.fail(subtest, err)

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            self.told = True
            counts.add_skipped(test.id())

        def addExpectedFailure(self, test, err):
            super().addExpectedFailure(test, err)
            self.told = True
            counts.add_skipped(test.id())

        def addUnexpectedSuccess(self, test):
            super().addUnexpectedSuccess(test)
            self.told = True
            counts.add_failed(test.id(), "it passed, but was expected to fail")

    counts.put("begin", "unittest", platform.python_version())
    suite = find_unittests(unittest, path)
    result = unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
    if result.started != result.ended and not result.shouldStop:
        raise Stopped(f"{result.started} tests were started, but {result.ended} ended")


# ---- both ----------------------------------------------------------------------------------------

def has_pytest():
    try:
        import pytest
        return hasattr(pytest, "main")
    except ImportError:
        return False


def main():
    leave, flush = os._exit, (sys.stdout.flush, sys.stderr.flush)
    framework, report, path = sys.argv[1], sys.argv[2], (sys.argv[3:] + [None])[0]
    counts = Counts(make_report(report, take_key(__file__)))
    put, sys.dont_write_bytecode, status = counts.put, True, 3
    forget_byte_code(os.getcwd())
    sys.path[:0] = [os.getcwd()] + [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    sys.argv[:] = [framework] + ([path] if path else [])
    try:
        if framework == "any":
            framework = "pytest" if has_pytest() else "unittest"
        if framework == "pytest" and not has_pytest():
            raise Stopped("pytest is not installed in the cell: apt-get install python3-pytest")
        {"pytest": run_pytest, "unittest": run_unittest}[framework](counts, path)
        put("end", counts.passed, counts.failed, counts.skipped)
        status = 1 if counts.failed else 0
    except Stopped as e:
        put("stopped", e)
    except BaseException as e:
        put("stopped", f"{framework} was ended by {type(e).__name__}: {e}")
        sys.excepthook(*sys.exc_info())
    for one in flush:
        try:
            one()
        except Exception:
            pass
    leave(status)


main()
