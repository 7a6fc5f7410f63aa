"""Access control: tokens and TLS.

``file_stamp``       notices changed files
``tokens``           the tokens of a file, read again when it changes
``tls``              certificates and keys, and the contexts of both ends of a connection
``process_access``   the credentials of this process, its conditions for others, and refusals
"""

from relaax.net.access.process_access import (
    Access,
    Refusals,
    current_access,
    refuse_unguarded,
    require_guarded,
    use_access,
)
from relaax.net.access.tls import TlsFiles
from relaax.net.access.tokens import Right, Role, TokenFile

__all__ = [
    "Access", "Refusals", "Right", "Role", "TlsFiles", "TokenFile", "current_access",
    "refuse_unguarded", "require_guarded", "use_access"
]  # fmt: skip
