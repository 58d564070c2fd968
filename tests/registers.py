"""Small promises, collections and requests for tests of the register, and spenders."""

import hashlib
import os
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

from discreet.register import Collection, Refused, Register, ReleaseRequest
from discreet.spec import Domain, Exactly, LogRational, Specification
from promises import promise as promised
from promises import table

HOUSEHOLDS = Domain(records="households", schema_name="us-decennial")
DECLARED = tuple(
    table("units", "county", (by,), ("occupied",), f"households by {by}")
    for by in ("size", "tenure")
)
SECRET = table("units", "block", ("race",), name="households by race")


def hashed(text):
    return hashlib.sha256(text.encode()).hexdigest()


def promise(amount, *, keeps=DECLARED[:1], status="published", **other):
    """Return a specification; the kind of amount decides the output premetric."""
    made = promised(amount, unit="household", invariants=keeps, domain=HOUSEHOLDS, status=status)
    return Specification(**{**dict(made), **other})


def rho2(value, **other):
    return promise(Exactly(of=value), **other)


def pure(ratio, **other):
    return promise(LogRational(of=ratio), **other)


def collection(limit="1", *, unit="rho2", approvals=0, name="census-2030"):
    return Collection(
        id=name,
        title="Census of 2030",
        reference_date="2030-04-01",
        unit=unit,
        limit=limit,
        invariants=DECLARED,
        approvals_required=approvals,
    )


def request(specification, name="r1", **other):
    """Return a request of release `name` by run `run-name`."""
    fields = {
        "collection": "census-2030",
        "version": "v1",
        "fingerprint": hashed("v1"),
        "release_id": name,
        "run_id": f"run-{name}",
        "configuration_hash": hashed("configuration"),
        "specification": specification,
    }
    return ReleaseRequest(**{**fields, **other})


def ticking():
    """Return a clock that starts in 2031 and goes one minute forward at every look."""
    now = [datetime(2031, 1, 1, tzinfo=UTC)]

    def clock():
        now[0] += timedelta(minutes=1)
        return now[0]

    return clock


def opened(path, limit="1", **other):
    """Return a new register with one collection and its original file."""
    register = Register.create(path, clock=ticking())
    register.open_collection(collection(limit, **other))
    register.add_version("census-2030", "v1", "original", hashed("v1"))
    return register


# --- what other processes do: they start afresh, so these must be importable --------------------


def spend(path, spender, tries, amount):
    """Reserve and commit many small releases, cancelling some; a full account is no failure."""
    with Register.open(Path(path)) as register:
        for number in range(tries):
            name = f"{spender}-{number}"
            try:
                made = register.reserve(request(rho2(Fraction(amount)), name))
            except Refused as refusal:
                if refusal.rule != "over budget":
                    raise
                continue
            if number % 5 == 4:
                register.cancel(made, "changed our mind")
            else:
                register.commit(made, hashed(name))


def spend_until_killed(path, spender, told):
    """Reserve and commit without end, and tell (durably enough for us) what was committed."""
    with Register.open(Path(path)) as register, Path(told).open("a") as out:
        number = 0
        while True:
            name = f"{spender}-{number}"
            made = register.reserve(request(rho2(Fraction(1, 10**9)), name))
            register.commit(made, hashed(name))
            out.write(f"{name}\n")
            out.flush()
            os.fsync(out.fileno())
            number += 1
