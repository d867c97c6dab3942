"""Plugins: the package of docs/plugins.md is built, installed and used, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import animalcat
from animalcat.arena_configs.families.library import load_family
from animalcat.cli.session.options import _plan
from animalcat.envs.agents.load import AgentLoadError, check_name, load_agent
from animalcat.envs.backends import make_environment
from animalcat.envs.types import ObservationSpec
from animalcat.extending import plugins
from animalcat.extending.plugins import Plugin, PluginError, PluginNotAllowedError
from animalcat.layouts.adaptive.policy import PluginSelector
from animalcat.layouts.library import load_layout
from animalcat.service.host.private import server_for
from animalcat.values.options import SessionOptions, options_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "plugins.md").read_text().partition("\n## Doors")[0]
BLOCK = re.compile(r"`([\w/]+\.(?:py|toml))`[^\n]*\n\n```\w+\n(.*?)```", re.DOTALL)
PACKAGE = "animalcat-example"
BUILD = "from setuptools import build_meta; build_meta.build_wheel('..')"
KINDS = {
    "agent": "wanderer",
    "policy": "hardest",
    "backend": "fog",
    "export": "lines",
    "layout": "reach",
    "family": "straight",
}


def write_files(folder: Path) -> Path:
    """The sources of the page's package."""
    for name, text in BLOCK.findall(PAGE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "animalcat_example" / "__init__.py").touch()
    return folder


def pretend_install(site: Path, name: str, points: str, **modules: str) -> None:
    """Install a package that has some modules and entry points, as an installer would."""
    about = site / f"{name.replace('-', '_')}-2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    (about / "entry_points.txt").write_text(points)
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text)
    files = [f"{module}.py" for module in modules]
    files += [f"{about.name}/{file}" for file in ("METADATA", "entry_points.txt", "RECORD")]
    (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-c", BUILD]
    project = write_files(folder / "project")
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture
def site(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the page's package is installed, for this process."""
    folder = tmp_path / "site-packages"
    zipfile.ZipFile(wheel).extractall(folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(plugins._process, "limits", [])  # another test's server may run here
    with plugins_forgotten():
        yield folder


class plugins_forgotten:  # noqa: N801  used as a function
    """What was loaded of plugins is forgotten behind it, so that the next test loads its own."""

    def __enter__(self) -> None:
        self._modules = set(sys.modules)

    def __exit__(self, *raised: object) -> None:
        plugins._process.loaded.clear()
        load_family.cache_clear()
        for name in set(sys.modules) - self._modules:
            if name.startswith(("animalcat_example", "another", "broken")):
                del sys.modules[name]


def test_each_kind_is_found_and_loaded_by_its_name(site: Path) -> None:
    found = {one.kind: one for one in plugins.every() if one.distribution == PACKAGE}
    assert {kind: one.name for kind, one in found.items()} == KINDS
    assert {(one.version, one.digest) for one in found.values()} == {
        ("1.0", plugins.digest(distribution(PACKAGE)))
    }
    assert type(load_agent("plugin:wanderer")).__name__ == "Wanderer"
    assert load_layout("reach").variant == "metres"
    assert load_family("straight").paradigms
    environment = make_environment("fog", ObservationSpec())
    assert type(environment).__name__ == "Fog"
    environment.close()


def test_a_digest_is_of_the_files_however_they_are_installed(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = plugins.digest(distribution(PACKAGE))
    compiled = site / "animalcat_example" / "__pycache__"
    compiled.mkdir(exist_ok=True)
    (compiled / "agent.cpython-311.pyc").write_bytes(b"compiled")
    assert plugins.digest(distribution(PACKAGE)) == before

    about = next(site.glob("*.dist-info"))
    inplace = tmp_path / "inplace"
    (inplace / about.name).mkdir(parents=True)
    for name in ("METADATA", "entry_points.txt"):
        (inplace / about.name / name).write_bytes((about / name).read_bytes())
    (inplace / about.name / "RECORD").write_text("__editable__.animalcat_example-1.0.pth,,\n")
    project = write_files(tmp_path / "project")
    monkeypatch.setattr(sys, "path", [str(inplace), str(project), *sys.path[1:]])
    sys.path_importer_cache.clear()
    assert plugins.digest(distribution(PACKAGE)) == before
    (project / "animalcat_example" / "more.py").write_text("MORE = 1\n")
    assert plugins.digest(distribution(PACKAGE)) != before


def test_names_of_our_own_need_no_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes longer than all else that `animalcat --help` does."""

    def look_once(**given: str) -> None:
        raise AssertionError(f"entry points were looked at: {given}")

    monkeypatch.setattr(plugins, "entry_points", look_once)
    load_layout("one-capability")
    load_family("detour")
    check_name("builtin:random")
    make_environment("sim", ObservationSpec()).close()
    monkeypatch.setattr(plugins._process, "limits", [])
    with plugins.only([]):
        assert plugins.allowed_names("family") == ()


def test_two_of_one_name_are_both_named_and_neither_is_used(site: Path) -> None:
    points = "[animalcat.agents]\nwanderer = another:Agent\n"
    pretend_install(site, "another-package", points, another="Agent = int\n")
    with pytest.raises(AgentLoadError, match=r"animalcat-example 1\.0 and another-package 2\.0"):
        check_name("plugin:wanderer")
    assert load_layout("reach").name == "reach"  # nothing else is touched


def test_one_that_breaks_is_named_with_its_package(site: Path) -> None:
    points = "[animalcat.layouts]\nbad = broken:TEXT\nother = another:TEXT\n"
    pretend_install(site, "broken-package", points, broken="1 / 0\n", another="TEXT = 'name: x'\n")
    with pytest.raises(ValueError, match=r"broken-package 2\.0 .* breaks .* ZeroDivisionError"):
        load_layout("bad")
    with pytest.raises(ValueError, match="calls itself 'x'"):
        load_layout("other")
    assert load_layout("reach").name == "reach"


def test_a_server_loads_nothing_that_its_operator_did_not_allow(site: Path) -> None:
    with plugins.only([]):
        assert plugins.find("layout", "reach")  # it is found and named
        with pytest.raises(PluginNotAllowedError, match="--allow-plugin animalcat-example"):
            plugins.load("layout", "reach")
        with pytest.raises(ValueError, match="may not run"):
            load_family("straight")
        assert "animalcat_example" not in sys.modules
    with plugins.only(["Animalcat_Example"]):
        assert load_family("straight").name == "straight"
    with pytest.raises(PluginError, match=r"packages with plugins: .*animalcat-example"):
        plugins.only(["animalcat-exampel"]).__enter__()

    # Two servers of one process may end in any order, and what only one may run is not run.
    first, second = plugins.only([]), plugins.only([PACKAGE])
    first.__enter__()
    second.__enter__()
    with pytest.raises(PluginNotAllowedError):
        plugins.load("layout", "reach")
    first.__exit__(None, None, None)
    assert plugins.allowed_names("layout") == ("reach",)
    second.__exit__(None, None, None)
    plugins.load("export", "lines")


def test_a_policy_in_a_file_is_run_where_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins._process, "limits", [])
    (policy,) = [text for name, text in BLOCK.findall(PAGE) if name.endswith("policy.py")]
    path = tmp_path / "hardest.py"
    path.write_text(policy)
    name = "hardest.py:Hardest"
    with plugins_forgotten():
        with plugins.only([str(path)]):
            known = plugins.find("policy", name)
            assert known is not None
            assert known.digest == sha256(policy.encode()).hexdigest()
            assert known.words == f"policy {name} of hardest.py (sha256 {known.digest[:12]})"
            assert PluginSelector(name)
            with pytest.raises(PluginError, match=r"no class Easiest in the file; .*: Hardest"):
                plugins.load("policy", "hardest.py:Easiest")
            assert plugins.words_of_change(known) == ""
            path.write_text(policy + "# mended\n")
            assert "was hardest.py (sha256" in plugins.words_of_change(known)
            with pytest.raises(PluginError, match="start this process again"):
                plugins.load("policy", name)
        with plugins.only([]), pytest.raises(PluginNotAllowedError, match="PATH/TO/hardest"):
            plugins.words_of_change(known)
        with pytest.raises(PluginError, match="and there is no file lost"):
            plugins.only(["lost.py"]).__enter__()
    asked = dict.fromkeys(options_of(SessionOptions)) | {"policy": f"{path}:Hardest"}
    # The command's own server may run what the command names.
    assert _plan("builtin:random", "introductory", **asked).plugins == (str(path),)


@pytest.fixture(scope="module")
def installed_packages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the page's package and others are installed, for other processes."""
    site = tmp_path_factory.mktemp("there") / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    points = "[animalcat.policies]\nbroken = broken_policy:Any\nvariance = broken_policy:Any\n"
    pretend_install(site, "broken-package", points, broken_policy="raise OSError('no such card')\n")
    pretend_install(site, "other-package", "[animalcat.policies]\nother = other_policy:Policy\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
        allowed = [PACKAGE, "broken-package", str(site / "animalcat_example" / "policy.py")]
        patch.setenv("ANIMALCAT_ALLOWED_PLUGINS", json.dumps(allowed))
        yield site


def print_alone(*words: str, code: int = 0) -> str:
    """What `animalcat` prints in a process of its own."""
    command = [sys.executable, "-P", "-m", "animalcat", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_list_names_packages_and_problems(installed_packages: Path) -> None:
    found = {row["item"]: row for row in doctor_rows()}
    for kind, name in KINDS.items():
        assert found[f"{kind} {name}"]["status"] == "ok"
        assert f"{PACKAGE} 1.0" in found[f"{kind} {name}"]["found"]
    # Nothing is run to find out what breaks.
    assert found["policy other"]["status"] == found["policy broken"]["status"] == "ok"
    assert "a policy of animalcat itself has this name" in found["policy variance"]["remedy"]

    layouts = {row["name"]: row for row in json.loads(print_alone("layout", "show", "--json"))}
    assert layouts["reach"]["from"] == f"{PACKAGE} 1.0"
    families = {row["family"]: row for row in json.loads(print_alone("arena", "make", "--json"))}
    assert f"{PACKAGE} 1.0" in families["straight"]["description"]


def test_a_session_of_plugins_from_start_to_export(
    installed_packages: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    asked = {"battery": "few", "layout": "reach", "policy": "hardest", "backend": "fog"}
    with server_for(None, home) as address, animalcat.connect(address) as client:
        client.build_battery("straight", 6, name="few")
        options = [f"--{name}={value}" for name, value in asked.items()]
        options += ["--agent=plugin:wanderer", "--max-episodes=3", "--no-certify", "--json"]
        row = json.loads(print_alone("session", "run", *options, f"--data={home}"))
        session = client.get_session(row["session"])
        used = session.spec.plugins
        profile = _is_kept_everywhere(client, session)

        # It is given more by the command, once its agent has been looked at.
        extend = ("session", "resume", session.id, "--episodes=1", f"--data={home}")
        print_alone(*extend, "--agent=plugin:wanderr", code=2)
        stored = client.get_session(session)
        assert (stored.over, stored.spec.stop.max_episodes) == (True, 3)
        more = json.loads(print_alone(*extend, "--json"))
        assert (more["state"], more["episodes"]) == ("finished", 4)
        assert client.get_session(session).spec.plugins == used

        # What cannot be used is refused, each with its sentence.
        for policy, code, words in (
            ("broken", "PLUGIN_BROKEN", "broken-package 2.0 .*OSError: no such card"),
            ("other", "PLUGIN_NOT_ALLOWED", "'other' is a plugin of .* other-package 2.0"),
            ("hardst", "INVALID_REQUEST", "no policy is named 'hardst'; there are: .*hardest"),
            ("my/own.py:Own", "PLUGIN_NOT_ALLOWED", "'own.py:Own' is in a file, and this server "),
        ):
            with pytest.raises(animalcat.AnimalcatError, match=words) as refused:
                client.create_session(agent="any", **{**asked, "policy": policy})
            assert refused.value.code == code
        own = client.create_session(agent="any", **{**asked, "policy": "my/policy.py:Hardest"})
        assert own.spec.plugins[0].words.startswith("policy policy.py:Hardest of policy.py (sha256")
        waiting = client.create_session(agent="any", max_episodes=3, **asked)
        assert waiting.spec.plugins == used

    path = installed_packages / "animalcat_example" / "policy.py"
    before = path.read_text()
    path.write_text(before.replace("argmin", "argmax"))
    with server_for(None, home) as address, animalcat.connect(address) as client:
        assert client.profile(session)["provenance"]["plugins"] == profile["provenance"]["plugins"]
        with pytest.raises(animalcat.AnimalcatError) as refused:
            client.pause_session(waiting)
        assert refused.value.code == "PLUGIN_CHANGED"
        was, now = used[0], plugin_there()
        assert f"the policy 'hardest' was {was.source}, and is {now.source}" in str(refused.value)
        assert f"bring back {used[0].source}" in str(refused.value)
        path.write_text(before)
        assert client.pause_session(waiting).paused
        path.write_text(before.replace("argmin", "argmax"))
        with pytest.raises(animalcat.AnimalcatError, match="start this process again"):
            client.create_session(agent="new", **asked)
    path.write_text(before)


def plugin_there() -> Plugin:
    """The plugin as a process that starts now finds it."""
    code = (
        "import json, dataclasses; from animalcat.extending import plugins; print(json.dumps("
        "[dataclasses.asdict(one) for one in plugins.every('policy') if one.name == 'hardest'][0]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    return Plugin(**json.loads(done.stdout))


def doctor_rows() -> list[dict[str, Any]]:
    """What `animalcat doctor` finds, whether or not something is missing."""
    command = [sys.executable, "-P", "-m", "animalcat", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return json.loads(done.stdout)


def _is_kept_everywhere(
    client: animalcat.Client, session: animalcat.values.Session
) -> dict[str, Any]:
    """The package stands in the session, its agent's fingerprint, and all that leaves it."""
    used = session.spec.plugins
    assert [(one.kind, one.name) for one in used] == [
        (kind, KINDS[kind]) for kind in ("policy", "backend", "layout", "family")
    ]
    assert {(one.distribution, one.version) for one in used} == {(PACKAGE, "1.0")}
    (digest,) = {one.digest for one in used}
    agent = session.identity.fingerprint
    assert agent is not None
    assert (agent.name, agent.version) == ("plugin:wanderer", f"{PACKAGE} 1.0")
    assert agent.files == {f"package {PACKAGE}": digest}

    whole = json.loads(client.export_profile(session))
    assert [one["digest"] for one in whole["provenance"]["plugins"]] == [digest] * 4
    assert any(PACKAGE in label and digest[:12] in label for label in whole["labels"])
    csv = client.export_profile(session, "csv").decode()
    assert csv.count(f"family straight of {PACKAGE} 1.0 (sha256 {digest[:12]})") == 3
    assert csv.count(f'""{PACKAGE}"": ""1.0 sha256:{digest}""') == 3  # of the backend
    lines = client.export_profile(session, "lines").decode().splitlines()
    assert lines[0] == f"# plugin:wanderer, with hardest, fog, reach, straight, by {PACKAGE}"
    assert len(lines) == 4
    reasons = {one.decision.reason for one in client.episodes(session)}
    assert reasons <= {"plugin", "random"}
    return whole
