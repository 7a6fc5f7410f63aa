"""The command ``relaax-actor``: environments and policies in processes of their own.

``main``          the command, and its processes
``task``          what one process does
``wiring``        makes an actor and what it is connected to
"""
