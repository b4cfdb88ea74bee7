# SPDX-License-Identifier: Apache-2.0
"""Only what pyproject.toml cannot say: a wheel that carries the brig program is for one platform and any Python.

tools/build-python puts the program into src/brig/_bin and names the platform; without it the package is plain Python
that looks for a brig of the host.
"""

import os

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

platform = os.environ.get("BRIG_WHEEL_PLATFORM", "any")


class BrigDistribution(Distribution):
    def has_ext_modules(self):
        """Where the package goes: a program is no business of other platforms."""
        return platform != "any"


class BrigWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", platform


setup(distclass=BrigDistribution, cmdclass={"bdist_wheel": BrigWheel})
