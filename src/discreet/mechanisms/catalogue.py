"""Mechanisms by name: one dictionary, no plug-ins."""

from __future__ import annotations

from typing import Any

from discreet.census import Schema
from discreet.config import parse, suggest
from discreet.errors import BadInput
from discreet.mechanisms.contract import Mechanism
from discreet.mechanisms.noisy_tables import NoisyTables
from discreet.mechanisms.phsafe import PHSafe
from discreet.mechanisms.swapping import PermutationSwapping, TargetedSwapping
from discreet.mechanisms.swapping.public_docs import PublicDocs2010
from discreet.mechanisms.swapping.record import RecordSwapping
from discreet.mechanisms.topdown import TopDown

MECHANISMS: dict[
    str,
    type[PermutationSwapping]
    | type[TargetedSwapping]
    | type[PublicDocs2010]
    | type[RecordSwapping]
    | type[NoisyTables]
    | type[TopDown]
    | type[PHSafe],
] = {
    PermutationSwapping.name: PermutationSwapping,
    TargetedSwapping.name: TargetedSwapping,
    PublicDocs2010.name: PublicDocs2010,
    RecordSwapping.name: RecordSwapping,
    NoisyTables.name: NoisyTables,
    TopDown.name: TopDown,
    PHSafe.name: PHSafe,
}


def mechanism(name: str, schema: Schema, parameters: dict[str, Any]) -> Mechanism:
    """Return the mechanism `name` for censuses of `schema`, with checked parameters."""
    if name not in MECHANISMS:
        raise BadInput(f"no mechanism '{name}'.{suggest(name, MECHANISMS)}")
    return parse(MECHANISMS[name], {"census_schema": schema, **parameters}, name)
