"""The policies of `deploy/iam/` as documents: what calls they cover is for tests/aws."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.policies import (
    FOLDER,
    PAGE,
    PLACEHOLDER,
    Grant,
    excused_actions,
    granted,
    needed,
    operation_of,
)
from tests.recorded_calls import Call, s3_operation

NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))
REPAIRS = {"backfill-run", "backfill-merge", "dedupe-run", "dedupe-purge"}
# No part of what looks at a stream and repairs it by the default mode.
APART = {name for name in NAMES if name.startswith("backfill-")} - REPAIRS - {"backfill-plan"} | {
    *("page", "producer", "consumer"),
}
ROLES = {"role-audits": REPAIRS | APART, "role-repairs": APART}  # and what each leaves out
MOST_CHARACTERS = 6144  # of a managed policy, white space aside (IAM User Guide, quotas)
ARN = re.compile(
    r"arn:aws:(s3:::<[A-Z]+_BUCKET>(/<[A-Z]+_FOLDER>(/\S*\*)?)?"
    r"|kinesis:<REGION>:<ACCOUNT>:stream/<[A-Z_]+>(/consumer/shardaudit-\*)?"
    r"|dynamodb:<REGION>:<ACCOUNT>:table/<LEASE_TABLE>)"
)
STREAM_ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/events"


def statements(name: str) -> list[dict[str, object]]:
    document = json.loads((FOLDER / f"{name}.json").read_text())
    assert document.keys() == {"Version", "Statement"}
    assert document["Version"] == "2012-10-17"
    found: list[dict[str, object]] = document["Statement"]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_is_one_that_iam_takes(name: str) -> None:
    found = statements(name)
    assert {tuple(one) for one in found} == {("Sid", "Effect", "Action", "Resource")}
    assert {one["Effect"] for one in found} == {"Allow"}
    sids = [str(one["Sid"]) for one in found]
    assert len(set(sids)) == len(sids)
    assert all(re.fullmatch("[A-Za-z0-9]+", sid) for sid in sids)
    assert len("".join((FOLDER / f"{name}.json").read_text().split())) <= MOST_CHARACTERS


@pytest.mark.parametrize("name", NAMES)
def test_a_grant_is_an_operation_of_aws_on_something_that_is_named(name: str) -> None:
    grants = granted(name)
    assert [grant for grant in grants if operation_of(grant.action) is None] == []
    assert [grant for grant in grants if not ARN.fullmatch(grant.resource)] == []


def test_no_operation_is_found_for_a_name_that_aws_does_not_know() -> None:
    assert operation_of("s3:ListBucket") is not None
    assert operation_of("s3:HeadObject") == "HeadObject"
    assert operation_of("kinesis:ListBucket") is None
    assert operation_of("s3:GetObjects") is None


@pytest.mark.parametrize("role", ROLES)
def test_a_role_grants_what_its_commands_do_and_no_more(role: str) -> None:
    parts = set(NAMES) - ROLES[role] - ROLES.keys()
    wanted = {grant for name in parts for grant in granted(name)}
    given = granted(role)
    assert [one for one in wanted if not any(grant.covers(one) for grant in given)] == []
    assert given <= wanted


def test_who_only_audits_cannot_write_the_sink() -> None:
    of_sink = {g.action for g in granted("role-audits") if "SINK" in g.resource}
    assert of_sink == {"s3:GetObject", "s3:ListBucket"}


def test_what_no_test_uses_is_granted_where_the_page_says_it() -> None:
    found = {
        (action, name)
        for name in NAMES
        for action in {grant.action for grant in granted(name)}
        if action in dict(excused_actions())
    }
    assert found == {(action, name) for action, names in excused_actions() for name in names}


def test_the_page_names_every_policy() -> None:
    text = PAGE.read_text()
    assert [name for name in NAMES if f"`{name}`" not in text] == []


def test_the_command_of_the_page_fills_a_policy_in(tmp_path: Path) -> None:
    [command] = re.findall(r"(?ms)^```sh\n(sed .*?)```", PAGE.read_text())
    shutil.copytree(FOLDER, tmp_path / "deploy" / "iam")
    subprocess.run(["sh", "-euc", command], cwd=tmp_path, check=True)  # noqa: S607 - our own page
    text = (tmp_path / "audits.json").read_text()
    assert PLACEHOLDER.findall(text) == []
    assert "arn:aws:s3:::logs/traces/events/*" in text
    assert json.loads(text).keys() == {"Version", "Statement"}


@pytest.mark.parametrize(
    ("method", "depth", "query", "headers", "operation"),
    [
        ("GET", 0, {}, set(), "ListBuckets"),
        ("GET", 1, {"prefix": "a"}, set(), "ListObjects"),
        ("GET", 1, {"list-type": "2", "prefix": "a"}, set(), "ListObjectsV2"),
        ("HEAD", 1, {}, set(), "HeadBucket"),
        ("POST", 1, {"delete": ""}, set(), "DeleteObjects"),
        ("GET", 2, {"x-id": "GetObject"}, set(), "GetObject"),
        ("PUT", 2, {}, set(), "PutObject"),
        ("PUT", 2, {}, {"x-amz-copy-source"}, "CopyObject"),
        ("POST", 2, {"uploads": ""}, set(), "CreateMultipartUpload"),
        ("PUT", 2, {"partNumber": "1", "uploadId": "u"}, set(), "UploadPart"),
        ("POST", 2, {"uploadId": "u"}, set(), "CompleteMultipartUpload"),
        ("DELETE", 2, {"uploadId": "u"}, set(), "AbortMultipartUpload"),
        ("DELETE", 2, {}, set(), "DeleteObject"),
        ("GET", 2, {"tagging": ""}, set(), "GetObjectTagging"),
    ],
)
def test_a_request_is_known_by_its_shape(
    method: str, depth: int, query: dict[str, str], headers: set[str], operation: str
) -> None:
    named = dict.fromkeys(headers, "")
    assert s3_operation(method, depth, query=query, headers=named) == operation


@pytest.mark.parametrize(
    ("call", "grants"),
    [
        (Call("s3", "HeadObject", ("b/k",), 200), {("s3:GetObject", "arn:aws:s3:::b/k")}),
        (
            Call("s3", "GetObject", ("b/k",), 404),
            {("s3:GetObject", "arn:aws:s3:::b/k"), ("s3:ListBucket", "arn:aws:s3:::b")},
        ),
        (
            Call("s3", "CopyObject", ("b/new", "c/old"), 200),
            {("s3:PutObject", "arn:aws:s3:::b/new"), ("s3:GetObject", "arn:aws:s3:::c/old")},
        ),
        (
            Call("s3", "DeleteObjects", ("b/1", "b/2"), 200),
            {("s3:DeleteObject", "arn:aws:s3:::b/1"), ("s3:DeleteObject", "arn:aws:s3:::b/2")},
        ),
        (Call("s3", "PutObjectAcl", ("b/k",), 200), {("s3:PutObjectAcl", "arn:aws:s3:::b/k")}),
        (Call("kinesis", "GetRecords", ("",), 200), {("kinesis:GetRecords", STREAM_ARN)}),
        (
            Call("dynamodb", "Scan", ("t",), 200),
            {("dynamodb:Scan", "arn:aws:dynamodb:us-east-1:000000000000:table/t")},
        ),
    ],
)
def test_a_call_needs_its_grants(call: Call, grants: set[tuple[str, str]]) -> None:
    found = needed([call], stream_arn=STREAM_ARN)
    assert {(grant.action, grant.resource) for grant in found} == grants


def test_a_grant_covers_what_its_stars_stand_for() -> None:
    grant = Grant("s3:GetObject", "arn:aws:s3:::b/f/*")
    assert grant.covers(Grant("s3:GetObject", "arn:aws:s3:::b/f/a/b"))
    assert not grant.covers(Grant("s3:PutObject", "arn:aws:s3:::b/f/a"))
    assert not grant.covers(Grant("s3:GetObject", "arn:aws:s3:::b/f2/a"))
    assert not grant.covers(Grant("s3:GetObject", "arn:aws:s3:::b/f"))
