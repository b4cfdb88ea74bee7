# SPDX-License-Identifier: Apache-2.0
"""registries.py - package registries on loopback, with packages that are made here: what pip, npm and go ask for."""
import base64
import hashlib
import http.server
import io
import json
import ssl
import subprocess
import tarfile
import threading
import zipfile


class Registry:
	"""Serves what was put, counts what was asked for.  Ends with close()."""
	def __init__(self, address="127.0.0.1", login=None, tls=None):
		"""tls: https, with a certificate that is made here, goes there and is nobody's."""
		self.files, self.asked, self.login, self.tls = {}, [], login, tls
		self.open = threading.Event()	# archives are not handed out while it is cleared
		self.open.set()
		registry = self

		class Handler(http.server.BaseHTTPRequestHandler):
			protocol_version = "HTTP/1.1"

			def do_GET(self):
				path = self.path.split("?")[0]
				registry.asked.append(path)
				if path.startswith("/files/"):
					registry.open.wait()
				wanted = registry.login and "Basic " + base64.b64encode(registry.login.encode()).decode()
				status, body = 200, registry.files.get(path)
				if wanted and self.headers.get("Authorization") != wanted:
					status, body = 401, b"who are you?"
				elif body is None:
					status, body = 404, b"not here"
				self.send_response(status)
				if status == 401:
					self.send_header("WWW-Authenticate", 'Basic realm="test"')
				kind = "text/html" if path.endswith("/") else "application/json" if body[:1] == b"{" else "application/octet-stream"
				self.send_header("Content-Type", kind)
				self.send_header("Content-Length", str(len(body)))
				self.end_headers()
				self.wfile.write(body)

			def log_message(self, *args):
				pass
		self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
		self.server.daemon_threads = True
		self.server.handle_error = lambda *args: None	# clients that are killed hang up
		if tls:
			subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tls, "-out", tls + ".crt", "-days", "2",
					"-subj", "/CN=test", "-addext", f"subjectAltName=IP:{address}"], check=True, stderr=subprocess.DEVNULL)
			context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
			context.load_cert_chain(tls + ".crt", tls)
			self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
		self.place = f"{address}:{self.server.server_address[1]}"
		self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
		self.thread.start()

	@property
	def url(self):
		return f"{'https' if self.tls else 'http'}://{self.login + '@' if self.login else ''}{self.place}"

	def count(self, part):
		return sum(part in path for path in self.asked)

	def close(self):
		self.open.set()
		self.server.shutdown()
		self.server.server_close()
		self.thread.join()

	def __enter__(self):
		return self

	def __exit__(self, *args):
		self.close()

	# ---- pip: PEP 503 -----------------------------------------------------------------------------

	def put_pip(self, name, archives, elsewhere=""):
		"""A project with these archives (file name -> bytes), which may lie on another server."""
		links = "".join(f'<a href="{elsewhere}/files/{file}#sha256={hashlib.sha256(data).hexdigest()}">{file}</a><br>\n'
				for file, data in archives.items())
		self.files[f"/simple/{name}/"] = f"<!DOCTYPE html><html><body>\n{links}</body></html>".encode()
		if not elsewhere:
			self.put_archives(archives)

	def put_archives(self, archives):
		self.files.update({f"/files/{file}": data for file, data in archives.items()})

	# ---- npm --------------------------------------------------------------------------------------

	def put_npm(self, name, files, version="1.0.0", **manifest):
		data = npm_tarball(name, version, files, manifest)
		file = f"/{name}/-/{name.split('/')[-1]}-{version}.tgz"
		self.files[file] = data
		integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
		one = {"name": name, "version": version, **manifest, "dist": {"tarball": f"http://{self.place}{file}", "integrity": integrity}}
		self.files[f"/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: one}}).encode()
		return {"version": version, "resolved": f"http://{self.place}{file}", "integrity": integrity}

	# ---- go ---------------------------------------------------------------------------------------

	def put_go(self, module, version, files):
		mod = f"module {module}\n\ngo 1.18\n".encode()
		data = io.BytesIO()
		with zipfile.ZipFile(data, "w") as z:
			for name, text in {"go.mod": mod, **files}.items():
				z.writestr(f"{module}@{version}/{name}", text)
		base = f"/{module}/@v/"
		self.files.update({base + "list": version.encode() + b"\n", base + version + ".mod": mod, base + version + ".zip": data.getvalue(),
				   base + version + ".info": json.dumps({"Version": version, "Time": "2024-01-01T00:00:00Z"}).encode()})


def wheel(name, files, version="1.0"):
	"""{file name: bytes} of a pure Python wheel."""
	data = io.BytesIO()
	info = f"{name}-{version}.dist-info"
	files = {**files, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
		 f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
	record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
	with zipfile.ZipFile(data, "w") as z:
		for path, text in {**files, f"{info}/RECORD": record}.items():
			z.writestr(path, text)
	return {f"{name}-{version}-py3-none-any.whl": data.getvalue()}


def tar(files, top):
	data = io.BytesIO()
	with tarfile.open(fileobj=data, mode="w:gz") as t:
		for path, text in files.items():
			text = text if isinstance(text, bytes) else text.encode()
			entry = tarfile.TarInfo(f"{top}/{path}")
			entry.size, entry.mode = len(text), 0o644
			t.addfile(entry, io.BytesIO(text))
	return data.getvalue()


# A build backend that comes with its package and needs no other: it runs `probe.py`, and the package holds what that said.
BACKEND = """
import io, json, os, runpy, zipfile

def get_requires_for_build_wheel(config_settings=None):
	return []

def build_wheel(folder, config_settings=None, metadata_directory=None):
	found = runpy.run_path(os.path.join(os.path.dirname(__file__), "probe.py"))["FOUND"]
	name, info = "NAME-1.0-py3-none-any.whl", "NAME-1.0.dist-info"
	files = {"NAME/__init__.py": "FOUND = " + repr(found) + "\\n",
		 info + "/METADATA": "Metadata-Version: 2.1\\nName: NAME\\nVersion: 1.0\\n",
		 info + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"}
	files[info + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, info + "/RECORD"])
	with zipfile.ZipFile(os.path.join(folder, name), "w") as z:
		for path, text in files.items():
			z.writestr(path, text)
	return name
"""


def sdist(name, probe):
	"""{file name: bytes} of a source package that runs this while it is built."""
	files = {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
		 "backend.py": BACKEND.replace("NAME", name), "probe.py": probe,
		 "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"}
	return {f"{name}-1.0.tar.gz": tar(files, f"{name}-1.0")}


def npm_tarball(name, version, files, manifest):
	return tar({"package.json": json.dumps({"name": name, "version": version, **manifest}), **files}, "package")
