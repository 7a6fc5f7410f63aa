"""The other end of a replay server.

``stub``            calls one server
``writer``          sends steps, in order, beside acting
``shared_samples``  has samples of a server on the same host put into memory
``spread``          sends the steps of each environment to one of several servers
``sampler``         draws batches of the items of several servers
``mixed_sampler``   draws batches of fixed parts of several tables of theirs
``shard``           one of them, as the sampler knows it
``batch_parts``     how a batch is divided among servers, and whose keys are whose
"""
