"""The file of `campaign run`: agents, batteries and layouts, and where the agents run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from animalcat.cli.shared.option_table import flag
from animalcat.cli.shared.output import fail
from animalcat.text.marked_yaml import YamlError, load_yaml, read_text, validate
from animalcat.values.options import CampaignOptions, given, options_of


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

    model_config = ConfigDict(extra="allow", frozen=True)

    agents: tuple[str, ...] = Field(min_length=2)
    batteries: tuple[str, ...] = Field(min_length=1)
    layouts: tuple[str, ...] = Field(default=("",), min_length=1)
    budget: int = Field(ge=1)
    """Episodes of each campaign."""
    agents_run: AgentsRun = AgentsRun()

    @property
    def options(self) -> dict[str, Any]:
        """What else the file says, by the table of `CampaignOptions`."""
        return self.model_extra or {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            given(CampaignOptions, self.options)
        except TypeError as error:
            raise ValueError(str(error)) from None
        return self


HELP: Final = "docs/many-machines.md says what stands in the file"
BESIDE: Final = (
    *("file", "camera", "decision_period", "backend", "agent_may", "agent_sees"),
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
        word, table = _PLURALS.get(name, name), options_of(CampaignOptions)
        known = word in CampaignFile.model_fields or word in table
        where = f"say it there as `{word}:`" if known else "no campaign of a file has it"
        said = flag(table[name]) if name in table else f"--{name.replace('_', '-')}"
        wrong.append(f"{said} ({where})")
    if wrong:
        fail(f"{file} says what is played, so leave out {', '.join(wrong)}")


def read_campaign(path: Path) -> CampaignFile:
    """Read a file; what is wrong with it ends the command with a sentence."""
    try:
        return validate(CampaignFile, load_yaml(read_text(path), str(path)), help=HELP)
    except YamlError as error:
        fail(str(error))
