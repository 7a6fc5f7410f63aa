"""A learner driven as its process drives it, for tests."""

from relaax.algorithm_base import DEFAULT
from relaax.parameters.driver import Driver


class DrivenLearner:
    """A learner with the way of its gradients to ``parameter_server``, where it has no values."""

    def __init__(self, learner, parameter_server=None):
        self.learner = learner
        if parameter_server is not None:
            learner.take(parameter_server.pull())
        self._driver = Driver(learner, parameter_server, parameter_server, loses=True)

    def step(self, batches):
        return self._driver.learn(batches)

    def vector(self):
        return self.learner.values()[DEFAULT]

    def __getattr__(self, name):
        return getattr(self.learner, name)
