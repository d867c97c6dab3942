"""`animalcat episode export --format minari`: recorded episodes as a dataset."""

from __future__ import annotations

from pathlib import Path

from animalcat.cli.episode.export import Asked
from animalcat.cli.shared.common import common
from animalcat.cli.shared.output import print_json, say, status
from animalcat.doors.minari.minari_data import minari_folder, save_minari
from animalcat.service.recording.reader import RecordingError
from animalcat.text import names


def export(asked: Asked) -> None:
    """Write recordings as one dataset, none of which may be damaged."""
    dataset = asked.name or f"animalcat/{names.to_component(Path(asked.what).stem)}-v0"
    sources = asked.read()
    for source in sources:
        if source.recording.damage:
            raise RecordingError(f"{source.label} is damaged: {source.recording.damage}")
    with status("writing the dataset"):
        folder = asked.output or minari_folder()
        path = save_minari([source.recording for source in sources], dataset, folder)
    row = {"dataset": dataset, "episodes": len(sources), "folder": str(path)}
    if common().as_json:
        print_json(row)
    else:
        say(f"{dataset}: {len(sources)} episodes -> {path}")
