"""Our messages beside those of mlagents_envs: what one side writes the other reads."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor
from mlagents_envs.communicator_objects.agent_info_pb2 import AgentInfoProto
from mlagents_envs.communicator_objects.brain_parameters_pb2 import BrainParametersProto
from mlagents_envs.rpc_utils import behavior_spec_from_proto, steps_from_proto
from mlagents_envs.side_channel.engine_configuration_channel import EngineConfigurationChannel
from mlagents_envs.side_channel.raw_bytes_channel import RawBytesChannel
from mlagents_envs.side_channel.side_channel_manager import SideChannelManager

from animalcat.arena_configs.model import ArenaError
from animalcat.envs.mlagents import channels
from animalcat.envs.mlagents.arguments import Encoding
from animalcat.envs.mlagents.encoding import Encoder
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb
from animalcat.envs.types import CameraSpec, EndedBy, ObservationSpec, Phase, RaySpec, Step


def shape(field: FieldDescriptor) -> tuple[object, ...]:
    oneof = field.containing_oneof
    return (field.number, field.type, field.is_repeated, oneof.name if oneof else "")


def some_step(spec: ObservationSpec, phase: Phase = Phase.MID) -> Step:
    ended_by = EndedBy.GOAL if phase is Phase.LAST else None
    return Step(phase, -0.25, ended_by, spec.generate(np.random.default_rng(3)))


def write_files(encoder: Encoder, step: Step) -> pb.AgentInfo:
    info = pb.AgentInfo()
    encoder.write(step, info)
    return info


@pytest.mark.parametrize("encoding", ["png", "raw"])
@pytest.mark.parametrize("grayscale", [False, True])
def test_a_client_decodes_what_the_simulator_saw(encoding: Encoding, grayscale: bool) -> None:
    camera = CameraSpec(20, grayscale)
    step = some_step(ObservationSpec(camera, RaySpec()))
    ours = write_files(Encoder(channels_first=True, encoding=encoding), step)
    infos = [AgentInfoProto.FromString(ours.SerializeToString())]
    spec = behavior_spec_from_proto(BrainParametersProto(), infos[0])
    assert [s.name for s in spec.observation_specs] == [
        "CameraSensor",
        "RayPerceptionSensor",
        "VectorSensor_size7",
    ]
    assert [s.shape for s in spec.observation_specs] == [(camera.shape[2], 20, 20), (70,), (7,)]
    decisions, terminals = steps_from_proto(infos, spec)
    assert (len(decisions), len(terminals)) == (1, 0)
    assert decisions.reward.tolist() == [-0.25]
    seen = step.observation
    image, rays, vector = (array[0] for array in decisions.obs)
    assert seen.camera is not None
    np.testing.assert_allclose(image, np.moveaxis(seen.camera, 2, 0) / 255.0, atol=1e-7)
    assert rays.tobytes() == np.asarray(seen.rays).tobytes()
    expected = np.array([seen.health, *seen.velocity, *seen.position], np.float32)
    assert vector.tobytes() == expected.tobytes()


def test_an_old_client_is_told_height_width_channels() -> None:
    step = some_step(ObservationSpec(CameraSpec(8), None))
    for encoding in ("png", "raw"):
        encoder = Encoder(channels_first=False, encoding=encoding)
        image, _ = write_files(encoder, step).observations
        assert list(image.shape) == [8, 8, 3]
        assert list(image.dimension_properties) == [2, 2, 1]
    floats = np.array(image.float_data.data, np.float32).reshape(8, 8, 3)
    assert step.observation.camera is not None
    assert np.array_equal(floats, step.observation.camera / np.float32(255.0))


def test_the_last_step_is_done_and_never_interrupted() -> None:
    info = write_files(Encoder(channels_first=True), some_step(ObservationSpec(), Phase.LAST))
    assert (info.done, info.max_step_reached, info.id) == (True, False, 0)
    assert [o.name for o in info.observations] == ["RayPerceptionSensor", "VectorSensor_size7"]


def test_side_channels_of_a_client_are_read() -> None:
    arenas = RawBytesChannel(channels.ARENAS)
    engine = EngineConfigurationChannel()
    manager = SideChannelManager([engine, arenas])
    engine.set_configuration_parameters(width=32, height=32, time_scale=20.0)
    arenas.send_raw_data(b"!ArenaConfig")
    arenas.send_raw_data(b"")
    found = list(channels.messages(bytes(manager.generate_side_channel_messages())))
    assert [channel for channel, _ in found] == [channels.ENGINE] * 2 + [channels.ARENAS] * 2
    assert [content for channel, content in found if channel == channels.ARENAS] == [
        b"!ArenaConfig",
        b"",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(7), "7 bytes"),
        (UUID(int=1).bytes_le + (9).to_bytes(4, "little") + bytes(8), "9 bytes where 8 are left"),
        (UUID(int=1).bytes_le + b"\xff\xff\xff\xff", "a message of -1 bytes"),
    ],
)
def test_torn_side_channels_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(channels.ChannelError, match=message):
        list(channels.messages(data))


YAML = "!ArenaConfig\narenas:\n  3: !Arena\n    t: 77\n"
OLD_COLOR = f"{YAML}    items:\n    - !Item {{name: Wall, colors: [!Vector3 {{x: 1}}]}}\n".encode()


def test_arenas_come_as_text_or_as_a_path(tmp_path: Path) -> None:
    file = tmp_path / "arena"
    file.write_text(YAML)
    for content in (YAML.encode(), str(file).encode(), b"\xef\xbb\xbf" + YAML.encode()):
        assert channels.read_arenas(content).config.arenas[3].time_limit == 77


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"/no/such/folder/arena.yaml", "/no/such/folder/arena.yaml.*No such file"),
        (YAML.replace("77", "soon").encode(), "sent by the client:4: arenas.3..t: "),
        (b"\xff\xfe\x00", "sent by the client"),
        (OLD_COLOR, "sent by the client:6: .*builds from 3 on refuse"),
        (b"x" * 5000, "sent by the client"),
        (b"x" * 300, "sent by the client"),  # longer than a file's name may be
    ],
)
def test_arenas_that_cannot_be_read_are_named(content: bytes, message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        channels.read_arenas(content)
