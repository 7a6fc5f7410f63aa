"""A parameter server in several processes, each of which holds a slice of the parameters.

``staging``   gradients that are not committed yet
``orders``    what the first shard says to the others, in order
``members``   the other shards, as the first one knows them
``leader``    the first shard: it says what is applied when, and what is saved
``follower``  another shard: it does what the first one says
``service``   the gRPC service of both
``serving``   the first shard as a parameter server
``following`` the process of another shard
``wiring``    wires the processes
"""
