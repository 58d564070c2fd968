"""TopDown: noisy measurements at every level of a tree of areas, fitted to whole records.

After Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm.
"""

from discreet.mechanisms.topdown import planning
from discreet.mechanisms.topdown.certificate import certificate
from discreet.mechanisms.topdown.measurement_reader import Measurements, Published
from discreet.mechanisms.topdown.mechanism import TopDown
from discreet.mechanisms.topdown.strategy import Strategy, load_strategy, shipped_strategies

__all__ = [
    "Measurements",
    "Published",
    "Strategy",
    "TopDown",
    "certificate",
    "load_strategy",
    "planning",
    "shipped_strategies",
]
