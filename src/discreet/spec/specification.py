"""A specification: the five blocks together, in files and in plain words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import model_validator

from discreet.config import Strict, parse, suggest
from discreet.files import FORMAT_VERSION, check_format, read_yaml, write_yaml
from discreet.spec.budget import SQUARED, Budget, NoFiniteBudget
from discreet.spec.domain import WHOLE, Domain
from discreet.spec.inputs import ROWS, InputPremetric
from discreet.spec.invariants import Invariant, MarginalTable
from discreet.spec.multiverse import Multiverse, determined
from discreet.spec.outputs import OutputPremetric


class Specification(Strict):
    """A promise about a release: who, where, what, how, and how much.

    A mechanism satisfies it if for every universe and every two data sets x, x' in it
    the output premetric between the two laws of the output is at most the budget times
    the input premetric between x and x', where 0 times infinity is infinity (Bailie, Gong
    and Meng, Definition 1). This holds for all pairs in a universe, not only for
    neighbours.
    """

    format_version: int = FORMAT_VERSION
    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget

    @model_validator(mode="after")
    def _about_its_domain(self) -> Specification:
        """Refuse invariants in areas or of kinds that the domain does not know."""
        levels = {WHOLE, *self.domain.spine, *self.domain.places}
        for one in self.multiverse.invariants:
            if self.domain.spine and one.level not in levels:
                raise ValueError(
                    f"multiverse.invariants: '{one.name}': the domain has no level "
                    f"'{one.level}'.{suggest(one.level, levels)}"
                )
            strange = set(one.where.get("kind", ())) - set(self.domain.kinds)
            if self.domain.kinds and strange:
                raise ValueError(
                    f"multiverse.invariants: '{one.name}': the domain has no such kind of unit."
                    f"{suggest(min(strange), self.domain.kinds)}"
                )
        return self

    @model_validator(mode="after")
    def _told_in_its_unit(self) -> Specification:
        unit = self.output_premetric.properties.unit
        if self.budget.unit != unit:
            raise ValueError(
                f"budget.unit: budgets of the output premetric {self.output_premetric.name} "
                f"are told in {unit}"
            )
        return self

    def flavor(self) -> tuple[Domain, Multiverse, InputPremetric, OutputPremetric]:
        """Return the first four blocks: what kind of promise it is, without how much."""
        return self.domain, self.multiverse, self.input_premetric, self.output_premetric

    def hidden_invariants(self) -> tuple[Invariant, ...]:
        """Return statistics that are exact only because the input premetric makes them so.

        Data sets at infinite distance are never compared, so the connected components of
        finite distance act as an invariant: a bounded premetric fixes the number of
        records (Bailie 2025, appendix A.3.3).
        """
        premetric = self.input_premetric
        rows = next((ROWS[u] for u in ROWS if premetric.unit in (u, f"{u}s")), None)
        if premetric.unit.startswith("group of "):
            rows = next((ROWS[u] for u in ROWS if premetric.unit.endswith(f" {u}s")), None)
        if not premetric.properties.bounded or rows is None:
            return ()
        total = MarginalTable(name=f"number of {premetric.unit} records", of=rows, level=WHOLE)
        known = determined(total, self.multiverse.invariants, self.domain)
        return () if known else (total,)

    def effective_invariants(self) -> tuple[Invariant, ...]:
        """Return everything published exactly, hidden invariants included."""
        return (*self.multiverse.invariants, *self.hidden_invariants())

    def describe(self) -> str:
        """Return the promise in plain words; the budget never stands alone."""
        exact = "".join(f"\n  - {i.describe()}" for i in self.multiverse.invariants)
        conditions = "".join(f"\n  - {text}" for text in self.budget.conditions)
        where = f"among data sets that agree exactly on{exact}" if exact else "among all data sets"
        per = "" if isinstance(self.budget.amount, NoFiniteBudget) else self._per()
        return (
            f"Who:       {self.domain.describe()}\n"
            f"Where:     {where}\n"
            f"What:      one {self.input_premetric.per} ({self.input_premetric.definition})\n"
            f"How:       {self.output_premetric.name}, {self.output_premetric.properties.title} "
            f"({self.output_premetric.definition})\n"
            f"How much:  {self.budget.describe()}{per}; "
            f"{self.budget.source}, {self.budget.status}{conditions}\n"
            + "Not protected:"
            + "".join(f"\n  - {line}" for line in self.unprotected())
        )

    def _per(self) -> str:
        return f" per {self.input_premetric.per}"

    def unprotected(self) -> tuple[str, ...]:
        """Return what the promise says nothing about, as phrases."""
        lines = []
        if self.multiverse.invariants:
            lines.append("everything listed under 'where' is published exactly")
        else:
            lines.append("nothing is published exactly but the schema and the geography")
        lines += [
            f"{one.describe()} (fixed by what is compared)" for one in self.hidden_invariants()
        ]
        if isinstance(self.budget.amount, NoFiniteBudget):
            # What follows would speak of a promise that is not made.
            return (*lines, "everything else: no finite budget exists, so nothing is promised")
        if self.domain.stage != "raw":
            steps = ", ".join(self.domain.steps) or "editing and imputation"
            lines.append(f"data before this point ({steps}): promised only with a stability factor")
        if self.input_premetric.counts == "records" and self.domain.stage != "raw":
            lines.append(
                f"a contributor copied k times in imputation stands behind 1 + k records, and "
                f"{self._copied()}"
            )
        lines.append("what can be inferred about a person from the population at large")
        return tuple(lines)

    def _copied(self) -> str:
        if self.input_premetric.name == "neighbours" or self.output_premetric.delta is not None:
            return "nothing is promised for more than one record"
        factor = "(1 + k)^2" if self.budget.unit in SQUARED else "1 + k"
        return f"is protected {factor} times less"

    def write(self, path: Path) -> None:
        """Write the specification as YAML that reads back to an equal value."""
        write_yaml(path, self.model_dump(mode="json"))


def read_specification(path: Path) -> Specification:
    """Return the specification in a YAML or JSON file."""
    return parse(Specification, check_format(read_yaml(path), path.name), path.name)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of specification files."""
    schema = Specification.model_json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$id"] = f"discreet/specification/{FORMAT_VERSION}"
    loaded: dict[str, Any] = json.loads(json.dumps(schema))
    return loaded
