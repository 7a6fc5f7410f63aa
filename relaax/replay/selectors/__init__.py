"""The choice of a table's items for a draw.

``selector``     the interface of selectors
``uniform``      every item as probable as every other
``prioritized``  in proportion to a power of their priorities
``queue``        each once, the oldest or the newest first
"""
