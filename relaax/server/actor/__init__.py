"""The command ``relaax-actor``: environments and policies in processes of their own.

A process is a client, a connection in memory, and a worker with the algorithm's agent.

``main``           the command, and its processes
``task``           the task of one process
``environments``   makes environments: Gymnasium's, PettingZoo's, classes of the user's
``groups``         plays environments with several agents: a policy and a sink for each group
``routing``        the reports of each agent go to its group; resets are counted
``stages``         the stage of a curriculum reaches environments when they are reset
``wiring``         makes the worker, and its connections
``sinks``          where steps go
``samples``        which steps are sent together, and when
``latency``        where the time of steps goes, for TensorBoard and Prometheus
``pulled_bridge``  the bridge of an agent whose parameters are fetched by a rule
``surreal``        plays with an actor of the algorithm's own class, in place of worker and client
"""
