"""docs/unity.md, followed word by word."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from .conftest import PATIENCE, ROOT, available, free_port

PAGE = ROOT / "docs" / "unity.md"


def blocks(language: str) -> list[str]:
    """The page's code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("version", ["6.2.0", pytest.param("4.1.0", marks=pytest.mark.slow)])
def test_the_page_can_be_followed(executable: str, tmp_path: Path, version: str) -> None:
    client = available(version)
    names = ["play.py"] if version == "4.1.0" else ["play.py", "gym_play.py"]
    arena, scripts, printed = blocks("yaml")[0], blocks("python"), blocks("text")[0]
    (tmp_path / "arena.yml").write_text(arena)
    outputs = []
    for name, script in zip(names, scripts, strict=False):
        written = re.sub(r'"/home/me/[^"]*"', repr(executable), script)
        assert written != script
        # Of the machine's other environments one may have the usual port.
        written = written.replace("file_name=BUILD,", f"file_name=BUILD, base_port={free_port()},")
        (tmp_path / name).write_text(written)
        run = subprocess.run(
            [client.python, name],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    assert printed in outputs[0]
    if version == "6.2.0":
        assert re.search(r"the agent ended at \[20\.\S* ", outputs[1])
