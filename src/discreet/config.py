"""Check configuration files with Pydantic and explain what is wrong in one message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from discreet.errors import BadInput

Model = TypeVar("Model", bound=BaseModel)

#: Problems listed in one message; the rest are counted.
SHOWN = 12


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
