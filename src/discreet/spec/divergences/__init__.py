"""Distances between two finite laws: exact where they have an exact form, certified elsewhere."""

from discreet.spec.divergences.certified import (
    INFINITE,
    SLACK,
    Between,
    Exact,
    LogOf,
    RootOf,
    at_most,
    bounds_of,
    divided,
    enclose,
    precise,
    root_between,
)
from discreet.spec.divergences.distances import Distance, distance, distance_in
from discreet.spec.divergences.experiments import Aligned, Law, aligned, experiment, power_curve
from discreet.spec.divergences.orders import LogMoments, Supremum, largest_over_orders

__all__ = [
    "INFINITE",
    "SLACK",
    "Aligned",
    "Between",
    "Distance",
    "Exact",
    "Law",
    "LogMoments",
    "LogOf",
    "RootOf",
    "Supremum",
    "aligned",
    "at_most",
    "bounds_of",
    "distance",
    "distance_in",
    "divided",
    "enclose",
    "experiment",
    "largest_over_orders",
    "power_curve",
    "precise",
    "root_between",
]
