# SPDX-License-Identifier: Apache-2.0
"""through.py - one job through what deploy/ describes: its configuration of NATS, with TLS and its users, and its options of front and worker.

Addresses, ports and folders are replaced by those of the test; what each may do, and how everything is called, stays as it is in the files.
"""
import contextlib
import http.client
import json
import os
import re
import select
import socket
import ssl
import subprocess
import time

import references

PATIENCE = 60


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, capture_output=True, check=True)


def certificate(folder, name, alternative):
    """NAME.crt and NAME.key, of the authority in the folder."""
    with open(os.path.join(folder, "ext"), "w", encoding="ascii") as f:
        f.write(f"subjectAltName={alternative}\n")
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", "ext", "-out", f"{name}.crt")


def certificates(folder):
    os.makedirs(folder)
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.crt")
    certificate(folder, "server", "IP:127.0.0.1")
    certificate(folder, "front", "DNS:front.brig")
    certificate(folder, "worker", "DNS:worker.brig")
    certificate(folder, "stranger", "DNS:stranger.brig")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def write_configuration(work, files, port):
    for name, text in files.items():
        text = re.sub(r"/etc/nats/tls/tls\.(crt|key)", rf"{work}/tls/server.\1", text.replace("/etc/nats/tls/ca.crt", f"{work}/tls/ca.crt"))
        text = text.replace("port: 4222", f"listen: 127.0.0.1:{port}").replace("http_port: 8222\n", "").replace("store_dir: /data", f"store_dir: {work}/data")
        with open(os.path.join(work, name), "w", encoding="utf-8") as f:
            f.write(text)


def words_of(things, name, work, port, node):
    """Options of a workload's container, as they are but for places."""
    workload = next(w for w in references.of_kind(things, *references.WORKLOADS) if w["metadata"]["name"] == name)
    args = references.pod_of(workload)["containers"][0]["args"]
    words = args if args[0] == "serve" else ["worker", *args[2:]]
    role = "front" if args[0] == "serve" else "worker"
    replaced = {"--queue": f"nats://127.0.0.1:{port}", "--state": f"{work}/{role}", "--listen": "127.0.0.1:0", "--nodes": f"{work}/nodes", "--node-name": node,
                "--queue-ca": f"{work}/tls/ca.crt", "--queue-cert": f"{work}/tls/{role}.crt", "--queue-key": f"{work}/tls/{role}.key",
                "--tls-cert": f"{work}/tls/server.crt", "--tls-key": f"{work}/tls/server.key"}
    return [f"{word.split('=')[0]}={replaced[word.split('=')[0]]}" if word.split("=")[0] in replaced else word for word in words]


@contextlib.contextmanager
def running(words, work, name):
    """A process that is ended with the block; what it says on standard error is in NAME.log."""
    with open(os.path.join(work, f"{name}.log"), "wb") as log:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env={**os.environ, "POD_NAME": "nats-0", "BRIG_HOST": "none"})
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def first_line(child):
    ready = select.select([child.stdout], [], [], PATIENCE)[0]
    return child.stdout.readline().decode() if ready else ""


def say(work, name):
    with open(os.path.join(work, f"{name}.log"), encoding="utf-8", errors="replace") as f:
        return f"{name}: {f.read()[-300:].strip()}"


def ask(port, work, token):
    context = ssl.create_default_context(cafile=f"{work}/tls/ca.crt")
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=context)
    connection.request("POST", "/v1/executions", json.dumps({"language": "python", "code": "print(6 * 7)"}),
                       {"Content-Type": "application/json", "Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def refused(work, port):
    """A certificate of the same authority with a name that users.conf does not have: NATS lets it do nothing."""
    context = ssl.create_default_context(cafile=f"{work}/tls/ca.crt")
    context.check_hostname = False
    context.load_cert_chain(f"{work}/tls/stranger.crt", f"{work}/tls/stranger.key")
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
        plain.recv(4096)
        with context.wrap_socket(plain) as s:
            s.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
            return b"Authorization" in s.recv(4096)


def listening(port):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def one_job(brig, things, config, work):
    """A list of complaints; empty if a job went through."""
    certificates(f"{work}/tls")
    port = free_port()
    write_configuration(work, config, port)
    with open(f"{work}/nodes", "w", encoding="utf-8") as f:
        for role in ("front", "worker"):
            key = subprocess.run([brig, "worker", "--show-key", "--state", f"{work}/{role}"], capture_output=True, check=True).stdout.decode().strip()
            f.write(f"{role} {role} {key}\n")
    made = subprocess.run([brig, "token", "create", "t", "--state", f"{work}/front"], capture_output=True, check=True)
    token = re.search(r"brig_\w+", made.stdout.decode() + made.stderr.decode()).group(0)
    server = ["nats-server", "-c", f"{work}/nats.conf"]
    with running(server, work, "nats"):
        if not listening(port):
            return [say(work, "nats")]
        with running([brig, *words_of(things, "brig-worker", work, port, "worker")], work, "worker") as worker:
            with running([brig, *words_of(things, "brig-front", work, port, "front")], work, "front") as front:
                ready = first_line(worker), first_line(front)
                if not all(line.startswith("ready") for line in ready):
                    return [f"not ready: {ready}", say(work, "worker"), say(work, "front")]
                status, text = ask(int(ready[1].rsplit(":", 1)[1]), work, token)
                if status != 200 or json.loads(text).get("stdout") != "42\n":
                    return [f"{status}: {text[:300]}", say(work, "worker"), say(work, "front"), say(work, "nats")]
        return [] if refused(work, port) else ["NATS lets somebody in whom users.conf does not name"]
