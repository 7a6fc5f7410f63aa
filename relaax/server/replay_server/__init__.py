"""The process that stores experience, or a share of it, where the learner does not do so itself.

``main``      the command
``tasks``     what is done from time to time, until the training is over
``contents``  saves what the replay holds, and restores it
``meter``     how the replay is, as metrics
"""
