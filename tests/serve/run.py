#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The serve suite: `brig serve` as clients of every kind meet it.

api      what is asked for is done, and told as data/openapi.json says
access   tokens, quotas, hosts and origins
hostile  clients that break, cheat, dawdle or come in crowds
front    what the process that speaks HTTP holds and is given
cli      commands through the service: the same results, descriptors, users
drill    signals, kill -9 of each process, and a short soak

A case has a server of its own, so that what a server leaves behind is that case's.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
sys.dont_write_bytecode = True
import harness

if __name__ == "__main__":
	harness.load(HERE, r"test_\w+\.py")
	sys.exit(harness.main("serve", probe=True))
