"""What algorithms are built from.

``networks``         what a network is made of, and its parameters as one flat vector
``optimizers``       updates of a flat vector, in place
``parameter_store``  the global parameters, shared by the threads that answer workers
``slots``            numbers for things that come and go
``arrays``           arrays with room for more
"""
