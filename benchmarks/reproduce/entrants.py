"""Published outcomes of the entrants of the Animal-AI Olympics, as a layout takes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from tempfile import TemporaryDirectory

from animalcat.cli.layout.table import battery_of_folder
from animalcat.cli.shared.arena_outcomes import on_battery
from animalcat.cli.shared.outcome_table import judged, read_pass_marks, read_rewards
from animalcat.cli.shared.output import fail
from animalcat.layouts.model.instances import Instances, OutcomeTable, TableError
from animalcat.layouts.model.spec import Layout
from benchmarks.reproduce.olympics import INSTANCES


def read_entrants(
    layout: Layout, data: Path, instances: Collection[str] = INSTANCES
) -> OutcomeTable:
    """The published outcomes of the entrants, as far as the layout covers the instances.

    Args:
        layout: The layout.
        data: Folder of the data.
        instances: Which instances; those of the paper by default.
    """
    rewards = read_rewards(data / "aaio" / "final_rewards.csv")
    rewards = rewards.loc[rewards.index.isin(list(instances))]
    marks = read_pass_marks(data / "aaio" / "pass_marks.csv")
    played = judged(rewards, {str(k): float(v) for k, v in marks.dropna().items()}, {})
    names = [*map(str, rewards.index)]
    try:
        with TemporaryDirectory() as store:
            battery = battery_of_folder(data / "animal-ai-competition", names, Path(store))
            table = on_battery(layout, battery, played, keep_drawn=True).outcomes.table
    except TableError as error:
        fail(str(error))
    columns = [name for name in layout.feature_names if name != "chance"]
    covered = Instances(
        tuple(columns), table.instances.select(columns), names=table.instances.names
    )
    return OutcomeTable(covered, table.agents, table.outcomes)
