"""PHSafe: the Supplemental DHC tables with exact discrete Gaussian noise.

After Sexton et al. (2024), PHSafe: Disclosure Avoidance for the 2020 Census Supplemental
Demographic and Housing Characteristics File.
"""

from discreet.mechanisms.phsafe import planning
from discreet.mechanisms.phsafe.accounting import (
    Account,
    Part,
    account,
    budget_for_margin,
    stability,
    tight_square,
)
from discreet.mechanisms.phsafe.configuration import (
    Configuration,
    load_configuration,
    shipped_configurations,
)
from discreet.mechanisms.phsafe.mechanism import PHSafe
from discreet.mechanisms.phsafe.parameters import Parameters, read_settings, run_text
from discreet.mechanisms.phsafe.sizes import Sizes, load_sizes

__all__ = [
    "Account",
    "Configuration",
    "PHSafe",
    "Parameters",
    "Part",
    "Sizes",
    "account",
    "budget_for_margin",
    "load_configuration",
    "load_sizes",
    "planning",
    "read_settings",
    "run_text",
    "shipped_configurations",
    "stability",
    "tight_square",
]
