"""Surreal's and Memoire's names, for programs that were written for them.

``surreal``  algorithms as Surreal's ``Actor``, ``Buffer`` and ``Learner``
``memoire``  Memoire's replay memory
"""
