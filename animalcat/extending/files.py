"""Runs a file of somebody's own, in which a class is named as FILE.py:Class."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any


def split_name(name: str) -> tuple[str, str]:
    """Return the file and the class of FILE.py:Class; two empty texts for another name."""
    file, _, attribute = name.rpartition(":")
    return (file, attribute) if file.endswith(".py") and attribute else ("", "")


def class_in(kind: str, path: Path, name: str) -> type[Any] | list[str]:
    """Run a file as a module of its own, and return its class, or what classes it makes instead.

    Args:
        kind: What is meant, such as "agent".
        path: The file.
        name: Name of the class.

    Raises:
        Exception: Whatever the file raises.
    """
    spec = importlib.util.spec_from_file_location(f"animalcat_{kind}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"Python cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    # Registered under its name, because pickle and dataclasses look their module up.
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    found = getattr(module, name, None)
    if isinstance(found, type):
        return found
    own = vars(module).items()
    return [key for key, one in own if isinstance(one, type) and one.__module__ == spec.name]
