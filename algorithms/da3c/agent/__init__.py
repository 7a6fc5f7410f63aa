"""DA3C's agents: of one environment, and of many."""

from .agent import Agent
from .batch_agent import BatchAgent

__all__ = ["Agent", "BatchAgent"]
