"""The door to people: a message through Airflow's notifiers, to every receiver that is configured.

Runs inside a task of Airflow, or a callback: there the connections are. Not rendered as a template:
the notifiers are asked to send what they were given.
"""

import html
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from shardaudit.model.config.parts import Notify
from shardaudit.model.errors import FinalError, RetryableError


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
            f"notify.{kind}: message {message_id} was not taken ({type(error).__name__}); "
            "check the Airflow connection"
        )


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """What is sent. `message_id` is the same each time: who has it already drops it."""

    message_id: str
    stream: str
    level: str
    title: str
    text: str


_CLASSES = {
    "slack": ("airflow.providers.slack.notifications.slack_webhook", "SlackWebhookNotifier"),
    "http": ("airflow.providers.http.notifications", "HttpNotifier"),
    "smtp": ("airflow.providers.smtp.notifications.smtp", "SmtpNotifier"),
}


def has_receiver(notify: Notify) -> bool:
    """Whether anybody is told."""
    return any((notify.slack, notify.http, notify.smtp))


def send(notify: Notify, message: OutgoingMessage) -> None:
    """Sends it to all receivers.

    Raises:
        NotifierMissingError: a receiver's provider is not installed.
        NotSentError: a receiver did not take it; those before it have.
    """
    for kind, arguments in _arguments(notify, message).items():
        notifier = _notifier_class(kind)(**arguments)
        try:
            notifier.notify({})
        except Exception as error:  # noqa: BLE001 - providers raise whatever their libraries do
            raise NotSentError(kind, message.message_id, error) from None


def _arguments(
    notify: Notify, message: OutgoingMessage
) -> dict[str, dict[str, Any]]:  # Any: the notifiers'
    body = f"{message.text}\n[{message.message_id}]"
    found: dict[str, dict[str, Any]] = {}
    if notify.slack:
        text = f"*{_slack(message.title)}*\n{_slack(body)}"
        found["slack"] = {
            "slack_webhook_conn_id": notify.slack,
            "text": text,
            "unfurl_links": False,  # an id may look like an address: nobody shall visit it
            "unfurl_media": False,
        }
    if notify.http:
        document = {name: getattr(message, name) for name in OutgoingMessage.__dataclass_fields__}
        headers = {"Idempotency-Key": message.message_id}
        found["http"] = {"http_conn_id": notify.http, "json": document, "headers": headers}
    if notify.smtp:
        found["smtp"] = {
            "smtp_conn_id": notify.smtp,
            "to": notify.mail_to,
            "subject": message.title,
            "html_content": f"<pre>{html.escape(body)}</pre>",
            "custom_headers": {"X-Shardaudit-Id": message.message_id},
        }
    return found


def _slack(text: str) -> str:
    """As Slack wants the three characters that its markup uses."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _notifier_class(kind: str) -> Any:  # Any: a class of a provider that may not be installed
    module, name = _CLASSES[kind]
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise NotifierMissingError(kind, f"apache-airflow-providers-{kind}") from error
