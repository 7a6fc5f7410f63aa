"""Which of a table's items are drawn.

``selector``     what every selector does
``uniform``      every item as probable as every other
``prioritized``  in proportion to a power of their priorities
``queue``        each once, the oldest or the newest first
"""
