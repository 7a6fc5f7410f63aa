"""What can be written as UTF-8."""


def is_text(text: str) -> bool:
    """Return whether ``text`` can be written as UTF-8: JSON may hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
