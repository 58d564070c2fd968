"""What every mechanism is: draw, publish, specify.

A mechanism works in two steps that never mix. `draw` sees the confidential census
and all the randomness, and leaves a draw folder. `publish` sees the draw folder and
nothing else, so what is published is a function of draws, declared invariants and
configuration: delete the census after the draw and the release is the same, byte
for byte.
"""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from discreet.census import Census, Schema
from discreet.config import Strict, parse
from discreet.engine import Engine
from discreet.errors import BadInput, UnreadableFile
from discreet.files import (
    FORMAT_VERSION,
    atomic_folder,
    check_format,
    read_yaml,
    sha256_file,
    write_yaml,
)
from discreet.noise import Randomness
from discreet.spec import Specification, read_specification

#: `design`: simulated or public data. `trial`: confidential data, internal output only.
Mode = Literal["design", "trial"]

#: An outcome of a mechanism on a tiny census, in a form that can be compared.
Outcome = Hashable


@runtime_checkable
class Mechanism(Protocol):
    """A data release mechanism. Its fields are its parameters, fixed before any data."""

    name: ClassVar[str]

    @property
    def census_schema(self) -> Schema:
        """Return the schema of the censuses this mechanism takes."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""

    def facts(self, census: Census) -> dict[str, int]:
        """Return the invariant counts the budget depends on."""

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return what is promised; without facts the budget is a function of the universe."""

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Draw once, and write whatever was drawn to `folder`. The only step that sees data."""

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Write the publishable files made from the draw in `folder` to `out`."""


@runtime_checkable
class Enumerable(Protocol):
    """A mechanism whose law on a tiny census can be written down."""

    def law(self, census: Census) -> Mapping[Outcome, Fraction]:
        """Return the exact probability of every outcome."""

    def outcome(self, released: Census) -> Outcome:
        """Return a released data set in the form `law` uses."""


class DrawRecord(Strict):
    """`draw.yaml`: which mechanism drew what, in which mode. Confidential until published."""

    format_version: int = FORMAT_VERSION
    mechanism: str
    parameters: dict[str, Any]
    mode: Mode
    origin: str
    facts: dict[str, int]


class ReleaseHeader(Strict):
    """`release.yaml`: how a release was made, and the hashes of its files."""

    format_version: int = FORMAT_VERSION
    mechanism: str
    parameters: dict[str, Any]
    mode: Mode
    origin: str
    files: dict[str, str]


@dataclass(frozen=True)
class Release:
    """What may be published, and nothing else."""

    folder: Path
    header: ReleaseHeader
    specification: Specification

    @classmethod
    def open(cls, folder: Path | str) -> Release:
        """Return the release in `folder` after checking every file against its hash."""
        folder = Path(folder)
        name = "release.yaml"
        header = parse(ReleaseHeader, check_format(read_yaml(folder / name), name), name)
        for file, digest in header.files.items():
            path = folder / file
            if not path.is_file() or sha256_file(path) != digest:
                raise UnreadableFile(
                    file, "is missing or differs from the hash in release.yaml", "Publish again."
                )
        return cls(folder, header, read_specification(folder / "specification.yaml"))

    def microdata(self, engine: Engine | None = None) -> Census:
        """Return the protected records."""
        return Census.open(self.folder / "microdata", engine)


def mode_for(census: Census, rng: Randomness) -> Mode:
    """Return the mode a run is in, or refuse it.

    Confidential data with the operating system's randomness would be a release, and a
    release must be charged to the account of its collection; there is no register of
    releases yet, so such a run is refused rather than left unaccounted.
    """
    if census.origin == "simulated":
        return "design"
    if rng.mode == "trial":
        return "trial"
    raise BadInput(
        "a release of supplied data must be charged to a register of releases, which this "
        "version does not have. Use simulated data, or a seed for a trial run."
    )


def make_draw(
    mechanism: Mechanism, census: Census, rng: Randomness, folder: Path, threads: int = 1
) -> Path:
    """Draw once and write the draw record to a new private folder."""
    if census.schema != mechanism.census_schema:
        raise BadInput(
            f"{mechanism.name} is set up for another schema than the census has. "
            f"Make the mechanism from the schema of the census."
        )
    mode = mode_for(census, rng)
    with atomic_folder(folder) as temporary:
        mechanism.draw(census, rng, temporary, threads)
        record = DrawRecord(
            mechanism=mechanism.name,
            parameters=mechanism.parameters(),
            mode=mode,
            origin=census.origin,
            facts=mechanism.facts(census),
        )
        write_yaml(temporary / "draw.yaml", record.model_dump(mode="json"), 0o600)
    return folder


def publish_draw(
    mechanism: Mechanism, draw: Path, out: Path, engine: Engine | None = None
) -> Release:
    """Write the release of a draw to a new folder; the census is not needed and not seen."""
    name = "draw.yaml"
    record = parse(DrawRecord, check_format(read_yaml(draw / name), name), name)
    if (record.mechanism, record.parameters) != (mechanism.name, mechanism.parameters()):
        raise BadInput(
            "the draw was made by another mechanism or with other parameters. "
            "Publish it with the configuration it was drawn with."
        )
    # Trial output is internal: readable by its owner only, whatever the umask says.
    with atomic_folder(out, mode=0o755 if record.mode == "design" else 0o700) as temporary:
        mechanism.publish(draw, temporary, engine or Engine())
        mechanism.specify(record.facts).write(temporary / "specification.yaml")
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        header = ReleaseHeader(
            mechanism=record.mechanism,
            parameters=record.parameters,
            mode=record.mode,
            origin=record.origin,
            files={str(path.relative_to(temporary)): sha256_file(path) for path in files},
        )
        write_yaml(temporary / "release.yaml", header.model_dump(mode="json"))
    return Release.open(out)


def protect(
    mechanism: Mechanism, census: Census, rng: Randomness, out: Path, threads: int = 1
) -> Release:
    """Draw, publish to `out`, and purge the draw, which is confidential."""
    draw = out.parent / f".{out.name}.draw"
    try:
        make_draw(mechanism, census, rng, draw, threads)
        return publish_draw(mechanism, draw, out)
    finally:
        shutil.rmtree(draw, ignore_errors=True)
