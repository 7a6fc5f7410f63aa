"""The parts that algorithms are built from: an algorithm's ``builder`` wires them, by values.

Acting
``previous``            the previous action and reward, as inputs of a network
``filters``             states with mean 0 and standard deviation 1, the same in all workers
``action_mask``         the observation that says which actions are allowed
``shapes``              the shapes of observations, as a configuration gives them
``policy``              the parameters that actions are chosen with
``agents``              which policy acts for which agent of an environment
``team``                the observations of the other agents of an environment, for a critic
``rollouts``            rollouts as arrays
``steps``               single steps, on their way to a replay
``exploration``         noise and chance that make actors try other actions
``distributions``       how actions are drawn from a network's outputs
``action_units``        the units of continuous actions: the policy's, and the plant's
``action_settings``     the keys that describe continuous actions in the YAML file
``method_config``       keys and configuration that all algorithms of this library share
``described_policy``    all that an action depends on, for programs without this package

Learning
``intrinsic``           rewards for states that are new to an agent, beside the environment's
``on_policy``           learning from rollouts of the newest policies
``off_policy``          learning from stored transitions
``population``          learning from the returns of many candidates
``placements``          where a learner runs: in a worker, or in a process of its own
``graph_learner_tf``    a learner that sets values itself, by one graph over rollouts
``variables_tf``        variables that a learner sets itself, and Adam for them
``gradients_tf``        gradients of an algorithm's objective, padded and compiled
``losses_tf``           terms that losses are made of
``returns_tf``          targets of values, and advantages

Both
``model``               the roles of a model: it chooses actions, it computes gradients
``networks``            networks, as pure functions of parameters and a batch

``arrays``              arrays with room for more entries
``tensorflow_runtime_tf``  how a process runs TensorFlow

TensorFlow is imported by modules whose name ends in ``_tf``, and by no others: the parameter
server runs without it.
"""
