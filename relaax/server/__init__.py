"""The processes of a training, and the launcher that starts them together.

``relaax.server.rlx_server``        accepts environments' connections and forks the workers
``relaax.server.parameter_server``  holds the parameters; writes checkpoints and metrics
``relaax.server.learner``           learns from experience, and publishes what it has learnt
``relaax.server.replay_server``     stores experience, where the learner does not do so itself
``relaax.server.actor``             environments and policies in processes of their own
``relaax.server.export``            writes a trained policy as TensorFlow SavedModel and as ONNX
``relaax.server.launcher``          the command ``relaax-train``: all processes of a Procfile
``relaax.server.certificates``      makes certificates and tokens for a cluster
``relaax.server.serial``            all of them in one process, for a debugger
``relaax.server.common``            what all servers share
"""

import os

# gRPC writes lines of its own to standard error, which strangers cause, in any number and with
# words of their choice, before they have shown anything. It reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
