#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The serve suite: `brig serve` as clients of every kind meet it.

api      what is asked for is done, and told as data/openapi.json says
access   tokens, quotas, hosts and origins
restart  processes that die one by one, and what goes on meanwhile
questions  which take long hold up nobody
memory   what is known after kill -9: keys, quotas
hostile  clients that break, cheat, dawdle or come in crowds
front    what the process that speaks HTTP holds and is given
runner   what the process that runs cells has of root's rights; that each process is executed anew
compromise  foreign code in that process's place
recorder what the process that writes audit log and history may, and what becomes of records when it dies
cli      commands through the service: the same results, descriptors
folders  their projects, tests and artifacts, with nobody's rights but the caller's; users of the policy
batch_cli  brig batch through the service
sessions cells that stay: contexts, processes, files
ports    watches of their files, servers in them, links
floods   a session that floods the service, while others are served
session_cli  brig session: the same from the command line
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
