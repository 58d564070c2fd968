"""PHSafe as a mechanism: count nine tables, add exact noise to every cell, publish.

Every basis cell of every level gets independent noise, empty cells too; which cells exist
follows from the configuration alone. Nothing is made consistent and negative numbers stay.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import PrivateAttr, model_validator

from discreet.census import OF_HOUSEHOLD, OF_PERSON, Census, Schema, TableName
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.files import write_yaml
from discreet.mechanisms.domain import domain_of
from discreet.mechanisms.phsafe.accounting import Account, Noise, Part
from discreet.mechanisms.phsafe.parameters import Parameters
from discreet.mechanisms.phsafe.publishing import account_of, write_release
from discreet.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Randomness,
    key_of,
    load_compiled,
    measure,
)
from discreet.products import sdhc
from discreet.spec import (
    MULTIPLICATIVE,
    NORMALISED_RENYI,
    Budget,
    Exactly,
    Indicator,
    Multiverse,
    Specification,
    hamming_of_multisets,
    symmetric_difference,
)

SOURCES: dict[Noise, str] = {
    "gaussian": "Sexton et al. 2024, Theorems 1 to 4",
    "geometric": "Ghosh, Roughgarden and Sundararajan 2012; Sexton et al. 2024, stability",
}

#: What the distances 2 tau + 2 and 2 rest on.
UNIT_RECORD = (
    "with one person, the records of the housing units that it leaves or joins may change in all "
    "but their place: types, tenure, race of the householder"
)


class PHSafe(Parameters):
    """Publish tables PH1 to PH8 of the Supplemental DHC file with noise.

    Parameters
    ----------
    census_schema
        The schema of the censuses this mechanism takes: the US layout.
    configuration, states, budgets, thresholds, noise, change
        As in `Parameters`.
    """

    name: ClassVar[str] = "phsafe"
    #: Noisy counts are themselves what is published, so the draw may be kept.
    confidential_draw: ClassVar[bool] = False

    census_schema: Schema

    # What was checked is what is drawn from: the census is counted once, not twice.
    _counted: tuple[Census, sdhc.Tally] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _possible(self) -> PHSafe:
        schema = self.census_schema
        own: dict[TableName, list[str]] = {
            "units": ["state", *sdhc.UNIT_COLUMNS],
            "persons": [*sdhc.PERSON_COLUMNS],
        }
        lost = [n for of, names in own.items() for n in names if schema.home(n, of) is None]
        if lost:
            raise ValueError(
                f"the tables need the column '{lost[0]}', and schema {schema.name} has none; "
                f"use a census of the profile us-decennial"
            )
        kinds = schema.kinds
        if (kinds.occupied, kinds.vacant) != (["occupied"], ["vacant"]):
            raise ValueError(
                f"the tables count units of the kinds 'occupied' and 'vacant', and schema "
                f"{schema.name} has other kinds of housing units; use the profile us-decennial"
            )
        OF_HOUSEHOLD.check(schema, "units", own["units"], self.name)
        # Who is truncated depends on these: of the person alone, or others would be, too.
        OF_PERSON.check(schema, "persons", own["persons"], self.name)
        _ = self.settings
        return self

    @property
    def account(self) -> Account:
        """Return what every table and level costs."""
        return self.settings.account

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data, the configuration written out."""
        written = self.settings.model_dump(mode="json", exclude={"format_version", "name", "title"})
        return {**written, "change": self.change}

    # -- what is promised -------------------------------------------------------------

    def check(self, census: Census) -> None:
        """Refuse a census with a record that some table has no cell for."""
        if not census.linked or census.units is None:
            raise BadInput("phsafe: persons must name the unit they live in, and units be there.")
        known = self._counted is not None and self._counted[0] is census
        with ThreadPoolExecutor(1) as pool:  # the engine counts meanwhile
            loading = pool.submit(_load, self.account)
            self._counted = census, self._tally(census)
            loading.result()
        if self.settings.remark and not known:
            # No line of ours is meant, so none is shown.
            warnings.warn_explicit(self.settings.remark, UserWarning, self.name, 1)

    def _tally(self, census: Census) -> sdhc.Tally:
        if self._counted is not None and self._counted[0] is census:
            return self._counted[1]
        tables = list(dict.fromkeys(part.table for part in self.account.parts))
        taus = {part.table: part.threshold for part in self.account.parts}
        thresholds = {table: tau for table, tau in taus.items() if tau is not None}
        tally = sdhc.tally_census(census, thresholds, self.settings.states, tables)
        sdhc.check_cells(tally, tables)
        return tally

    def facts(self, census: Census) -> dict[str, int]:
        """Return nothing: the budget does not depend on the data."""
        return {}

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return the specification, with the budget as published."""
        gaussian = self.settings.noise == "gaussian"
        premetric = symmetric_difference if self.change == "add-remove" else hamming_of_multisets
        return Specification(
            domain=domain_of(self.census_schema),
            multiverse=Multiverse(invariants=(self._places(),)),
            input_premetric=premetric("person"),
            output_premetric=NORMALISED_RENYI if gaussian else MULTIPLICATIVE,
            budget=Budget(
                unit="rho2" if gaussian else "epsilon",
                amount=Exactly(of=self.account.published(self.change)),
                source=SOURCES[self.settings.noise],
                status="published",
                conditions=(
                    f"the account of {self.settings.territory}; counted: {self.settings.covered}",
                    UNIT_RECORD,
                    *filter(None, [self.settings.remark]),
                ),
            ),
        )

    def _places(self) -> Indicator:
        """Return what is taken as public: where housing is (Bailie, Gong and Meng, Table 4)."""
        kinds = self.census_schema.kinds
        return Indicator(
            name=f"{self.census_schema.block}s with at least one housing unit",
            of="units",
            where={"kind": [*kinds.occupied, *kinds.vacant]},
            level=self.census_schema.block,
        )

    # -- what is done -----------------------------------------------------------------

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Write the noisy counts of every table; the exact ones are not kept."""
        tally = self._tally(census)
        self._counted = None
        noisy = _measure(rng, self.account, self.settings.states, tally)
        drawn: dict[str, list[dict[str, NDArray[Any]]]] = {}
        for part in self.account.parts:
            rows = sdhc.labels(part.table, part.level, self.settings.states)
            rows["value"] = noisy[part]
            drawn.setdefault(part.table, []).append(rows)
        for table, levels in drawn.items():
            columns = {name: np.concatenate([one[name] for one in levels]) for name in levels[0]}
            with census.engine.lend(columns) as frame:
                census.engine.write_parquet(frame, folder / "tables" / f"{table}.parquet")

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Write the tables with the variance of each number, and what follows from them."""
        variances = {(part.table, part.level): _variance(part) for part in self.account.parts}
        write_release(folder / "tables", out, engine, self.settings, variances)
        write_yaml(out / "accounting.yaml", account_of(self.settings))


def _load(account: Account) -> None:
    """Load the compiled code that is wanted later, and have the variances: a while, both."""
    load_compiled()
    sdhc.estimates.averages([1.0], [1.0], [1.0], [1.0], 1, 2)
    sdhc.estimates.estimate_sums([[1.0, 1.0]], [[1.0, 1.0]], [[0, 1]])
    for part in account.parts:
        _variance(part)  # kept by the law


def _measure(
    rng: Randomness, account: Account, states: tuple[str, ...], tally: sdhc.Tally
) -> dict[Part, NDArray[np.int64]]:
    """Return the counts of every part with independent noise in every cell."""
    drawn = {}
    # In the order of their parameters: the law of the noise is prepared once for each.
    for part in sorted(account.parts, key=lambda part: part.parameter):
        law = DiscreteGaussian if part.noise == "gaussian" else DiscreteLaplace
        key = int(key_of([part.table], [part.level])[0])
        exact = sdhc.counts_of(tally, part.table, part.level, part.threshold).reshape(-1)
        size = sdhc.cells_of(part.level, part.table, states)
        drawn[part] = measure(rng, law, "phsafe", key, part.parameter, exact, size)
    return drawn


def _variance(part: Part) -> float:
    """Return the variance of the noise; the geometric one is 2 r / (1 - r)^2, r = exp(-1/s)."""
    if part.noise == "gaussian":
        return float(DiscreteGaussian(part.parameter).variance())
    return 1 / (2 * math.sinh(float(1 / (2 * part.parameter))) ** 2)
