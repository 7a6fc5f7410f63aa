"""Where a learner runs: a placement gives it batches, and takes its updates to the parameters.

``gathering``  in the worker, before the next action; gathers rollouts before that
``thread``     in the worker, on a thread
``process``    in a process of its own, with parameters of its own, which are published, or in
               several processes, whose gradients the parameter server averages or applies

``Driver`` of ``relaax.parameters`` takes the updates of a learner to the parameters.
"""

from relaax.learning.placements.gathering import Gathering, InWorker
from relaax.learning.placements.thread import OnThread
from relaax.parameters.driver import Driver

__all__ = ["Driver", "Gathering", "InWorker", "OnThread"]
