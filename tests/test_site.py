"""The site's pages and its generated reference, without building it (`make docs` does)."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.cli.main import nouns
from animalcat.layouts.library import LAYOUTS, variants
from animalcat.service.errors import Code

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
generated, llms, outside = (import_module(name) for name in ("generated", "llms", "outside"))


def pages() -> set[str]:
    """The names of all pages and notebooks that the site has, but for the generated ones."""
    files = [*DOCS.rglob("*.md"), *DOCS.glob("notebooks/*.ipynb")]
    names = {file.relative_to(DOCS).with_suffix("").as_posix() for file in files}
    return {name for name in names if not name.startswith("reference/generated")}


def pages_reached(page: str) -> set[str]:
    """A page and all that its tables of contents lead to."""
    found = {page}
    for below in llms.contents(DOCS, page):
        found |= pages_reached(below)
    return found


def test_every_page_is_in_a_table_of_contents() -> None:
    there = {name for name in pages_reached("index") if "/generated/" not in name}
    assert there == {name for name in pages() if not name.startswith("examples/")}


def test_which_test_answers_which_question_is_two_clicks_away() -> None:
    front = (DOCS / "index.md").read_text("utf-8")
    assert "](which-test.md)" in front
    rows = re.findall(r"^\| [^|]*\? \|", (DOCS / "which-test.md").read_text("utf-8"), re.MULTILINE)
    assert len(rows) > 12


def test_the_reference_has_every_command_and_option() -> None:
    found = generated.commands()
    assert {name.removeprefix("commands/") for name in found} == {*nouns(), "index"}
    assert "## run" in found["commands/session"]
    assert "`--max-episodes NUMBER`" in found["commands/session"]


def test_the_reference_has_every_demand_error_message_and_column() -> None:
    features = generated.features()["meta-features"]
    assert set(re.findall(r"^\| `(\w+)` \|", features, re.MULTILINE)) == FEATURES.keys()
    assert set(generated.panels()) < FEATURES.keys()
    assert set(re.findall(r"^\| `(\w+)` \|", generated.errors()["errors"], re.MULTILINE)) == {*Code}
    text = "\n".join(file.read_text("utf-8") for file in generated.PROTOS.glob("*.proto"))
    kinds = set(re.findall(r"^(?:message|enum|service) (\w+)", text, re.MULTILINE))
    wire = "\n".join(generated.wire().values())
    assert kinds == set(re.findall(r"^## \w+ (\w+)$", wire, re.MULTILINE))
    calls = set(re.findall(r"^  rpc (\w+)", text, re.MULTILINE))
    assert calls <= set(re.findall(r"^\| `(\w+)` \|", wire, re.MULTILINE))


def test_the_reference_has_every_layout_and_variant(tmp_path: Path) -> None:
    found = generated.layouts(tmp_path)
    for name in LAYOUTS:
        assert (tmp_path / "layouts" / f"{name}.svg").stat().st_size > 1000
        for variant in variants(name):
            assert f"| `{variant}` |" in found[f"layouts/{name}"]


def test_definitions_of_the_wire_are_read_with_their_comments() -> None:
    text = "// One.\nmessage A {\n  // Two.\n  oneof b {\n    // Three.\n    int32 c = 1;\n  }\n}\n"
    assert list(generated.definitions(text)) == [
        ("message", "A", "One.", [("c", "int32 = 1", "Three.")])
    ]


def test_language_models_are_told_of_every_page_for_users() -> None:
    titles = {name: name for name in pages_reached("index")}
    short, full = llms.lists(DOCS, titles)
    for page in ("agents", "limits", "tutorials/own-test"):
        assert f"]({page}.html)" in short
    assert "research/" not in re.sub(r"\([^)]*\)", "", short)
    assert "# Connect an agent" in full
