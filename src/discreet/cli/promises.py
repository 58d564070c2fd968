"""What commands on promises share: reading them, composing them, and refusing in their terms."""

from __future__ import annotations

import re
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from discreet.config import rational
from discreet.errors import BadInput

if TYPE_CHECKING:
    from discreet.spec import Caution, Composition, Facts, Specification, catalog

#: What the calculus asks for in Python, and the option that gives it.
OPTIONS = ("touched", "records", "same_sizes", "copies", "delta")


def read(name: str) -> tuple[Specification, catalog.CatalogEntry | None]:
    """Return a promise of the catalog with its entry, or the one in a file."""
    from discreet.spec import catalog, read_specification

    path = Path(name)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        return read_specification(path), None
    system, at, rate = name.partition("@")
    entry = catalog.entry(system, fraction(rate, "rate") if at else None)
    return entry.specification, entry


def facts_of(entry: catalog.CatalogEntry | None) -> Facts:
    """Return what the catalog knows of a release beside its promise."""
    from discreet.spec import NOTHING_KNOWN

    return entry.facts if entry else NOTHING_KNOWN


def cautions_of(
    specification: Specification, entry: catalog.CatalogEntry | None
) -> tuple[Caution, ...]:
    """Return what to beware of in one promise."""
    from discreet.spec import cautions

    name = entry.name if entry else "this promise"
    return cautions(specification, names=(name, ""), facts=facts_of(entry))


# -- composing ----------------------------------------------------------------------------------


def combined(
    parts: list[Specification], touched: int | None, delta: Fraction | None, shared: bool = False
) -> Composition:
    """Return the composition; a refusal names options instead of arguments."""
    from discreet.spec import NoCompositionRule, NotAllowed, compose

    how: Literal["fresh", "shared"] = "shared" if shared else "fresh"
    try:
        return compose(parts, randomness=how, touched=touched, delta=delta)
    except (NoCompositionRule, NotAllowed) as reason:
        text = with_options(str(reason))
        one_domain = all(part.domain == parts[0].domain for part in parts)
        one_unit = len({part.input_premetric.unit for part in parts}) == 1
        if touched is None and one_domain and not one_unit and not shared:
            text += " Give that number with --touched (1 if nobody can move, else 2)."
        raise BadInput(text) from None


def converted(
    specification: Specification, delta: Fraction | None, parts: list[Specification]
) -> Specification | None:
    """Return a rho^2 told as epsilon at a delta, if one is asked for; refuse an idle delta."""
    from discreet.spec import NORMALISED_RENYI, approximate, convert

    if delta is None:
        return None
    if specification.output_premetric == NORMALISED_RENYI:
        return convert(specification, approximate(delta))
    if all(part.output_premetric != NORMALISED_RENYI for part in parts):
        raise BadInput("--delta: none of these promises is told in rho^2. Leave it out.")
    return None


def tighter(
    parts: list[tuple[Specification, catalog.CatalogEntry | None]],
    found: Specification,
    touched: int | None,
    delta: Fraction | None,
) -> Specification | None:
    """Return the sum with pure parts converted tightly beside rho^2, if there are any.

    Data sets with the same margins differ in two records at least, which is used for swaps.
    """
    from discreet.spec import MULTIPLICATIVE, NORMALISED_RENYI, NoConversion, convert

    if found.output_premetric != NORMALISED_RENYI:
        return None
    told, changed = [], False
    for part, entry in parts:
        if part.output_premetric == MULTIPLICATIVE:
            apart = 2 if entry is not None and entry.largest_stratum is not None else 1
            with suppress(NoConversion):
                part, changed = convert(part, NORMALISED_RENYI, "tight", apart), True
        told.append(part)
    return combined(told, touched, delta).specification if changed else None


def in_short(specification: Specification) -> str:
    """Return a budget on one line with its unit, premetrics, source and status."""
    from discreet.spec import catalog

    budget = specification.budget
    return (
        f"{catalog.budget_line(specification)}; from {budget.source}; the rule is {budget.status}."
    )


# -- texts and files ----------------------------------------------------------------------------


def with_options(told: Any) -> Any:
    """Return a text, or all texts inside plain data, with options instead of Python arguments."""
    if isinstance(told, dict):
        return {key: with_options(value) for key, value in told.items()}
    if isinstance(told, list | tuple):
        return [with_options(value) for value in told]
    if not isinstance(told, str):
        return told
    told = re.sub(rf"`({'|'.join(OPTIONS)})`", lambda m: "--" + m[1].replace("_", "-"), told)
    return re.sub(r"\((preprocess|change_premetric)\)", r"(in Python: discreet.spec.\1)", told)


def check_target(path: Path, option: str, *inputs: Path) -> None:
    """Refuse to write into a folder that is not there, or over what was read."""
    if not path.parent.is_dir():
        raise BadInput(f"{option}: there is no folder {path.parent}. Make it, or choose another.")
    if any(one.exists() and path.resolve() == one.resolve() for one in inputs):
        raise BadInput(f"{option}: {path.name} is what was read. Choose another file.")


def mode_of(name: str) -> int:
    """Return the mode of a file made from a promise: that of a trial is for its owner only."""
    path = Path(name)
    return 0o600 if path.is_file() and not path.stat().st_mode & 0o044 else 0o644


def fraction(text: str, what: str) -> Fraction:
    """Return an option that is a number from 0 to 1, exactly."""
    try:
        value = rational(text)
    except ValueError:
        raise BadInput(f"{what} must be a number such as 0.05 or 1/20.") from None
    if not 0 <= value <= 1 or (what == "delta" and value in (0, 1)):
        raise BadInput(f"{what} must lie between 0 and 1.")
    return value


def as_yaml(value: Any) -> str:
    """Return plain data as YAML."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
