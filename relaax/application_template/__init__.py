"""The folder that ``relaax-new`` writes: an environment, and all that trains it.

``discrete``          a simulator in plain Python whose actions are choices
``continuous``        the same, whose actions are numbers
``gymnasium``         an environment that Gymnasium knows by an id
``test_environment``  the folder's test: a short training

The first three have an ``environment.py`` each. ``training.yaml`` is made of ``servers.yaml`` and
``choices.yaml`` or ``numbers.yaml``. ``relaax.server.launcher.new_application`` puts them together.
"""
