"""Reports for people: one HTML file that needs no network and no other file."""

from discreet.report.card import card, write_card
from discreet.report.curves import (
    Figure,
    bounds_by_rate,
    bounds_by_size,
    budgets_by_rate,
    variants_by_share,
)
from discreet.report.page import Run, render, write_report
from discreet.report.signoff import sign_off
from discreet.report.swaps import render_swaps, write_swap_report
from discreet.report.topdown import render_topdown, write_topdown_report

__all__ = [
    "Figure",
    "Run",
    "bounds_by_rate",
    "bounds_by_size",
    "budgets_by_rate",
    "card",
    "render",
    "render_swaps",
    "render_topdown",
    "sign_off",
    "variants_by_share",
    "write_card",
    "write_report",
    "write_swap_report",
    "write_topdown_report",
]
