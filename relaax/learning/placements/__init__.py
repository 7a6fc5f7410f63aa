"""Where a learner runs: a placement gives it batches, and takes its updates to the parameters.

``home``     what a builder is told of the place
``worker``   in the worker: before the next action, or nothing is learnt
``thread``   in the worker, on a thread
``process``  in a process of its own, with parameters of its own, which are published
``shared``   in several processes, whose gradients the parameter server averages or applies
"""

from relaax.learning.placements.home import Home, WorkerHome
from relaax.learning.placements.thread import OnThread
from relaax.learning.placements.worker import Gathering, InWorker, NoLearner

__all__ = ["Gathering", "Home", "InWorker", "NoLearner", "OnThread", "WorkerHome"]
