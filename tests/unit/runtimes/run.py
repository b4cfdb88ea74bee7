# SPDX-License-Identifier: Apache-2.0
"""What ordinary Python programs do, for test_seccomp_runtimes: prints "ok" at the end."""
import asyncio
import concurrent.futures
import ctypes
import hashlib
import http.server
import multiprocessing
import multiprocessing.shared_memory
import os
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request


def square(x):
    return x * x


def threads():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(square, range(100))) == 328350
    event = threading.Event()
    threading.Timer(0.01, event.set).start()
    event.wait()


def processes():
    assert subprocess.run(["echo", "hi"], capture_output=True, check=True).stdout == b"hi\n"
    assert subprocess.run("cat | wc -c", shell=True, input=b"12345", capture_output=True).stdout.strip() == b"5"
    for method in "fork", "spawn", "forkserver":
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, [1, 2, 3]) == [1, 4, 9]
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=queue.put, args=("from child",))
    child.start()
    assert queue.get() == "from child"
    child.join()
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
    block.buf[:2] = b"ab"
    block.close()
    block.unlink()


def database(folder):
    db = sqlite3.connect(os.path.join(folder, "a.db"))
    db.execute("pragma journal_mode=wal")
    db.execute("create table t (x)")
    db.executemany("insert into t values (?)", [(i,) for i in range(1000)])
    db.commit()
    assert db.execute("select sum(x) from t").fetchone() == (499500,)
    db.close()


async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def loop():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"line\n")
    assert await reader.readline() == b"line\n"
    writer.close()
    server.close()
    child = await asyncio.create_subprocess_exec("echo", "async", stdout=asyncio.subprocess.PIPE)
    assert (await child.communicate())[0] == b"async\n"
    await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(50)))
    assert await asyncio.to_thread(square, 4) == 16


def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *args: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    assert opener.open("http://127.0.0.1:%d/" % server.server_port).status == 200
    server.shutdown()
    server.server_close()


def files(folder):
    source = os.path.join(folder, "source")
    with open(source, "wb") as f:
        f.write(os.urandom(100000))
        os.fsync(f.fileno())
    shutil.copy2(source, source + "2")
    shutil.copytree(folder, folder + ".tree")
    shutil.make_archive(folder + ".tar", "gztar", folder)
    assert os.path.getsize(source + "2") == 100000
    os.mkfifo(os.path.join(folder, "fifo"))
    shutil.rmtree(folder + ".tree")
    os.unlink(folder + ".tar.tar.gz")
    os.sync()


def sockets():
    a, b = socket.socketpair()
    socket.send_fds(a, [b"x"], [0])
    _, fds, _, _ = socket.recv_fds(b, 10, 1)
    os.close(fds[0])
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    udp.bind(("127.0.0.1", 0))
    udp.sendto(b"u", udp.getsockname())
    assert udp.recv(1) == b"u"
    assert socket.if_nameindex()
    for bad in (38, 5, 0), (40, 1, 0), (17, 3, 0), (2, 3, 1):
        try:
            socket.socket(*bad)
        except PermissionError:
            continue
        raise AssertionError(f"socket{bad} was made")


def odds(folder):
    compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * 3)(3, 1, 2)
    ctypes.CDLL(None).qsort(numbers, 3, 4, compare(lambda a, b: a[0] - b[0]))
    assert list(numbers) == [1, 2, 3]
    assert hashlib.sha256(b"").hexdigest().startswith("e3b0")
    resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        raise AssertionError("RLIMIT_CORE was set")
    except (PermissionError, ValueError):
        pass
    signal.signal(signal.SIGALRM, lambda *args: None)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    signal.pause()
    os.nice(1)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    time.sleep(0.001)


def main():
    with tempfile.TemporaryDirectory(dir=".") as folder:
        threads()
        processes()
        database(folder)
        asyncio.run(loop())
        web()
        files(folder)
        sockets()
        odds(folder)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
