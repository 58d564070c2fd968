"""Reports for people: one HTML file that needs no network and no other file."""

from discreet.report.page import Run, render, write_report
from discreet.report.signoff import sign_off

__all__ = ["Run", "render", "sign_off", "write_report"]
