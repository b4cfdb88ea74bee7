# SPDX-License-Identifier: Apache-2.0
"""What brig is compared with, and how each is told to run the same program.

A rival gives an argv for a workload and says in one line what it does and does not do.  All of them show the
program the host's /usr read-only, an own /proc, /dev and /tmp, and no network; what they lack next to brig is in
`note` and is not held against brig's time: it does more and has to be fast all the same.
"""

import json
import os
import shutil
import subprocess

import measure

PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
LINKS = {"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin"}


class Workload:
    """One program.  `argv` runs it inside FOLDER; `brig` is what `brig run` is told."""

    def __init__(self, name, argv, brig, needs, files=None):
        self.name, self.argv, self.brig, self.needs, self.files = name, argv, brig, needs, files or {}

    def prepare(self, folder):
        for name, text in self.files.items():
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)

    def missing(self):
        return None if os.path.exists(self.needs) else f"{self.needs} is not installed"

    @staticmethod
    def fill(argv, folder):
        return [word.replace("FOLDER", folder) for word in argv]


# The compiler's arguments are those of brig's row for C.
COMPILED = f"/tmp/brig-bench-{os.getpid()}"
COMPILE_AND_RUN = f"/usr/bin/gcc -O1 -g0 -Wall -pipe -o {COMPILED} FOLDER/hello.c -lm -lpthread && {COMPILED}"

WORKLOADS = [
    Workload("python: pass", ["/usr/bin/python3", "FOLDER/pass.py"], ["FOLDER/pass.py"], "/usr/bin/python3",
             {"pass.py": "pass\n"}),
    Workload("node: empty file", ["/usr/bin/node", "FOLDER/pass.js"], ["FOLDER/pass.js"], "/usr/bin/node",
             {"pass.js": ";\n"}),
    Workload("sh: true", ["/bin/sh", "FOLDER/true.sh"], ["FOLDER/true.sh"], "/bin/sh", {"true.sh": "true\n"}),
    Workload("c: compile, hello", ["/bin/sh", "-c", COMPILE_AND_RUN], ["FOLDER/hello.c"], "/usr/bin/gcc",
             {"hello.c": '#include <stdio.h>\nint main(void)\n{\n\tputs("hello");\n\treturn 0;\n}\n'}),
]


class Rival:
    name = note = ""

    def __init__(self, folder):
        self.folder = folder

    def argv(self, workload):
        raise NotImplementedError

    def version(self):
        return ""

    def missing(self):
        """Why it cannot be measured here, or None."""
        return None


class Bare(Rival):
    name, note = "bare", "no isolation at all"

    def argv(self, workload):
        return workload.fill(workload.argv, self.folder)


class Brig(Rival):
    name, note = "brig", "all layers on: namespaces, cgroup limits, seccomp, Landlock, rlimits, evidence read back"

    def argv(self, workload):
        return [measure.find_brig(), "run", *workload.fill(workload.brig, self.folder)]

    def version(self):
        return first_line([measure.find_brig(), "--version"])


class Bubblewrap(Rival):
    name, note = "bubblewrap", "namespaces and mounts; no cgroup, no seccomp filter, no limits"

    def argv(self, workload):
        words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"]
        for link, target in LINKS.items():
            words += ["--symlink", target, "/" + link]
        words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", self.folder, "/bench", "--clearenv",
                  "--setenv", *PATH.split("="), "--chdir", "/tmp", "--"]
        return words + workload.fill(workload.argv, "/bench")

    def version(self):
        return first_line(["bwrap", "--version"])

    def missing(self):
        return None if shutil.which("bwrap") else "bwrap is not installed (package bubblewrap)"


class OciRuntime(Rival):
    """runc or crun on a bundle of its own per workload; --root keeps the state out of the system's."""

    note = "namespaces, mounts, cgroup limits, no capabilities; no seccomp filter in this bundle"

    def argv(self, workload):
        bundle = os.path.join(self.folder, f"{self.name}-{WORKLOADS.index(workload)}")
        if not os.path.isdir(bundle):
            self.make_bundle(bundle, workload)
        return [self.name, "--root", os.path.join(self.folder, self.name + "-state"), "run", "--bundle", bundle,
                f"brig-bench-{os.getpid()}"]

    def make_bundle(self, bundle, workload):
        root = os.path.join(bundle, "rootfs")
        for folder in ("usr", "proc", "dev", "tmp", "bench", "sys"):
            os.makedirs(os.path.join(root, folder))
        os.chmod(os.path.join(root, "tmp"), 0o1777)  # runc keeps the mode of the mount point
        for link, target in LINKS.items():
            os.symlink(target, os.path.join(root, link))
        with open(os.path.join(bundle, "config.json"), "w") as f:
            json.dump(oci_config(workload.fill(workload.argv, "/bench"), self.folder), f)

    def version(self):
        return first_line([self.name, "--version"])

    def missing(self):
        return None if shutil.which(self.name) else f"{self.name} is not installed"


class Crun(OciRuntime):
    """Refuses hybrid hosts, so there it is started where the v2 hierarchy is out of sight (some 2 ms more)."""

    name = "crun"

    def argv(self, workload):
        argv = super().argv(workload)
        with open("/proc/mounts") as f:
            mounts = [line.split() for line in f]
        v2 = [m[1] for m in mounts if m[2] == "cgroup2"]
        if v2 and any(m[2] == "cgroup" for m in mounts):
            hide = f"umount {v2[0]} && exec \"$@\""
            argv = ["unshare", "-m", "--propagation", "private", "/bin/sh", "-c", hide, "sh", *argv]
        return argv


class Runc(OciRuntime):
    name = "runc"


def oci_config(args, folder):
    def mount(where, kind, options=(), source=None):
        return {"destination": where, "type": kind, "source": source or kind, "options": list(options)}

    return {
        "ociVersion": "1.0.2",
        "hostname": "bench",
        "root": {"path": "rootfs", "readonly": True},
        "process": {"terminal": False, "user": {"uid": 1000, "gid": 1000}, "args": args, "env": [PATH], "cwd": "/tmp",
                    "noNewPrivileges": True,
                    "capabilities": {k: [] for k in ("bounding", "effective", "permitted")}},
        "mounts": [mount("/proc", "proc"),
                   mount("/dev", "tmpfs", ["nosuid", "strictatime", "mode=755", "size=65536k"]),
                   mount("/tmp", "tmpfs", ["nosuid", "nodev", "mode=1777", "size=100m"]),
                   mount("/usr", "bind", ["rbind", "ro", "nosuid", "nodev"], "/usr"),
                   mount("/bench", "bind", ["rbind", "ro", "nosuid", "nodev"], folder)],
        "linux": {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")],
                  "resources": {"memory": {"limit": 512 << 20}, "pids": {"limit": 64},
                                "cpu": {"quota": 50000, "period": 100000}}},
    }


class Docker(Rival):
    """Only where an engine answers; an image is made from the host's files once and removed at the end."""

    name, note = "docker", "CLI and engine: namespaces, cgroup limits, default seccomp filter"

    def argv(self, workload):
        return ["docker", "run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp:exec", "--cap-drop", "ALL",
                "--security-opt", "no-new-privileges", "-u", "1000:1000", "-m", "512m", "--pids-limit", "64",
                "--cpus", "0.5", "-v", "/usr:/usr:ro", "-v", f"{self.folder}:/bench:ro", "-w", "/tmp",
                self.image(), *workload.fill(workload.argv, "/bench")]

    def image(self):
        return f"brig-bench:{os.getpid()}"

    def version(self):
        return first_line(["docker", "--version"])

    def missing(self):
        if not shutil.which("docker"):
            return "docker is not installed"
        if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode != 0:
            return "no docker engine answers"
        return self.make_image()

    def make_image(self):
        root = os.path.join(self.folder, "docker-root")
        os.makedirs(os.path.join(root, "usr"))
        for link, target in LINKS.items():
            os.symlink(target, os.path.join(root, link))
        tar = subprocess.run(["tar", "-c", "-C", root, "."], capture_output=True, check=True).stdout
        made = subprocess.run(["docker", "import", "-", self.image()], input=tar, capture_output=True, check=False)
        return None if made.returncode == 0 else "docker import failed: " + made.stderr.decode("utf-8", "replace").strip()

    def close(self):
        subprocess.run(["docker", "rmi", "-f", self.image()], capture_output=True, check=False)


RIVALS = [Bare, Brig, Bubblewrap, Crun, Runc, Docker]


def first_line(argv):
    try:
        out = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=10).stdout
    except OSError:
        return ""
    return out.splitlines()[0].strip() if out else ""
