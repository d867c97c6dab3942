"""The file of `campaign run`: agents, batteries and layouts, and where the agents run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from animalcat.cli.shared.output import fail


class _Strict(BaseModel):
    """What knows exactly its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AgentsRun(_Strict):
    """Where the agents run, and what each of them needs there."""

    where: Literal["local", "ray"] = "local"
    """As processes of this machine, or where Ray has room."""
    cpus: float = Field(default=1.0, gt=0)
    gpus: float = Field(default=0.0, ge=0)


class CampaignFile(_Strict):
    """Agents x batteries x layouts: one campaign of all agents for each battery and layout."""

    agents: tuple[str, ...] = Field(min_length=2)
    batteries: tuple[str, ...] = Field(min_length=1)
    layouts: tuple[str, ...] = Field(default=("",), min_length=1)
    budget: int = Field(ge=1)
    """Episodes of each campaign."""
    common: int | None = Field(default=None, ge=1)
    block: int | None = Field(default=None, ge=1)
    at_once: int | None = Field(default=None, ge=1)
    alike: float | None = Field(default=None, ge=0, le=1)
    policy: str = ""
    random_share: float | None = Field(default=None, ge=0, le=1)
    seed: int | None = Field(default=None, ge=0)
    backend: str = ""
    certify: bool | None = None
    fresh: bool | None = None
    practice: int | None = Field(default=None, ge=0)
    keep_unpassable: bool | None = None
    secret: str | None = Field(default=None, max_length=200)
    episode_seconds: float | None = Field(default=None, ge=0)
    decision_tokens: int | None = Field(default=None, ge=0)
    episode_tokens: int | None = Field(default=None, ge=0)
    max_workers: int | None = Field(default=None, ge=1, le=10_000)
    """Most simulators of each campaign at once."""
    take: int | None = Field(default=None, ge=1, le=1_000_000)
    """Which campaigns of all that are otherwise the same."""
    agents_run: AgentsRun = AgentsRun()


BESIDE: Final = (
    *("file", "camera", "decision_period", "backend", "against", "agent_may", "agent_sees"),
    *("agent_env", "same_agent"),
    *("engine", "address", "server", "data", "as_json"),
)
"""Parameters of `campaign run` that are given beside a file."""
_PLURALS: Final = {"agent": "agents", "battery": "batteries", "layout": "layouts"}


def check_options(given: Iterable[str], file: Path) -> None:
    """End the command where it has an option of which only the file may speak.

    Args:
        given: Names of the parameters that the command line gives.
        file: The file.
    """
    wrong: list[str] = []
    for name in given:
        if name in BESIDE:
            continue
        word = _PLURALS.get(name, name)
        known = word in CampaignFile.model_fields
        where = f"say it there as `{word}:`" if known else "no campaign of a file has it"
        wrong.append(f"--{name.replace('_', '-')} ({where})")
    if wrong:
        fail(f"{file} says what is played, so leave out {', '.join(wrong)}")


def read_campaign(path: Path) -> CampaignFile:
    """Read a file; what is wrong with it ends the command with a sentence."""
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fail(f"{path}: this is no YAML: {' '.join(str(error).split())}")
    try:
        return CampaignFile.model_validate(content)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, wrong['loc'])) or 'the whole file'}: {wrong['msg']}"
            for wrong in error.errors()
        )
        fail(f"{path}: {wrong}. docs/many-machines.md says what stands in the file")
