"""What algorithms are built from: an algorithm's ``builder`` wires these parts, by values.

Acting
``actor``               chooses actions for many environments, and hands their rollouts on
``evaluator``           the same with one policy for each episode, and nothing is learnt
``agent``               the same for one environment, as in the seed
``preprocessor``        checks states and stacks them into observations
``previous``            the previous action and reward, as inputs of a network
``filters``             states with mean 0 and standard deviation 1, the same in all workers
``action_mask``         the observation that says which actions are allowed
``shapes``              the shapes of observations, by what a configuration says
``policy``              the parameters that actions are chosen with
``rollouts``            rollouts as arrays
``steps``               single steps, for what stores them
``pulling``             replaces the parameters by what is published
``exploration``         what makes actors try other actions
``distributions``       how actions are drawn from what a network puts out
``action_units``        the units of continuous actions: a policy's own, and those of the plant
``executed_actions``    what environments report to have executed in the place of actions
``action_settings``     the keys that describe continuous actions in the YAML file
``method_config``       keys and configuration that all algorithms of this library share
``described_policy``    all that an action depends on, for what acts outside of this package

Learning
``on_policy``           what learns from rollouts of the newest policies
``off_policy``          what learns from stored transitions
``placements``          where a learner runs: in a worker, or in a process of its own
``gradients_tf``        gradients of an algorithm's objective, padded and compiled
``losses_tf``           terms that losses are made of
``returns_tf``          what values and advantages should be

Both
``model``               what a model is to the parts that act and learn
``networks``            networks, as pure functions of parameters and a batch

``arrays``              arrays with room for more entries
``tensorflow_runtime_tf``  how a process runs TensorFlow

TensorFlow is imported by modules whose name ends in ``_tf``, and by no others: the parameter
server runs without it.
"""
