"""A simulator in plain Python whose actions are numbers.

``environment``  the simulator, and the program that connects it
"""
