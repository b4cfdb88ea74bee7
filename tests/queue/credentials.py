# SPDX-License-Identifier: Apache-2.0
"""What nodes show brokers: certificates of an authority, made with openssl, and NATS credentials, made by hand.

NATS has a chain of three keys of Ed25519: an operator, whom the server knows, signs an account, which signs users.  Each is
said by a JSON Web Token whose algorithm is "ed25519-nkey", and keys are written in base32 behind a byte that says whose they
are, with a checksum.  Debian has no tool that makes them; libsodium, which brig needs anyway, signs.
"""
import base64
import binascii
import ctypes
import ctypes.util
import hashlib
import json
import os
import subprocess
import time

import harness

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0 << 3, 20 << 3, 18 << 3
UNLIMITED = {"subs": -1, "data": -1, "payload": -1}


def base32(data):
	return base64.b32encode(data).decode().rstrip("=")


def with_checksum(data):
	return base32(data + binascii.crc_hqx(data, 0).to_bytes(2, "little"))


def base64url(data):
	return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
	"""A key of Ed25519, in the words of NATS."""
	def __init__(self, kind, seed=None):
		self.sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
		if self.sodium.sodium_init() < 0:
			raise harness.Failed("libsodium does not begin")
		seed, public, self.secret = seed or os.urandom(32), ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
		self.sodium.crypto_sign_seed_keypair(public, self.secret, seed)
		self.public = with_checksum(bytes([kind]) + public.raw)
		self.seed = with_checksum(bytes([SEED | kind >> 5, (kind & 31) << 3]) + seed)

	def sign(self, text):
		signature = ctypes.create_string_buffer(64)
		self.sodium.crypto_sign_detached(signature, None, text, ctypes.c_ulonglong(len(text)), self.secret)
		return signature.raw

	def says(self, name, subject, nats):
		"""A token of this key's about another."""
		claims = {"iat": int(time.time()), "iss": self.public, "name": name, "sub": subject.public, "nats": {**nats, "version": 2}}
		claims["jti"] = base32(hashlib.new("sha512_256", json.dumps(claims).encode()).digest())
		head = base64url(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
		text = f"{head}.{base64url(json.dumps(claims).encode())}"
		return f"{text}.{base64url(self.sign(text.encode()))}"


class Operator:
	"""With an account for brig, and one that the server needs for itself."""
	def __init__(self):
		self.key, self.account, self.system = Key(OPERATOR), Key(ACCOUNT), Key(ACCOUNT)

	def broker_lines(self):
		limits = {**UNLIMITED, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
		storage = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}
		account = self.key.says("brig", self.account, {"type": "account", "limits": {**limits, **storage}})
		system = self.key.says("system", self.system, {"type": "account", "limits": limits})
		return [f'operator: "{self.key.says("operator", self.key, {"type": "operator"})}"',
			f"system_account: {self.system.public}", "resolver: MEMORY",
			f"resolver_preload: {{ {self.account.public}: {account}, {self.system.public}: {system} }}"]

	def user(self, path, account=None):
		"""A file of credentials; account: another one than brig's signs it."""
		key = Key(USER)
		token = (account or self.account).says("node", key, {"type": "user", **UNLIMITED})
		with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
			f.write(f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
				f"-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n")
		return path


class Authority:
	"""Signs certificates of brokers and of nodes."""
	def __init__(self, directory, name):
		self.name, self.base = name, os.path.join(directory, name)
		self.ca = self.base + ".pem"
		self.openssl("req", "-x509", *self.new_key(self.base), "-days", "2", "-subj", f"/CN={name}", "-out", self.ca)

	def new_key(self, base):
		return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", base + ".key"]

	def openssl(self, *words):
		p = subprocess.run(["openssl", *words], capture_output=True, text=True)
		if p.returncode:
			raise harness.Failed(f"openssl {words[0]}: {p.stderr}")

	def certificate(self, name, address=None):
		"""Files of a certificate and of its key."""
		base = f"{self.base}-{name}"
		with open(base + ".ext", "w") as f:
			f.write(f"subjectAltName=IP:{address}\n" if address else f"subjectAltName=DNS:{name}\n")
		self.openssl("req", *self.new_key(base), "-subj", f"/CN={name}", "-out", base + ".csr")
		self.openssl("x509", "-req", "-in", base + ".csr", "-CA", self.ca, "-CAkey", self.base + ".key", "-days", "2", "-CAcreateserial",
			     "-extfile", base + ".ext", "-out", base + ".pem")
		return base + ".pem", base + ".key"
