"""Mistakes planted one at a time: the random tests must find each of them."""

from functools import partial

import narwhals as nw
import pytest

from discreet.census import Contribution, Dependence
from discreet.engine import Engine
from discreet.mechanisms import NoisyTables, noisy_tables
from discreet.mechanisms.topdown import promise
from neighbours import subjects
from neighbours.promises_kept import parts_used
from neighbours.watch import AskedForOthers, TooMuch, UsedTwice, UsedWithoutNoise

#: Cases in which a mistake has to show.
CASES = 600


def halve_the_sensitivity(monkeypatch):
    """Spend as if to replace a record were to add one; promise the same as before."""
    right = NoisyTables.parameter

    def wrong(self, query):
        return right(self, query) / (2 if self.change == "replace" else 1)

    monkeypatch.setattr(NoisyTables, "parameter", wrong)
    monkeypatch.setattr(NoisyTables, "_spent", lambda self: self.budget)


def promise_half(monkeypatch):
    """Promise half of what TopDown spends."""
    right = promise.spent
    monkeypatch.setattr(promise, "spent", lambda strategy: right(strategy) / 2)


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
    "a budget halved": ("topdown", promise_half, TooMuch),
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


#: Few tables depend on what should be refused: only those are drawn.
DEPENDS = {
    "a column of a neighbour's record used": Dependence.MEMBERS,
    "a column of confidential geography used": Dependence.CONFIDENTIAL,
    "a column made from other records used": Dependence.OTHERS,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    name, plant, caught = MISTAKES[mistake]
    plant(monkeypatch)
    drawn = partial(subjects.noisy_tables, wanted=DEPENDS[mistake]) if mistake in DEPENDS else None
    with pytest.raises(caught):
        parts_used(name, Engine(threads=1), CASES, simplest=False, draw_case=drawn)
