"""The command ``relaax-actor``: environments and policies in processes of their own.

``main``          the command, and its processes
``task``          the task of one process
``wiring``        makes an actor and its connections
"""
