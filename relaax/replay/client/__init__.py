"""The client of replay servers.

``stub``            calls one server
``writer``          sends steps, in order, beside acting
``shared_samples``  has samples of a server on the same host put into memory
``spread``          sends the steps of each environment to one of several servers
``sampler``         draws batches of the items of several servers
``mixed_sampler``   draws batches with fixed parts of several tables
``shard``           one server's table, watched for the sampler
``batch_parts``     the parts of a batch by server, and the servers of its keys
"""
