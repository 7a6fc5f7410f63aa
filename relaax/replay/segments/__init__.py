"""Samples through memory that a client and a replay server on one host share.

``segment``          the client's memory, and its name
``mapped_segments``  the server's end: opens the segments of clients, and forgets closed ones
"""
