"""The command line. Whatever a command does is one public Python call."""

from discreet.cli.app import main

__all__ = ["main"]
