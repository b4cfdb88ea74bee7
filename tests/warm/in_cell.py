# SPDX-License-Identifier: Apache-2.0
"""Run in a cell by tests/warm/run.py: a supervisor that starts an interpreter which waits, behind the cell's own walls.

Words: the interpreter, the program file, the value of BRIG_WARM or - for none.  `library` and `content` lie in the workspace: in a
cell there is no memfd_create.
"""
import array
import os
import socket
import struct
import sys

MAGIC, WAITING, CLAIM, GO = 0x57414954, 1, 3, 4


def become(sock, interpreter, program, warm):
    env = {**os.environ, "LD_PRELOAD": "/proc/self/fd/4", "BRIG_WAIT": program, **({} if warm == "-" else {"BRIG_WARM": warm})}
    os.dup2(sock.fileno(), 63)
    os.dup2(os.open("library", os.O_RDONLY), 62)
    os.dup2(63, 3)
    os.dup2(62, 4)
    os.closerange(5, 64)
    os.execve(interpreter, [interpreter, program], env)


def main():
    interpreter, program, warm = sys.argv[1:]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    open(program, "w").close()
    child = os.fork()
    if child == 0:
        become(theirs, interpreter, program, warm)
    theirs.close()
    word = ours.recv(100)
    if word != struct.pack("=IIQ", MAGIC, WAITING, 0):
        sys.exit(f"not waiting: {word!r}")
    with open("content", "rb") as content:
        claim = struct.pack("=IIQ", MAGIC, CLAIM, os.fstat(content.fileno()).st_size) + struct.pack("=IIQ", MAGIC, GO, 0)
        ours.sendmsg([claim], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [content.fileno()]))])
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


main()
