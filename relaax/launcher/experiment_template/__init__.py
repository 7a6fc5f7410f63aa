"""The files that ``relaax-experiment --init`` writes: an environment, and an experiment with it."""
