"""Check configuration files with Pydantic and explain what is wrong in one message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.errors import BadInput

Model = TypeVar("Model", bound=BaseModel)

#: Problems listed in one message; the rest are counted.
SHOWN = 12

#: Powers of ten up to here are read: a short text must not stand for a number of a million digits.
LARGEST_POWER = 4000


class Strict(BaseModel):
    """Base of every configuration model: immutable, no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class BadConfig(BadInput):
    """A configuration file breaks its model; `problems` has one line per problem."""

    def __init__(self, file: str, problems: list[str]) -> None:
        self.file, self.problems = file, problems
        more = [] if len(problems) <= SHOWN else [f"and {len(problems) - SHOWN} more"]
        super().__init__("\n  ".join([f"{file}:", *problems[:SHOWN], *more]))


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ' Did you mean x?' for the closest known name, or the names there are."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f" Did you mean '{close[0]}'?"
    return f" Known: {', '.join(names)}." if names else ""


def rational(text: Any) -> Fraction:
    """Return a number written as text, such as '1/8' or '1e-10', exactly; else a ValueError.

    >>> rational("1e-10") == Fraction(1, 10**10)
    True
    """
    power = re.search(r"[eE]([+-]?\d+)", str(text))
    if power and abs(int(power[1])) > LARGEST_POWER:
        raise ValueError("is out of range")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("has denominator zero") from None


def _fields(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def parse(model: type[Model], content: Any, file: str) -> Model:
    """Return `content` as a `model`, or raise `BadConfig` with every problem found.

    Messages name the place and the rule, never the value.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        problems = []
        for found in error.errors(include_input=False, include_url=False, include_context=False):
            # A rule over several keys has no place; its text names them.
            place = ".".join(str(part) for part in found["loc"])
            text = found["msg"].removeprefix("Value error, ")
            if found["type"] == "extra_forbidden":
                text = "unknown key."
                if len(found["loc"]) == 1:
                    text += suggest(str(found["loc"][0]), _fields(model))
            problems.append(f"{place}: {text}" if place else text)
        raise BadConfig(file, problems) from None
    except RecursionError:
        raise BadConfig(file, ["nested too deeply"]) from None
