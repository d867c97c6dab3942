"""What counts as a success: the one definition that the whole project uses."""


def success(episode_return: float, pass_mark: float) -> bool:
    """Whether an episode that ended in the arena's own way succeeded.

    Faults and voids are not failures; do not ask this about them.

    Args:
        episode_return: Sum of the rewards of the episode.
        pass_mark: The arena's pass mark.
    """
    return episode_return > pass_mark
