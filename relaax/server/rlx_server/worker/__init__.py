"""A worker: one event loop over a set of connections, and one evaluation of the network for all.

``process``       a worker's process, for one connection or for many
``loop``          the event loop: reads, sends, closes, and never waits for a client
``environments``  slots of environments, their places among all that train, and their episodes
``requests``      joins the steps of all connections that are ready
``responder``     asks the agents for joined steps, for training and for each kind of evaluation
``answers``       parts actions among the requests, each looked at by the rule
``connection``    the state of one connection
``action_rule``   which actions an algorithm may return
``session``       a client's conversation, from its first message on, without input and output
``agents``        the choice of actions; an agent for each environment looks like a batch agent
``measurements``  times of turns and evaluations
``stopping``      a worker's stop signals, and its deadline
``settings``      the worker's inheritance from its RLX server

``memory_worker``  does the work of ``loop`` in a client's own process, without sockets

The way of a step: ``loop`` takes a payload from a ``connection``, whose codec decodes it into
``Steps``; ``requests`` joins the steps of all connections that are ready, ``environments`` reads
their flags once into ``Transitions``, the batch agent chooses, and the answers go back the same
way.
"""
