"""S3 on this machine: the s3proxy jar over a folder, as long as a command needs it."""

import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from shardaudit.adapters.engine.jars import CACHE
from shardaudit.model.errors import FinalError
from shardaudit.simulate.stand_in_process import stop

_JARS = CACHE / "jars" / "s3proxy"
REGION = "us-east-1"
_TRIES, _PAUSE_SECONDS = 600, 0.1
# Untold, logback says all: 100 KiB a request, which took most of a request's time.
_LOGGING = """<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="warn"><appender-ref ref="out"/></root>
</configuration>
"""


class S3ProxyFailedError(FinalError, ChildProcessError):
    """The s3proxy cannot run here."""


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """What clients must know; never shown."""

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """Where it listens, and the credentials that it asks for."""

    url: str
    credentials: S3Credentials

    def environment(self) -> dict[str, str]:
        """The variables by which the usual AWS chain of a child process finds the credentials."""
        return {
            "AWS_ACCESS_KEY_ID": self.credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": self.credentials.secret_key,
            "AWS_REGION": REGION,
        }

    def storage_options(self) -> dict[str, str]:
        """The same for delta-rs."""
        return {
            **self.environment(),
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
        }


@dataclass(frozen=True, slots=True)
class Installation:
    """What is run: a Java and the jars that set-up fetched."""

    java: str = "java"
    jars: Path = _JARS

    def command(self) -> list[str]:
        """The program and its options, before those of a server.

        Raises:
            S3ProxyFailedError: no Java, or no jars; says what to do.
        """
        program = shutil.which(self.java)
        if program is None:
            raise S3ProxyFailedError(f"no {self.java} to be run: install a Java 17 or 21 runtime")
        if not any(self.jars.glob("*s3proxy*.jar")):
            raise S3ProxyFailedError(f"no s3proxy jar in {self.jars}: run `make setup` once")
        options = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
        return [program, *options, "-cp", f"{self.jars}/*"]


INSTALLED = Installation()


def random_credentials() -> S3Credentials:
    """Credentials that nobody else knows."""
    return S3Credentials(secrets.token_hex(10), secrets.token_hex(20))


@contextmanager
def s3_proxy(
    folder: Path,
    *,
    port: int = 0,
    credentials: S3Credentials | None = None,
    installation: Installation = INSTALLED,
) -> Iterator[S3Endpoint]:
    """An S3 server over the folder (a bucket is a folder in it) on a port of 127.0.0.1, 0 for any.

    Raises:
        S3ProxyFailedError: no Java, no jars, or it did not start; says what to do.
    """
    command = installation.command()
    folder.mkdir(parents=True, exist_ok=True)
    endpoint = S3Endpoint(
        f"http://127.0.0.1:{port or free_port()}", credentials or random_credentials()
    )
    with tempfile.TemporaryDirectory(prefix="shardaudit-s3proxy-") as private:
        # mkdtemp: 0700. A file and not -D arguments, which every user of the machine could list.
        properties = Path(private) / "s3proxy.conf"
        properties.write_text(_properties(endpoint, folder), encoding="utf-8")
        log, logging = Path(private) / "log", Path(private) / "logback.xml"
        logging.write_text(_LOGGING, encoding="utf-8")
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(
                [
                    *(*command, f"-Dlogback.configurationFile={logging}"),
                    *("org.gaul.s3proxy.Main", "--properties", str(properties)),
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
        try:
            _wait_until_open(process, endpoint, log)
            properties.unlink()
            yield endpoint
        finally:
            stop(process)


def _properties(endpoint: S3Endpoint, folder: Path) -> str:
    lines = {
        "s3proxy.endpoint": endpoint.url,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": endpoint.credentials.access_key,
        "s3proxy.credential": endpoint.credentials.secret_key,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(folder.absolute()),
    }
    # In a Java properties file a backslash begins an escape.
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in lines.items())


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _wait_until_open(process: "subprocess.Popen[str]", endpoint: S3Endpoint, log: Path) -> None:
    host, _, port = endpoint.url.removeprefix("http://").partition(":")
    for _ in range(_TRIES):
        if process.poll() is not None:
            break
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                return
        except OSError:
            time.sleep(_PAUSE_SECONDS)
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise S3ProxyFailedError(f"s3proxy did not start: {said.strip() or 'no word of it'}")
