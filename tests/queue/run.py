#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The queue suite: `brig worker` and `brig serve --queue` on brokers of NATS.

delivery    each job ends in one result, whoever dies
credentials what nodes show brokers, and brokers nodes
fronts      whatever one front promised, any other one answers for
sessions    they stay on their node, and any front forwards to it
hostile     what brokers and neighbours on them may try
exchange    package sets and compiled programs that workers give each other
placement   jobs go to nodes that are warm
drill       jobs while workers, fronts and brokers are killed and links are cut at random

Each case has brokers, workers and fronts of its own, in network namespaces (cluster.py).
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
sys.dont_write_bytecode = True
import harness

if __name__ == "__main__":
	harness.load(HERE, r"test_\w+\.py")
	sys.exit(harness.main("queue", probe=True))
