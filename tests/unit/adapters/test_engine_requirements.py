"""Who else could reach the embedded engine's port."""

from pwd import struct_passwd

import pytest

from shardaudit.adapters.engine.requirements import (
    OpenPortError,
    directories,
    people,
    require_plain_path,
)
from shardaudit.model.errors import ConfigError


def account(name: str, uid: int, *, program: str = "/bin/bash") -> struct_passwd:
    return struct_passwd((name, "x", uid, uid, "", f"/home/{name}", program))


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        (account("ann", 1000), True),
        (account("bob", 1001, program="/usr/bin/zsh"), True),
        (account("no-shell-said", 1002, program=""), True),  # login(1) takes /bin/sh
        (account("own", 1500), False),
        (account("root", 0), False),
        (account("postgres", 117), False),
        (account("nobody", 65534), False),
        (account("mail-only", 1003, program="/usr/sbin/nologin"), False),
        (account("ftp", 1004, program="/bin/false"), False),
    ],
)
def test_only_people_who_can_log_in_count(other: struct_passwd, counts: bool) -> None:
    assert people([other], beside=1500, first=1000) == ([other.pw_name] if counts else [])


def test_people_of_macos_count() -> None:
    others = [account("ann", 502), account("_www", 70, program="/usr/bin/false")]
    assert people(others, beside=501, first=501) == ["ann"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("passwd:         files systemd", []),
        ("passwd:files [NOTFOUND=continue UNAVAIL=return] sss # of the company", ["sss"]),
        ("passwd: compat\ngroup: files ldap", []),
        ("# passwd: ldap\npasswd:\tfiles winbind ldap", ["winbind", "ldap"]),
        ("", []),
    ],
)
def test_directory_is_one_that_accounts_come_from(line: str, found: list[str]) -> None:
    assert directories(line) == found


def test_refusal_names_who_and_both_cures() -> None:
    assert "'ann' can log in here" in str(OpenPortError(["ann"]))
    said = str(OpenPortError(["ann", "bob", "eve"]))
    assert "'ann' and 2 more can log in here" in said
    assert 'set engine = "spark", or embedded.shared_machine = true' in said


@pytest.mark.parametrize(
    "path", ["warehouse", "/a/b_c=1/@x,~-.+", "s3a://lake/warehouse/", "file:///a/b", "./w"]
)
def test_warehouse_is_taken_when_its_path_is_plain(path: str) -> None:
    require_plain_path(path)


@pytest.mark.parametrize("path", ["/a b", "/a%20b", "/a[1]", "/a*", "/é", "/a\\b", "/a?", "/a\nb"])
def test_warehouse_is_refused_with_the_cure_when_the_engine_would_look_elsewhere(path: str) -> None:
    with pytest.raises(ConfigError, match='or engine = "spark"'):
        require_plain_path(path)
