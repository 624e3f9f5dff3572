"""PostgreSQL in a folder that is thrown away, on a free port of 127.0.0.1; and what is in it."""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shardaudit.simulate.s3proxy import free_port
from tests.cluster.bound_process import BoundProcess

USER = "airflow"
_OWNER = "postgres"  # of its files and processes where we are root: it refuses to be root's


def programs_of_postgres() -> Path | None:
    """The folder of `postgres`, `initdb` and `psql`, where they are installed."""
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)  # Debian puts no link


@dataclass(frozen=True, slots=True)
class OwnPostgres:
    """A server with one database, which is empty at first."""

    programs: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        """As SQLAlchemy and Airflow want it."""
        return f"postgresql+psycopg2://{USER}:{self.password}@127.0.0.1:{self.port}/postgres"

    def schema(self) -> list[str]:
        """All that was made in it, columns and indexes too, but no row."""
        schema = self._said("pg_dump", "--schema-only", "--no-owner")
        return [line for line in schema.splitlines() if not line.startswith(("--", "\\"))]

    def rows_about(self, *words: str) -> Counter[str]:
        """How many rows of which table say one of the words."""
        dump = self._said("pg_dump", "--data-only", "--inserts")
        # Of the last row of a table also what comes between the tables.
        rows = [row.partition(");\n\n")[0] for row in dump.split("\nINSERT INTO public.")[1:]]
        told = [row for row in rows if any(word in row for word in words)]
        return Counter(row.partition(" ")[0] for row in told)

    def _said(self, program: str, *words: str) -> str:
        place = ["--host=127.0.0.1", f"--port={self.port}", f"--username={USER}"]
        return subprocess.run(
            [str(self.programs / program), *place, *words, "postgres"],
            env={"PGPASSWORD": self.password, "PATH": os.defpath},
            capture_output=True,
            text=True,
            check=True,
        ).stdout


@contextmanager
def own_postgres(programs: Path) -> Iterator[OwnPostgres]:
    """A server that ends with the block."""
    # Not in pytest's folder, into which none but its owner may look.
    folder = Path(tempfile.mkdtemp(prefix="shardaudit-postgres-"))
    server = OwnPostgres(programs, free_port(), secrets.token_hex(16))
    try:
        password = folder / "password"
        password.write_text(server.password)
        if os.geteuid() == 0:
            for one in (folder, password):
                shutil.chown(one, _OWNER, _OWNER)
        data = str(folder / "data")
        made = ["initdb", f"--username={USER}", "--auth=scram-sha-256", f"--pwfile={password}"]
        plain = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}
        initdb = as_owner(programs, *made, "--no-sync", "-D", data)
        subprocess.run(initdb, env=plain, cwd=folder, capture_output=True, check=True)
        with _started(server, folder, plain):
            yield server
    finally:
        shutil.rmtree(folder)


@contextmanager
def _started(server: OwnPostgres, folder: Path, plain: Mapping[str, str]) -> Iterator[None]:
    here = ["-h", "127.0.0.1", "-p", str(server.port), "-k", "", "-c", "fsync=off"]
    data = str(folder / "data")
    words = as_owner(server.programs, "postgres", "-D", data, *here)
    process = BoundProcess(words, plain, folder / "log")
    try:
        process.said("(ready to accept connections)")
        yield
    finally:
        # By itself it gives back the memory that it shares.
        stop = as_owner(server.programs, "pg_ctl", "stop", "-m", "fast", "-D", data)
        subprocess.run(stop, env=dict(plain), cwd=folder, capture_output=True, check=False)
        process.kill()


def as_owner(programs: Path, program: str, *words: str) -> list[str]:
    """The command line of a program of PostgreSQL's, as a user who is not root."""
    line = [str(programs / program), *words]
    if os.geteuid() != 0:
        return line
    return ["setpriv", f"--reuid={_OWNER}", f"--regid={_OWNER}", "--clear-groups", *line]
