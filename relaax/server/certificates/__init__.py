"""``relaax-certificates``: makes the certificates, keys and tokens of a cluster.

``authority``       a private certificate authority, and what it signs
``secrets_folder``  the folder that all is written into
``main``            the command
"""
