"""The files that ``relaax-experiment --init`` writes.

``environment``  a class like Gymnasium's
``experiment``   actor workers with a policy, and a trainer
``population``   two policies of the same kind, of which the weak one copies the strong one
"""
