"""The other end of a replay server.

``stub``            calls one server
``writer``          sends steps, in order, beside acting
``shared_samples``  has samples of a server on the same host put into memory
"""
