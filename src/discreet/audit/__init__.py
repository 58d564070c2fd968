"""Audits: what a mechanism really loses, computed from its law rather than from its promise."""

from discreet.audit.censuses import verify_mechanism
from discreet.audit.exact import (
    Loss,
    Pair,
    Verdict,
    exact_loss_of,
    judge,
    keeps,
    loss_of,
    pairs,
    verify,
)
from discreet.audit.margins import MarginAudit, audit_margins
from discreet.audit.shifts import Shift, distance_of_shifts
from discreet.audit.strata import StrataAudit, audit_strata

__all__ = [
    "Loss",
    "MarginAudit",
    "Pair",
    "Shift",
    "StrataAudit",
    "Verdict",
    "audit_margins",
    "audit_strata",
    "distance_of_shifts",
    "exact_loss_of",
    "judge",
    "keeps",
    "loss_of",
    "pairs",
    "verify",
    "verify_mechanism",
]
