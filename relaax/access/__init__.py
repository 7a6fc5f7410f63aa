"""Access: how processes prove to one another what they are, and that nobody listens.

``roles``            what each role may do
``file_stamp``       notices that files have changed
``tokens``           the tokens of a file, read again when it changes
``tls``              certificates and keys, and what both ends of a connection make of them
``expiry``           when certificates expire
``process_access``   what this process proves, and asks others to prove
``public_port``      refuses ports that anyone on a network could use
``refusals``         counts and logs attempts that fail, for each address
``refusal_limit``    how many wrong tokens an address may show, in memory that processes share
"""

from relaax.access.process_access import Access, current_access, use_access
from relaax.access.public_port import require_guarded
from relaax.access.refusal_limit import RefusalLimit
from relaax.access.refusals import Refusals, Refused
from relaax.access.roles import Right, Role
from relaax.access.tls import TlsFiles
from relaax.access.tokens import TokenFile

__all__ = [
    "Access",
    "RefusalLimit",
    "Refusals",
    "Refused",
    "Right",
    "Role",
    "TlsFiles",
    "TokenFile",
    "current_access",
    "require_guarded",
    "use_access",
]
