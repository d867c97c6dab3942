"""Says where a page or folder stands that is in the repository and not on the site."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

LINK: Final = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s#]+)(?:#[^)\s]*)?\)")


def replace_links(text: str, page: Path, docs: Path) -> str:
    """Put the path of a folder, or of a page outside the documentation, in the place of its link.

    Args:
        text: The text of a page.
        page: Its file.
        docs: The folder of the documentation.
    """

    def put(met: re.Match[str]) -> str:
        if "://" in met[2]:
            return met[0]
        target = Path(os.path.normpath(page.parent / met[2]))
        outside = docs not in target.parents
        if target.is_dir() or (outside and target.suffix == ".md"):
            path = target.relative_to(docs.parent).as_posix()
            return f"{met[1]} (`{path}` in the repository)"
        return met[0]

    return LINK.sub(put, text)


def _read(app: Any, name: str, content: list[str]) -> None:
    file = Path(app.env.doc2path(name))
    if file.suffix == ".md":
        content[0] = replace_links(content[0], file, Path(app.srcdir))


def setup(app: Any) -> dict[str, bool]:
    """Change pages as they are read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
