"""Makes `animalcat/Arena-v0` known to Gymnasium as soon as that is imported, and not before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

_GYMNASIUM: Final = "gymnasium"


def register_with_gymnasium() -> None:
    """Register now if Gymnasium is loaded, else when it will be.

    To load it takes longer than all else that most commands need, and few of them play in it.
    """
    if _GYMNASIUM in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _register() -> None:
    from animalcat.envs.register import register_environments

    register_environments()


class _Finder:
    """Finds Gymnasium as the other finders do, and registers when its code has run.

    Whoever only asks whether there is a Gymnasium has not loaded it, so the finder stays until
    somebody does.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname != _GYMNASIUM:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                _register()

            spec.loader.exec_module = execute_and_register
        return spec
