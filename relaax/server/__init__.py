"""The processes of a training beside the parameter server and the replay.

``relaax.server.rlx_server``    accepts environments' connections and forks the workers
``relaax.server.inference``     chooses for workers that have no policy of their own
``relaax.server.learner``       learns from experience, and publishes its policy
``relaax.server.actor``         environments and policies in processes of their own
``relaax.server.export``        writes a trained policy as TensorFlow SavedModel and as ONNX
``relaax.server.exploitation``  acts with a checkpoint, without a parameter server
``relaax.server.certificates``  makes certificates and tokens for a cluster
``relaax.server.serial``        all processes of a training in one, for a debugger
"""

import relaax.net  # noqa: F401  (before gRPC is imported)
