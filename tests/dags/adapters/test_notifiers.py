"""Messages through Airflow's own notifiers to receivers on 127.0.0.1."""

import asyncio
import json
import socketserver
import sys
from collections.abc import Iterator
from email import message_from_string, policy
from email.message import Message
from http.server import HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import requests

from shardaudit.adapters.notifiers import (
    NotifierMissingError,
    NotSentError,
    OutgoingMessage,
    receivers,
    send,
)
from shardaudit.airflow.planned_jobs import PlanRefusedError
from shardaudit.airflow.watch_news import tell_late
from shardaudit.audit.audit_news import published_news
from shardaudit.model.config.parts import CONFIG, Notify
from shardaudit.model.config.settings import load_settings
from shardaudit.model.errors import ConfigError
from shardaudit.model.exit_code import ExitCode
from shardaudit.model.verdict import Kind, State, Verdict
from shardaudit.watch.notify import notify_stream
from tests.dags.news import news as pending_news
from tests.dags.news import states
from tests.dags.receivers import Web, running
from tests.unit.report.reports import report

MESSAGE = OutgoingMessage(
    "0a1b", "events", "urgent", "shardaudit: URGENT", "shard <1> stands {{ still }}"
)


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a mail needs; keeps the mail."""

    got: ClassVar[list[str]] = []

    def handle(self) -> None:
        self._say("220 here")
        while line := self.rfile.readline().decode().strip():
            if line.upper() == "DATA":
                self._say("354 go on")
                lines = iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), ".")
                self.got.append("\n".join(lines))
            self._say("221 bye" if line.upper() == "QUIT" else "250 ok")
            if line.upper() == "QUIT":
                return

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def web(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[list[tuple[str, str | None, dict[str, object]]]]:
    """The web receiver, known to Airflow as `pager` and as `slack_oncall`."""
    monkeypatch.setattr(Web, "got", [])
    monkeypatch.setattr(Web, "status", 200)
    monkeypatch.setattr(Web, "says", b"ok")
    with running(HTTPServer(("127.0.0.1", 0), Web)) as port:
        place = f"http://127.0.0.1:{port}"
        connections = {
            "PAGER": {"conn_type": "http", "host": f"{place}/hook"},
            "SLACK_ONCALL": {
                "conn_type": "slackwebhook",
                "host": f"{place}/slack",
                "password": "T1/B2/very-secret",
            },
        }
        for name, connection in connections.items():
            monkeypatch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(connection))
        yield Web.got


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The mail receiver, known to Airflow as `mail`."""
    monkeypatch.setattr(Mail, "got", [])
    with running(socketserver.TCPServer(("127.0.0.1", 0), Mail)) as port:
        extra = {"from_email": "watch@example.com", "disable_ssl": True, "disable_tls": True}
        connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_MAIL", json.dumps(connection))
        yield Mail.got


def test_a_webhook_gets_the_message_as_json_with_its_id(
    web: list[tuple[str, str | None, dict[str, object]]],
) -> None:
    send(Notify(http="pager"), MESSAGE)
    ((path, key, document),) = web
    assert path.startswith("/hook")
    assert key == "0a1b"
    assert document == {
        "message_id": "0a1b",
        "stream": "events",
        "level": "urgent",
        "title": "shardaudit: URGENT",
        "text": "shard <1> stands {{ still }}",
    }


def test_slack_gets_a_text_that_its_markup_cannot_misread(
    web: list[tuple[str, str | None, dict[str, object]]],
) -> None:
    send(Notify(slack="slack_oncall"), MESSAGE)
    ((path, _, document),) = web
    assert path.endswith("T1/B2/very-secret")
    assert document["text"] == ("*shardaudit: URGENT*\nshard &lt;1&gt; stands {{ still }}\n[0a1b]")


def test_a_mail_bears_the_id_in_a_header(mails: list[str]) -> None:
    send(Notify(smtp="mail", mail_to=["oncall@example.com"]), MESSAGE)
    mail = message_from_string(mails[0], policy=policy.default)
    assert (mail["Subject"], mail["X-Shardaudit-Id"]) == ("shardaudit: URGENT", "0a1b")
    assert "stands {{ still }}" in _text(mail)


def test_hostile_ids_of_an_audit_stay_text_at_every_receiver(
    web: list[tuple[str, str | None, dict[str, object]]], mails: list[str]
) -> None:
    evil = ("<!channel> <script>alert(1)</script>", "=cmd()\n.\nX: {{ 7 * 7 }}\x1b[2J", "💣" * 1024)
    news = published_news(
        report(), {(Kind.MISSING, None, State.OPEN): 3}, before=Verdict.OK, examples=evil, gaps=()
    )
    assert news is not None
    message = OutgoingMessage(news.news_id, "events", news.level.value, news.title, news.text)
    to_all = Notify(slack="slack_oncall", http="pager", smtp="mail", mail_to=["on@example.com"])
    send(to_all, message)
    (_, _, slack), (_, _, webhook) = web
    assert (slack["unfurl_links"], webhook["text"]) == (False, news.text)
    html = _text(message_from_string(mails[0], policy=policy.default))
    for text, escaped, tag in (
        (str(slack["text"]), "&lt;!channel&gt; &lt;script&gt;", "<"),
        (html, "&lt;script&gt;alert(1)&lt;/script&gt;", "<script"),
        (news.text, "<!channel> <script>alert(1)</script>", "\x1b"),  # in JSON it means nothing
    ):
        assert escaped in text
        assert tag not in text
        assert "=cmd()\\n.\\nX: {{ 7 * 7 }}\\x1b[2J" in text  # one line, and no template
        assert "\x1b" not in text


def _text(mail: Message) -> str:
    parts = [part.get_payload(decode=True) for part in mail.walk() if not part.is_multipart()]
    return b"".join(part for part in parts if isinstance(part, bytes)).decode()


def test_a_receiver_that_fails_is_tried_again_and_its_secrets_are_not_told(
    web: list[tuple[str, str | None, dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Web, "status", 500)
    with pytest.raises(NotSentError, match=r"notify.slack: message 0a1b") as failed:
        send(Notify(slack="slack_oncall"), MESSAGE)
    assert failed.value.exit_code is ExitCode.RETRY
    assert "very-secret" not in str(failed.value)
    assert web


def test_a_webhook_that_fails_is_named_by_its_number_and_its_address_is_in_no_log(
    web: list[tuple[str, str | None, dict[str, object]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],  # has what the hook of Airflow logs
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Who may read the log of a task is not to be able to write to the channel."""
    for status in (403, 304):
        monkeypatch.setattr(Web, "status", status)
        monkeypatch.setattr(Web, "says", b"very-secret is revoked")
        with pytest.raises(NotSentError, match=rf"notify\.http: .* \(HTTPError {status}\)"):
            send(Notify(http="pager"), MESSAGE)
    nobody = {"conn_type": "http", "host": "http://127.0.0.1:9/very-secret"}
    monkeypatch.setenv("AIRFLOW_CONN_PAGER", json.dumps(nobody))
    with pytest.raises(NotSentError, match=r"\(ConnectionError\)"):
        send(Notify(http="pager"), MESSAGE)
    said = "".join([*capsys.readouterr(), caplog.text])
    assert (len(web), "notify.http" in said, "very-secret" in said) == (2, True, False)


def test_a_receiver_that_fails_keeps_no_other_from_being_told_once(
    config: Path,
    web: list[tuple[str, str | None, dict[str, object]]],
    mails: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A webhook's token was revoked on Friday; the mails came all the same, and came once."""
    base, warehouse = config.read_text(), config.with_name("warehouse")
    mail = '[notify]\nsmtp = "mail"\nmail_to = ["on@example.com"]\n'
    config.write_text(f'{base}\n{mail}slack = "slack_oncall"\n')
    monkeypatch.setattr(Web, "status", 403)
    pending_news(warehouse, "s1", "s2")
    for _ in range(2):
        with pytest.raises(NotSentError, match=r"notify\.slack"):
            notify_stream(load_settings(config), "events")
    assert [len(mails), states(warehouse)] == [2, {"s1": "pending", "s2": "pending"}]
    web.clear()
    monkeypatch.setattr(Web, "status", 200)
    assert notify_stream(load_settings(config), "events") == 2
    assert [len(mails), len(web), states(warehouse)] == [2, 2, {"s1": "sent", "s2": "sent"}]
    monkeypatch.setattr(Web, "status", 403)
    pending_news(warehouse, "s3")
    with pytest.raises(NotSentError):
        notify_stream(load_settings(config), "events")
    config.write_text(f"{base}\n{mail}")
    assert notify_stream(load_settings(config), "events") == 0
    assert [len(mails), states(warehouse)["s3"]] == [3, "sent"]


@pytest.mark.parametrize(
    ("receiver", "said"),
    [
        (Notify(http="pager"), r"notify\.http: .* \(TooManyRedirects\)"),
        (Notify(slack="slack_oncall"), r"notify\.slack: .* \(HTTPError 302\)"),
    ],
)
def test_a_login_page_has_taken_no_message(
    web: list[tuple[str, str | None, dict[str, object]]],
    monkeypatch: pytest.MonkeyPatch,
    receiver: Notify,
    said: str,
) -> None:
    monkeypatch.setattr(Web, "status", 302)
    with pytest.raises(NotSentError, match=said):
        send(receiver, MESSAGE)
    assert len(web) == 1


PAGES = (
    b"<!DOCTYPE html>\n<html><form action='/sso'><input type='password'></form></html>",
    b"\xef\xbb\xbf \n<!-- SSO --><HTML lang='en'><head><SCRIPT src='a.js'></SCRIPT></head>",
    b"<html><meta http-equiv=refresh content='0;url=/login'>",
    b"<!DOCTYPE\nhtml><form>",
    b"<script>location = '/login'</script>",
)
ANSWERS = (*(b"ok", b"", b'{"ok": true}', b"\xff\xfe", b'{"text": "<html><form>"}', b"<ok/>"),)
THANKS = b"<html><body>thank you</body></html>"  # of a service of one's own; Slack sends no page


@pytest.mark.usefixtures("web")
@pytest.mark.parametrize("kind", ["slack", "http"])
def test_a_login_page_in_the_place_of_an_answer_has_taken_none_and_other_answers_have(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    receiver = Notify.model_validate({kind: "slack_oncall" if kind == "slack" else "pager"})
    for page in PAGES:
        monkeypatch.setattr(Web, "says", page)
        with pytest.raises(
            NotSentError, match=rf"notify\.{kind}: .* \(an HTML page, as of a login\)"
        ):
            send(receiver, MESSAGE)
    for answer in (*ANSWERS, *([THANKS] if kind == "http" else [])):
        monkeypatch.setattr(Web, "says", answer)
        send(receiver, MESSAGE)


@pytest.mark.usefixtures("web")
def test_a_webhook_that_says_nothing_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[object] = []

    def silent(_self: object, _request: object, **asked: object) -> None:
        limits.append(asked["timeout"])
        raise requests.Timeout

    monkeypatch.setattr(requests.Session, "send", silent)
    with pytest.raises(NotSentError):
        send(Notify(http="pager"), MESSAGE)
    assert limits == [30]


def test_a_provider_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "airflow.providers.slack.hooks.slack_webhook"
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotifierMissingError, match="apache-airflow-providers-slack is not"):
        send(Notify(slack="slack_oncall"), MESSAGE)


def test_a_late_watch_is_told_under_the_run_s_own_id(
    config: Path, web: list[tuple[str, str | None, dict[str, object]]]
) -> None:
    config.write_text(f'{config.read_text()}\n[notify]\nhttp = "pager"\n')
    context = {"dag_run": {"dag_run_id": "scheduled__2026-11-20T12:00"}}
    asyncio.run(tell_late(context))
    asyncio.run(tell_late(context))
    assert [document["title"] for _, _, document in web] == (
        ["shardaudit: the retention watch is late"] * 2
    )
    assert len({key for _, key, _ in web}) == 1


def test_a_late_watch_says_what_lacks_where_the_triggerer_knows_no_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(CONFIG, raising=False)
    with pytest.raises(PlanRefusedError, match="SHARDAUDIT_CONFIG is not set"):
        asyncio.run(tell_late({}))


def test_mail_needs_both_ends() -> None:
    with pytest.raises((ConfigError, ValueError), match="smtp or mail_to alone"):
        Notify(smtp="mail")


def test_each_key_is_a_receiver_but_the_addresses_of_one() -> None:
    keys = set(Notify.model_fields) - {"mail_to"}
    given = Notify(mail_to=["on@example.com"], **dict.fromkeys(keys, "connection"))
    assert set(receivers(given)) == keys
