"""The replay server: a process that stores experience, or a share of it, for the learner.

``main``             the command
``replay_metrics``   the metrics of a replay, made of its counts
``replay_memory``    makes a replay whose memory is there from the beginning
``replay_contents``  saves a replay's contents, and restores them
"""
