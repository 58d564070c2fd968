"""Numbers in configurations and options are exact, and no short text stands for a huge one."""

import pytest
from pydantic import BaseModel

from discreet.config import BadConfig, parse, rational
from discreet.errors import BadInput
from discreet.mechanisms.targets import read_targets
from discreet.spec import Rational

HUGE = ["1e-999999999", "1E999999999", "-2.5e99999999999999999999"]


class Model(BaseModel):
    rate: Rational


@pytest.mark.parametrize("text", [*HUGE, "1/0", "half", ""])
def test_what_is_no_number_is_refused_at_once(text):
    with pytest.raises(ValueError, match=r"range|zero|Invalid"):
        rational(text)
    with pytest.raises(BadConfig, match="rate: must be a rational number"):
        parse(Model, {"rate": text}, "run.yaml")
    with pytest.raises(BadInput, match="positive margin"):
        read_targets([f"county:total={text}"], "LEVEL:QUERY=MARGIN", "county:total=3")


def test_exact_numbers_are_read_exactly():
    assert [str(rational(text)) for text in ("1/8", "0.125", "1.25e-1", 3)] == [
        "1/8",
        "1/8",
        "1/8",
        "3",
    ]
