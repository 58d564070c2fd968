"""The settings of a run: budgets of tables and levels, thresholds, states and the noise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from discreet.config import Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml
from discreet.mechanisms.phsafe.accounting import Account, Noise, account
from discreet.noise import DiscreteGaussian, DiscreteLaplace
from discreet.products import sdhc
from discreet.spec import Rational

#: No unit of the published files has more persons (FINAL_POP), so no threshold is larger.
LARGEST_HOUSEHOLD = 99_999


#: The noise of a configuration that names none.
GAUSSIAN: Noise = "gaussian"


def _codes(given: Any) -> Any:
    """Refuse what is no list of texts, in plain words."""
    if not isinstance(given, list | tuple):
        raise ValueError('write a list of codes, such as ["44"]')
    if not given:
        raise ValueError('name at least one state, such as ["44"]')
    if not all(isinstance(code, str) for code in given):
        raise ValueError('write codes as texts, in quotes: "44"')
    return given


def _levels(given: Any) -> Any:
    """Refuse a table that has one budget for all levels, in plain words."""
    if not isinstance(given, Mapping):
        raise ValueError('give a budget for each level, such as {"usa_*": "1/100"}')
    return given


#: Budgets of a table by level, as a file gives them.
Levels = BeforeValidator(_levels)

#: Codes of states as a file lists them.
States = Annotated[tuple[str, ...], BeforeValidator(_codes)]


class Configuration(Strict):
    """What a run measures and how well.

    Parameters
    ----------
    states
        Codes of states; Puerto Rico (72) only alone, it has an account of its own.
    budgets
        For each of the nine tables and each of its levels rho (Gaussian) or epsilon
        (geometric) for one person added or removed; 0 leaves a level out.
    thresholds
        Persons of a unit that are counted at most, for each table of persons.
    noise
        "gaussian" (discrete Gaussian) or "geometric" (two-sided geometric).
    """

    format_version: int = FORMAT_VERSION
    name: str = ""
    title: str = ""
    states: States
    budgets: dict[str, Annotated[dict[str, Annotated[Rational, Field(ge=0)]], Levels]]
    thresholds: dict[str, Annotated[int, Field(ge=1, le=LARGEST_HOUSEHOLD, strict=True)]]
    noise: Noise = GAUSSIAN

    @model_validator(mode="after")
    def _possible(self) -> Configuration:
        keys = _keys(self.budgets, self.thresholds)
        # Where a name is misspelt the right one is missing, which need not be told, too.
        problems = [*_states(self.states), *([*_strange(keys)] or _missing(keys))]
        if problems:
            raise ValueError("; ".join(problems))
        if self.states == (sdhc.PUERTO_RICO,) and any(
            part.level.startswith("usa") for part in self.account.parts
        ):
            raise ValueError("budgets: Puerto Rico has no nation level; its usa levels must be 0")
        if not self.account.parts:
            raise ValueError("budgets: all are 0, so nothing would be measured")
        kind = DiscreteGaussian if self.noise == "gaussian" else DiscreteLaplace
        for part in self.account.parts:
            try:
                kind(part.parameter)  # refuses what the noise is not proved for
            except BadInput as error:
                raise ValueError(f"budgets.{part.table}.{part.level}: {error}") from None
        return self

    @cached_property
    def account(self) -> Account:
        """Return what the run spends."""
        return account(self.budgets, self.thresholds, self.noise)

    @property
    def territory(self) -> str:
        """Return whose account it is."""
        return "Puerto Rico" if self.states == (sdhc.PUERTO_RICO,) else "the United States"

    @property
    def covered(self) -> str:
        """Return which states are counted, as a phrase."""
        if self.states == (sdhc.PUERTO_RICO,):
            return "Puerto Rico"
        if len(self.states) == len(sdhc.STATES):
            return "all 50 states and DC"
        return f"{len(self.states)} of {len(sdhc.STATES)} states ({', '.join(sorted(self.states))})"

    @property
    def remark(self) -> str:
        """Return what to warn of: a nation that is measured without all of its states."""
        measured = any(part.level.startswith("usa") for part in self.account.parts)
        if not measured or len(self.states) == len(sdhc.STATES):
            return ""
        return (
            f"rows of region type USA count {self.covered}, not the nation, and cost budget. "
            f"Set the budgets of usa levels to 0 unless these sums are wanted."
        )


def _states(states: tuple[str, ...]) -> Iterator[str]:
    known = (*sdhc.STATES, sdhc.PUERTO_RICO)
    if any(state not in known for state in states):
        yield "states: not all are two-digit codes of a state, of DC or of Puerto Rico (72)"
    if len(set(states)) != len(states):
        yield "states: one is listed twice"
    if sdhc.PUERTO_RICO in states and len(states) > 1:
        yield "states: Puerto Rico (72) has an account of its own; give it a run of its own"


class Keys(NamedTuple):
    """The keys that a mapping has, and those it must have."""

    place: str
    what: str
    given: Collection[str]
    known: Collection[str]


def _keys(budgets: Mapping[str, Mapping[str, Any]], thresholds: Mapping[str, int]) -> list[Keys]:
    levels = [
        Keys(f"budgets.{table}", "level", budgets[table], shell.levels)
        for table, shell in sdhc.SHELLS.items()
        if table in budgets
    ]
    return [
        Keys("budgets", "table", budgets, sdhc.SHELLS),
        *levels,
        Keys("thresholds", "table of persons", thresholds, sdhc.truncated_tables()),
    ]


def _strange(keys: list[Keys]) -> Iterator[str]:
    for place, what, given, known in keys:
        for name in given:
            if name not in known:
                yield f"{place}: no {what} '{name}'.{sdhc.hint(name, known)}"


def _missing(keys: list[Keys]) -> Iterator[str]:
    for place, what, given, known in keys:
        missing = [name for name in known if name not in given]
        if missing:
            yield f"{place}: every {what} is needed; missing: {', '.join(missing)}"


def load_configuration(
    source: str | Path | Mapping[str, Any],
    changes: Mapping[str, Any] | None = None,
    place: str | None = None,
) -> Configuration:
    """Return a configuration that comes with discreet, by name, or one in a YAML file.

    `changes` take the place of `states` and `noise`, and of single `budgets` and `thresholds`:
    those of tables and levels that are not named stay. Messages name `place`, by default the
    file.
    """
    file = "configuration"
    if isinstance(source, Mapping):
        content: Any = {"format_version": FORMAT_VERSION, **source}
    else:
        content, file = _read(source)
    content, changes = check_format(content, file), changes or {}
    kept = content.get("noise", GAUSSIAN)
    if changes.get("noise", kept) != kept:
        # Budgets of one noise are rho, of the other epsilon: none may stay.
        content = {**content, "budgets": {}}
    return parse(Configuration, _changed(content, changes), place or file)


def _changed(old: Any, new: Any) -> Any:
    """Return the new value, of mappings entry by entry."""
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    return {**old, **{name: _changed(old.get(name), value) for name, value in new.items()}}


def _read(source: str | Path) -> tuple[Any, str]:
    shipped = {entry.name.removesuffix(".yaml"): entry for entry in _shipped()}
    if str(source) in shipped:
        with resources.as_file(shipped[str(source)]) as path:
            return read_yaml(path), path.name
    if not Path(source).is_file():
        hint = suggest(str(source), shipped)
        raise BadInput(f"no configuration or configuration file of that name.{hint}")
    return read_yaml(Path(source)), Path(source).name


def shipped_configurations() -> list[str]:
    """Return the names of the configurations that come with the package."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _shipped())


def _shipped() -> Iterator[Any]:
    folder = resources.files("discreet.mechanisms.phsafe") / "configurations"
    return (entry for entry in folder.iterdir() if entry.name.endswith(".yaml"))
