"""The client of replay servers.

``stub``            calls one server
``writer``          sends steps, in order, beside acting
``rollout_counts``  which environments are about to begin a rollout
``spread``          sends the steps of each environment to one of several servers
``sampler``         draws batches of the items of several servers, and of several tables
``watched_server``  one server's table, watched for the sampler
"""
