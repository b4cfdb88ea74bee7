# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: cases as TAP lines that tests/run understands, and their choice by id.

BRIG_TEST_TAP_PREFIX stands before each id; BRIG_TEST_TAP_CASES, if it is set, lists the ids to run.  The count of all lines before
is not known here: lines have no number.
"""
import os
import re

import pytest

PREFIX = os.environ.get("BRIG_TEST_TAP_PREFIX", "")
CASES = set(os.environ.get("BRIG_TEST_TAP_CASES", "").split())


def ident(nodeid):
    """One word, whatever the parameters are."""
    return re.sub(r"\s", "_", f"{PREFIX}{nodeid}")


class Tap:
    def __init__(self):
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.seen = set()

    def tell(self, outcome, nodeid, comment="", text=""):
        self.counts[outcome] += 1
        title = nodeid.rpartition("::")[2]
        print(f"{'not ok' if outcome == 'failed' else 'ok'} - {ident(nodeid)}: {title}{comment}")
        for line in text.splitlines():
            print(f"#   {line}")

    @pytest.hookimpl(trylast=True)  # marks have been looked at
    def pytest_collection_modifyitems(self, config, items):
        if CASES:
            chosen = [item for item in items if ident(item.nodeid) in CASES]
            config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
            items[:] = chosen
        if config.option.collectonly:
            for item in items:
                print(f"{ident(item.nodeid)}\t{item.name}")

    def pytest_runtest_logreport(self, report):
        if report.nodeid in self.seen:
            return
        if report.failed:
            self.seen.add(report.nodeid)
            self.tell("failed", report.nodeid, text=report.longreprtext)
        elif report.skipped:
            self.seen.add(report.nodeid)
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected to fail"
            self.tell("skipped", report.nodeid, f" # SKIP {why.removeprefix('Skipped: ')}")
        elif report.when == "teardown":
            self.tell("passed", report.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell("failed", report.nodeid or "collection", " # FINAL", report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config):
        if not config.option.collectonly:
            print("{passed} passed, {failed} failed, {skipped} skipped".format(**self.counts))


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal:
        config.pluginmanager.unregister(terminal)
    config.pluginmanager.register(Tap(), "brig-tap")
