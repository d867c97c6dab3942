"""What a release needs: one version everywhere, and files that say what is shipped."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml

import animalcat
from tests import public_names

ROOT = Path(__file__).resolve().parents[1]
OPENENV = ROOT / "docker" / "openenv"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_every_place_says_one_version() -> None:
    assert animalcat.__version__ == VERSION
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == VERSION
    assert yaml.safe_load((OPENENV / "openenv.yaml").read_text())["version"] == VERSION
    facade = tomllib.loads((OPENENV / "pyproject.toml").read_text())["project"]
    assert facade["version"] == VERSION
    assert f"animalcat[server]=={VERSION}" in facade["dependencies"]
    assert f"animalcat[server]=={VERSION}\n" in (OPENENV / "server/requirements.txt").read_text()
    assert f"ARG ANIMALCAT=animalcat=={VERSION}\n" in (OPENENV / "server/Dockerfile").read_text()
    assert f"has the version {VERSION}." in (ROOT / "docs" / "stability.md").read_text()


def test_archive_and_citation_say_the_same() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    archived = json.loads((ROOT / ".zenodo.json").read_text())
    same = {
        "title": "title",
        "abstract": "description",
        "license": "license",
        "keywords": "keywords",
    }
    assert {key: cited[key] for key in same} == {key: archived[at] for key, at in same.items()}
    creators = [one["name"] for one in archived["creators"]]
    assert creators == [one["name"] for one in cited["authors"]]
    assert archived["upload_type"] == cited["type"] == "software"


def test_the_paper_is_as_joss_asks() -> None:
    """Its sections, its length, and a source for each key that is cited."""
    folder = ROOT / "docs" / "paper"
    body = (folder / "paper.md").read_text().split("---\n", 2)[2]
    assert re.findall("^# (.+)$", body, re.MULTILINE) == [
        *("Summary", "Statement of need", "State of the field", "Software design"),
        *("Research impact statement", "AI usage disclosure", "Acknowledgements", "References"),
    ]
    assert 750 <= len(body.split()) <= 1750
    known = re.findall(r"^@\w+\{(\w+),$", (folder / "paper.bib").read_text(), re.MULTILINE)
    assert {*re.findall(r"@(\w+)", body)} == {*known}


def test_doors_have_upper_bounds() -> None:
    """Their interfaces change monthly; docs/releasing.md says how to try what lies beyond."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"inspect": "inspect-ai", "mcp": "mcp"}
    for extra, package in wanted.items():
        (found,) = [
            one for one in extras["optional-dependencies"][extra] if re.match(rf"{package}\b", one)
        ]
        assert "<" in found, found
    facade = tomllib.loads((OPENENV / "pyproject.toml").read_text())["project"]
    assert any(re.match(r"openenv>=.*<", one) for one in facade["dependencies"])


def test_locks_of_the_facade_name_no_host() -> None:
    lock = (OPENENV / "requirements.lock").read_text()
    assert "://" not in lock
    assert re.search(r"^openenv==", lock, re.MULTILINE)


def test_other_hosts_run_what_ours_runs() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())["jobs"]
    assert jobs["ci"]["steps"][-1] == {"run": "bash .ci/run", "env": {"ANIMALCAT_DATA": "none"}}
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yaml").read_text())["jobs"]
    for one in release["images"]["strategy"]["matrix"]["include"]:
        assert (ROOT / one["file"]).is_file()
        assert (ROOT / one["context"]).is_dir()


def test_what_is_shipped_has_a_licence() -> None:
    told = (ROOT / "THIRD_PARTY.md").read_text()
    for place in re.findall(r"`([\w/.-]+)`", told):
        if "/" in place and not place.startswith("/"):
            assert (ROOT / place).exists(), place
    for kind in ("*.ttf", "*.woff*", "*.otf"):
        assert not [*(ROOT / "service").rglob(kind), *(ROOT / "animalcat").glob(f"**/{kind}")]


def test_every_promised_name_is_still_there() -> None:
    """What is meant to go is named in CHANGELOG.md, and taken from the list."""
    now, promised = public_names.lines(), public_names.promised_names()
    gone = {
        name: lost or "all of it"
        for name, has in promised.items()
        if (lost := has - now.get(name, set())) or name not in now
    }
    assert not gone, "name it in CHANGELOG.md, and take it from tests/public_names.txt"
