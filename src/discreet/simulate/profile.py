"""Profiles: which census to simulate, as data.

A profile names a schema and how large the census is. Profiles of the US layout list
states with their facts; a profile of any other schema only says how many persons.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from discreet.census import Schema, load_schema
from discreet.config import Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml

#: The one layout with a model of its own; every other schema is simulated from its hints.
US_SCHEMA = "us-decennial"

Shares = Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=7, max_length=7)]


class State(Strict):
    """The facts of one state; race and Hispanic shares in percent."""

    code: Annotated[str, StringConstraints(pattern=r"^(0[1-9]|[1-4]\d|5[0-6])$")]
    name: str
    persons: int = Field(ge=100, le=60_000_000)
    counties: int = Field(ge=1, le=500)
    tracts: int = Field(ge=1)
    blocks: int = Field(ge=4)
    latitude: float = Field(ge=-85, le=85)
    longitude: float = Field(ge=-180, le=180)
    race: Shares
    hispanic: float = Field(ge=0, le=100)

    @model_validator(mode="after")
    def _sizes_fit(self) -> State:
        if not self.counties <= self.tracts <= 9_999 * self.counties:
            raise ValueError("tracts: at least one per county and at most 9,999")
        if not 4 * self.tracts <= self.blocks <= 2_000 * self.tracts:
            raise ValueError("blocks: at least four per tract and at most 2,000")
        if self.blocks > self.persons / 2:
            raise ValueError("blocks: at most one per two persons")
        if not 90 <= sum(self.race) <= 110:
            raise ValueError("race: shares are percentages that add up to about 100")
        return self


class Profile(Strict):
    """What to simulate."""

    format_version: int = FORMAT_VERSION
    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str = ""
    schema_: str = Field(alias="schema")
    quarters_size: float = Field(default=1.0, gt=0)
    states: list[State] = Field(default_factory=list)
    persons: int | None = Field(default=None, ge=100, le=10_000_000)
    linked: bool = True

    @model_validator(mode="after")
    def _one_kind(self) -> Profile:
        if bool(self.states) == (self.persons is not None):
            raise ValueError("a profile has either states (US layout) or a number of persons")
        codes = [state.code for state in self.states]
        if len(set(codes)) != len(codes):
            raise ValueError("states: a code is given twice")
        return self


def profile_names() -> list[str]:
    """Return the names of the profiles shipped with the package."""
    folder = resources.files("discreet.simulate") / "profiles"
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_profile(name_or_path: str | Path) -> tuple[Profile, Schema]:
    """Return a profile, shipped (by name) or in a file, and the schema it names.

    `schema` in a file may be a path, read from the folder of the profile file.
    """
    text = str(name_or_path)
    if text in profile_names():
        shipped = resources.files("discreet.simulate") / "profiles" / f"{text}.yaml"
        with resources.as_file(shipped) as path:
            return _read(path)
    if not Path(text).is_file():
        raise BadInput(f"no profile of that name and no such file.{suggest(text, profile_names())}")
    return _read(Path(text))


def _read(path: Path) -> tuple[Profile, Schema]:
    profile = parse(Profile, check_format(read_yaml(path), path.name), path.name)
    beside = path.parent / profile.schema_
    schema = load_schema(beside if beside.is_file() else profile.schema_)
    if profile.states and schema.name != US_SCHEMA:
        raise BadInput(f"{path.name}: states are for schema {US_SCHEMA}; give `persons` instead.")
    listed = schema.spine[0].codes
    if listed is not None and any(state.code not in listed for state in profile.states):
        raise BadInput(f"{path.name}: states: a code is not in schema {US_SCHEMA}. Correct it.")
    if not profile.states and schema.name == US_SCHEMA:
        raise BadInput(f"{path.name}: schema {US_SCHEMA} needs a list of states.")
    return profile, schema
