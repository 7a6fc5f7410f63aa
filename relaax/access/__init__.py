"""Access: how processes prove to one another what they are, and that nobody listens.

``roles``            what each role may do
``file_mode``        whether others may read a file
``file_stamp``       notices that files have changed
``said``             says once, of all processes of a server, that a file was renewed
``tokens``           the tokens of a file, read again when it changes
``tls``              certificates and keys, and what both ends of a connection make of them
``reach``            whether a server is there, and the TLS of both ends fits
``expiry``           when certificates expire
``process_access``   what this process proves, and asks others to prove
``public_port``      refuses ports that anyone on a network could use
``grpc_connections``  how many connections of TLS have begun at gRPC ports, and what of it came
``refusals``         counts attempts that fail, and asks whether an address has shown too many
``refusal_limit``    how many wrong tokens an address may show, in memory that processes share
``refusal_log``      the lines of such attempts: few, of all processes together
"""

from relaax.access.process_access import Access, current_access, use_access
from relaax.access.public_port import refuse_unguarded, require_guarded
from relaax.access.refusal_limit import RefusalLimit
from relaax.access.refusal_log import RefusalLog
from relaax.access.refusals import Refusals, Refused
from relaax.access.roles import Right, Role
from relaax.access.tls import TlsFiles
from relaax.access.tokens import TokenFile

__all__ = [
    "Access",
    "RefusalLimit",
    "RefusalLog",
    "Refusals",
    "Refused",
    "Right",
    "Role",
    "TlsFiles",
    "TokenFile",
    "current_access",
    "refuse_unguarded",
    "require_guarded",
    "use_access",
]
