"""Where a learner runs: a placement gives it batches, and takes its updates to the parameters.

``driver``     takes updates to the parameters; in the worker, before the next action
``thread``     in the worker, on a thread
``gathering``  what stands before a learner in a worker, or in its place
``process``    in a process of its own, with parameters of its own, which are published, or in
               several processes, whose gradients the parameter server averages or applies
"""

from relaax.learning.placements.driver import Driver, InWorker
from relaax.learning.placements.gathering import Gathering
from relaax.learning.placements.thread import OnThread

__all__ = ["Driver", "Gathering", "InWorker", "OnThread"]
