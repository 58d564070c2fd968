"""What every mechanism is: draw, publish, specify.

A mechanism works in two steps that never mix. `draw` sees the confidential census
and all the randomness, and leaves a draw folder. `publish` sees the draw folder and
nothing else, so what is published is a function of draws, declared invariants and
configuration: delete the census after the draw and the release is the same, byte
for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from discreet.census import Census, Schema
from discreet.config import Strict, parse
from discreet.engine import Engine
from discreet.errors import UnreadableFile
from discreet.files import FORMAT_VERSION, check_format, files_below, read_yaml, sha256_file
from discreet.mechanisms.stages import Stages
from discreet.noise import Randomness
from discreet.register import Charged
from discreet.spec import Specification, read_specification

#: `design`: simulated data. `trial`: confidential data, internal output only, never
#: publishable. `release`: confidential data, operating-system randomness, charged.
Mode = Literal["design", "trial", "release"]

#: The file that makes a folder a release.
HEADER = "release.yaml"

#: What is promised: written with the draw, and published as it was written.
SPECIFICATION = "specification.yaml"

#: An outcome of a mechanism on a tiny census, in a form that can be compared.
Outcome = Hashable


@runtime_checkable
class Mechanism(Protocol):
    """A data release mechanism. Its fields are its parameters, fixed before any data."""

    name: ClassVar[str]
    #: Whether the draw must be purged once it is published.
    confidential_draw: ClassVar[bool]

    @property
    def census_schema(self) -> Schema:
        """Return the schema of the censuses this mechanism takes."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters as plain data."""

    def check(self, census: Census) -> None:
        """Refuse a census this mechanism cannot draw from, before anything is charged."""

    def facts(self, census: Census) -> dict[str, int]:
        """Return the invariant counts the budget depends on."""

    def specify(self, facts: Mapping[str, int] | None = None) -> Specification:
        """Return what is promised; without facts the budget is a function of the universe."""

    def draw(self, census: Census, rng: Randomness, folder: Path, threads: int = 1) -> None:
        """Draw once, and write whatever was drawn to `folder`. The only step that sees data."""

    def publish(self, folder: Path, out: Path, engine: Engine) -> None:
        """Write the publishable files made from the draw in `folder` to `out`."""


@runtime_checkable
class Staged(Protocol):
    """A mechanism that draws and publishes in stages, each of which survives a kill."""

    def draw_in_stages(self, census: Census, rng: Randomness, folder: Path, stages: Stages) -> None:
        """Draw as `draw` does; stages that are finished are not drawn again."""

    def publish_in_stages(self, folder: Path, out: Path, engine: Engine, stages: Stages) -> None:
        """Publish as `publish` does; stages that are finished are not computed again."""


@runtime_checkable
class Enumerable(Protocol):
    """A mechanism whose law on a tiny census can be written down."""

    def law(self, census: Census) -> Mapping[Outcome, Fraction]:
        """Return the exact probability of every outcome."""

    def outcome(self, released: Census) -> Outcome:
        """Return a released data set in the form `law` uses."""


class DrawRecord(Strict):
    """`draw.yaml`: which mechanism drew what, in which mode. Confidential until published.

    `charged` is the entry under which a release was drawn.
    """

    format_version: int = FORMAT_VERSION
    mechanism: str
    parameters: dict[str, Any]
    mode: Mode
    origin: str
    charged: Charged | None = None


class ReleaseHeader(Strict):
    """`release.yaml`: how a release was made, and the hashes of its files.

    `draw` names the draw by its salted hash, so that a release can be told from another;
    `digest` covers all the rest of the header.

    `charged` names the entry of the register that paid for a release, by the hash of the
    reservation. The run id inside that entry is its salt and stays internal: whoever had it
    could check guesses at the fingerprint of the census. `discreet register check` tells
    whether the statement is true.
    """

    format_version: int = FORMAT_VERSION
    mechanism: str
    schema_name: str
    parameters: dict[str, Any]
    mode: Mode
    origin: str
    draw: str
    charged: Charged | None = None
    files: dict[str, str]
    digest: str = ""

    def content(self) -> dict[str, Any]:
        """Return the header as it is written; designs and trials say nothing of a charge."""
        return self.model_dump(mode="json", exclude=None if self.charged else {"charged"})

    def sealed(self) -> ReleaseHeader:
        """Return the header with its digest."""
        content = {key: value for key, value in self.content().items() if key != "digest"}
        text = json.dumps(content, sort_keys=True)
        return self.model_copy(update={"digest": hashlib.sha256(text.encode()).hexdigest()})


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
        header = parse(ReleaseHeader, check_format(read_yaml(folder / HEADER), HEADER), HEADER)
        if header != header.sealed():
            raise UnreadableFile(HEADER, "differs from its own digest", "Publish again.")
        found = {str(path.relative_to(folder)) for path in files_below(folder)} - {HEADER}
        for file in sorted(found ^ set(header.files)):
            rule = "is missing" if file in header.files else "does not belong to the release"
            raise UnreadableFile(file, rule, "Publish again.")
        for file, digest in header.files.items():
            if sha256_file(folder / file) != digest:
                raise UnreadableFile(file, "differs from its hash", "Publish again.")
        return cls(folder, header, read_specification(folder / SPECIFICATION))

    def microdata(self, engine: Engine | None = None) -> Census:
        """Return the protected records."""
        return Census.open(self.folder / "microdata", engine)
