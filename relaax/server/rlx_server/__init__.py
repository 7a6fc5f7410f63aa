"""The RLX server: accepts the connections of environments, and gives each to a worker.

``main``                the command ``relaax-rlx-server``
``wiring``              puts a server together: the one place that reads its configuration
``server``              listens, admits, reaps, ends
``lobby``               where connections are until they have proved themselves, by ``entrance``
``limits``              limits on clients, also on the size of one message
``admission``           whether there is memory for another connection
``connection_workers``  a worker for each connection
``shared_workers``      workers that share all connections, and ``handover``, the way to them
``children``            forked processes: started, reaped, stopped; workers, and those that hang
``tally``               counts of server and workers, in memory that they share
``places``              the place of each environment among all
``watcher``             a process that asks whether the training is over, and serves operators
``worker``              the process of a worker
"""
