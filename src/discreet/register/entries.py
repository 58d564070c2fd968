"""What can be written in a register: one small value per kind of event.

An entry is an event with its time, its number and the hash of the entry before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from discreet.config import Strict
from discreet.errors import BadInput
from discreet.register.collection import Collection, Id, Line, Sha256, Version
from discreet.spec import Specification

Model = TypeVar("Model", bound=Strict)


class ReleaseRequest(Strict):
    """What a run asks for before it draws anything.

    `fingerprint` is the hash of the census folder that the run reads; it must be the one
    declared as `version`. `records` are the hashes of its files that hold records, which no
    other collection may have declared. `accept_no_guarantee` is the reason for releasing
    without any finite budget.

    A release publishes the hash of the entry that holds this request. `run_id` is what keeps
    that hash from being used to check guesses at the fingerprint: it is a random number of
    128 bits (`discreet.run` makes it so), and it never leaves the house.
    """

    collection: Id
    version: Id
    fingerprint: Sha256
    release_id: Id
    run_id: Id
    configuration_hash: Sha256
    specification: Specification
    accept_no_guarantee: Line | None = None
    records: tuple[Sha256, ...] = ()


class Charged(Strict):
    """Where a release says that it was charged: collection, id, and hash of the reservation.

    The run id inside that entry is its salt and stays in the register (see `ReleaseRequest`).
    """

    collection: Id
    release: Id
    entry: Sha256


class RegisterCreated(Strict):
    """The first entry; the random id makes the chains of two registers differ."""

    kind: Literal["register"] = "register"
    register_id: str
    format_version: int


class CollectionOpened(Strict):
    """A collection with its limit and its declared invariants."""

    kind: Literal["collection"] = "collection"
    opened: Collection


class VersionAdded(Strict):
    """A file that releases are made from."""

    kind: Literal["version"] = "version"
    collection: Id
    version: Version


class Approved(Strict):
    """A person agreed to releases made with one configuration."""

    kind: Literal["approval"] = "approval"
    collection: Id
    configuration_hash: Sha256
    by: Line


class Reserved(Strict):
    """A release charged before it is drawn.

    `weakenings` is what the common promise gave up when this release joined it; `void`
    says why no total exists with it.
    """

    kind: Literal["reservation"] = "reservation"
    request: ReleaseRequest
    weakenings: tuple[str, ...] = ()
    void: str | None = None


class Committed(Strict):
    """The draw of a reserved release is durable, and has this hash."""

    kind: Literal["commit"] = "commit"
    collection: Id
    run_id: Id
    draw_hash: Sha256


class Published(Strict):
    """The release of a committed draw, as its header's digest tells it from any other."""

    kind: Literal["publication"] = "publication"
    collection: Id
    run_id: Id
    digest: Sha256


class Begun(Strict):
    """A draw, or the named part of one, is about to be drawn, for the `attempt`-th time.

    Beyond the first it is a redraw: whatever was drawn before is discarded.
    """

    kind: Literal["beginning"] = "beginning"
    collection: Id
    run_id: Id
    part: Line
    attempt: Annotated[int, Field(ge=1)]


class Cancelled(Strict):
    """A reservation given back: nothing was drawn, or the draw was deleted unread."""

    kind: Literal["cancellation"] = "cancellation"
    collection: Id
    run_id: Id
    reason: Line


class ExternalAdded(Strict):
    """A release made elsewhere.

    With `force_reason` it is recorded although it breaks the rules in `overrides`: it
    has happened, and an account that leaves it out would be wrong.
    """

    kind: Literal["external"] = "external"
    collection: Id
    title: Line
    specification: Specification
    by: Line
    note: Line
    force_reason: Line | None = None
    overrides: tuple[str, ...] = ()
    weakenings: tuple[str, ...] = ()
    void: str | None = None


class TrialCounted(Strict):
    """A trial on confidential data: nothing published, nothing charged, but counted."""

    kind: Literal["trial"] = "trial"
    collection: Id
    version: Id
    configuration_hash: Sha256
    seed_known: bool
    fingerprint: Sha256 | None = None  # none in entries of earlier versions


class DryRunCounted(Strict):
    """A run that only printed its plan."""

    kind: Literal["dry-run"] = "dry-run"
    collection: Id
    version: Id
    configuration_hash: Sha256
    fingerprint: Sha256 | None = None


Event = Annotated[
    RegisterCreated
    | CollectionOpened
    | VersionAdded
    | Approved
    | Reserved
    | Committed
    | Published
    | Begun
    | Cancelled
    | ExternalAdded
    | TrialCounted
    | DryRunCounted,
    Field(discriminator="kind"),
]


class Body(Strict):
    """What an entry says, apart from its place in the chain."""

    time: datetime
    event: Event


@dataclass(frozen=True)
class Entry:
    """An event in its place: number, time, and the hashes that link it to the others."""

    sequence: int
    time: datetime
    event: Event
    previous: str
    hash: str

    @property
    def collection(self) -> str | None:
        """Return the id of the collection the entry is about."""
        match self.event:
            case RegisterCreated():
                return None
            case CollectionOpened(opened=opened):
                return opened.id
            case Reserved(request=request):
                return request.collection
            case event:
                return event.collection

    def describe(self) -> str:
        """Return the entry on one line; a budget stands with its whole flavor."""
        time = self.time.strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"{self.sequence:>5}  {time}  {self.event.kind:<12}  {_told(self.event)}"


def _told(event: Event) -> str:
    match event:
        case RegisterCreated():
            return f"register {event.register_id} created"
        case CollectionOpened(opened=opened):
            return f"{opened.id}: {opened.title}, reference date {opened.reference_date}"
        case VersionAdded(version=version):
            return f"{version.id} ({version.kind})" + (f": {version.note}" if version.note else "")
        case Approved():
            return f"{event.by}, for configuration {event.configuration_hash[:12]}"
        case Reserved(request=request):
            return f"{request.release_id}, run {request.run_id}: {charged(request.specification)}"
        case Committed():
            # No hash of the draw: whoever sees it could check a guess at the draw.
            return f"run {event.run_id}"
        case Published():
            return f"run {event.run_id}: release {event.digest[:12]}"
        case Begun():
            again = "" if event.attempt == 1 else f" again (redraw {event.attempt - 1})"
            return f"run {event.run_id}: {event.part} is drawn{again}"
        case Cancelled():
            return f"run {event.run_id}: {event.reason}"
        case ExternalAdded():
            forced = f"; forced: {event.force_reason}" if event.force_reason else ""
            return f"{event.title}, by {event.by}: {charged(event.specification)}{forced}"
        case TrialCounted():
            seed = "with a known seed" if event.seed_known else "with a seed nobody keeps"
            return f"{event.version}, configuration {event.configuration_hash[:12]}, {seed}"
        case DryRunCounted():
            return f"{event.version}, configuration {event.configuration_hash[:12]}"


def charged(specification: Specification) -> str:
    """Return a budget on one line with its unit, output premetric and invariants."""
    exact = "; ".join(invariant.name for invariant in specification.multiverse.invariants)
    return (
        f"{specification.budget.describe()} per {specification.input_premetric.unit} record, "
        f"{specification.output_premetric.name}, exact: {exact or 'nothing'}"
    )


def canonical(value: Strict | list[Any]) -> str:
    """Return a value as the one JSON text that stands for it: sorted keys, ASCII, no spaces."""
    try:
        plain = value.model_dump(mode="json") if isinstance(value, Strict) else value
    except ValueError:
        # Python writes whole numbers of at most 4,300 digits.
        raise BadInput(
            "a budget has more digits than can be written. Round it up to a shorter number."
        ) from None
    return json.dumps(plain, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def settled(value: Model) -> Model:
    """Return a value as it will read back, so that what is checked is what is stored."""
    return type(value).model_validate_json(canonical(value))
