# SPDX-License-Identifier: Apache-2.0
"""Sandboxes on a folder of the host: copies, changes, apply."""

import os

import pytest

import brig
from conftest import PATIENCE


@pytest.fixture
def desk(project):
    with brig.Sandbox(workspace=project, timeout=PATIENCE) as box:
        yield box


@pytest.mark.backends
def test_project_stays_until_applied(desk, project):
    result = desk.run("open('note.txt', 'a').write('done\\n'); open('new.txt', 'w').write('n')")
    assert {(c.path, c.change) for c in desk.changes()} == {
        ("note.txt", "modified"),
        ("new.txt", "added"),
    }
    assert result.changes == desk.changes()
    assert (project / "note.txt").read_text() == "a draft\n" and not (project / "new.txt").exists()
    assert "applied 2 changes" in desk.apply()
    assert (project / "note.txt").read_text() == "a draft\ndone\n" and (
        project / "new.txt"
    ).read_text() == "n"


def test_each_run_begins_with_the_project(desk):
    desk.run("open('new.txt', 'w').write('n')")
    assert desk.run("import os; print(os.path.exists('new.txt'))").stdout == "False\n"


def test_artifacts_of_a_project_are_what_changed(desk):
    result = desk.run("open('new.txt', 'w').write('n')")
    assert [(a.path, a.data) for a in result.artifacts] == [("new.txt", b"n")]


def test_diff(desk):
    desk.run("open('note.txt', 'a').write('done\\n')")
    assert "+done" in desk.diff() and "note.txt" in desk.diff()


def test_discard(desk):
    desk.run("open('new.txt', 'w').write('n')")
    assert "discarded" in desk.discard()
    with pytest.raises(brig.CommandError) as caught:
        desk.apply()
    assert caught.value.status == 125 and "brig workspace list" in str(caught.value)


def test_apply_of_an_older_run(desk, project):
    first = desk.run("open('one', 'w').write('1')")
    desk.run("open('two', 'w').write('2')")
    desk.apply(first.id)
    assert sorted(os.listdir(project)) == ["note.txt", "one"]


def test_apply_when_the_project_has_moved_on(desk, project):
    desk.run("open('note.txt', 'w').write('theirs')")
    (project / "note.txt").write_text("mine")
    with pytest.raises(brig.CommandError, match="note.txt"):
        desk.apply()
    assert (project / "note.txt").read_text() == "mine"


def test_nothing_to_apply_before_a_run(desk):
    with pytest.raises(brig.UsageError, match="nothing has run yet"):
        desk.apply()
    assert desk.changes() == []


def test_files_are_those_of_the_host(desk, project):
    desk.files.write("src/a.py", "X = 1\n")
    assert (project / "src" / "a.py").read_text() == "X = 1\n"
    assert desk.files.list() == ["note.txt", "src/a.py"] and desk.files.list("src") == ["src/a.py"]
    assert desk.run("from src.a import X; print(X)").stdout == "1\n"
    desk.files.remove("src/a.py")
    assert desk.files.list() == ["note.txt"] and desk.files.list("no") == []


def test_files_are_replaced_whole(desk, project):
    os.link(project / "note.txt", project / "other")
    desk.files.write("note.txt", "new")
    assert (project / "other").read_text() == "a draft\n"
    assert sorted(os.listdir(project)) == ["note.txt", "other"]


def test_files_follow_no_link(desk, project, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s")
    (project / "link").symlink_to(secret)
    (project / "up").symlink_to(tmp_path)
    for call in (lambda: desk.files.read("link"), lambda: desk.files.read("up/secret")):
        with pytest.raises(OSError):
            call()
    with pytest.raises(OSError):
        desk.files.write("up/x", "1")
    with pytest.raises(OSError):
        desk.files.remove("up/secret")
    desk.files.write("link", "mine")
    assert secret.read_text() == "s" and not (project / "link").is_symlink()
    assert desk.files.list() == ["link", "note.txt"]


def test_special_files_are_not_read(desk, project):
    os.mkfifo(project / "fifo")
    with pytest.raises(OSError):
        desk.files.read("fifo")
    assert "fifo" not in desk.files


def test_missing_file_of_a_project(desk):
    for call in (lambda: desk.files.read("no"), lambda: desk.files.remove("no/no")):
        with pytest.raises(brig.FileMissing):
            call()


def test_upload_and_download(desk, project, tmp_path):
    (tmp_path / "f").write_text("1")
    assert desk.files.upload(tmp_path / "f", "in/f") == ["in/f"]
    assert desk.files.download("in", tmp_path / "out") == [str(tmp_path / "out" / "f")]


def test_executables(desk, project):
    desk.files.write("tool", "#!/bin/sh\necho ran\n", executable=True)
    assert desk.exec(["./tool"]).stdout == "ran\n"


@pytest.mark.backends
def test_tests_of_a_project(desk, project):
    (project / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_a(self): pass\n    def test_b(self): self.fail('why')\n"
    )
    report = desk.test(framework="unittest").tests
    assert (report.passed, report.failed, report.complete, report.report) == (1, 1, True, "sealed")
    assert "why" in report.failures[0].message
    assert desk.test("test_it.py", framework="unittest").tests.passed == 1


def test_tests_of_two_paths(desk):
    with pytest.raises(brig.UsageError, match="one path at a time"):
        desk.test(["a", "b"])


def test_project_without_tests_is_refused(desk):
    with pytest.raises(brig.Refused):
        desk.test(check=True)


def test_secrets_are_hidden(desk, project):
    (project / ".env").write_text("TOKEN=1")
    assert (
        desk.run("print(repr(open('.env').read()))", settings={"inspection": "off"}).stdout
        == "''\n"
    )


def test_folder_that_is_not_there(tmp_path):
    with brig.Sandbox(workspace=tmp_path / "no") as box:
        assert box.run("pass").verdict == "refused"
        with pytest.raises(FileNotFoundError):
            box.files.list()


def test_folder_of_the_system_is_refused():
    with brig.Sandbox(workspace="/etc") as box:
        result = box.run("pass")
    assert result.verdict == "refused" and "/etc" in result.reason
