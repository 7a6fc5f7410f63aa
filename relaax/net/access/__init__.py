"""Access control: tokens and TLS.

``file_stamp``       notices that files have changed
``tokens``           the tokens of a file, read again when it changes
``tls``              certificates and keys, and what both ends of a connection make of them
``expiry``           when certificates expire
``process_access``   what this process proves, and asks others to prove
``refusals``         counts and logs attempts that fail
"""

from relaax.net.access.process_access import (
    Access,
    current_access,
    refuse_unguarded,
    require_guarded,
    use_access,
)
from relaax.net.access.refusals import Refusals
from relaax.net.access.tls import TlsFiles
from relaax.net.access.tokens import Right, Role, TokenFile

__all__ = [
    "Access", "Refusals", "Right", "Role", "TlsFiles", "TokenFile", "current_access",
    "refuse_unguarded", "require_guarded", "use_access"
]  # fmt: skip
