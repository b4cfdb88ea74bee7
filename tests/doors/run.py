#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The doors suite: `brig serve` as clients of other services meet it.

e2b         its npm packages, unchanged (e2b.mjs and others), and what they do not send
piston      its three npm packages, unchanged (piston.mjs), and what they do not send
mcp         the two npm packages of the protocol, unchanged (mcp.mjs), in both eras, and what they do not send
dify, fusion, librechat    the recorded shapes of their wire formats, over plain HTTP
access      tokens, doors that are shut, origins, paths that several have
hostile     bodies of every door that are no such thing

One server answers a whole table: a row is a request and what its answer must be.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "serve"), os.path.dirname(HERE)]
sys.dont_write_bytecode = True
import harness

if __name__ == "__main__":
	harness.load(HERE, r"test_\w+\.py")
	sys.exit(harness.main("doors", probe=True))
