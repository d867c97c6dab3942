"""What was measured of arenas is kept, and what comes with the project is what is measured."""

import random
from pathlib import Path

import pytest

from animalcat.arena_configs.batteries.library import RECIPES, load_recipe
from animalcat.arena_configs.batteries.sizing import counts_for
from animalcat.arena_configs.writer import to_yaml
from animalcat.machine.kept import KeptTexts
from animalcat.service.batteries import battery as batteries
from animalcat.service.batteries import drafts, readings
from animalcat.service.batteries.battery import build_family, family_readings
from animalcat.service.batteries.drafts import SAMPLE, Draft, fixed_arena
from animalcat.service.batteries.readings import Reading, key_of, ship, shipped_readings
from animalcat.service.batteries.recipes import drawn_instances, recipe_drafts
from animalcat.service.library.batteries import FAMILY_SIZE, USUAL_FAMILY

AGAIN = "run `python -m animalcat.service.library.batteries`"
SMALL = 8


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def measured_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the drafts that are measured from here on."""
    names: list[str] = []
    read = drafts._read

    def count_up(draft: Draft) -> Reading:
        names.append(draft.name)
        return read(draft)

    monkeypatch.setattr(drafts, "_read", count_up)
    return names


def test_what_other_code_measured_or_is_broken_is_measured_again(
    tmp_path: Path, cache: Path, measured_names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The whole of it is kept as well; here it is its readings that are looked at.
    monkeypatch.setattr("animalcat.service.batteries.built.BuiltShelf.fetch", lambda *_: "")
    build_family("navigation", SMALL, 7, tmp_path)
    kept = KeptTexts(cache / "animalcat")
    broken, *_ = kept.keys()
    kept.keep(broken, "[1, 2")
    build_family("navigation", SMALL, 7, tmp_path)
    assert len(measured_names) == SMALL + 1
    with monkeypatch.context() as patch:
        patch.setattr(readings, "code_digest", lambda: "other")
        build_family("navigation", SMALL, 7, tmp_path)
        assert len(measured_names) == 2 * SMALL + 1
    kept.close()
    for path in kept.path.parent.iterdir():
        if path.is_file():
            path.unlink()
    kept.path.write_bytes(b"no database" * 100)
    build_family("navigation", SMALL, 7, tmp_path)
    assert len(measured_names) == 3 * SMALL + 1
    build_family("navigation", SMALL, 7, tmp_path)
    assert len(measured_names) == 3 * SMALL + 1


def test_what_was_not_used_for_longest_leaves_a_full_cache(tmp_path: Path) -> None:
    now = [0.0]
    kept = KeptTexts(tmp_path, limit=200_000, clock=lambda: now[0])
    noise = random.Random(1)
    texts = {f"{k:04}": noise.randbytes(1000).hex() for k in range(600)}
    for key, text in texts.items():
        now[0] += 1e6
        kept.keep(key, text)
        assert kept.find("0000") == texts["0000"]
    left = kept.keys()
    assert "0000" in left
    assert left[1:] == sorted(texts)[-len(left) + 1 :]
    assert 100 < len(left) < 450
    other = KeptTexts(tmp_path, limit=50_000, clock=lambda: now[0])
    other.keep("last", "text")
    assert {"0000", "last"} <= {*other.keys()}
    assert kept.find("last") == "text"
    for one in (other, kept):
        one.close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 60_000
    KeptTexts(tmp_path / "none", limit=0).keep("key", "text")
    assert not (tmp_path / "none").exists()


def test_what_is_shipped_is_what_is_measured(tmp_path: Path, measured_names: list[str]) -> None:
    """Fails when a demand has changed: `python -m animalcat.service.library.batteries`."""
    known = shipped_readings(USUAL_FAMILY)
    known_drafts = {
        key_of(to_yaml(fixed_arena(draft)), draft.seed): draft
        for made in batteries._draw_instances(USUAL_FAMILY, FAMILY_SIZE, 0)
        for draft in [batteries._draft(USUAL_FAMILY, made, 0)]
    }
    assert known_drafts.keys() == known.keys(), AGAIN
    for key in sorted(known)[::15]:
        assert drafts._read_named(known_drafts[key]) == known[key], AGAIN
    del measured_names[:]
    build_family(USUAL_FAMILY, FAMILY_SIZE, 0, tmp_path)
    assert 0 < len(measured_names) <= 2 * SAMPLE


def test_what_is_shipped_is_not_believed_where_a_sample_differs(
    tmp_path: Path, measured_names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    true = family_readings("navigation", SMALL, 7)
    wrong = {
        key: Reading({**reading.features, "rewardSize": 99.0}, reading.missing)
        for key, reading in true.items()
    }
    ship(wrong, tmp_path / "shipped" / "navigation.json.gz")
    monkeypatch.setattr(drafts, "shipped_readings", lambda battery: wrong)
    del measured_names[:]
    made = build_family("navigation", SMALL, 7, tmp_path)
    assert all(instance.features["rewardSize"] < 99 for instance in made.instances)
    assert len(measured_names) == SMALL + 1  # the sample ends at the first that differs


def test_what_recipes_ship_belongs_to_their_arenas() -> None:
    """Fails when recipe or family has changed so that what is shipped is of no use."""
    for name in RECIPES:
        known = shipped_readings(name)
        recipe = load_recipe(name)
        if not known:
            continue
        small = counts_for(recipe, max(20, len(recipe.entries)))
        made = recipe_drafts(recipe, drawn_instances(recipe, small, recipe.seed), recipe.seed)
        keys = [key_of(to_yaml(fixed_arena(one)), one.seed) for one in made]
        assert sum(key in known for key in keys) > len(keys) / 2, AGAIN
        key = max(key for key in keys if key in known)
        draft = made[keys.index(key)]
        assert drafts._read_named(draft) == known[key]._replace(verdict=None)
