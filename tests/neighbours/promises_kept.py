"""Draw cases of a mechanism at random, and find how much of its promise each of them uses."""

import math
import tempfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st

from discreet.census import Census, check_structure
from discreet.engine import Engine
from discreet.errors import BadInput
from discreet.mechanisms import Mechanism
from discreet.mechanisms.topdown.constraints import Impossible
from discreet.noise import Randomness, trial
from discreet.products import check_invariants
from discreet.spec.psa.law import UniverseTooLarge
from neighbours.draws import Draw
from neighbours.subjects import ENUMERATED, MEASURING, Case
from neighbours.watch import NotAccepted, TooMuch, UsedWithoutNoise, compared


def one_universe(case: Case, engine: Engine) -> tuple[Census, Census]:
    """Return the censuses of a case; draw again if they are of two universes."""
    one, other = case.one.census(engine), case.other.census(engine)
    for census in (one, other):
        check_structure(census)
    if any(check_invariants(case.made.specify(), one, other).values()):
        reject()
    return one, other


def measured(case: Case, engine: Engine, seed: int) -> Fraction:
    """Return the part of its promise that a mechanism with noise uses.

    A census that is refused is drawn again; whatever fails after that is a failure.
    """
    one, other = one_universe(case, engine)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            part = compared(case.made, one, other, case.distance, trial(seed), folder)
        except NotAccepted:
            reject()
        if seed % 4 == 0:
            publish(case.made, folder / "one", folder / "out", engine)
        return part


def publish(made: Mechanism, draw: Path, out: Path, engine: Engine) -> None:
    """Publish a draw: that must not fail, since it was paid for.

    Exact statistics of TopDown may leave a parent no way to be split, as its guide says.
    """
    try:
        made.publish(draw, out, engine)
    except Impossible:
        return


class Broken(AssertionError):
    """A release does not keep what is declared exact."""


def check_release(made: Mechanism, census: Census, rng: Randomness) -> None:
    """Draw records once, and see that they keep everything declared exact."""
    with tempfile.TemporaryDirectory() as folder:
        made.draw(census, rng, Path(folder))
        released = Census.open(Path(folder) / "microdata", census.engine)
        differing = check_invariants(made.specify(), census, released)
    if any(differing.values()):
        raise Broken(", ".join(name for name, cells in differing.items() if cells))


def enumerated(case: Case, engine: Engine, seed: int) -> Fraction:
    """Return the part of its promise that a law uses: both are logarithms, so it is rounded."""
    one, other = one_universe(case, engine)
    try:
        for census in (one, other):
            case.made.check(census)
    except BadInput:
        reject()
    told = case.made.specify(case.made.facts(one))
    if told != case.made.specify(case.made.facts(other)):
        raise UsedWithoutNoise("what is promised depends on the census")
    if seed % 4 == 0:
        check_release(case.made, one, trial(seed))
    amount = told.budget.amount
    try:
        before, after = case.made.law(one), case.made.law(other)
    except UniverseTooLarge:
        reject()
    if set(before) != set(after):
        raise TooMuch("an outcome is possible from one census only")
    largest = max(max(p / after[at], after[at] / p) for at, p in before.items())
    if largest > amount.of ** (amount.times * case.distance):
        raise TooMuch(f"ratio {float(largest):.4f} at distance {case.distance}, {amount}")
    return Fraction(math.log(largest) / (amount.value() * case.distance))


def parts_used(
    name: str,
    engine: Engine,
    cases: int,
    *,
    simplest: bool = True,
    again: bool = True,
    draw_case: Callable[[Draw], Case] | None = None,
) -> list[Fraction]:
    """Return the part of its promise that each of so many cases uses.

    The first case that breaks a promise ends it, with the simplest one that does. Cases are the
    same in every run (`again`), or others each time.
    """
    used: list[Fraction] = []
    drawn = draw_case or (MEASURING | ENUMERATED)[name]
    loss = measured if name in MEASURING else enumerated

    @settings(
        max_examples=cases,
        deadline=None,
        derandomize=again,
        database=None,
        phases=[Phase.generate, *([Phase.shrink] if simplest else [])],
        suppress_health_check=[*HealthCheck],
    )
    @given(st.data())
    def run(data):
        case = drawn(data.draw)
        used.append(loss(case, engine, data.draw(st.integers(0, 2**32))))

    run()
    return used
