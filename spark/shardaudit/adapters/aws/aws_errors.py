"""What boto3's errors say, and whether asking again is of any use."""

from collections.abc import Mapping

from botocore.exceptions import BotoCoreError, ClientError

# On this side: nothing was asked yet.
_FINAL_HERE = {
    "NoCredentialsError": "give credentials by the usual AWS chain",
    "PartialCredentialsError": "give credentials by the usual AWS chain",
    "NoRegionError": "set [aws] region",
    "ProfileNotFound": "check AWS_PROFILE",
}


def said_and_advice(
    error: BotoCoreError | ClientError, final: Mapping[str, str]
) -> tuple[str, str | None]:
    """The error in words, and what to do; None where a later try may work.

    Input:
        final: error code or class -> what to do about it, beside what holds for every service.
    """
    if isinstance(error, ClientError):
        said = error.response.get("Error", {})
        code = said.get("Code", "unknown")
        return f"{code}: {said.get('Message', '')}", final.get(code)
    return str(error), (_FINAL_HERE | dict(final)).get(type(error).__name__)
