"""The household model: read from `us-model.yaml`, laid out as arrays for the kernels."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.files import check_format, read_yaml
from discreet.simulate.race import MASKS, Origins, code_of_mask, cumulative, origins, two_or_more
from discreet.simulate.records import Record, as_record

Floats = npt.NDArray[np.float64]

AGE_CLASSES = ("alone", "couple_2", "couple_3", "couple_4", "other_2", "other_3")
TWO_OR_MORE = ("not_hispanic", "hispanic")


class Model(NamedTuple):
    """Everything the US simulator knows about households."""

    text: Mapping[str, Any]
    tables: Record
    """Cumulative shares and probabilities the kernels draw from."""
    quarters: Record
    """Group quarters, one row per type."""
    quarters_codes: list[str]
    origins: Origins


@functools.cache
def load_model() -> Model:
    """Return the household model shipped with the package."""
    source = resources.files("discreet.simulate") / "us-model.yaml"
    with resources.as_file(source) as path:
        text = check_format(read_yaml(path), path.name)
    groups = origins(text["detail"], text["second_detail"])
    types = text["quarters"]["types"]
    tables = as_record(_tables(text, groups))
    return Model(text, tables, as_record(_quarters(types)), list(types), groups)


def _tables(text: Mapping[str, Any], groups: Origins) -> dict[str, npt.ArrayLike]:
    married, cohabiting = _couples(text["couple"])
    ages = text["householder_age"]
    homes = text["at_home"]
    mixed = text["mixed"]
    tenure = text["tenure"]
    hispanic = np.array(text["hispanic"]["by_race"])
    both = ("couple", "other")
    return dict(
        sizes=cumulative(text["size"]),
        size_tail=text["size_tail"],
        size_most=text["size_most"],
        married=married,
        cohabiting=cohabiting,
        same_sex=_row(text["couple"], "same_sex_married", "same_sex_cohabiting"),
        female=_row(text["female_householder"], "alone", "couple", "other"),
        householder_age=cumulative([ages[name] for name in AGE_CLASSES]),
        oldest=text["oldest"],
        gap=_row(text["spouse_gap"], "mean", "sd"),
        child=np.array([text["child"][name] for name in both]),
        child_kind=cumulative([text["child_kind"][name] for name in both]),
        mother=_row(text["mother_age"], "mean", "sd", "least", "most"),
        at_home=np.array([[float(age), share] for age, share in homes.items()]),
        others=cumulative([text["others"][name] for name in both]),
        mixed=np.minimum(0.7, mixed["base"] * np.array(mixed["factor"])),
        other_race=np.array(mixed["other_race"]),
        mixed_shares=_row(mixed, "partner", "one_member", "child_of_both"),
        owner=np.array(tenure["owner"]),
        owner_age=np.array(tenure["age_factor"]),
        owner_couple=_row(tenure, "couple_factor", "other_factor"),
        mortgage=np.array(tenure["mortgage"]),
        no_rent=tenure["no_rent"],
        status=cumulative(text["vacancy"]["status"]),
        hispanic_logit=np.log(hispanic / (1 - hispanic)),
        whole_household=text["hispanic"]["whole_household"],
        two_or_more=np.stack([two_or_more(text["two_or_more"][x]) for x in TWO_OR_MORE]),
        code_of_mask=code_of_mask(),
        masks=MASKS,
        origin_first=groups.first,
        origin_share=groups.share,
        inherit=text["inherit_detail"],
        ethnicity=cumulative(list(text["hispanic_detail"].values())),
        person_imputed=text["imputation"]["persons"],
    )


def _row(text: Mapping[str, Any], *names: str) -> Floats:
    return np.array([float(text[name]) for name in names])


def _couples(text: Mapping[str, Any]) -> tuple[Floats, Floats]:
    """Return P(married) and P(cohabiting) by race of householder and size 2, ..., 7+."""
    married, cohabiting = np.array(text["married"]), np.array(text["cohabiting"])
    m = np.outer(text["married_odds"], married)
    c = np.outer(text["cohabiting_odds"], cohabiting)
    total = m + c + (1 - married - cohabiting)
    return m / total, c / total


def _quarters(types: Mapping[str, Any]) -> dict[str, npt.ArrayLike]:
    bands = max(len(row["ages"]) for row in types.values())
    low, high, weight = (np.zeros((len(types), bands)) for _ in range(3))
    for i, row in enumerate(types.values()):
        ages = np.array(row["ages"], dtype=np.float64)
        low[i, : len(ages)], high[i, : len(ages)], weight[i, : len(ages)] = ages.T
    residents = np.array([row["residents"] for row in types.values()])
    return dict(
        institutional=np.array([code[0] in "1234" for code in types], dtype=np.uint8),
        residents=residents / residents.sum(),
        mean_size=np.array([float(row["size"]) for row in types.values()]),
        male=np.array([row["male"] for row in types.values()]),
        age_low=low,
        age_high=high,
        age_share=cumulative(weight),
    )
