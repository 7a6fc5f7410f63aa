"""How actions are chosen for environments, with parts of ``relaax.learning``.

A step passes them in this order:

``preprocessor``      checks states and stacks them into observations
``actor``             chooses actions for many environments, and hands their rollouts on
``executed_actions``  what environments report to have executed in the place of actions
``pulling``           replaces the parameters by what is published

``evaluator``         the same with one policy for each episode, and nothing is learnt
``agent``             the same for one environment, as in the seed
"""
