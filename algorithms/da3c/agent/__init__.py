"""DA3C's agent."""

from .agent import Agent

__all__ = ["Agent"]
