"""The accountant of the Permutation Swapping Algorithm (Bailie, Gong and Meng, Algorithm 1).

Read in this order: `law` (the exact law of one stratum), `exact` (its loss, by
enumeration), `binary` (the loss for a variable with two categories, for larger strata),
`bounds` (budgets from the size of the largest stratum), `lower` (how small a loss
cannot be), `concentrated` (zero-concentrated budgets), `moments`, `variants` (two other
ways to permute) and `account` (all figures at once). A *loss* belongs to the mechanism
in a universe, a *budget* is a bound on it that a specification promises.
"""

from discreet.spec.psa.account import Account, Inversion, account, invert
from discreet.spec.psa.amount import LogAmount
from discreet.spec.psa.binary import binary_loss, exact_binary_loss
from discreet.spec.psa.bounds import (
    SHARPENED,
    THEOREM_1,
    BudgetTooSmall,
    best_rate,
    largest_open_stratum,
    largest_stratum,
    largest_stratum_for,
    minimum_epsilon,
    rates_for,
    sharpened,
    sharpened_best_rate,
    sharpened_minimum,
    theorem_1,
    variable_rates,
)
from discreet.spec.psa.concentrated import RHO2, rho2, rho2_loose, rho2_loose_upper, rho2_upper
from discreet.spec.psa.exact import (
    ONLY_COARSE,
    ExactLoss,
    coarsened_loss,
    exact_loss,
    weighted_loss,
)
from discreet.spec.psa.law import (
    MOST_TABLES,
    MOST_WORK,
    Table,
    UniverseTooLarge,
    derangement_numbers,
    moving_counts,
    permutation_weights,
    table_law,
    tables_with_margins,
    weighted_law,
)
from discreet.spec.psa.lower import all_distinct, can_all_move, gap, lower_bound
from discreet.spec.psa.moments import expected_table, moved_probability, unswapped
from discreet.spec.psa.variants import (
    mallows_budget,
    mallows_moved_share,
    mallows_theta_for,
    mallows_weights,
    shuffle_budget,
    shuffle_moved_share,
    shuffle_rate_for,
    shuffle_weights,
)

__all__ = [
    "MOST_TABLES",
    "MOST_WORK",
    "ONLY_COARSE",
    "RHO2",
    "SHARPENED",
    "THEOREM_1",
    "Account",
    "BudgetTooSmall",
    "ExactLoss",
    "Inversion",
    "LogAmount",
    "Table",
    "UniverseTooLarge",
    "account",
    "all_distinct",
    "best_rate",
    "binary_loss",
    "can_all_move",
    "coarsened_loss",
    "derangement_numbers",
    "exact_binary_loss",
    "exact_loss",
    "expected_table",
    "gap",
    "invert",
    "largest_open_stratum",
    "largest_stratum",
    "largest_stratum_for",
    "lower_bound",
    "mallows_budget",
    "mallows_moved_share",
    "mallows_theta_for",
    "mallows_weights",
    "minimum_epsilon",
    "moved_probability",
    "moving_counts",
    "permutation_weights",
    "rates_for",
    "rho2",
    "rho2_loose",
    "rho2_loose_upper",
    "rho2_upper",
    "sharpened",
    "sharpened_best_rate",
    "sharpened_minimum",
    "shuffle_budget",
    "shuffle_moved_share",
    "shuffle_rate_for",
    "shuffle_weights",
    "table_law",
    "tables_with_margins",
    "theorem_1",
    "unswapped",
    "variable_rates",
    "weighted_law",
    "weighted_loss",
]
