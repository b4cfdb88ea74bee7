#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
A TLS server for test_net.c: makes its certificates in the folder of its argument with openssl, prints "port PORT", and
serves until its stdin closes.  /echo hands the connection over: what comes is sent back, and "bye" when the client says
that no more will come.  Anything else is answered with {"ok":true}.  Clients need a certificate.
"""
import os
import socket
import ssl
import subprocess
import sys
import threading


def openssl(*words):
	subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
		       stderr=subprocess.DEVNULL)


def authority(folder):
	os.makedirs(folder)
	openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
		"/CN=test authority", "-keyout", f"{folder}/ca-key.pem", "-out", f"{folder}/ca.pem")


def certificate(folder, name, extra):
	with open(f"{folder}/{name}.ext", "w", encoding="ascii") as f:
		f.write(extra + "\n")
	openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout",
		f"{folder}/{name}-key.pem", "-out", f"{folder}/{name}.csr")
	openssl("x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca-key.pem",
		"-CAcreateserial", "-days", "2", "-extfile", f"{folder}/{name}.ext", "-out", f"{folder}/{name}.pem")


def client_folder(folder):
	"""Named as engines' clients expect them."""
	authority_and_client = [("client.pem", "cert.pem"), ("client-key.pem", "key.pem")]
	for old, new in authority_and_client:
		os.rename(f"{folder}/{old}", f"{folder}/{new}")


def serve(tls):
	try:
		data = b""
		while b"\r\n\r\n" not in data:
			piece = tls.recv(65536)
			if not piece:
				return
			data += piece
		if b" /echo " in data:
			tls.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nready")
			while piece := tls.recv(65536):
				tls.sendall(piece)
			tls.sendall(b"bye")
			tls.unwrap()
		else:
			body = b'{"ok":true}'
			tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
	except OSError:
		pass
	finally:
		tls.close()


def accept(listening, context):
	while True:
		connection, _ = listening.accept()
		try:
			tls = context.wrap_socket(connection, server_side=True)
		except OSError:
			connection.close()
			continue
		threading.Thread(target=serve, args=(tls,), daemon=True).start()


def main():
	folder = sys.argv[1]
	good, other = f"{folder}/good", f"{folder}/other"
	for each in (good, other):
		authority(each)
		certificate(each, "client", "extendedKeyUsage=clientAuth")
	certificate(good, "server", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth")
	for each in (good, other):
		client_folder(each)
	context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
	context.load_cert_chain(f"{good}/server.pem", f"{good}/server-key.pem")
	context.load_verify_locations(f"{good}/ca.pem")
	context.verify_mode = ssl.CERT_REQUIRED
	listening = socket.create_server(("127.0.0.1", 0))
	threading.Thread(target=accept, args=(listening, context), daemon=True).start()
	print("port", listening.getsockname()[1], flush=True)
	sys.stdin.buffer.read()
	os._exit(0)


main()
