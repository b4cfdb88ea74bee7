# SPDX-License-Identifier: Apache-2.0
"""The test VM: qemu without KVM, the host's root shared read-only, a job inside, its output on a serial line.

The guest sees the host's files through 9p beneath a scratch overlay (see `init`), so the VM has every runtime the
host has and nothing it does can reach the host.  Two serial lines: the console, kept for failures, and the job's
output, which ends with a line `@@exit CODE`.
"""

import gzip
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
import time

import kernel

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
QEMU = "qemu-system-x86_64"
EXIT_MARK = "@@exit "


def cpio_entry(name, mode, data=b""):
    """One file of an initramfs in the kernel's `newc` form."""
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


APPLETS = ["sh", "insmod", "mkdir", "mount", "umount", "ln", "cp", "ip", "switch_root"]


def busybox():
    """A static busybox: the only program in the initramfs."""
    path = shutil.which("busybox")
    if not path:
        raise kernel.Unavailable("busybox is not installed (package busybox-static)")
    with open(path, "rb") as f:
        data = f.read()
    if b"/lib64/ld-linux" in data[:4096]:
        raise kernel.Unavailable("busybox is not static (install package busybox-static)")
    return data


def initramfs(modules, job, env):
    def read(path):
        with open(path, "rb") as f:
            return f.read()

    lines = "".join(f"{key}={shlex.quote(str(value))}\n" for key, value in env.items())
    parts = [cpio_entry(folder, 0o040755) for folder in ("bin", "modules")]
    parts.append(cpio_entry("bin/busybox", 0o100755, busybox()))
    parts += [cpio_entry(f"bin/{name}", 0o120777, b"busybox") for name in APPLETS]
    parts += [cpio_entry(f"modules/{os.path.basename(m)}", 0o100644, read(m)) for m in modules]
    parts.append(cpio_entry("init", 0o100755, read(os.path.join(HERE, "init"))))
    parts.append(cpio_entry("job", 0o100644, job.encode()))
    parts.append(cpio_entry("job.env", 0o100644, lines.encode()))
    parts.append(cpio_entry("TRAILER!!!", 0))
    return gzip.compress(b"".join(parts), 1)


def check_host():
    """Raises Unavailable with the reason if this machine cannot run the VM; returns the kernel otherwise."""
    if os.uname().machine != "x86_64":
        raise kernel.Unavailable(f"the VM is made for x86_64, this is {os.uname().machine}")
    if not shutil.which(QEMU):
        raise kernel.Unavailable(f"{QEMU} is not installed (package qemu-system-x86)")
    busybox()
    return kernel.get(os.environ.get("V2_CACHE") or os.path.join(REPO, "build", "v2-cache"))


class Outcome:
    def __init__(self):
        self.exit_code = None  # None: the job did not end (see why)
        self.why = ""
        self.lines = []
        self.console = ""
        self.seconds = 0.0


def qemu_argv(vmlinux, initrd, console, memory_mb):
    return [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-M", "q35", "-smp", "2", "-m", str(memory_mb),
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-serial", f"file:{console}", "-serial", "stdio",
            "-kernel", vmlinux, "-initrd", initrd,
            "-append", "console=ttyS0 quiet reboot=t panic=-1 systemd.unified_cgroup_hierarchy=1",
            "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device", "virtio-9p-pci,fsdev=root,mount_tag=hostroot"]


def run(found_kernel, job, brig, on_line=lambda line: None, timeout=300, memory_mb=2048, **env):
    """Boots, runs `job` (shell text) and returns its Outcome; on_line gets each line of output as it arrives."""
    _, vmlinux, modules = found_kernel
    env = {"REPO": REPO, "BRIG_FOLDER": os.path.dirname(brig), "BRIG_NAME": os.path.basename(brig), **env}
    outcome = Outcome()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="v2-") as folder:
        initrd, console = os.path.join(folder, "initrd"), os.path.join(folder, "console")
        with open(initrd, "wb") as f:
            f.write(initramfs(modules, job, env))
        qemu = subprocess.Popen(qemu_argv(vmlinux, initrd, console, memory_mb), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        alarm = threading.Timer(timeout, qemu.kill)
        alarm.start()
        try:
            for raw in qemu.stdout:
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if line.startswith(EXIT_MARK):
                    outcome.exit_code = int(line[len(EXIT_MARK):])
                else:
                    outcome.lines.append(line)
                    on_line(line)
        finally:
            alarm.cancel()
            qemu.kill()
            qemu.wait()
        outcome.seconds = time.monotonic() - begin
        if os.path.exists(console):
            with open(console, "rb") as f:
                outcome.console = f.read().decode("utf-8", "replace")
    if outcome.exit_code is None:
        late = outcome.seconds >= timeout
        outcome.why = f"not finished within {timeout} s" if late else "the VM ended without an exit code"
    return outcome
