"""The door through which something is posted: to its address, and nowhere that one points to."""

import urllib.error
import urllib.request


def post(request: urllib.request.Request, *, timeout: float, proxy: str | None = None) -> None:
    """Posts it by HTTP or HTTPS; all but a 2xx is an error, whatever else it asks for.

    Who follows a redirect asks another address by GET: a login page would count as delivered.

    Input:
        proxy: None: that of the environment, where it names one.

    Raises:
        HTTPError: what was answered, a redirect too; closed.
        OSError: nobody answered, or it is no address of HTTP.
    """
    opener = urllib.request.OpenerDirector()  # of those that urllib opens with, these alone
    for handler in (
        urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    try:
        opener.open(request, timeout=timeout).close()
    except urllib.error.HTTPError as error:
        error.close()  # what it has of an answer, and the connection
        raise
