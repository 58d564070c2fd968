"""Swapping: households that match trade places."""

from discreet.mechanisms.swapping.permutation import PermutationSwapping
from discreet.mechanisms.swapping.targeted import TargetedSwapping

__all__ = ["PermutationSwapping", "TargetedSwapping"]
