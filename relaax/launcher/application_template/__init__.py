"""The folder that ``relaax-new`` writes: an environment, and all that trains it.

``simulator``              an environment in plain Python
``gymnasium_environment``  one that Gymnasium knows by an id
``test_environment``       the folder's test: a short training

One of the first two becomes ``environment.py``. ``training.yaml`` is made of ``servers.yaml`` and
``choices.yaml`` or ``numbers.yaml``. ``relaax.launcher.new_application`` puts them together.
"""
