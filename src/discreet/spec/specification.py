"""A specification: the five blocks together, in files and in plain words."""

from __future__ import annotations

from pathlib import Path

from discreet.config import Strict, parse
from discreet.files import FORMAT_VERSION, check_format, read_yaml, write_yaml
from discreet.spec.blocks import Domain, InputPremetric, Multiverse, OutputPremetric
from discreet.spec.budget import Budget


class Specification(Strict):
    """A promise about a release: who, where, what, how, and how much.

    A mechanism satisfies it if for every universe and every two data sets x, x' in it
    the output premetric between the two laws of the output is at most the budget times
    the input premetric between x and x' (Bailie, Gong and Meng, Definition 1).
    """

    format_version: int = FORMAT_VERSION
    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget

    def flavor(self) -> tuple[Domain, Multiverse, InputPremetric, OutputPremetric]:
        """Return the first four blocks: what kind of promise it is, without how much."""
        return self.domain, self.multiverse, self.input_premetric, self.output_premetric

    def describe(self) -> str:
        """Return the promise in plain words; the budget never stands alone."""
        exact = "".join(f"\n  - {i.describe()}" for i in self.multiverse.invariants)
        conditions = "".join(f"\n  - {text}" for text in self.budget.conditions)
        unit = self.input_premetric.unit
        where = f"among data sets that agree exactly on{exact}" if exact else "among all data sets"
        return (
            f"Who:       {self.domain.records}, {self.domain.stage} file "
            f"(schema {self.domain.schema_name})\n"
            f"Where:     {where}\n"
            f"What:      one {unit} record ({self.input_premetric.definition})\n"
            f"How:       {self.output_premetric.name} ({self.output_premetric.definition})\n"
            f"How much:  {self.budget.describe()} per {unit} record; "
            f"{self.budget.source}, {self.budget.status}{conditions}\n"
            + (
                "Not protected: everything listed under 'where' is published exactly."
                if exact
                else "Published exactly: nothing but the schema and the geography."
            )
        )

    def write(self, path: Path) -> None:
        """Write the specification as YAML that reads back to an equal value."""
        write_yaml(path, self.model_dump(mode="json"))


def read_specification(path: Path) -> Specification:
    """Return the specification in a YAML file."""
    return parse(Specification, check_format(read_yaml(path), path.name), path.name)
