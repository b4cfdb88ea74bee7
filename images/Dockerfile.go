# SPDX-License-Identifier: Apache-2.0
# Go programs.  See Dockerfile.
FROM golang:1.22-bookworm
RUN groupadd --gid 1000 sandbox \
 && useradd --uid 1000 --gid 1000 --home-dir /workspace --no-create-home --shell /bin/sh sandbox \
 && ln -sf /usr/local/go/bin/go /usr/bin/go \
 && find / -xdev -perm /6000 -type f -exec chmod a-s {} + \
 && mkdir -p /workspace
WORKDIR /workspace
USER 1000:1000
ENTRYPOINT []
CMD []
