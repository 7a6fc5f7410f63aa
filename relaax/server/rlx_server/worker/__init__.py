"""A worker: one event loop over a set of connections, and one evaluation of the network for all.

``process``       what runs in a worker's process, for one connection or for many
``loop``          the event loop: reads, sends, closes, and never waits for a client
``responder``     turns the steps of all connections that are ready into answers
``responders``    one responder for what is learnt from, and one for each kind of evaluation
``connection``    what belongs to one connection
``action_rule``   which actions an algorithm may return
``session``       a client's conversation, without input and output
``hello``         what the first message of a connection says
``episodes``      which episodes go on, and what is counted of them
``agents``        what chooses the actions; an agent for each environment looks like a batch agent
``inbox``         brings the connections of a shared worker
``measurements``  what a worker measures of itself
``stopping``      how a worker is asked to stop, and the deadline for it
``settings``      what a worker inherits from its RLX server

The way of a step: ``loop`` takes a payload from a ``connection``, whose codec decodes it into
``Steps``; ``responder`` joins those of all connections that are ready, ``episodes`` reads their
flags once into ``Transitions``, the batch agent chooses, and the answers go back the same way.
"""
