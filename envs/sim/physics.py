"""Rigid bodies on PhysX with Unity's settings and coordinate frame, behind one small class."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from animalcat.envs.sim.engine import Entity, Pose, Scene, physx
from animalcat.envs.sim.vector import Vector
from animalcat.envs.types import PHYSICS_STEP
from animalcat.portable import scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

GRAVITY: Final = 9.81
FRICTION: Final = 0.6
"""Unity's default material, static and dynamic (reference/animal-ai.md section 2)."""
AGENT_RADIUS: Final = 0.5
AGENT_MASS: Final = 100.0
AGENT_DRAG: Final = 1.6
CONTACT_GAP: Final = 0.02
"""Metres: bodies touch when nearer than the sum of their contact offsets."""

_GROUND_GAP: Final = 0.0195
"""A contact closer than this at the start of its step counts as ground."""
_MOST_PARTING: Final = 10.0
"""m/s by which bodies that are in each other are parted at most."""
_UNTURNABLE: Final = 1e9
"""kg m2: moment of inertia of the agent, whose rotations are all frozen.

Unity gives such a body an endless one. PhysX's lock of rotations alone does not: its solver would
take the sphere as free to roll, so that friction could take 2/7 of the speed in a step at most."""

FLOOR_TOP: Final = -0.01
ARENA_SIDE: Final = 40.0

_LOW: Final = FLOOR_TOP + AGENT_RADIUS + _GROUND_GAP - 1e-4
"""Metres: height of the agent's centre under which it touches the floor for certain."""

STATE: Final = 13
"""Number of float32 values in one body's state: rotation wxyz, position, two velocities."""
_AGENT_STATE: Final = struct.Struct("<16x6f")
"""Position and velocity, of a packed state; the agent's is the first."""


@dataclass(frozen=True, slots=True)
class Box:
    """A box collider: half extents, and its centre in the body's coordinate frame."""

    half: Vector
    center: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Ball:
    """A sphere collider: radius, and its centre in the body's coordinate frame."""

    radius: float
    center: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Hull:
    """A convex collider: the hull of (n, 3) points in the body's coordinate frame."""

    points: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Surface:
    """A triangle mesh, for static bodies only: (n, 3) points, (m, 3) corner indices.

    Corners run clockwise seen from outside, as Unity's do.
    """

    points: npt.NDArray[np.float32]
    triangles: npt.NDArray[np.uint32]


Collider = Box | Ball | Hull | Surface


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body, as described by Unity's Rigidbody and colliders.

    Attributes:
        colliders: Its shapes.
        position: Its origin, in metres.
        yaw: Degrees clockwise seen from above.
        mass: In kg; 0 makes it static.
        friction: Static and dynamic; two bodies that touch have the average of theirs.
        push: Change of its velocity that it makes itself when it appears, m/s.
    """

    colliders: tuple[Collider, ...]
    position: Vector
    yaw: float = 0.0
    mass: float = 0.0
    friction: float = FRICTION
    push: Vector = (0.0, 0.0, 0.0)


class Physics:
    """One arena's bodies and the agent's sphere, stepped 0.02 s at a time.

    PhysX gets Unity's coordinates as they are, as it does in Unity: it does not know that their
    frame is left-handed, and solves what touches in the same order of axes. The settings are
    Unity's (reference/toolchain.md section 1; docs/design/simulator.md says what each was found
    by).

    Attributes:
        agent_position: The centre of the agent's sphere, as it was placed or as the last step
            left it.
    """

    def __init__(
        self,
        agent: Vector,
        bodies: Sequence[Body],
        duration: float = PHYSICS_STEP,
        *,
        late: bool = True,
    ) -> None:
        """Build an arena.

        Args:
            agent: Where the agent's centre starts.
            bodies: Everything but the floor and the arena's walls; an index into this sequence is
                the body's index.
            duration: Of a physics step, in seconds.
            late: Whether the bodies' pushes come only after the first step. Unity starts what a
                reset builds after the physics step that follows; what is built later, in a
                callback of physics, starts before it. (A goal of the real build has moved by 0.40 m
                after three steps at 10 m/s, not by 0.60.)
        """
        self.duration = duration
        physx.set_scene_config(
            gravity=[0.0, -GRAVITY, 0.0],
            bounce_threshold=2.0,
            enable_pcm=True,
            enable_tgs=False,
            enable_ccd=False,
            enable_enhanced_determinism=False,  # as in Unity; the order of insertion is fixed here
            enable_friction_every_iteration=False,
        )
        physx.set_body_config(12, 12, 0.005)
        physx.set_shape_config(CONTACT_GAP / 2, 0.0)
        self._system = physx.PhysxCpuSystem()
        self._system.timestep = duration
        self._scene = Scene([self._system])
        self._materials: dict[float, physx.PhysxMaterial] = {}
        self._components: list[physx.PhysxRigidBaseComponent] = []
        self._entities: list[Entity] = []
        self._dynamic: tuple[int, ...] = ()
        # What goes to PhysX at every step has its own place: to make it costs more than to send it.
        self._numbers = np.zeros(3, np.float32)
        self._pose = Pose()
        self._packed = b""  # of the present, or none
        self._low = False
        self._agent, self._agent_entity = self._add_agent(agent)
        x, y, z = self._agent_entity.get_pose().p.tolist()
        self.agent_position: Vector = (x, y, z)
        self._add_arena()
        self._pushes: dict[int, Vector] = {}
        for body in bodies:
            self.add(body, late=late)

    def add(self, body: Body, *, late: bool = False) -> int:
        """Add a body and return its index.

        Args:
            body: The body.
            late: As for the whole arena.
        """
        index = len(self._entities)
        component = self._component(body)
        self._components.append(component)
        self._entities.append(self._insert(component, body.position, body.yaw))
        if isinstance(component, physx.PhysxRigidDynamicComponent):
            self._dynamic += (index,)
            if any(body.push):
                self._pushes[index] = body.push
            if not late:
                self._push_off()
        return index

    def _push_off(self) -> None:
        """Give the bodies that have just appeared their pushes."""
        for index, push in self._pushes.items():
            component = self._components[index]
            if isinstance(component, physx.PhysxRigidDynamicComponent):
                velocity = component.get_linear_velocity()
                component.set_linear_velocity(velocity + np.array(push, np.float32))
        self._pushes.clear()
        self._packed = b""

    def remove(self, index: int) -> None:
        """Remove a body; its index is not used again."""
        self._packed = b""
        self._pushes.pop(index, None)
        self._entities[index].remove_from_scene()
        self._dynamic = tuple(body for body in self._dynamic if body != index)

    def reshape(self, index: int, colliders: tuple[Collider, ...], mass: float) -> None:
        """Give a body other colliders and another mass in its place.

        It keeps its pose and index, its material becomes Unity's default, and if it could move
        before, it keeps its velocities.
        """
        old, entity = self._components[index], self._entities[index]
        component = self._component(Body(colliders, (0.0, 0.0, 0.0), mass=mass))
        pose = entity.get_pose()
        self.remove(index)
        self._components[index] = component
        self._entities[index] = self._insert_at(component, pose)
        if isinstance(component, physx.PhysxRigidDynamicComponent):
            self._dynamic += (index,)
            if isinstance(old, physx.PhysxRigidDynamicComponent):
                component.set_linear_velocity(old.get_linear_velocity())
                component.set_angular_velocity(old.get_angular_velocity())

    def move(self, index: int, position: Vector) -> None:
        """Move a body's origin, keeping its rotation and velocities."""
        self._packed = b""
        entity = self._entities[index]
        entity.set_pose(Pose(position, entity.get_pose().q))

    @property
    def dynamic(self) -> tuple[int, ...]:
        """Indices of the bodies that can move, in the order of `state`."""
        return self._dynamic

    def advance(self, velocity: Vector) -> Vector:
        """Set the agent's velocity, take one physics step, and return its velocity after it."""
        self._low = self.agent_position[1] < _LOW
        numbers = self._numbers
        numbers[0], numbers[1], numbers[2] = velocity
        self._agent.set_linear_velocity(numbers)
        self._system.step()
        if self._pushes:
            self._push_off()
        # One call for all bodies costs less than to ask for one body's place and velocity.
        self._packed = packed = self._system.pack()
        px, py, pz, x, y, z = _AGENT_STATE.unpack_from(packed)
        self.agent_position = (px, py, pz)
        return x, y, z

    def position(self, index: int) -> Vector:
        """The origin of a body."""
        x, y, z = self._entities[index].get_pose().p.tolist()
        return x, y, z

    def place_agent(self, position: Vector) -> None:
        """Move the agent's sphere without changing its velocity."""
        self.agent_position = position
        numbers = self._numbers
        numbers[0], numbers[1], numbers[2] = position
        self._pose.p = numbers
        self._agent_entity.set_pose(self._pose)

    def supported(self) -> bool:
        """Whether something touched the agent from below, however slanting, in the last step."""
        if self._low:  # reading the contacts costs more than the step
            return True
        agent = self._agent
        for contact in self._system.get_contacts():
            first, second = contact.bodies
            if first is agent or second is agent:
                sign = 1.0 if first is agent else -1.0
                for point in contact.points:
                    if point.separation < _GROUND_GAP and sign * point.normal[1] > 0.0:
                        return True
        return False

    def state(self) -> bytes:
        """State of all `dynamic` bodies, `STATE` numbers each; equal bytes: nothing moved."""
        if not self._packed:
            self._packed = self._system.pack()
        return self._packed[4 * STATE :]

    def _add_agent(self, position: Vector) -> tuple[physx.PhysxRigidDynamicComponent, Entity]:
        agent = physx.PhysxRigidDynamicComponent()
        agent.attach(physx.PhysxCollisionShapeSphere(AGENT_RADIUS, self._material(FRICTION)))
        agent.set_mass(AGENT_MASS)
        agent.set_inertia(np.full(3, _UNTURNABLE, np.float32))
        agent.set_linear_damping(AGENT_DRAG)
        agent.set_angular_damping(0.05)
        agent.set_max_depenetration_velocity(_MOST_PARTING)
        agent.set_locked_motion_axes([False, False, False, True, True, True])
        agent.set_sleep_threshold(0.0)  # a sleeping agent would report stale contacts
        return agent, self._insert(agent, position, 0.0)

    def _add_arena(self) -> None:
        """Add the floor and the four walls of reference/animal-ai.md section 2.2."""
        side, middle = ARENA_SIDE, ARENA_SIDE / 2
        floor = Body((Box((21.0, 0.5, 21.0)),), (middle, FLOOR_TOP - 0.5, middle))
        across, along = Box((0.5, 200.0, 21.0)), Box((21.0, 200.0, 0.5))
        walls = [
            Body((across,), (-0.5, 200.0, middle)),
            Body((across,), (side + 0.5, 200.0, middle)),
            Body((along,), (middle, 200.0, -0.5)),
            Body((along,), (middle, 200.0, side + 0.5)),
        ]
        for body in (floor, *walls):
            self._insert(self._component(body), body.position, body.yaw)

    def _insert(
        self, component: physx.PhysxRigidBaseComponent, position: Vector, yaw: float
    ) -> Entity:
        half = math.radians(yaw) / 2
        pose = Pose(position, (scalars.cos(half), 0.0, scalars.sin(half), 0.0))
        return self._insert_at(component, pose)

    def _insert_at(self, component: physx.PhysxRigidBaseComponent, pose: Pose) -> Entity:
        self._packed = b""
        entity = Entity()
        entity.add_component(component)
        entity.set_pose(pose)
        self._scene.add_entity(entity)
        return entity

    def _component(self, body: Body) -> physx.PhysxRigidBaseComponent:
        material = self._material(body.friction)
        component = (
            physx.PhysxRigidDynamicComponent() if body.mass else physx.PhysxRigidStaticComponent()
        )
        for collider in body.colliders:
            component.attach(_shape(collider, material))
        if isinstance(component, physx.PhysxRigidDynamicComponent):
            _set_mass(component, body.mass)
        return component

    def _material(self, friction: float) -> physx.PhysxMaterial:
        """The material of this friction; two that touch have the average of theirs."""
        material = self._materials.get(friction)
        if material is None:
            material = physx.PhysxMaterial(friction, friction, 0.0)
            self._materials[friction] = material
        return material


def _set_mass(component: physx.PhysxRigidDynamicComponent, mass: float) -> None:
    """Scale the mass and inertia that PhysX computed at unit density to a mass."""
    scale = mass / component.get_mass()
    inertia, center = component.get_inertia(), component.get_cmass_local_pose()
    component.set_mass(mass)
    component.set_cmass_local_pose(center)
    component.set_inertia(inertia * np.float32(scale))
    component.set_linear_damping(0.0)
    component.set_angular_damping(0.05)
    component.set_max_angular_velocity(7.0)
    component.set_max_depenetration_velocity(_MOST_PARTING)


def _shape(collider: Collider, material: physx.PhysxMaterial) -> physx.PhysxCollisionShape:
    unit = (1.0, 1.0, 1.0)
    match collider:
        case Box(half, center):
            return _at(physx.PhysxCollisionShapeBox(half, material), center)
        case Ball(radius, center):
            return _at(physx.PhysxCollisionShapeSphere(radius, material), center)
        case Hull(points):
            return physx.PhysxCollisionShapeConvexMesh(points, unit, material)
        case Surface(points, triangles):
            turned = triangles[:, ::-1]  # PhysX wants them counter-clockwise
            return physx.PhysxCollisionShapeTriangleMesh(points, turned, unit, material)


def _at(shape: physx.PhysxCollisionShape, center: Vector) -> physx.PhysxCollisionShape:
    if any(center):
        shape.set_local_pose(Pose(center))
    return shape
