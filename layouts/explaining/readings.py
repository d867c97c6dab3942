"""Draws as readers read them, beside those in a layout's own units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.wording import scale_of
from animalcat.layouts.model.spec import Layout

if TYPE_CHECKING:
    import xarray as xr

_GROUPS: Final = ("posterior", "prior")


def with_readings(
    groups: Mapping[str, xr.Dataset], layout: Layout, features: npt.NDArray[np.float64] | None
) -> dict[str, xr.Dataset]:
    """Add to posterior and prior each node as readers read it, where that is another number.

    The variable `navigationAbility [m]` holds the draws of `navigationAbility` in metres. Its
    attributes say how they were converted: `units`, `conversion`, and `reads`, what an agent of
    such a value does.

    Args:
        groups: Groups of data, as `arviz_data.datasets` returns them.
        layout: The layout that was measured.
        features: (episodes, features) of what was played, which decides between several demands.
    """
    made = dict(groups)
    for k, node in enumerate(layout.latents):
        scale = scale_of(layout, k, features)
        if not scale.feature and scale.convert(1.0) == 1.0:
            continue
        how = f"{scale.convert(1.0):g} x {node.name}"
        if scale.feature:
            how = (
                f"the {scale.feature} at which the demand equals {node.name}, interpolated over "
                f"the range of {scale.feature}, {scale.low:g} to {scale.high:g}; what is beyond "
                "has the value of its end"
            )
        name = f"{node.name} [{scale.unit or scale.feature or 1}]"
        about = {"units": scale.unit or "1", "conversion": how, "reads": scale.phrase}
        groups_of: dict[str, Any] = {group: made[group] for group in _GROUPS}
        read = {group: scale.converted(data[node.name].values) for group, data in groups_of.items()}
        if all(np.allclose(read[g], data[node.name].values) for g, data in groups_of.items()):
            continue
        for group, data in groups_of.items():
            dims = data[node.name].dims
            made[group] = data.assign({name: (dims, read[group], about)})
    return made
