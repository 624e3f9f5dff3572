"""The door through which something is posted: to its address, and nowhere that one points to."""

import urllib.error
import urllib.request

ANSWER_BYTES = 2**16  # that much of an answer is looked at


def post(request: urllib.request.Request, *, timeout: float, proxy: str | None = None) -> bytes:
    """Posts it by HTTP or HTTPS, and gives what the answer begins with; all but a 2xx is an error.

    Who follows a redirect asks another address by GET: a login page would count as delivered.

    Input:
        proxy: None: that of the environment, where it names one.

    Raises:
        HTTPError: what was answered, a redirect too; closed.
        OSError: nobody answered, or it is no address of HTTP.
        HTTPException: the answer broke off.
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
        with opener.open(request, timeout=timeout) as answer:
            said: bytes = answer.read(ANSWER_BYTES)
            return said
    except urllib.error.HTTPError as error:
        error.close()  # what it has of an answer, and the connection
        raise
