"""The rules of the registry, written out so that entries can be checked without it.

They are those of its schema (unknown keys and values refused) and of its own checks: the
address follows from name, curators and year, dates are quoted, text of several lines
stands in literal blocks, formulas are written with two backslashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

import yaml

from discreet.spec.registry.metadata import (
    AccessType,
    ModelName,
    ProductType,
    ReleaseType,
    Sector,
    SourceType,
    Status,
    is_date,
)

VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")

#: What may stand under a key: a kind of value, a choice of texts, or keys again.
Rule = str | tuple[str, ...] | dict[str, Any]

SHAPE: dict[str, Rule] = {
    "url_slug": "text",
    "status": get_args(Status),
    "tier": "tier",
    "deployment": {
        "basic": {
            "name": "text",
            "data_curators": "texts",
            "description": "text",
            "intended_use": "text",
            "data_product_type": get_args(ProductType),
            "data_product_region": "text",
            "data_product_sector": get_args(Sector),
            "publication_date": "date",
        },
        "dp_variant": {
            "variant_name": VARIANTS,
            "data_domain": "text",
            "unprotected_quantities": "text",
        },
        "privacy_loss": {
            "privacy_unit": "text",
            "privacy_unit_details": "text",
            "privacy_parameters": {
                "epsilon": "number",
                "delta": "number or text",
                "rho": "number",
            },
            "privacy_parameters_details": "text",
        },
        "deployment_model": {
            "model_name": get_args(ModelName),
            "model_name_details": "text",
            "actors": "text",
            "release_type": get_args(ReleaseType),
            "release_type_details": "text",
            "data_source_type": get_args(SourceType),
            "data_source_type_details": "text",
            "access_type": get_args(AccessType),
            "access_type_details": "text",
        },
        "accounting": {"post_processing": "text", "composition": "text"},
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": "text",
            "mechanisms": "text",
            "justification": "text",
        },
        "administrative": {"sources": "text", "notes": "text", "registry_authors": "texts"},
    },
}

#: What an entry of each tier has filled in; a tier has those below it too.
_BASIC = "deployment.basic."
TIERS: dict[int, tuple[str, ...]] = {
    1: (
        "url_slug",
        "status",
        "tier",
        f"{_BASIC}name",
        f"{_BASIC}data_curators",
        f"{_BASIC}description",
        f"{_BASIC}intended_use",
        f"{_BASIC}data_product_type",
        f"{_BASIC}data_product_region",
        f"{_BASIC}publication_date",
        "deployment.administrative.registry_authors",
    ),
    2: (
        "deployment.dp_variant.variant_name",
        "deployment.privacy_loss.privacy_unit",
        "deployment.privacy_loss.privacy_parameters",
        "deployment.deployment_model.model_name",
        "deployment.deployment_model.release_type",
        "deployment.deployment_model.data_source_type",
        "deployment.deployment_model.access_type",
    ),
    3: (
        "deployment.dp_variant.data_domain",
        "deployment.dp_variant.unprotected_quantities",
        "deployment.privacy_loss.privacy_unit_details",
        "deployment.privacy_loss.privacy_parameters_details",
        "deployment.deployment_model.actors",
        "deployment.accounting.post_processing",
        "deployment.accounting.composition",
        "deployment.implementation.preprocessing_and_hyperparameter_tuning",
        "deployment.implementation.mechanisms",
        "deployment.implementation.justification",
    ),
}


def slug(name: str, curators: Sequence[str], date: str) -> str:
    """Return the stable address: name, curators and year, other characters to hyphens.

    >>> slug("2020 Census Data", ["U.S. Census Bureau"], "2021-08-12")
    '2020-census-data-u-s-census-bureau-2021'
    """
    parts = (name, "-".join(curators), date.split("-")[0])
    return "-".join(re.sub(r"\W+", "-", part.lower()).replace("_", "-") for part in parts)


def missing(entry: Mapping[str, Any], tier: int) -> list[str]:
    """Return what an entry lacks for a tier."""
    wanted = [path for number, paths in TIERS.items() if number <= tier for path in paths]
    return [path for path in wanted if _at(entry, path) in (None, "", [], {})]


def problems(entry: Mapping[str, Any]) -> list[str]:
    """Return every rule of the registry that an entry breaks, one line each."""
    found = _misfits(entry, SHAPE, "")
    found += [f"{path}: required" for path in missing(entry, 1)]
    if found:
        return found  # the rules below need what is missing
    basic = entry["deployment"]["basic"]
    if entry["url_slug"] != slug(basic["name"], basic["data_curators"], basic["publication_date"]):
        found.append("url_slug: must be name, curators and year joined by hyphens")
    lacking = missing(entry, entry["tier"])
    found += [f"{path}: needed for tier {entry['tier']}" for path in lacking]
    if _at(entry, "deployment.dp_variant.variant_name") == "Custom":
        relation = ("privacy_unit_details", "privacy_parameters_details")
        paths = [f"deployment.privacy_loss.{key}" for key in relation]
        found += [
            f"{path}: a custom variant must spell out its relation"
            for path in paths
            if not _at(entry, path) and path not in lacking
        ]
    return found


def problems_of_text(text: str) -> list[str]:
    """Return every rule of formatting that the text of an entry breaks."""
    found = []
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if isinstance(token, yaml.AliasToken | yaml.AnchorToken):
                found.append(f"line {token.start_mark.line + 1}: no anchors and aliases")
            if not isinstance(token, yaml.ScalarToken):
                continue
            row, lines = token.start_mark.line + 1, token.end_mark.line - token.start_mark.line
            if lines and token.style != "|":
                found.append(f"line {row}: text of several lines must be a literal block (|)")
    except yaml.YAMLError:
        return ["the file is not YAML"]
    return found


def _misfits(value: Any, rule: Rule, path: str) -> list[str]:
    """Return where a value does not fit its rule."""
    if isinstance(rule, dict):
        if not isinstance(value, Mapping):
            return [f"{path or 'the entry'}: must hold keys"]
        found = []
        for key, inner in value.items():
            below = f"{path}.{key}".lstrip(".")
            known = rule.get(key)
            found += [f"{below}: unknown key"] if known is None else _misfits(inner, known, below)
        return found
    if isinstance(rule, tuple):
        return [] if value in rule else [f"{path}: must be one of {', '.join(rule)}"]
    fits, must = _KINDS[rule]
    if not fits(value):
        return [f"{path}: must be {must}"]
    # The registry shows text as Markdown, which eats one backslash of \\( \\).
    texts = value if isinstance(value, list) else [value]
    single = any(isinstance(t, str) and re.search(r"(?<!\\)\\[()\[\]]", t) for t in texts)
    return [f"{path}: formulas are written with two backslashes"] if single else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda value: isinstance(value, str), "text"),
    "texts": (_is_texts, "a list of texts"),
    "date": (
        lambda value: isinstance(value, str) and is_date(value),
        "a day as quoted text, YYYY-MM-DD",
    ),
    "tier": (lambda value: type(value) is int and value in TIERS, "1, 2 or 3"),
    "number": (_is_number, "a number that is not negative"),
    "number or text": (
        lambda value: _is_number(value) or isinstance(value, str),
        "a number that is not negative, or text",
    ),
}


def _at(entry: Mapping[str, Any], path: str) -> Any:
    value: Any = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
