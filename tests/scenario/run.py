#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The scenario suite: brig as its users meet it, every verdict and every language, judged from outside."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
sys.dont_write_bytecode = True
import harness

if __name__ == "__main__":
	harness.load(HERE, r"test_\w+\.py")
	sys.exit(harness.main("scenario"))
