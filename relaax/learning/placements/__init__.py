"""Where a learner runs: a placement gives it batches, and takes its updates to the parameters.

``home``     the place, as a builder is told of it
``driver``   takes the updates of a learner to the parameters, wherever both are
``worker``   in the worker: before the next action, or nothing is learnt
``thread``   in the worker, on a thread
``process``  in a process of its own, with parameters of its own, which are published, or in several
             processes, whose gradients the parameter server averages or applies
"""

from relaax.learning.placements.driver import Driver
from relaax.learning.placements.home import Home
from relaax.learning.placements.thread import OnThread
from relaax.learning.placements.worker import Gathering, InWorker, NoLearner

__all__ = ["Driver", "Gathering", "Home", "InWorker", "NoLearner", "OnThread"]
