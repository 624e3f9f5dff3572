"""What `deploy/iam/` grants, and what calls need of it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from botocore.loaders import create_loader
from botocore.model import ServiceModel

from tests.recorded_calls import Call

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "iam.md"
FOLDER = ROOT / "deploy" / "iam"
PLACEHOLDER = re.compile(r"<([A-Z_]+)>")
# S3's actions that are not named as its operations are (S3 User Guide, required permissions).
S3_ACTIONS = {
    "HeadObject": "GetObject",
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "CopyObject": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject",
    "DeleteObjects": "DeleteObject",
}
_MISSING = 404


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One action on what one pattern names; or, without a star, on one thing."""

    action: str
    resource: str

    def covers(self, other: "Grant") -> bool:
        """Whether it allows what the other one is; a star stands for any text, as IAM's does."""
        pattern = ".*".join(map(re.escape, self.resource.split("*")))
        return self.action == other.action and bool(re.fullmatch(pattern, other.resource))


def granted(name: str, values: Mapping[str, str] | None = None) -> set[Grant]:
    """What the policy of that name grants, with its placeholders filled in."""
    text = (FOLDER / f"{name}.json").read_text()
    if values is not None:
        text = PLACEHOLDER.sub(lambda found: values[found[1]], text)
    return {
        Grant(action, resource)
        for statement in json.loads(text)["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
    }


def unused_grants(name: str, values: Mapping[str, str]) -> set[Grant]:
    """Those of a policy that no test uses: `docs/iam.md` names their actions, and why."""
    actions = {action for action, names in excused_actions() if name in names}
    return {grant for grant in granted(name, values) if grant.action in actions}


def excused_actions() -> list[tuple[str, list[str]]]:
    """Each action of that table, with its policies."""
    rows = re.findall(r"(?m)^\| `(\w+:\w+)` \| ([^|]+) \|", PAGE.read_text())
    return [(action, re.findall("`([^`]+)`", names)) for action, names in rows]


def needed(calls: Iterable[Call], *, stream_arn: str) -> set[Grant]:
    """The grants that the calls need.

    `stream_arn`: of the one stream that iterators and tokens stand for.
    """
    found = set[Grant]()
    for call in calls:
        if call.service == "s3":
            found |= _needed_of_s3(call)
        else:
            arns = (_arn(call.service, one, stream_arn) for one in call.resources)
            found |= {Grant(f"{call.service}:{call.operation}", arn) for arn in arns}
    return found


def operation_of(action: str) -> str | None:
    """An operation of botocore's models that the action allows; None where there is none."""
    service, _, name = action.partition(":")
    names = _operations(service)
    alike = {action: operation for operation, action in S3_ACTIONS.items()}
    operation = alike.get(name, name) if service == "s3" else name
    return next((one for one in (name, operation) if one in names), None)


def _needed_of_s3(call: Call) -> set[Grant]:
    action = f"s3:{S3_ACTIONS.get(call.operation, call.operation)}"
    if call.operation == "CopyObject":
        to, source = (f"arn:aws:s3:::{one}" for one in call.resources)
        return {Grant(action, to), Grant("s3:GetObject", source)}
    found = {Grant(action, f"arn:aws:s3:::{one}") for one in call.resources}
    if call.status == _MISSING and action == "s3:GetObject":
        # To whom may not list, S3 says 403 where 404 was meant (GetObject, HeadObject).
        buckets = {one.partition("/")[0] for one in call.resources}
        found |= {Grant("s3:ListBucket", f"arn:aws:s3:::{bucket}") for bucket in buckets}
    return found


def _arn(service: str, named: str, stream_arn: str) -> str:
    if named.startswith("arn:"):
        return named
    if service == "kinesis":
        return f"{stream_arn.rpartition('/')[0]}/{named}" if named else stream_arn
    region, account = stream_arn.split(":")[3:5]
    return f"arn:aws:{service}:{region}:{account}:table/{named}"


@cache
def _operations(service: str) -> frozenset[str]:
    model = create_loader().load_service_model(service, "service-2")
    return frozenset(ServiceModel(model, service).operation_names)
