"""The command ``relaax-export``: writes a trained policy for programs that have no RELAAX.

``main``            the command
``signature``       names, types and shapes of a written policy's inputs and outputs
``graph_tf``        the policy as one function of these
``files_tf``        writes it as an ONNX file or a SavedModel, and reads it back
``check``           compares a written policy with the agent of a server
"""
