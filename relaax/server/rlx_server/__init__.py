"""The RLX server: accepts the connections of environments, and gives each to a worker.

``main``                the command ``relaax-rlx-server``
``wiring``              puts a server together: the one place that reads its configuration
``server``              listens, admits, reaps, ends
``lobby``               where connections are until they have proved themselves, by ``entrance``
``limits``              how much clients may ask for, also in one message
``admission``           whether there is memory for another connection
``connection_workers``  a worker for each connection
``shared_workers``      workers that share all connections, and ``handover``, the way to them
``children``            the processes that are forked: started, counted, reaped and stopped
``tally``               what server and workers count, in memory that they share
``watchdog``            finds workers that hang
``watcher``             a process that asks whether the training is over
``operating``           what operators see of the server, which that process tells them
``worker``              what runs in a worker
"""
