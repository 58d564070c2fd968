"""The register: a durable account of the releases of a collection.

What has been promised about a collection of data is kept in one SQLite file, as a
hash-linked list of entries that only grows. Every release is reserved here before
anything is drawn, and refused here if the account or the declared invariants do not
allow it. Only specifications, hashes and names given by people enter; never data.
"""

from discreet.register.account import Account, Approval, Charge, Refused, Reservation
from discreet.register.collection import Collection, Version, read_collection
from discreet.register.database import RegisterBusy
from discreet.register.entries import Charged, Entry, ReleaseRequest, charged
from discreet.register.register import Register
from discreet.register.reserved import ReservedRun
from discreet.register.total import Total

__all__ = [
    "Account",
    "Approval",
    "Charge",
    "Charged",
    "Collection",
    "Entry",
    "Refused",
    "Register",
    "RegisterBusy",
    "ReleaseRequest",
    "Reservation",
    "ReservedRun",
    "Total",
    "Version",
    "charged",
    "read_collection",
]
