"""How actions are chosen for environments, with parts of ``relaax.learning``.

A step passes them in this order:

``actor``             leads through a turn: what actions have led to, observations, choices
``preprocessor``      checks states and stacks them into observations
``executed_actions``  what environments report to have executed in the place of actions
``recording``         scales rewards, records steps, and hands them on
``policies``          which policy acts in which slot
``choosing``          evaluates the policy, with its noise and recurrent state

``pulling``           replaces the parameters by what is published
``evaluator``         keeps one policy for each episode, where nothing is learnt
``agent``             an actor for one environment, as in the seed
"""
