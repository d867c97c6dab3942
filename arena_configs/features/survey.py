"""A placed arena together with what several meta-features need to know about it."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final, NamedTuple

from animalcat.arena_configs.ground import TooMuchError
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import PlacedObject, Placement
from animalcat.arena_configs.rewarding import RewardOrder, best_order
from animalcat.arena_configs.routes import (
    IrreversibleChoice,
    Route,
    Terrain,
    is_movable,
    positive_goals,
)
from animalcat.arena_configs.sightlines import Look, Sight
from animalcat.portable import scalars

NO_WAY: Final = "the agent finds no safe way to any reward"
"""Why there is no way to measure, when nothing else is wrong."""
MOST_LOOKS: Final = 80
"""Looks along a way; each stands for an equal part of it."""
_LOOKS_APART: Final = 0.5
"""Metres between looks on ways that are short enough."""


class WayLook(NamedTuple):
    """A look at the goal from somewhere on the way.

    Attributes:
        metres: How far along the way.
        at: Where.
        look: The look.
    """

    metres: float
    at: Point
    look: Look


class Survey:
    """A placed arena, and what several features need of it; each thing is worked out once."""

    def __init__(self, placement: Placement) -> None:
        """Begin.

        Args:
            placement: The placed arena.
        """
        self.placement = placement

    @cached_property
    def terrain(self) -> Terrain:
        """The arena as the agent's body meets it."""
        return Terrain(self.placement)

    @cached_property
    def emptied(self) -> Terrain:
        """The same without blocks that can be pushed."""
        if any(map(is_movable, self.placement.objects)):
            return Terrain(self.placement, blocks=False)
        return self.terrain

    @cached_property
    def pushes(self) -> bool:
        """Whether the agent finds a way to a reward only if it pushes blocks aside."""
        blocked = self.terrain is not self.emptied and self.terrain.route is None
        return blocked and self.emptied.route is not None

    @property
    def walked(self) -> Terrain:
        """The arena in which the way is: without blocks where they have to be pushed."""
        return self.emptied if self.pushes else self.terrain

    @cached_property
    def way(self) -> Route | str:
        """The shortest safe way to a reward, or why there is none."""
        if not positive_goals(self.placement):
            return "no reward"
        try:
            route = self.walked.route
            if route is None and self.terrain.start is None:
                return "the agent starts inside something"
        except TooMuchError as error:
            return str(error)
        if route is not None:
            return route
        terrain = self.terrain
        moving = all(terrain.goal_moves(number) for number in range(len(terrain.goals)))
        return NO_WAY + (", which moves from the start on" if moving else "")

    @cached_property
    def choice(self) -> IrreversibleChoice | None:
        """The first irreversible choice on the way; None if there is none."""
        return None if isinstance(self.way, str) else self.walked.choice

    @cached_property
    def goal(self) -> PlacedObject | None:
        """The reward that is nearest by way, or else the nearest as the crow flies, if any."""
        return nearest_reward(self.placement) if isinstance(self.way, str) else self.way.goal

    @cached_property
    def sight(self) -> Sight:
        """What can be seen from where."""
        return Sight(self.placement)

    @cached_property
    def start_look(self) -> Look | None:
        """The look at the goal from the start; None without a goal."""
        agent, goal = self.placement.agent, self.goal
        if goal is None:
            return None
        return self.sight.look(agent.position, goal, goal.position, agent.yaw)

    @cached_property
    def way_looks(self) -> tuple[WayLook, ...]:
        """Looks at the goal along the way, to where the body touches it."""
        way = self.way
        if isinstance(way, str):
            return ()
        length = max(0.0, way.length - way.touch)
        number = min(MOST_LOOKS, max(2, math.ceil(length / _LOOKS_APART) + 1))
        metres = [length * (k + 0.5) / number for k in range(number)]
        places = [(m, way.at(m)) for m in metres]
        return tuple(WayLook(m, at, self.sight.look(at, way.goal, way.end)) for m, at in places)

    @cached_property
    def occluders(self) -> tuple[PlacedObject, ...]:
        """Opaque objects besides goals that hide some of the goal from the start or its way."""
        looks = [way_look.look for way_look in self.way_looks]
        if self.start_look is not None:
            looks.append(self.start_look)
        hiders = {id(thing) for look in looks for thing in look.hiders if not thing.kind.goal}
        return tuple(thing for thing in self.placement.objects if id(thing) in hiders)

    @cached_property
    def order(self) -> RewardOrder | str:
        """The order of rewards that gives most, or why it is not known."""
        return best_order(self.walked)


def nearest_reward(placement: Placement) -> PlacedObject | None:
    """Find the nearest goal that gives a positive reward at the start, or None."""
    start = placement.agent.position
    return min(
        positive_goals(placement),
        key=lambda thing: sum(
            scalars.square(a - b) for a, b in zip(start, thing.position, strict=True)
        ),
        default=None,
    )
