"""Running, resuming and publishing one configuration."""

from discreet.files import folder_hash
from discreet.run.check import check_release
from discreet.run.config import Account, RunConfig, read_config
from discreet.run.records import record_hashes
from discreet.run.runner import (
    CorruptDraw,
    Plan,
    approval_hash,
    internal_figures,
    plan,
    publish,
    run,
)

__all__ = [
    "Account",
    "CorruptDraw",
    "Plan",
    "RunConfig",
    "approval_hash",
    "check_release",
    "folder_hash",
    "internal_figures",
    "plan",
    "publish",
    "read_config",
    "record_hashes",
    "run",
]
