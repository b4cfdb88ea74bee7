# SPDX-License-Identifier: Apache-2.0
"""The programs of the warm suite, as data.

programs/LANGUAGE.txt holds one after the other:

    #### NAME: what it shows
    #: args WORD...          words behind the program's name, quoted as in a shell
    #: stdin "text"          its input, as a literal of Python; without it there is none
    #: file PATH "text"      a file in the program's folder
    #: bytes b"..."          the program itself, instead of the lines below
    #: repeat N              the lines below, N times
    #: archive               the lines below are __main__.py of a zip archive, with a module `neighbour` in it
    #: differs               no two runs have the same output
    the program
"""
import ast
import glob
import io
import os
import shlex
import tarfile
import zipfile


class Program:
    def __init__(self, language, name, title):
        self.language, self.name, self.title = language, name, title
        self.args, self.stdin, self.files, self.differs = [], b"", {}, False
        self.content, self.repeat, self.archive = None, 1, False

    @property
    def ident(self):
        return f"{self.language}.{self.name}"

    def set(self, key, value):
        if key == "args":
            self.args = shlex.split(value)
        elif key == "stdin":
            self.stdin = ast.literal_eval(value).encode()
        elif key == "file":
            path, text = value.split(" ", 1)
            self.files[path] = ast.literal_eval(text).encode()
        elif key == "bytes":
            self.content = ast.literal_eval(value)
        elif key == "repeat":
            self.repeat = int(value)
        elif key in ("archive", "differs"):
            setattr(self, key, True)
        else:
            raise ValueError(f"{self.ident}: no directive is called {key}")

    def finish(self, lines):
        text = "".join(lines).rstrip("\n") + "\n"
        if self.content is None:
            self.content = zipped(text) if self.archive else text.encode() * self.repeat


def zipped(text):
    space = io.BytesIO()
    with zipfile.ZipFile(space, "w") as z:
        z.writestr(zipfile.ZipInfo("__main__.py"), text)
        z.writestr(zipfile.ZipInfo("neighbour.py"), "")
    return space.getvalue()


def read(path):
    language = os.path.splitext(os.path.basename(path))[0]
    program, lines = None, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#### "):
                if program:
                    program.finish(lines)
                    yield program
                name, title = line[5:].rstrip("\n").split(": ", 1)
                program, lines = Program(language, name, title), []
            elif line.startswith("#: ") and not lines:
                program.set(*(line[3:].rstrip("\n").split(" ", 1) + [""])[:2])
            else:
                lines.append(line)
    program.finish(lines)
    yield program


def load(folder):
    return [program for path in sorted(glob.glob(os.path.join(folder, "*.txt"))) for program in read(path)]


def write_files(program, folder):
    for path, content in program.files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as f:
            f.write(content)


def archive_of(program, path):
    with tarfile.open(path, "w") as tar:
        for name, content in program.files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path
