"""The other end of a replay server.

``stub``    calls one server
``writer``  sends steps, in order, beside acting
"""
