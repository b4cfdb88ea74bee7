#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The session suite: cells that stay, through the public library (driver.c).

contexts: interpreters that keep their state.  processes: pipes, terminals, signals.  files, ports.
copies: the workspace of one in another.  ready: sessions that are made ahead.  life: clocks, pause, the steward's end, the owner's.
walls: what a session is to another and to its host.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import harness

if __name__ == "__main__":
	sys.path.insert(0, HERE)
	harness.load(HERE, r"test_[a-z]+\.py")
	sys.exit(harness.main("session"))
