"""The command ``relaax-population-manager``.

``main``      reads the members' configurations, and runs the manager until it is stopped
``managers``  makes the manager of each algorithm
"""
