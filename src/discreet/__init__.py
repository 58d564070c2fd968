"""Disclosure avoidance for census-style data: protect it, state the promise, measure the cost."""

__version__ = "0.1.0"
