"""A simulator in plain Python whose actions are choices.

``environment``  the simulator, and the program that connects it
"""
