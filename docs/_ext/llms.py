"""Writes llms.txt, a list of the pages for language models, and llms-full.txt, which holds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

LEFT_OUT: Final = ("research/", "design/")
"""Notebooks and pages for those who change the code: nobody needs them to use animalcat."""
ABOUT: Final = (
    "Computerised adaptive testing for agents in Animal-AI. An agent plays arenas, after every "
    "episode a measurement layout is refitted, and the next arena is one of the most informative."
)


def contents(docs: Path, page: str) -> list[str]:
    """The pages in the tables of contents of a page, by their names without an ending.

    Args:
        docs: The folder of the pages.
        page: The name of a page.
    """
    file = docs / f"{page}.md"
    found: list[str] = []
    inside = False
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        if line.startswith("```"):
            inside = line.startswith("```{toctree}")
        elif inside and line and not line.startswith(":"):
            entry = line.rpartition("<")[2].rstrip(">")  # behind a title, it stands in brackets
            found.append(os.path.normpath(Path(page).parent / entry))
    return found


def first_sentence(text: str) -> str:
    """What a page says first, below its title."""
    for paragraph in text.split("\n\n"):
        line = " ".join(paragraph.split())
        if line and line[0].isalpha():
            return line.split(". ")[0].rstrip(".") + "."
    return ""


def lists(docs: Path, titles: dict[str, str]) -> tuple[str, str]:
    """The text of llms.txt and of llms-full.txt.

    Args:
        docs: The folder of the pages.
        titles: The title of each page, by its name without an ending.
    """
    short, full = [f"# animalcat\n\n> {ABOUT}\n"], [f"# animalcat\n\n> {ABOUT}\n"]
    for section in contents(docs, "index"):
        if section.startswith(LEFT_OUT):
            continue
        short.append(f"\n## {titles[section]}\n\n")
        for page in contents(docs, section):
            file = docs / f"{page}.md"
            text = file.read_text("utf-8") if file.exists() else ""
            about = first_sentence(text)
            short.append(f"- [{titles[page]}]({page}.html)" + (f": {about}\n" if about else "\n"))
            full.append(f"\n\n{text}")
    return "".join(short), "".join(full)


def write(app: Any, error: Exception | None) -> None:
    """Write both beside the pages."""
    if error is None and app.builder.format == "html":
        titles = {name: node.astext() for name, node in app.env.titles.items()}
        for name, text in zip(
            ("llms.txt", "llms-full.txt"), lists(Path(app.srcdir), titles), strict=True
        ):
            (Path(app.outdir) / name).write_text(text, "utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the lists when the site has been built."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
