"""Progress on a terminal and without one, with a clock that is told the time."""

import io

from discreet.cli.console import EVERY, Progress, progress_line


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_a_plain_line_comes_every_few_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    shown = Progress(stream, clock)
    for second in range(10):
        clock.now = float(second)
        shown(second / 10, "counting")
    shown.close()
    lines = stream.getvalue().splitlines()
    assert len(lines) == int(9 / EVERY)
    assert lines[0] == " 30 %  counting  (3 s, about 7 s left)"
    assert "\r" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_a_quick_command_prints_nothing_without_a_terminal() -> None:
    stream = io.StringIO()
    shown = Progress(stream, Clock())
    shown(0.0, "starting")
    shown(1.0, "done")
    shown.close()
    assert stream.getvalue() == ""


def test_on_a_terminal_one_line_is_redrawn_and_removed() -> None:
    clock, stream = Clock(), Terminal()
    shown = Progress(stream, clock)
    for step in range(5):
        clock.now = float(step)
        shown(step / 5, "counting")
    shown.close()
    drawn = stream.getvalue()
    assert "\n" not in drawn
    assert drawn.count("\r") == 6
    assert drawn.endswith("\r\x1b[K")


def test_the_time_left_is_not_guessed_from_nothing() -> None:
    assert "left" not in progress_line(0.0, "starting", 1.0, bar=True)
    assert "about 30 s left" in progress_line(0.25, "counting", 10.0, bar=True)
    assert progress_line(7.0, "counting", 1.0, bar=False).startswith("100 %")
