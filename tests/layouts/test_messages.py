"""Frames: there and back, and no crash on what is no frame."""

from __future__ import annotations

import io

import numpy as np
import pytest

from animalcat.layouts.inference import messages

MESSAGE = {"op": "fit", "seed": 2**63}
ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "none": np.empty((0, 4)),
    "bits": np.array([1, 2], np.uint8),
}


def test_there_and_back() -> None:
    data = messages.pack(MESSAGE, ARRAYS) + messages.pack({"next": True})
    source = io.BytesIO(data)
    read = messages.read(source.read)
    assert read is not None
    message, arrays = read
    assert message == MESSAGE
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype
    assert messages.read(source.read) == ({"next": True}, {})
    assert messages.read(source.read) is None


def test_a_frame_cut_anywhere_is_refused() -> None:
    data = messages.pack(MESSAGE, ARRAYS)
    for size in range(1, len(data)):
        with pytest.raises(messages.MessageError):
            messages.read(io.BytesIO(data[:size]).read)


@pytest.mark.parametrize(
    "listing",
    [
        '{"arrays": [{"name": "a", "dtype": "|O", "shape": [1]}]}',
        '{"arrays": [{"name": "a", "dtype": "<f8", "shape": [2]}]}',
        '{"arrays": [{"name": "a", "dtype": "<f8", "shape": []}, {"name": "b"}]}',
        '{"arrays": 1}',
        "{}",
        "[]",
        "no json",
    ],
)
def test_malformed_json_is_refused(listing: str) -> None:
    with pytest.raises(messages.MessageError):
        messages.unpack(listing.encode(), bytes(8))


def test_absurd_lengths_are_refused_before_anything_is_read() -> None:
    with pytest.raises(messages.MessageError, match="claims"):
        messages.lengths(b"\xff" * messages.HEADER.size)
    with pytest.raises(TypeError, match="object"):
        messages.pack({}, {"a": np.array([{}], dtype=object)})
