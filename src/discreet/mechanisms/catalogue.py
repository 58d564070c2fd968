"""Mechanisms by name: one dictionary, no plug-ins."""

from __future__ import annotations

from typing import Any

from discreet.census import Schema
from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.mechanisms.contract import Mechanism
from discreet.mechanisms.noisy_tables import NoisyTables
from discreet.mechanisms.swapping import PermutationSwapping

MECHANISMS: dict[str, type[PermutationSwapping] | type[NoisyTables]] = {
    PermutationSwapping.name: PermutationSwapping,
    NoisyTables.name: NoisyTables,
}


def mechanism(name: str, schema: Schema, parameters: dict[str, Any]) -> Mechanism:
    """Return the mechanism `name` for censuses of `schema`, with checked parameters."""
    if name not in MECHANISMS:
        raise BadInput(f"no mechanism '{name}'.{suggest(name, MECHANISMS)}")
    return parse(MECHANISMS[name], {"census_schema": schema, **parameters}, name)
