"""Bytes of strangers, given to everything that reads them.

``targets``   what reads bytes, and which errors it promises
``services``  the same for gRPC: methods of services that are made anew for each input
``program``   lets atheris find inputs: ``make fuzz TARGET=binary SECONDS=60``

``corpus/TARGET`` has inputs to start from, and those that have found something.
"""
