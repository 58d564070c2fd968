"""Simulate a census of any size, with no download.

Simulated data say nothing about any country: the figures they are set from are real and
rounded, everything below the state is invented, and nothing was tuned to make a finding
come out.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.census import SIMULATED, write_header
from discreet.config import suggest
from discreet.errors import BadInput
from discreet.files import atomic_folder
from discreet.simulate.compare import Comparison, describe
from discreet.simulate.profile import Profile, State, load_profile, profile_names

__all__ = ["Comparison", "SimulationSummary", "describe", "profile_names", "simulate"]


@dataclass(frozen=True)
class SimulationSummary:
    """How large the simulated census is and what it took."""

    persons: int
    units: int
    blocks: int
    seconds: float
    persons_per_second: float
    peak_memory_mb: float


def simulate(
    profile: str | Path,
    out: Path,
    seed: int,
    *,
    states: Sequence[str] | None = None,
    processes: int = 1,
    progress: Callable[[int, int, str], None] | None = None,
) -> SimulationSummary:
    """Write a simulated census to the folder `out` and return how large it is.

    Parameters
    ----------
    profile
        Name of a shipped profile (`profile_names()`), or the path of a profile file.
    seed
        Same profile and seed, same census, whatever the other arguments.
    states
        Codes of the states to simulate; None means all of the profile.
    processes
        How many cores to use (in threads; the kernels run without Python's lock).
    progress
        Called with (done, total, label) now and then.
    """
    started = time.perf_counter()
    chosen, schema = load_profile(profile)
    if processes < 1:
        raise BadInput("processes must be at least 1.")
    wanted = _choose(chosen, states)
    say = progress or (lambda done, total, label: None)
    with atomic_folder(Path(out), mode=0o755) as folder:
        if chosen.states:
            from discreet.simulate.us import simulate_states

            counts = simulate_states(chosen, wanted, folder, seed, processes, say)
        else:
            from discreet.simulate.country import simulate_country

            counts = simulate_country(chosen, schema, folder, seed, say)
        write_header(folder, schema, "simulated", SIMULATED)
    seconds = time.perf_counter() - started
    return SimulationSummary(*counts, seconds, counts[0] / seconds, peak_memory_mb())


def _choose(profile: Profile, states: Sequence[str] | None) -> list[State]:
    """Return the states asked for, in the order of the profile."""
    if states is None:
        return profile.states
    known = [state.code for state in profile.states]
    for code in states:
        if code not in known:
            raise BadInput(f"profile {profile.name} has no state '{code}'.{suggest(code, known)}")
    if not states:
        raise BadInput("no state was asked for. Leave the option out to simulate all.")
    return [state for state in profile.states if state.code in states]


def peak_memory_mb() -> float:
    """Return the most memory this process has held so far, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)
