"""A window that shows what the agent's camera sees, for Gymnasium's render mode "human"."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from animalcat.extending.installing import install

_LEAST: Final = 512
"""Pixels that the sides of the window have at least; smaller images are enlarged."""


class Window:
    """A window of pygame; closing it is fine, and shows no more.

    `SDL_VIDEODRIVER=dummy` in the environment lets it work where there is no display.
    """

    def __init__(self, title: str, rate: float) -> None:
        """Get ready; the window opens with the first picture.

        Args:
            title: Title of the window.
            rate: Pictures a second, which `show` waits for.

        Raises:
            ImportError: pygame is not installed; the message names the extra.
        """
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        try:
            self._pygame: Any = import_module("pygame")
        except ImportError:
            raise ImportError(
                f'render_mode="human" needs the package pygame-ce. Install the extra: '
                f"{install('render')}"
            ) from None
        self._title, self._rate = title, rate
        self._screen: Any = None
        self._clock: Any = None
        self._closed = False

    def show(self, image: npt.NDArray[np.uint8]) -> None:
        """Show a picture, (height, width, 3), at the window's pace.

        Raises:
            RuntimeError: There is no display.
        """
        if self._closed:
            return
        pygame, height, width = self._pygame, *image.shape[:2]
        if self._screen is None:
            times = max(1, -(-_LEAST // max(height, width)))
            try:
                pygame.display.init()
                self._screen = pygame.display.set_mode((times * width, times * height))
            except pygame.error as error:
                raise RuntimeError(
                    f"no window can be opened: {error}. Without a display set "
                    "SDL_VIDEODRIVER=dummy, or use render_mode='rgb_array'"
                ) from error
            pygame.display.set_caption(self._title)
            self._clock = pygame.time.Clock()
        surface = pygame.image.frombuffer(np.ascontiguousarray(image), (width, height), "RGB")
        self._screen.blit(pygame.transform.scale(surface, self._screen.get_size()), (0, 0))
        pygame.display.flip()
        if any(event.type == pygame.QUIT for event in pygame.event.get()):
            self.close()
            return
        self._clock.tick(self._rate)

    def pixels(self) -> npt.NDArray[np.uint8]:
        """What the window shows, (height, width, 3).

        Raises:
            RuntimeError: It is not open.
        """
        if self._screen is None:
            raise RuntimeError("the window is not open")
        return np.transpose(self._pygame.surfarray.array3d(self._screen), (1, 0, 2))

    def close(self) -> None:
        """Close it; calling it twice is fine."""
        self._closed = True
        if self._screen is not None:
            self._screen = None
            self._pygame.display.quit()
