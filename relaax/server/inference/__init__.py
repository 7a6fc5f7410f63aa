"""The command ``relaax-inference-server``: chooses for workers that have no policy of their own.

``main``    the command, which wires the process together
``counts``  counts questions, environments and evaluations
"""
