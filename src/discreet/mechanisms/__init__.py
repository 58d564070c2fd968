"""Mechanisms, found by name in one dictionary."""

from __future__ import annotations

from typing import Any

from discreet.census import Schema
from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.mechanisms.contract import (
    DrawRecord,
    Enumerable,
    Mechanism,
    Mode,
    Outcome,
    Release,
    ReleaseHeader,
    make_draw,
    protect,
    publish_draw,
)
from discreet.mechanisms.swapping import PermutationSwapping

MECHANISMS: dict[str, type[PermutationSwapping]] = {
    PermutationSwapping.name: PermutationSwapping,
}


def mechanism(name: str, schema: Schema, parameters: dict[str, Any]) -> Mechanism:
    """Return the mechanism `name` for censuses of `schema`, with checked parameters."""
    if name not in MECHANISMS:
        raise BadInput(f"no mechanism '{name}'.{suggest(name, MECHANISMS)}")
    return parse(MECHANISMS[name], {"census_schema": schema, **parameters}, name)


__all__ = [
    "MECHANISMS",
    "DrawRecord",
    "Enumerable",
    "Mechanism",
    "Mode",
    "Outcome",
    "PermutationSwapping",
    "Release",
    "ReleaseHeader",
    "make_draw",
    "mechanism",
    "protect",
    "publish_draw",
]
