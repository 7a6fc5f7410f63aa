"""The global parameters: their transport, their owner, and the updates that move them.

The transport; an algorithm uses it unless it exports a ``BridgeControl`` of its own:

``control``            makes both ends
``stub``               the client's end
``sharded``            the same to a parameter server in several shards
``service``            the server's end; it calls roles
``stage``              the stage of a policy's curriculum
``sender_totals``      steps that were counted of each sender, now and in a checkpoint
``callers``            the callers of a parameter server: their admission, calls and environments
``vectors``            messages that carry a vector, made and read
``training_watch``     reports steps, and asks whether the training is over

The values:

``parameter_server``   serves a store to workers, and keeps it in checkpoints
``parameter_store``    a policy that gradients move; shared by threads
``published``          policies that learners replace, by name
``driver``             takes the updates of a learner to the parameters
``averaging``          one update of the mean of several learners' gradients
``combining``          which gradients become updates: old ones, compensated ones, means of several
``optimizers``         updates of a flat vector, in place
``schedule``           numbers that change with the global step, and their values in checkpoints
``database``           versions of policies, with tags and metadata, in a directory or S3
``process``            the command ``relaax-parameter-server``
"""

import relaax.net  # noqa: F401  (before gRPC is imported)
from relaax.parameters.control import BridgeControl
from relaax.parameters.stub import Bridge

__all__ = ["Bridge", "BridgeControl"]
