"""What a server tells operators over HTTP."""

import urllib.error
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def ask(url: str, path: str) -> tuple[int, str]:
    """Return status and text; status 0 where nobody answers."""
    try:
        with urllib.request.urlopen(f"http://{url}{path}", timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def is_ready(url: str) -> bool:
    """Return whether a server can do what it is asked."""
    return ask(url, "/readyz")[0] == 200


def figures(url: str) -> dict[tuple[str, ...], float]:
    """Return the figures by name, and by the values of their labels if there are any."""
    status, text = ask(url, "/metrics")
    assert status == 200, text
    return parsed(text)


def parsed(text: str) -> dict[tuple[str, ...], float]:
    """Return the figures of an answer."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def figure(url: str, *name: str) -> float:
    """Return one of them."""
    return figures(url)[name]
