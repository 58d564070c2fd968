"""Mistakes planted one at a time: the random tests must find each of them."""

from functools import partial

import narwhals as nw
import pytest

from discreet.census import Contribution, Dependence, Schema
from discreet.engine import Engine
from discreet.mechanisms import NoisyTables, mechanism, noisy_tables
from discreet.mechanisms.topdown import promise
from neighbours import steps, subjects
from neighbours.draws import Draw
from neighbours.promises_kept import parts_used
from neighbours.subjects import Case
from neighbours.watch import AskedForOthers, TooMuch, UsedTwice, UsedWithoutNoise

#: Cases in which a mistake has to show.
CASES = 200


def halve_the_sensitivity(monkeypatch):
    """Spend as if to replace a record were to add one; promise the same as before."""
    right = NoisyTables.parameter

    def wrong(self, query):
        return right(self, query) / (2 if self.change == "replace" else 1)

    monkeypatch.setattr(NoisyTables, "parameter", wrong)
    monkeypatch.setattr(NoisyTables, "_spent", lambda self: self.budget)


def promise_a_tenth(monkeypatch):
    """Promise a tenth of what TopDown spends."""
    right = promise.spent
    monkeypatch.setattr(promise, "spent", lambda strategy: right(strategy) / 10)


def tolerate(table: str, what: Dependence):
    """Let tables with noise use columns that depend on more than they may."""

    def plant(monkeypatch):
        right = noisy_tables.CONTRIBUTIONS[table]
        wrong = Contribution(right.unit, right.tolerated | {what})
        monkeypatch.setitem(noisy_tables.CONTRIBUTIONS, table, wrong)

    return plant


def share_noise(monkeypatch):
    """Give the noise of all tables one name."""
    monkeypatch.setattr(noisy_tables, "key_of", lambda *parts: [7])


def declare_nothing(monkeypatch):
    """Keep totals exact in TopDown, and do not say so."""
    monkeypatch.setattr(promise, "invariants", lambda strategy, schema: [])


def list_cells_of_the_data(monkeypatch):
    """Measure only cells that somebody is in."""
    right = noisy_tables._grid

    def wrong(census, table, level):
        return census.engine.materialise(right(census, table, level).filter(nw.col("count") > 0))

    monkeypatch.setattr(noisy_tables, "_grid", wrong)


MISTAKES = {
    "a sensitivity halved": ("noisy-tables", halve_the_sensitivity, TooMuch),
    "a tenth of the budget promised": ("topdown", promise_a_tenth, TooMuch),
    "a column of a neighbour's record used": (
        "noisy-tables", tolerate("persons", Dependence.MEMBERS), TooMuch,
    ),
    "a column of confidential geography used": (
        "noisy-tables", tolerate("units", Dependence.CONFIDENTIAL), TooMuch,
    ),
    "a column made from other records used": (
        "noisy-tables", tolerate("units", Dependence.OTHERS), TooMuch,
    ),
    "noise shared by two cells": ("noisy-tables", share_noise, UsedTwice),
    "an exact total not declared": ("topdown", declare_nothing, UsedWithoutNoise),
    "a list of cells taken from the data": (
        "noisy-tables", list_cells_of_the_data, (AskedForOthers, UsedWithoutNoise),
    ),
}  # fmt: skip


#: A table by a column of each kind that should be refused. Schemas drawn at random have few of
#: them that matter, so this one is given, and the censuses are drawn.
CODES = {"codes": ["a", "b"], "required": True}
TABLES = {Dependence.MEMBERS: "P", Dependence.CONFIDENTIAL: "C", Dependence.OTHERS: "O"}
SCHEMA = Schema.model_validate(
    {
        "name": "odd",
        "title": "An odd country",
        "spine": [{"name": "land", "pattern": "[AB]"}, {"name": "plot", "pattern": "[AB][0-9]"}],
        "geography": {"crowd": {**CODES, "confidential": True}},
        "kinds": {"occupied": ["home"]},
        "units": {
            "kind": {"codes": ["home"], "required": True},
            "rank": {**CODES, "from_others": True},
        },
        "persons": {"sex": CODES},
        "computed_units": {
            "size": {"members": {}},
            "large": {"of": "size", "bins": {"no": [0, 2], "yes": [3, None]}},
            "busy": {"of": "crowd", "groups": {"no": ["a"], "yes": ["b"]}},
        },
        "tables": [
            {"name": "P", "title": "", "count": "persons", "by": ["large"], "levels": ["land"]},
            {"name": "C", "title": "", "count": "units", "by": ["busy"], "levels": ["land"]},
            {"name": "O", "title": "", "count": "units", "by": ["rank"], "levels": ["land"]},
        ],
    }
)


def by_what_is_refused(what: Dependence, draw: Draw) -> Case:
    query = {"table": TABLES[what], "level": "land", "share": "1"}
    parameters = {"noise": "gaussian", "budget": "1", "queries": [query]}
    made = mechanism("noisy-tables", SCHEMA, parameters)
    apart = steps.persons_apart if what is Dependence.MEMBERS else steps.households_apart
    return subjects.case_of(draw, made, steps.STEPS, apart)


GIVEN = {
    "a column of a neighbour's record used": Dependence.MEMBERS,
    "a column of confidential geography used": Dependence.CONFIDENTIAL,
    "a column made from other records used": Dependence.OTHERS,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    name, plant, caught = MISTAKES[mistake]
    plant(monkeypatch)
    drawn = partial(by_what_is_refused, GIVEN[mistake]) if mistake in GIVEN else None
    with pytest.raises(caught):
        parts_used(name, Engine(threads=1), CASES, simplest=False, draw_case=drawn)
