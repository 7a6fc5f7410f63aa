"""The process that stores experience, or a share of it, where the learner does not do so itself.

``main``    the command
``server``  serves, evicts, saves and reports, until the training is over
``meter``   how the replay is, as metrics
"""
