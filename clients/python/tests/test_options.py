# SPDX-License-Identifier: Apache-2.0
"""Wishes as options of the command line; nothing runs here."""

import pytest

import brig
from brig._options import Options, flat, time_text, value_text
from brig._transport import Reply, Request

TIMES = [(5, "5000ms"), (1.5, "1500ms"), (0.0004, None), ("2m", "2m"), (0, None), (-1, None), (float("nan"), None),
         (float("inf"), None), (True, None), (None, None)]  # fmt: skip


@pytest.mark.parametrize("value, text", TIMES, ids=[str(t[0]) for t in TIMES])
def test_times(value, text):
    if text is None:
        with pytest.raises(brig.UsageError):
            time_text(value)
    else:
        assert time_text(value) == text


@pytest.mark.parametrize(
    "value, text",
    [(True, "true"), (False, "false"), (["a", 1], "a,1"), (1 << 20, "1048576"), ("x", "x")],
)
def test_values(value, text):
    assert value_text(value) == text


class Recorder:
    """A transport that notes what it is asked, as a service's would get it."""

    def __init__(self):
        self.requests = []

    def run(self, request):
        self.requests.append(request)
        return Reply({"id": "x", "verdict": "ok", "changes": [], "artifacts": []})


def request_of(call, **options):
    transport = Recorder()
    call(brig.Sandbox(transport=transport, **options))
    return transport.requests[0]


def test_everything_has_its_option():
    request = request_of(
        lambda box: box.run("x", "shell"),
        timeout=2, memory="1m", cpus=0.5, pids=3, disk=4096, output_limit="5k", trust="untrusted", backend="docker",
        preset="strict", inspect="guard", rules={"r": "warn"}, packages=["a", "b==1"], project_packages=True,
        environment="data",
        allow_degraded=["landlock", "time_ns"], settings={"k": True}, env={"A": "b=c"}, policy="/p.yaml", state="/s",
    )  # fmt: skip
    words = flat(list(request.options))
    for pair in (
        "--timeout 2000ms", "--memory 1m", "--cpus 0.5", "--pids 3", "--disk 4096", "--output-limit 5k",
        "--trust untrusted", "--backend docker", "--preset strict", "--inspect guard", "--rule r=warn", "--packages a",
        "--packages b==1", "--project-packages", "--env-name data", "--allow-degraded landlock,time_ns", "--set k=true",
        "--env A=b=c", "--policy /p.yaml", "--state /s", "--lang shell",
    ):  # fmt: skip
        assert pair in " ".join(words), pair


def test_defaults_ask_for_nothing():
    request = request_of(lambda box: box.run("x"))
    assert (
        list(request.options) == [("--lang", "python")]
        and request.environ == {}
        and request.policy is None
    )


def test_network_is_the_environment():
    hosts = request_of(lambda box: box.run("x"), network=["a.org", "*.b.org:8443"])
    assert hosts.environ == {
        "BRIG_NETWORK_MODE": "allowlist",
        "BRIG_WHITELIST": "a.org,*.b.org:8443",
    }
    assert request_of(lambda box: box.run("x"), network=[]).environ == {"BRIG_NETWORK_MODE": "none"}
    assert (
        request_of(lambda box: box.run("x"), network="a.org").environ["BRIG_WHITELIST"] == "a.org"
    )


def test_policy_mapping_is_a_document():
    request = request_of(lambda box: box.run("x"), policy={"record": {"history": False}})
    assert request.policy == b'{"record": {"history": false}}' and "--policy" not in flat(
        list(request.options)
    )


def test_a_run_goes_over_its_sandbox():
    options = Options(timeout=5, packages=["a"], settings={"k": 1, "l": 1}, trust="trusted")
    over = options.over(timeout=6, packages=["b"], settings={"l": 2}, trust=None)
    assert over == Options(
        timeout=6, packages=["a", "b"], settings={"k": 1, "l": 2}, trust="trusted"
    )
    assert options.over(timeout=None) is options


@pytest.mark.parametrize("name", ["", "A=B"])
def test_names_of_variables(name):
    with pytest.raises(brig.UsageError):
        request_of(lambda box: box.run("x", env={name: "1"}))


def test_one_text_is_one_package():
    request = request_of(lambda box: box.run("x"), packages="numpy")
    assert ("--packages", "numpy") in request.options


def test_commands():
    line = request_of(lambda box: box.exec("ls | wc"))
    words = request_of(lambda box: box.exec(("ls", "-l")))
    assert (line.shell, line.command) == ("ls | wc", ()) and (words.shell, words.command) == (
        None,
        ["ls", "-l"],
    )


def test_workspace_is_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    request = request_of(lambda box: box.run("x"), workspace="here")
    assert ("--workspace", str(tmp_path / "here")) in request.options and request.files is None


def test_files_go_along():
    request = request_of(lambda box: box.run("x"), files={"a": "1"})
    assert b"a" in request.files and request.fetch and isinstance(request, Request)
    assert not request_of(lambda box: box.run("x", artifacts=[])).fetch


def test_nothing_unknown_is_taken():
    with pytest.raises(TypeError):
        brig.Sandbox(timeot=5)
    with pytest.raises(TypeError):
        brig.run("x", memori=5)


def test_repr():
    assert repr(brig.Sandbox()) == "<brig.Sandbox in memory, auto>"
    assert "'/tmp'" in repr(brig.Sandbox(workspace="/tmp", backend="docker"))
