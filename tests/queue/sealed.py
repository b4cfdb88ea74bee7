# SPDX-License-Identifier: Apache-2.0
"""A node that the operator's list knows, and that says whatever it wants: what is sealed, as docs/QUEUE.md describes it."""
import hashlib
import os
import struct
import time

import credentials

MAGIC, PURPOSE = b"brig sealed 1\n", b"brig seal 1\n"


class Known:
	def __init__(self, name, seed=None):
		self.name, self.signer = name, credentials.Key(credentials.USER, seed)
		self.key = self.signer.secret.raw[32:].hex()

	@classmethod
	def instead_of(cls, node):
		"""One that has the key of a node of the cluster."""
		with open(os.path.join(node.state, "queue", "key")) as f:
			return cls(node.name, bytes.fromhex(f.read().strip()))

	def seal(self, what, *fields):
		"""fields: (name, text, number or bytes)."""
		data = b""
		for name, value in (("sealed_as", what), ("node", self.key), *fields):
			value = struct.pack("<Q", value) if isinstance(value, int) else value.encode() + b"\0" if isinstance(value, str) else value
			data += bytes([len(name)]) + name.encode() + struct.pack("<I", len(value)) + value
		return MAGIC + struct.pack("<I", len(data)) + data + self.signer.sign(PURPOSE + hashlib.sha256(data).digest())

	def entry(self, *more):
		"""That it is there and has places."""
		now = int(time.time())
		return self.seal("node", ("node_name", self.name), ("issued", now), ("expires", now + 60), ("running", 0), ("slots", 4), ("places", 4), *more)


def fields_of(data):
	"""What somebody has sealed: names and bytes; texts without their NUL."""
	at, end, found = len(MAGIC) + 4, len(data) - 64, {}
	while at < end:
		name = data[at + 1:at + 1 + data[at]].decode()
		at += 1 + data[at]
		length, = struct.unpack("<I", data[at:at + 4])
		found.setdefault(name, []).append(data[at + 4:at + 4 + length])
		at += 4 + length
	return found
