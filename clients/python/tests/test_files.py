# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox without a workspace: in memory, in and out of cells."""

import os

import pytest

import brig
from brig._archive import Entry, clean_path, pack, unpack
from brig._files import MemoryFiles


@pytest.mark.backends
def test_files_go_in_and_come_back(box):
    box.files.write("in.txt", "hello")
    result = box.run("open('out.txt', 'w').write(open('in.txt').read().upper())")
    assert [a.path for a in result.artifacts] == ["out.txt"]
    assert (
        result.artifact("out.txt").data == b"HELLO" and result.artifact("out.txt").text == "HELLO"
    )
    assert box.files.read("out.txt") == b"HELLO" and box.files.read_text("in.txt") == "hello"


@pytest.mark.backends
def test_files_persist_between_runs(box):
    box.run("import os; os.makedirs('a/b'); open('a/b/c', 'w').write('1')")
    box.run("open('a/b/c', 'a').write('2')")
    assert box.run("print(open('a/b/c').read())").stdout == "12\n"


def test_changes_of_a_run(box):
    box.files.write("stay", "1")
    box.files.write("change", "1")
    box.files.write("go", "1")
    box.run(
        "import os; os.remove('go'); open('change', 'w').write('2'); open('new', 'w').write('3')"
    )
    assert {(c.path, c.change) for c in box.changes()} == {
        ("go", "deleted"),
        ("change", "modified"),
        ("new", "added"),
    }
    assert box.files.list() == ["change", "new", "stay"]


def test_folder_that_is_deleted(box):
    box.files.write("d/one", "1")
    box.files.write("d/e/two", "2")
    box.run("import shutil; shutil.rmtree('d')")
    assert box.files.list() == []
    assert box.run("import os; print(os.path.exists('d'))").stdout == "False\n"


def test_empty_folders_persist(box):
    box.run("import os; os.makedirs('out/deep')")
    assert box.run("import os; print(os.path.isdir('out/deep'))").stdout == "True\n"


def test_file_that_becomes_a_folder(box):
    box.files.write("x", "1")
    box.run("import os; os.remove('x'); os.mkdir('x'); open('x/y', 'w').write('2')")
    assert box.files.list() == ["x/y"]
    box.run("import shutil; shutil.rmtree('x'); open('x', 'w').write('3')")
    assert box.files.list() == ["x"]
    box.run("import os; os.remove('x'); os.symlink('y', 'x')")
    assert box.files.list() == []


def test_folder_with_another_mode_keeps_its_files(box):
    box.files.write("d/f", "1")
    box.run("import os; os.chmod('d', 0o700)")
    assert box.files.list() == ["d/f"]


def test_executable_files_stay_executable(box):
    box.files.write("tool", "#!/bin/sh\necho ran\n", executable=True)
    assert box.exec("./tool").stdout == "ran\n"
    box.run(
        "import os; open('made', 'w').write('#!/bin/sh\\necho made\\n'); os.chmod('made', 0o755)"
    )
    assert box.exec(["./made"]).stdout == "made\n"


def test_links_do_not_come_back(box):
    box.run("import os; os.symlink('/usr', 'link'); open('real', 'w').write('1')")
    assert box.files.list() == ["real"]


def test_names_that_are_not_utf8(box):
    result = box.run("open(b'\\xff\\xfe', 'w').write('odd')")
    name = os.fsdecode(b"\xff\xfe")
    assert [a.path for a in result.artifacts] == [name] and box.files.read(name) == b"odd"
    assert box.run("import os; print(b'\\xff\\xfe' in os.listdir(b'.'))").stdout == "True\n"


def test_binary_and_large_files(box):
    data = os.urandom(3 << 20)
    box.files.write("data.bin", data)
    result = box.run("d = open('data.bin', 'rb').read(); open('copy.bin', 'wb').write(d[::-1])")
    assert result.artifact("copy.bin").data == data[::-1]


def test_the_code_itself_is_no_file(box):
    box.run("pass")
    assert box.files.list() == []


def test_a_file_with_the_name_of_the_code(box):
    box.files.write("main.py", "print('mine')")
    assert box.run("print(open('main.py').read())").stdout == "print('mine')\n"
    assert box.files.list() == ["main.py"]


def test_imports_of_files(box):
    box.files.write("pkg/__init__.py", "")
    box.files.write("pkg/mod.py", "VALUE = 7")
    assert box.run("from pkg.mod import VALUE; print(VALUE)").stdout == "7\n"


def test_artifact_patterns(box):
    result = box.run(
        "open('a.csv', 'w').write('1'); open('b.txt', 'w').write('2')", artifacts=["*.csv"]
    )
    assert [a.path for a in result.artifacts] == ["a.csv"]
    assert box.files.list() == ["a.csv"]


def test_no_artifacts(box):
    result = box.run("open('a', 'w').write('1')", artifacts=[])
    assert result.artifacts == [] and box.files.list() == []


def test_artifact_of_no_such_name(box):
    with pytest.raises(KeyError, match="there are: a"):
        box.run("open('a', 'w').write('1')").artifact("b")


def test_artifact_by_its_last_name(box):
    result = box.run("import os; os.mkdir('d'); open('d/plot.png', 'w').write('1')")
    assert result.artifact("plot.png").path == "d/plot.png"


def test_save_an_artifact(box, tmp_path):
    result = box.run("open('a', 'w').write('1')")
    assert result.artifacts[0].save(tmp_path / "saved") == str(tmp_path / "saved")
    assert (tmp_path / "saved").read_text() == "1"


def test_files_of_the_constructor():
    with brig.Sandbox(files={"a.txt": "1", "b.bin": b"\x00"}) as box:
        assert box.files.list() == ["a.txt", "b.bin"]


def test_files_of_the_function():
    result = brig.run("print(open('data/x').read())", files={"data/x": "there"}, timeout=60)
    assert result.stdout == "there\n"


def test_membership_and_iteration(box):
    box.files.write("a/b", "1")
    assert "a/b" in box.files and "/workspace/a/b" in box.files and "a" not in box.files
    assert list(box.files) == ["a/b"]


def test_list_of_a_folder(box):
    for path in ("a/1", "a/2", "ab/3", "b"):
        box.files.write(path, "")
    assert box.files.list("a") == ["a/1", "a/2"] and box.files.list("/workspace/ab/") == ["ab/3"]


def test_remove(box):
    box.files.write("a/1", "")
    box.files.write("a/2", "")
    box.files.remove("a/1")
    assert box.files.list() == ["a/2"]
    box.files.remove("a")
    assert box.files.list() == []
    with pytest.raises(brig.FileMissing):
        box.files.remove("a")


def test_missing_file(box):
    with pytest.raises(FileNotFoundError):
        box.files.read("no")
    with pytest.raises(brig.BrigError):
        box.files.read("no")


BAD_PATHS = [
    "",
    "/",
    ".",
    "..",
    "a/../b",
    "/etc/passwd",
    "../x",
    "a\0b",
    "/workspace",
    "/workspace/../x",
]


@pytest.mark.parametrize("path", BAD_PATHS, ids=range(len(BAD_PATHS)))
def test_paths_that_lead_elsewhere(box, path):
    with pytest.raises(brig.UsageError):
        box.files.write(path, "x")


GOOD_PATHS = [
    ("a", "a"),
    ("./a//b/", "a/b"),
    ("/workspace/a", "a"),
    ("a/./b", "a/b"),
    ("..a/b..", "..a/b.."),
]


@pytest.mark.parametrize("path, clean", GOOD_PATHS)
def test_paths_in_their_one_form(path, clean):
    assert clean_path(path) == clean


def test_a_file_is_no_folder():
    files = MemoryFiles()
    files.write("a", "1")
    with pytest.raises(brig.UsageError, match="is a file"):
        files.write("a/b", "2")
    files.write("d/e", "1")
    with pytest.raises(brig.UsageError, match="is a folder"):
        files.write("d", "2")


def test_bytes_are_bounded():
    files = MemoryFiles(max_bytes=10)
    files.write("a", "12345")
    files.write("a", "1234567890")
    with pytest.raises(brig.UsageError, match="at most 10 bytes"):
        files.write("b", "1")
    assert files.size == 10


def test_their_number_is_bounded():
    files = MemoryFiles(max_files=2)
    files.write("a", "")
    files.write("b", "")
    files.write("b", "again")
    with pytest.raises(brig.UsageError, match="at most 2 files"):
        files.write("c", "")


def test_what_does_not_fit_is_told(box):
    box._memory.max_bytes = 100
    result = box.run("open('big', 'w').write('x' * 1000); open('small', 'w').write('x')")
    assert box.files.list() == ["small"]
    assert any("big" in warning for warning in result.warnings)
    assert len(result.artifact("big").data) == 1000


def test_upload_a_file(box, tmp_path):
    (tmp_path / "f.txt").write_text("up")
    assert box.files.upload(tmp_path / "f.txt") == ["f.txt"]
    assert box.files.upload(tmp_path / "f.txt", "in/g.txt") == ["in/g.txt"]
    assert box.run("print(open('in/g.txt').read())").stdout == "up\n"


def test_upload_a_folder_without_its_links(box, tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_text("1")
    (tmp_path / "d" / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "d" / "tool").chmod(0o755)
    (tmp_path / "d" / "link").symlink_to("/etc/passwd")
    (tmp_path / "d" / "up").symlink_to("..")
    assert box.files.upload(tmp_path / "d", "x") == ["x/e/f", "x/tool"]
    assert box.files._entry("x/tool").executable


def test_download_a_file(box, tmp_path):
    box.run("open('r.txt', 'w').write('down')")
    assert box.files.download("r.txt", tmp_path / "here.txt") == [str(tmp_path / "here.txt")]
    assert (tmp_path / "here.txt").read_text() == "down"
    assert box.files.download("r.txt", tmp_path) == [str(tmp_path / "r.txt")]


def test_download_does_not_overwrite_unasked(box, tmp_path):
    box.files.write("a", "new")
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError):
        box.files.download("a", tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    box.files.download("a", tmp_path / "a", overwrite=True)
    assert (tmp_path / "a").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["a"]


def test_download_everything_but_dot_files(box, tmp_path):
    for path in ("a", "d/b", ".git/config", "d/.env"):
        box.files.write(path, path)
    made = box.files.download(".", tmp_path / "out")
    assert [os.path.relpath(p, tmp_path / "out") for p in made] == ["a", "d/b"]
    assert box.files.download("d", tmp_path / "d") == [str(tmp_path / "d" / "b")]


def test_download_follows_no_link(box, tmp_path):
    """A link in the target, of another program's making, leads nobody out of it."""
    box.files.write("d/b", "mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "d").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        box.files.download(".", tmp_path / "out", overwrite=True)
    assert os.listdir(tmp_path / "elsewhere") == []


def test_download_of_nothing(box, tmp_path):
    with pytest.raises(brig.FileMissing):
        box.files.download("no", tmp_path / "no")


def test_archives_are_reproducible():
    files = {"b": Entry(b"2", True), "a/é": Entry(b"1")}
    assert pack(files) == pack(dict(reversed(list(files.items()))))
    assert unpack(pack(files)) == files
    assert unpack(pack({})) == {} and unpack(b"") == {}


def test_archives_with_long_and_odd_names():
    files = {
        "d" * 90 + "/" + "f" * 200: Entry(b"x"),
        os.fsdecode(b"\xff"): Entry(b"y"),
        "a\nb": Entry(b"z"),
    }
    assert unpack(pack(files)) == files


def test_archives_of_others_give_only_plain_files():
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind in (
            ("/abs", b"0"),
            ("../up", b"0"),
            ("link", b"2"),
            ("dev", b"3"),
            ("ok", b"0"),
        ):
            info = tarfile.TarInfo(name)
            info.type = kind
            tar.addfile(info)
    assert list(unpack(out.getvalue())) == ["ok"]


@pytest.mark.backends
def test_tests_in_memory(box):
    box.files.write("calc.py", "def add(a, b): return a - b\n")
    box.files.write("test_calc.py", TESTS)
    result = box.test(framework="unittest")
    assert (result.verdict, result.tests.passed, result.tests.failed) == ("error", 1, 1)
    assert result.tests.failures[0].name.endswith("test_add")


TESTS = """
import unittest
from calc import add

class T(unittest.TestCase):
    def test_add(self): self.assertEqual(add(2, 2), 4)
    def test_zero(self): self.assertEqual(add(0, 0), 0)
"""


def test_nothing_to_apply_in_memory(box):
    box.run("pass")
    for call in (box.apply, box.discard, box.diff):
        with pytest.raises(brig.UsageError, match="stay in it by themselves"):
            call()
