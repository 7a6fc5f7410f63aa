"""The files that ``relaax-experiment --init`` writes.

``environment``  a class like Gymnasium's
``experiment``   actor workers with a policy, and a trainer
"""
