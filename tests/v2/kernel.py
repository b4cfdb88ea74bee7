# SPDX-License-Identifier: Apache-2.0
"""A Debian kernel for the test VM: the package, an uncompressed vmlinux and the few modules it needs.

Whatever apt is configured with provides the package; nothing is installed and nothing outside the cache folder is
written.  Uncompressed because qemu without KVM needs several seconds to run a bzImage's own decompressor.
"""

import glob
import lzma
import os
import re
import shutil
import struct
import subprocess

META_PACKAGE = "linux-image-amd64"

# Their dependencies are found in the modules themselves.
WANTED_MODULES = ["virtio_pci", "9p", "9pnet_virtio", "overlay"]


class Unavailable(Exception):
    """What is missing on this machine, as a sentence: the reason of a skip."""


def quiet(argv, **kwargs):
    return subprocess.run(argv, capture_output=True, text=True, check=False, **kwargs)


def kernel_package():
    """The newest kernel package, or None if apt does not know one."""
    if not shutil.which("apt-cache"):
        return None
    found = re.search(r"^\s*Depends: (linux-image-\S+)", quiet(["apt-cache", "depends", META_PACKAGE]).stdout, re.M)
    return found.group(1) if found else None


def download(package, folder):
    result = quiet(["apt-get", "download", package], cwd=folder, timeout=300)
    debs = glob.glob(os.path.join(folder, package + "_*.deb"))
    if result.returncode != 0 or not debs:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unavailable(f"apt-get download {package} failed ({last}); run apt-get update, or check the network")
    return debs[0]


def unpack(deb, folder):
    reader = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
    tar = subprocess.run(["tar", "-x", "-C", folder, "--wildcards", "./boot/vmlinuz-*", "*/modules/*.ko*"],
                         stdin=reader.stdout, check=False, stderr=subprocess.DEVNULL)
    reader.stdout.close()
    if reader.wait() != 0 or tar.returncode != 0:
        raise Unavailable(f"{os.path.basename(deb)} cannot be unpacked with dpkg-deb and tar")


def decompress(data):
    """The payload of a bzImage, by its magic number; xz and gzip need no tool."""
    if data[:6] == b"\xfd7zXZ\0":
        return lzma.LZMADecompressor().decompress(data)
    for magic, tool in ((b"\x02\x21\x4c\x18", "lz4"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b", "gzip")):
        if data.startswith(magic):
            if not shutil.which(tool):
                raise Unavailable(f"the kernel is compressed with {tool}, which is not installed")
            # Trailing bytes (the size field) make the tools complain after they wrote everything.
            return subprocess.run([tool, "-dc"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  check=False).stdout
    raise Unavailable("the kernel's compression is unknown")


def extract_vmlinux(bzimage):
    """The boot protocol's header names the place of the compressed kernel inside a bzImage."""
    setup_sectors = bzimage[0x1f1] or 4
    offset, length = struct.unpack_from("<II", bzimage, 0x248)
    begin = (setup_sectors + 1) * 512 + offset
    vmlinux = decompress(bzimage[begin:begin + length])
    if not vmlinux.startswith(b"\x7fELF"):
        raise Unavailable("the kernel's payload is not an ELF file")
    return vmlinux


def module_bytes(path):
    with open(path, "rb") as f:
        data = f.read()
    return data if path.endswith(".ko") else lzma.decompress(data) if path.endswith(".xz") else decompress(data)


def modules_in_order(paths):
    """Bytes of the wanted modules and what they depend on, each after its dependencies."""
    by_name = {re.sub(r"\.ko.*", "", os.path.basename(p)).replace("-", "_"): p for p in paths}
    loaded = {}

    def load(name):
        if name in loaded or name not in by_name:  # not there: built in
            return
        data = module_bytes(by_name[name])
        depends = re.search(rb"\0depends=([^\0]*)\0", data)
        for other in (depends.group(1).decode().split(",") if depends else []):
            load(other.replace("-", "_"))
        loaded[name] = data

    for name in WANTED_MODULES:
        load(name)
    return loaded


def build_entry(package, cache):
    """Fills cache/PACKAGE; a half-filled folder never gets the final name."""
    work = os.path.join(cache, f".{package}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    try:
        tree = os.path.join(work, "tree")
        os.makedirs(tree)
        deb = download(package, work)
        unpack(deb, tree)
        with open(glob.glob(os.path.join(tree, "boot", "vmlinuz-*"))[0], "rb") as f:
            vmlinux = extract_vmlinux(f.read())
        with open(os.path.join(work, "vmlinux"), "wb") as f:
            f.write(vmlinux)
        modules = modules_in_order(glob.glob(os.path.join(tree, "**", "*.ko*"), recursive=True))
        for number, (name, data) in enumerate(modules.items()):
            with open(os.path.join(work, f"{number:02}-{name}.ko"), "wb") as f:
                f.write(data)
        shutil.rmtree(tree)
        os.unlink(deb)
        os.rename(work, os.path.join(cache, package))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def get(cache):
    """(package name, vmlinux path, module paths in load order); downloads what the cache has not."""
    os.makedirs(cache, exist_ok=True)
    package = kernel_package()
    cached = sorted(os.path.basename(p) for p in glob.glob(os.path.join(cache, "linux-image-*")))
    if not package and not cached:
        raise Unavailable(f"apt knows no package {META_PACKAGE} (only Debian is supported), and no kernel is cached")
    if package and package not in cached:
        try:
            build_entry(package, cache)
        except (Unavailable, subprocess.TimeoutExpired):
            if not cached:
                raise
            package = cached[-1]
    package = package or cached[-1]
    folder = os.path.join(cache, package)
    return package, os.path.join(folder, "vmlinux"), sorted(glob.glob(os.path.join(folder, "*.ko")))
