"""Running, resuming and publishing one configuration."""

from discreet.run.config import Account, RunConfig, read_config
from discreet.run.runner import CorruptDraw, Plan, plan, run

__all__ = ["Account", "CorruptDraw", "Plan", "RunConfig", "plan", "read_config", "run"]
