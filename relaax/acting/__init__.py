"""Chooses actions for environments, with parts of ``relaax.learning``.

A step passes them in this order:

``actor``             leads through a turn: what actions have led to, observations, choices
``preprocessor``      checks states and stacks them into observations
``executed_actions``  checks the actions that environments have executed in the place of others
``recording``         scales rewards, records steps, and hands them on
``policies``          finds the policy of each slot
``choosing``          evaluates the policy, with its noise and recurrent state
``remote``            lets another process evaluate it, or evaluates for others

``pulling``           replaces the parameters by those that are published
``parameter_client``  fetches them by an actor's rule, and never waits long
``evaluator``         keeps one policy for each episode, where nothing is learnt
``agent``             an actor for one environment, as in the seed
"""
