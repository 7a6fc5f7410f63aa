"""Batched inference: one process that runs the network for all workers of an RLX server.

``exchange``       the shared memory between one worker and the compute process
``link``           the socket beside it: who comes, who wakes whom, metrics
``remote_agents``  the worker's end
``process``        the compute process: its loop
``supervisor``     the RLX server's end: starts the process, introduces workers to it

A worker writes what its environments report into its exchange and its number into a pipe, the
doorbell, that all workers share. The compute process reads the pipe: one read tells everybody who
waits. It answers them with one evaluation of the network, writes the actions into each exchange and
wakes each worker through its link. Between the two, each exchange belongs to one side alone, so
that nothing needs a lock. A worker or a compute process that dies closes its end of the link.
"""
