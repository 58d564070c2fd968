"""Write a promise as an entry of the registry.

The five blocks map onto it: domain to `data_domain`, multiverse to
`unprotected_quantities`, input premetric to `privacy_unit`, output premetric to
`variant_name`, budget to `privacy_parameters`. What is registered is the budget of the
specification, never an achieved loss.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from discreet.errors import BadInput
from discreet.files import write_text
from discreet.spec.budget import (
    SQUARED,
    Exactly,
    FunctionOfUniverse,
    LogRational,
    NoFiniteBudget,
)
from discreet.spec.registry.metadata import Metadata
from discreet.spec.registry.rules import missing, problems, problems_of_text, slug
from discreet.spec.specification import Specification

_VARIANTS = {
    "multiplicative": "Pure DP",
    "approximate": "Approximate DP",
    "normalised-renyi": "Zero-concentrated DP",
    "renyi": "Renyi DP",
}


def registry_entry(specification: Specification, metadata: Metadata) -> dict[str, Any]:
    """Return the entry for a promise, in the order the registry uses.

    The variant is "Custom" when there are invariants: the usual names mean a promise
    among all data sets.
    """
    entry: dict[str, Any] = {
        "url_slug": slug(metadata.name, metadata.data_curators, metadata.publication_date),
        "status": metadata.status,
        "tier": 3,
        "deployment": {
            "basic": _basic(metadata),
            "dp_variant": {
                "variant_name": _variant(specification),
                "data_domain": specification.domain.describe(),
                "unprotected_quantities": _unprotected(specification),
            },
            "privacy_loss": _privacy_loss(specification),
            "deployment_model": _model(metadata),
            "accounting": {
                "post_processing": metadata.post_processing,
                "composition": metadata.composition,
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": metadata.preprocessing,
                "mechanisms": metadata.mechanisms,
                "justification": metadata.justification,
            },
            "administrative": {
                "sources": metadata.sources,
                "notes": metadata.notes,
                "registry_authors": list(metadata.registry_authors),
            },
        },
    }
    entry["deployment"] = _without_empty(entry["deployment"])
    entry["tier"] = next(tier for tier in (3, 2, 1) if not missing(entry, tier))
    return entry


def _basic(metadata: Metadata) -> dict[str, Any]:
    return {
        "name": metadata.name,
        "data_curators": list(metadata.data_curators),
        "description": metadata.description,
        "intended_use": metadata.intended_use,
        "data_product_type": metadata.data_product_type,
        "data_product_region": metadata.data_product_region,
        "data_product_sector": metadata.data_product_sector,
        "publication_date": metadata.publication_date,
    }


def _model(metadata: Metadata) -> dict[str, Any]:
    return {
        "model_name": metadata.model_name,
        "model_name_details": metadata.model_name_details,
        "actors": metadata.actors,
        "release_type": metadata.release_type,
        "release_type_details": metadata.release_type_details,
        "data_source_type": metadata.data_source_type,
        "data_source_type_details": metadata.data_source_type_details,
        "access_type": metadata.access_type,
        "access_type_details": metadata.access_type_details,
    }


def _variant(specification: Specification) -> str:
    if specification.multiverse.invariants:
        return "Custom"
    return _VARIANTS.get(specification.output_premetric.name, "Custom")


def _unprotected(specification: Specification) -> str:
    lines = [f"- {one.describe()}" for one in specification.multiverse.invariants]
    lines += [
        f"- {one.describe()}, because only data sets of equal size are compared"
        for one in specification.hidden_invariants()
    ]
    return "\n".join(lines) or "None but the schema and the geography."


def _privacy_loss(specification: Specification) -> dict[str, Any]:
    premetric = specification.input_premetric
    details = [
        f"Distance between two data sets: {premetric.definition} ({premetric.properties.symbol}).",
        f"The promise holds for all pairs of data sets {_among(specification)}, at every finite "
        "distance and in proportion to it.",
    ]
    if premetric.counts == "records" and specification.domain.stage != "raw":
        details.append(
            f"A unit is a {premetric.unit} record after imputation, not a contributor; somebody "
            "whose record was copied k times stands behind 1 + k of them."
        )
    return {
        "privacy_unit": premetric.per,
        "privacy_unit_details": "\n".join(f"- {line}" for line in details),
        "privacy_parameters": _parameters(specification),
        "privacy_parameters_details": "\n".join(f"- {line}" for line in _told(specification)),
    }


def _among(specification: Specification) -> str:
    exact = specification.multiverse.invariants
    return "that agree on the unprotected quantities" if exact else "of the domain"


def _parameters(specification: Specification) -> dict[str, Any]:
    """Return the budget in the registry's parameters, or nothing where it has none for it."""
    amount, output = specification.budget.amount, specification.output_premetric
    if isinstance(amount, FunctionOfUniverse | NoFiniteBudget):
        return {}
    if output.name == "normalised-renyi":
        return {"rho": _number(amount)}
    if output.name == "multiplicative":
        return {"epsilon": _number(amount)}
    if output.name == "approximate" and output.delta is not None:
        return {"epsilon": _number(amount), "delta": float(output.delta)}
    return {}


def _number(amount: Exactly | LogRational) -> float:
    """Return the amount with six decimals, never below it."""
    millionths = amount.upper_bound() * 10**6
    return float(Fraction(-(-millionths.numerator // millionths.denominator), 10**6))


def _told(specification: Specification) -> list[str]:
    budget, output = specification.budget, specification.output_premetric
    squared = budget.unit in SQUARED
    number = "the square root of the budget" if squared else "the budget"
    relation = (
        f"Distance between the laws of the output: {output.definition} "
        f"({output.properties.symbol}), at most {number} times the distance of the data sets."
    )
    lines = [f"{budget.describe()} per {specification.input_premetric.per}.", relation]
    if output.name == "normalised-renyi":
        lines.append(
            "rho in this entry is the parameter of Bun and Steinke (2016), written rho^2 above: it "
            "is the square of the number that multiplies the distance."
        )
    lines.append(
        f"Budget, not achieved loss. Source: {budget.source}; the rule is {budget.status}."
    )
    return lines + [f"Condition: {condition}." for condition in budget.conditions]


def _without_empty(section: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in section.items():
        inner = _without_empty(value) if isinstance(value, Mapping) else value
        if inner not in ("", {}, []):
            kept[key] = inner
    return kept


class _Block(str):
    """Text of several lines, written as a literal block."""


class _Dumper(yaml.SafeDumper):
    """Dumper that writes no aliases, never folds a line, and keeps blocks literal."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(
    _Block,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|"),
)


def _blocks(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _blocks(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_blocks(inner) for inner in value]
    if isinstance(value, str) and "\n" in value.strip():
        # Spaces at the end of a line would force another style.
        return _Block("\n".join(line.rstrip() for line in value.strip().splitlines()) + "\n")
    return value.strip() if isinstance(value, str) else value


def as_yaml(entry: Mapping[str, Any]) -> str:
    """Return the entry as text that follows the registry's rules of formatting."""
    return str(
        yaml.dump(
            _blocks(entry), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf")
        )
    )


def write(entry: Mapping[str, Any], path: Path, mode: int = 0o644) -> None:
    """Write an entry, refusing one with problems or a name the registry would reject.

    `mode` says who may read it.
    """
    found = problems(entry)
    if not re.fullmatch(r"[a-z0-9_]+\.yaml", path.name):
        found.append("the file's name must be lower-case letters, digits and _, ending in .yaml")
    text = as_yaml(entry)
    found += problems_of_text(text)
    if found:
        raise BadInput("not a valid entry of the registry:\n  " + "\n  ".join(found))
    write_text(path, text, mode)
