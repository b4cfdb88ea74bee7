# SPDX-License-Identifier: Apache-2.0
# Never answers.
while True:
    pass
