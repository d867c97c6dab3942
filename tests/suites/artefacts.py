"""What every place for batteries, recordings and draws must do, as tests to inherit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from animalcat.service.storage.artefacts import Artefacts

Make = Callable[[str], Artefacts]
"""Makes the files of a server with a data directory of this name; all of them share one place."""

RECORDING = "recordings/s/0-0.mcap"


def written(files: Artefacts, key: str, content: bytes = b"steps") -> None:
    """Write a file as a server does before it is put."""
    path = files.folder / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


class ArtefactsSuite:
    """Inherit, and give a fixture `make`."""

    def test_what_was_put_is_read_by_every_server(self, make: Make) -> None:
        """What one server put is the same file for all, and stays so."""
        here, there = make("a"), make("b")
        written(here, RECORDING)
        here.put(RECORDING)
        for files in (here, there, here, there):
            assert files.fetch(RECORDING).read_bytes() == b"steps"
            assert files.digest(RECORDING) == hashlib.sha256(b"steps").hexdigest()

    def test_what_is_not_there_is_said_so(self, make: Make) -> None:
        """A missing file is an error when read, has no digest, and can be removed."""
        files = make("a")
        with pytest.raises(FileNotFoundError):
            files.fetch(RECORDING)
        assert not files.digest(RECORDING)
        files.put(RECORDING)
        files.remove(RECORDING)
        files.remove("recordings/s")

    def test_what_is_written_and_not_yet_put_is_read_here(self, make: Make) -> None:
        """The server that writes a file reads it at once."""
        files = make("a")
        written(files, RECORDING)
        assert files.fetch(RECORDING).read_bytes() == b"steps"
        assert files.digest(RECORDING)

    def test_putting_again_replaces(self, make: Make) -> None:
        """An attempt that is finished again has the recording of the last time."""
        here, there = make("a"), make("b")
        for content in (b"one", b"other"):
            written(here, RECORDING, content)
            here.put(RECORDING)
        assert here.fetch(RECORDING).read_bytes() == b"other"
        assert there.fetch(RECORDING).read_bytes() == b"other"

    def test_a_folder_is_there_for_every_server_with_all_its_files(self, make: Make) -> None:
        """A battery comes as a whole, and may be put twice."""
        here, there = make("a"), make("b")
        for name in ("battery.json", "arenas/1.yaml", "arenas/2.yaml"):
            written(here, f"batteries/d/{name}", name.encode())
        here.put_folder("batteries/d")
        here.put_folder("batteries/d")
        for files in (there, here):
            files.fetch_folder("batteries/d")
            folder = files.folder / "batteries" / "d"
            found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
            assert found == {"battery.json", "arenas/1.yaml", "arenas/2.yaml"}
            assert (folder / "arenas/2.yaml").read_text() == "arenas/2.yaml"

    def test_what_was_removed_is_gone_and_its_neighbours_are_not(self, make: Make) -> None:
        """Only what was named is removed, also beside a longer name."""
        files = make("a")
        for key in ("recordings/s/0-0.mcap", "recordings/s/1-0.mcap", "recordings/st/0-0.mcap"):
            written(files, key)
            files.put(key)
        written(files, "batteries/d/battery.json")
        files.put_folder("batteries/d")
        files.remove("recordings/s")
        files.remove("batteries/d")
        assert not files.digest("recordings/s/0-0.mcap")
        with pytest.raises(FileNotFoundError):
            files.fetch("recordings/s/1-0.mcap")
        assert files.fetch("recordings/st/0-0.mcap").read_bytes() == b"steps"
        assert not (files.folder / "batteries" / "d").exists()
