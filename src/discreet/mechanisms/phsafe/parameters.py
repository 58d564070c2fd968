"""The parameters of a run: a shipped configuration by name, or all of it written out."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from discreet.config import Strict, parse, suggest
from discreet.errors import BadInput
from discreet.files import FORMAT_VERSION, check_format, read_yaml
from discreet.mechanisms.phsafe.accounting import Change, Noise
from discreet.mechanisms.phsafe.configuration import (
    Configuration,
    Levels,
    States,
    load_configuration,
    shipped_configurations,
)
from discreet.products import sdhc

#: How messages call what a run file says below `parameters`.
PLACE = "parameters"


class Parameters(Strict):
    """What a run file may say below `parameters`.

    Parameters
    ----------
    configuration
        The name of a configuration that comes with discreet, "us-2020" or "pr-2020"; what
        is given below takes the place of its entries, of budgets and thresholds those of the
        tables and levels that are named.
    states, budgets, thresholds, noise
        As in `Configuration`; without a named one all budgets and thresholds are needed.
    change
        What one unit of distance is: "replace" a person, for which twice the budgets is
        promised, or "add-remove" a person.
    """

    configuration: str | None = None
    states: States | None = None
    budgets: dict[str, Annotated[dict[str, Any], Levels]] | None = None
    thresholds: dict[str, Any] | None = None
    noise: Noise | None = None
    change: Change = "replace"

    @cached_property
    def settings(self) -> Configuration:
        """Return the configuration with what was given in place of its entries."""
        given = {name: getattr(self, name) for name in ("states", "budgets", "thresholds", "noise")}
        changes = {name: value for name, value in given.items() if value is not None}
        if self.configuration is None:
            return load_configuration(changes, place=PLACE)
        known = shipped_configurations()
        if self.configuration not in known:
            # A file would not be covered by the hash of the configuration of the run.
            hint = suggest(self.configuration, known)
            raise BadInput(f"configuration: name one that comes with discreet, not a file.{hint}")
        shipped = load_configuration(self.configuration)
        island = sdhc.PUERTO_RICO in (self.states or shipped.states)
        if island != (sdhc.PUERTO_RICO in shipped.states):
            raise BadInput(
                f"states: {self.configuration} is the account of {shipped.territory}. Take "
                f"pr-2020 for Puerto Rico (72), and us-2020 for states and DC."
            )
        return load_configuration(self.configuration, changes, place=PLACE) if changes else shipped


def read_settings(source: str | Path) -> tuple[Configuration, Change]:
    """Return the configuration to plan, and what one step changes.

    `source` is the name of a shipped configuration, a run file, of which `mechanism` and
    `parameters` are read, or a file with nothing but a configuration.
    """
    path = Path(source)
    if str(source) in shipped_configurations() or not path.is_file():
        return load_configuration(source), "replace"
    content = check_format(read_yaml(path), path.name)
    if PLACE not in content:
        return load_configuration(path), "replace"
    if content.get("mechanism", "phsafe") != "phsafe":
        raise BadInput(f"{path.name}: mechanism: this run is not one of phsafe.")
    given = parse(Parameters, content[PLACE], f"{path.name}, {PLACE}")
    told = {"name": path.stem, "title": f"{PLACE} of a run"}
    return given.settings.model_copy(update=told), given.change


def run_text(settings: Configuration, change: Change) -> str:
    """Return the part of a run file that is about phsafe; `read_settings` reads it back.

    Every text is quoted: 08 and 09 are numbers to some readers of YAML and texts to others.
    """
    title = " ".join(f"{settings.name}: {settings.title}".split())
    budgets = [
        f"    {table}: {json.dumps({level: decimal(rho) for level, rho in levels.items()})}"
        for table, levels in settings.budgets.items()
    ]
    lines = [
        f"# {title}",
        "# A run file is this and five lines more: release, mode, census, work, out.",
        f"format_version: {FORMAT_VERSION}",
        "mechanism: phsafe",
        f"{PLACE}:",
        f"  states: {json.dumps(list(settings.states))}",
        f"  noise: {settings.noise}",
        f"  change: {change}",
        f"  thresholds: {json.dumps(settings.thresholds)}",
        "  budgets:",
        *budgets,
    ]
    return "\n".join(lines) + "\n"


def decimal(value: Fraction) -> str:
    """Return a number as a decimal if that is exact, else as a fraction.

    >>> decimal(Fraction(135, 1000000)), decimal(Fraction(1, 3))
    ('0.000135', '1/3')
    """
    told = format(Decimal(value.numerator) / Decimal(value.denominator), "f")
    return told if Fraction(told) == value else str(value)
