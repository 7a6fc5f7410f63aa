"""The command ``relaax-export``: writes a trained policy for programs that have no RELAAX.

``main``            the command
``signature``       the names, types and shapes of what a written policy takes and returns
``graph_tf``        the policy as one function of these
``files_tf``        writes it as an ONNX file or a SavedModel, and reads it back
``check``           compares what was written with what acts in a server
"""
