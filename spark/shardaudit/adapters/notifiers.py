"""The door to people: a message through Airflow's notifiers, to every receiver that is configured.

Runs inside a task of Airflow, or a callback: there the connections are. Not rendered as a template:
what they were given is sent as it is. To Slack we post ourselves, by what its connection says: its
notifier goes where it is sent on to, as a login page, and finds 200 there. Nor is what a webhook
answers with 200 an answer where it is such a page.
"""

import html
import json
import logging
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from importlib import import_module
from typing import Any

from shardaudit.adapters.http_post import ANSWER_BYTES, post
from shardaudit.model.config.parts import Notify
from shardaudit.model.errors import FinalError, RetryableError

log = logging.getLogger(__name__)

# As long as the other two wait unless their connections say otherwise. A POST that was sent on to
# a login page is answered with 200, and nobody was told.
_OF_A_POST = {
    "timeout": 30,
    "allow_redirects": True,
    "max_redirects": 0,
    "check_response": False,  # we look ourselves: its error names no number
}
# Airflow's hook logs the address that it does not reach, and what is answered: there are secrets.
_SILENT = logging.Logger("silent")
_SILENT.disabled = True
# How a document of HTML begins, whatever it is sent as: Slack's own `ok` says that it is HTML.
_PAGE = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>\s|<!--.*?-->|<\?xml.*?\?>)*+<(?:!doctype\s+html|html|head|script)\b",
    re.I | re.S,
)
# What one has on which people log in, or that leads there; none that says thank you.
_LOGIN = re.compile(rb"<form\b|<script\b|\bhttp-equiv\b", re.I)
_LOGIN_PAGE = "an HTML page, as of a login"


class RefusedError(RetryableError, ConnectionError):
    """What answered took no message: it says so by its number, or it is a page for people."""


class NotifierMissingError(FinalError, ImportError):
    """The Airflow provider of a configured receiver is not installed."""

    def __init__(self, kind: str, provider: str) -> None:
        super().__init__(
            f"notify.{kind} is set, but Airflow's provider {provider} is not installed: "
            f"install it, or take notify.{kind} out of the configuration"
        )


class NotSentError(RetryableError, ConnectionError):
    """A receiver did not take a message; it is sent again, under the same id."""

    def __init__(self, kind: str, message_id: str, error: Exception) -> None:
        # Not the error's own words: a webhook's address, a secret, may be among them.
        super().__init__(
            f"notify.{kind}: message {message_id} was not taken ({_named(error)}); "
            "check the Airflow connection"
        )


def _named(error: Exception) -> str:
    """The name of an error, and the number of an answer: a login page's, or a revoked token's."""
    if isinstance(error, RefusedError):
        return str(error)
    code = error.code if isinstance(error, urllib.error.HTTPError) else ""
    return f"{type(error).__name__} {code}".rstrip()


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """What is sent. `message_id` is the same each time: who has it already drops it."""

    message_id: str
    stream: str
    level: str
    title: str
    text: str

    @property
    def body(self) -> str:
        """The text for people, with the id: twice the same is one message."""
        return f"{self.text}\n[{self.message_id}]"


Give = Callable[[OutgoingMessage], None]


def receivers(notify: Notify) -> dict[str, Give]:
    """How each configured receiver is given a message, by its key in the configuration.

    Each raises NotifierMissingError (its provider is not installed) or NotSentError (it did not
    take the message).
    """
    return {kind: partial(_send, notify, kind) for kind in _RECEIVERS if getattr(notify, kind)}


def tell_each(gives: Mapping[str, Give], tell: Callable[[str, Give], None]) -> None:
    """Does it for every receiver: one that fails keeps no other from being told.

    Raises:
        NotifierMissingError, NotSentError: of the first that failed, once all had their turn.
    """
    failures: list[NotifierMissingError | NotSentError] = []
    for kind, give in gives.items():
        try:
            tell(kind, give)
        except (NotifierMissingError, NotSentError) as error:
            log.warning("%s", error)
            failures.append(error)
    if failures:
        raise failures[0]


def send(notify: Notify, message: OutgoingMessage) -> None:
    """Sends it to all receivers.

    Raises:
        NotifierMissingError, NotSentError: of the first that failed; the others have it.
    """
    tell_each(receivers(notify), lambda _, give: give(message))


def _send(notify: Notify, kind: str, message: OutgoingMessage) -> None:
    receiver = _RECEIVERS[kind]
    made_by = _class_of(kind, receiver)
    try:
        receiver.tell(made_by, notify, message)
    except Exception as error:  # noqa: BLE001 - providers raise whatever their libraries do
        raise NotSentError(kind, message.message_id, error) from None


def _tell_slack(hook: Any, notify: Notify, message: OutgoingMessage) -> None:  # Any: as `_Tell`
    """Posts to Slack's address as its client would, but goes nowhere else."""
    client = hook(slack_webhook_conn_id=notify.slack).client
    document = {
        "text": f"*{_slack(message.title)}*\n{_slack(message.body)}",
        "unfurl_links": False,  # an id may look like an address: nobody shall visit it
        "unfurl_media": False,
    }
    headers = client.default_headers | {"Content-Type": "application/json;charset=utf-8"}
    body = json.dumps(document).encode()
    request = urllib.request.Request(client.url, body, headers)  # noqa: S310 - `post`: HTTP alone
    said = post(request, timeout=client.timeout, proxy=client.proxy)
    if _PAGE.match(said):  # Slack says `ok`, and what takes its messages in its place sends no page
        raise RefusedError(_LOGIN_PAGE)


def _tell_http(hook: Any, notify: Notify, message: OutgoingMessage) -> None:  # Any: as `_Tell`
    quiet = type("HttpHook", (hook,), {"log": _SILENT})
    answer = quiet(method="POST", http_conn_id=notify.http).run(
        json=asdict(message),
        headers={"Idempotency-Key": message.message_id},
        extra_options=_OF_A_POST,
    )
    if answer.status_code >= HTTPStatus.MULTIPLE_CHOICES:
        raise RefusedError(f"HTTPError {answer.status_code}")
    said = answer.content[:ANSWER_BYTES]
    if _PAGE.match(said) and _LOGIN.search(said):
        raise RefusedError(_LOGIN_PAGE)


def _tell_smtp(notifier: Any, notify: Notify, message: OutgoingMessage) -> None:  # Any: as `_Tell`
    notifier(
        smtp_conn_id=notify.smtp,
        to=notify.mail_to,
        subject=message.title,
        html_content=f"<pre>{html.escape(message.body)}</pre>",
        custom_headers={"X-Shardaudit-Id": message.message_id},
    ).notify({})


_Tell = Callable[[Any, Notify, OutgoingMessage], None]  # Any: a class of a provider


@dataclass(frozen=True, slots=True)
class _Receiver:
    """The class of one of Airflow's providers, and how it is given a message."""

    provider: str
    module: str
    name: str
    tell: _Tell


_RECEIVERS = {  # by their keys in the configuration
    "slack": _Receiver("slack", "hooks.slack_webhook", "SlackWebhookHook", _tell_slack),
    "http": _Receiver("http", "hooks.http", "HttpHook", _tell_http),
    "smtp": _Receiver("smtp", "notifications.smtp", "SmtpNotifier", _tell_smtp),
}


def _slack(text: str) -> str:
    """As Slack wants the three characters that its markup uses."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _class_of(kind: str, of: _Receiver) -> Any:  # Any: a class of a provider
    try:
        return getattr(import_module(f"airflow.providers.{of.provider}.{of.module}"), of.name)
    except ImportError as error:
        raise NotifierMissingError(kind, f"apache-airflow-providers-{of.provider}") from error
