"""What an account belongs to: a collection of data, and the versions of its file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from discreet.config import Strict, parse
from discreet.files import FORMAT_VERSION, check_format, read_yaml
from discreet.spec import Invariant, Rational


def _one_line(text: str) -> str:
    tidy = text.strip()
    if not tidy or len(tidy) > 500 or not tidy.isprintable():
        raise ValueError("must be one line of text, not empty, of at most 500 characters")
    return tidy


#: What the limit of an account is told in; the premetric follows from it.
AccountUnit = Literal["epsilon", "rho2"]

#: Something a person wrote: a title, a name, a reason.
Line = Annotated[str, AfterValidator(_one_line)]

#: A short name that may stand in a file name.
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]

#: The SHA-256 of something, as 64 hexadecimal digits.
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Collection(Strict):
    """A collection of data with its account: all its versions share one limit.

    `invariants` are the statistics that releases may keep exact. A release that keeps
    any other statistic exact is refused, because it would tell more than was agreed.
    """

    format_version: int = FORMAT_VERSION
    id: Id
    title: Line
    reference_date: date
    unit: AccountUnit
    limit: Annotated[Rational, Field(ge=0)]
    invariants: tuple[Invariant, ...]
    approvals_required: Annotated[int, Field(ge=0)]


class Version(Strict):
    """A file of a collection: the original, a corrected one, or an extract.

    `fingerprint` is the hash of the census folder, `records` are those of its files that hold
    records (none in entries of earlier versions). They stay in the register: whoever has them
    can check a guess at a whole file.
    """

    id: Id
    kind: Literal["original", "corrected", "extract"]
    fingerprint: Sha256
    note: Line | None = None
    records: tuple[Sha256, ...] = ()


def read_collection(path: Path) -> Collection:
    """Return the collection declared in a YAML file."""
    return parse(Collection, check_format(read_yaml(path), path.name), path.name)
