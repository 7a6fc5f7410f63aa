"""An environment that Gymnasium knows by an id.

``environment``  the program that makes it and connects it
"""
