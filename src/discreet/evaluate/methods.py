"""Ways to swap pairs of households that come with discreet, by name, for studies of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.census import Schema
from discreet.config import suggest
from discreet.errors import BadInput
from discreet.mechanisms import Mechanism, mechanism

#: Mechanism and parameters; columns and levels are those of the US profile.
SWAP_METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("targeted-swapping", {"preset": "paper"}),
    "published-code": ("targeted-swapping", {"preset": "published-code"}),
    "high-variance": ("targeted-swapping", {"preset": "high-variance"}),
    "public-docs-2010": ("public-docs-2010", {}),
    "record-swapping": (
        "record-swapping",
        {
            "within": "state",
            "hierarchy": ["county", "tract"],
            "risk_of": "persons",
            "risk_variables": ["age_group", "sex", "race_group", "hispanic"],
            "k_anonymity": 3,
            "similar": [
                ["size", "adults", "tenure", "county"],
                ["size", "adults", "tenure"],
                ["size", "adults"],
            ],
        },
    ),
}


def swap_methods(
    schema: Schema, names: Sequence[str], rates: Sequence[str]
) -> dict[str, list[Mechanism]]:
    """Return the named methods of `SWAP_METHODS`, each at every rate."""
    made: dict[str, list[Mechanism]] = {}
    for name in names:
        if name not in SWAP_METHODS:
            raise BadInput(f"no preset '{name}'.{suggest(name, SWAP_METHODS)}")
        kind, parameters = SWAP_METHODS[name]
        made[name] = [mechanism(kind, schema, {**parameters, "rate": rate}) for rate in rates]
    return made
