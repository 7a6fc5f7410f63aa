"""Errors of TLS in words, and a peer that left before its handshake."""

import socket
import ssl

#: OpenSSL's reasons for bytes that are not TLS.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE")

#: A server's alert from TLS 1.3 on, if a client has no certificate.
CERTIFICATE_REQUIRED = "TLSV13_ALERT_CERTIFICATE_REQUIRED"

#: The peer's refusal of this end's credentials: a server logs it about a client, and a client
#: raises it about a server.
_ALERTS = {
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not accept the certificate of this end",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer does not accept the certificate of this end",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not accept the certificate of this end",
    "TLSV1_ALERT_ACCESS_DENIED": "the peer does not accept the certificate of this end",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer says that the certificate of this end has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "the peer says that the certificate of this end was revoked",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": (
        "the peer says that the certificate of this end is for another purpose, or of another kind"
    ),
    "TLSV1_ALERT_DECRYPT_ERROR": (
        "the peer says that the certificate of this end has the key of another one"
    ),
    "TLSV1_UNRECOGNIZED_NAME": "the server does not know the name by which it was reached",
    CERTIFICATE_REQUIRED: (
        "the server asks for a certificate, and this client has shown none (RELAAX_TLS_CERT, "
        "RELAAX_TLS_KEY)"
    ),
    **dict.fromkeys(
        (
            "SSLV3_ALERT_HANDSHAKE_FAILURE",
            "TLSV1_ALERT_PROTOCOL_VERSION",
            "TLSV1_ALERT_INSUFFICIENT_SECURITY",
            "UNSUPPORTED_PROTOCOL",
            "NO_SHARED_CIPHER",
        ),
        "the peer speaks no version or cipher of TLS that is spoken here",
    ),
}


def require_a_peer(sock: socket.socket) -> None:
    """Raise ConnectionResetError for a socket whose peer has gone.

    ``SSLContext.wrap_socket`` would find so, too, and leave its new socket open.
    """
    try:
        sock.getpeername()
    except OSError as error:
        raise ConnectionResetError("the peer has closed the connection") from error


def refusal_in_words(error: ssl.SSLError) -> str | None:
    """Return in words the credential that one end does not accept; None for other errors."""
    if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the peer has not shown a certificate"
    return _ALERTS.get(error.reason)


def speaks_no_tls(error: ssl.SSLError) -> bool:
    """Return whether the peer has sent bytes that are not TLS."""
    return error.reason in _NO_TLS
