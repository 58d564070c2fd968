"""Mechanisms by name: one dictionary, no plug-ins.

A mechanism is loaded when it is first asked for: each brings compiled code of its own, and
a run needs only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, cast

from discreet.census import Schema
from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.mechanisms.contract import Mechanism

#: For each name of a mechanism: its module in this package, and its class.
_HOMES = {
    "permutation-swapping": ("swapping", "PermutationSwapping"),
    "targeted-swapping": ("swapping", "TargetedSwapping"),
    "public-docs-2010": ("swapping", "PublicDocs2010"),
    "record-swapping": ("swapping", "RecordSwapping"),
    "noisy-tables": ("noisy_tables", "NoisyTables"),
    "topdown": ("topdown", "TopDown"),
    "phsafe": ("phsafe", "PHSafe"),
}


class _Catalogue(Mapping[str, type[Mechanism]]):
    """The classes of all mechanisms by name."""

    def __getitem__(self, name: str) -> type[Mechanism]:
        module, kind = _HOMES[name]
        found = getattr(import_module(f"discreet.mechanisms.{module}"), kind)
        return cast(type[Mechanism], found)

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


MECHANISMS = _Catalogue()


def mechanism(name: str, schema: Schema, parameters: dict[str, Any]) -> Mechanism:
    """Return the mechanism `name` for censuses of `schema`, with checked parameters."""
    if name not in _HOMES:
        raise BadInput(f"no mechanism '{name}'.{suggest(name, MECHANISMS)}")
    kind: Any = MECHANISMS[name]  # a pydantic model
    made: Mechanism = parse(kind, {"census_schema": schema, **parameters}, name)
    return made
