"""Swapping: households that match trade places."""

from discreet.mechanisms.swapping.permutation import PermutationSwapping

__all__ = ["PermutationSwapping"]
