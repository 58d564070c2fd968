"""Swapping: households that match trade places."""

from discreet.mechanisms.swapping.exchange import PairSwapping
from discreet.mechanisms.swapping.geometry import kilometres
from discreet.mechanisms.swapping.households import Households, Places, Swap
from discreet.mechanisms.swapping.permutation import PermutationSwapping
from discreet.mechanisms.swapping.public_docs import PublicDocs2010
from discreet.mechanisms.swapping.record import RecordSwapping
from discreet.mechanisms.swapping.targeted import TargetedSwapping

__all__ = [
    "Households",
    "PairSwapping",
    "PermutationSwapping",
    "Places",
    "PublicDocs2010",
    "RecordSwapping",
    "Swap",
    "TargetedSwapping",
    "kilometres",
]
