"""The process that stores experience, or a share of it, where the learner does not do so itself.

``main``  the command
"""
