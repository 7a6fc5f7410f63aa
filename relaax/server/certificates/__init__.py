"""``relaax-certificates``: makes the certificates, keys and tokens of a cluster.

``authority``       a private certificate authority, and its certificates
``secrets_folder``  the folder of all files
``main``            the command
"""
