"""The checks that take long are due when what they cover has changed, and only then."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from tests import checks
from tests.checks import CHECKS, PASSED, Check, Record, digest, is_due, with_record


def test_a_check_is_due_when_a_file_of_its_own_has_changed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for name in ("covered/a.py", "covered/b.py", "other.py", ".gitignore"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("__pycache__/\n")
    check = Check("some", "true", "covered")
    assert is_due(check, None, tmp_path)
    known = Record("2026-01-01", PASSED, "1:00", digest(check.covers, tmp_path))
    assert not is_due(check, known, tmp_path)
    assert is_due(check, dataclasses.replace(known, result="failed"), tmp_path)
    (tmp_path / "other.py").write_text("2")
    (tmp_path / "covered" / "__pycache__").mkdir()
    (tmp_path / "covered" / "__pycache__" / "a.pyc").write_text("2")
    assert not is_due(check, known, tmp_path)
    (tmp_path / "covered" / "a.py").rename(tmp_path / "covered" / "c.py")
    assert is_due(check, known, tmp_path)
    (tmp_path / "covered" / "c.py").rename(tmp_path / "covered" / "a.py")
    assert not is_due(check, known, tmp_path)
    (tmp_path / "covered" / "b.py").write_text("2")
    assert is_due(check, known, tmp_path)


def test_a_check_may_be_due_and_may_not_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "PAGE", tmp_path / "checks.md")
    old = Record("2026-01-01", PASSED, "1:00", "0123456789ab")
    checks.PAGE.write_text(with_record("", "arenas", old))
    assert checks.main([]) == 0
    assert "arenas       due" in capsys.readouterr().out
    failed = dataclasses.replace(old, result="failed")
    checks.PAGE.write_text(with_record(checks.PAGE.read_text(), "unity", failed))
    assert checks.main([]) == 1
    assert "failed: unity; python -m tests.checks unity" in capsys.readouterr().err
    assert "python -m tests.checks\n" in (checks.ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_what_a_check_covers_is_there(check: Check) -> None:
    """Files, and not links to folders, behind which git sees none."""
    for path in check.covers.split():
        listed = ["git", "ls-files", "--", path]
        found = subprocess.run(listed, cwd=checks.ROOT, capture_output=True, text=True, check=True)
        assert any((checks.ROOT / name).is_file() for name in found.stdout.splitlines()), path
