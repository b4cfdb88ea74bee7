# SPDX-License-Identifier: Apache-2.0
"""brig in other people's agents: each module needs the package that it is named after; nothing imports it unasked."""
