"""Where the watch's messages go: names of Airflow connections, which hold the addresses."""

from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from shardaudit.model.config.config_fields import Text
from shardaudit.model.errors import ConfigError


class Notify(BaseModel):
    """Each key that is given is one more receiver; addresses and secrets are in the connection."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    slack: Text | None = None
    http: Text | None = None
    smtp: Text | None = None
    mail_to: list[Text] = []

    @model_validator(mode="after")
    def _mail_has_both_ends(self) -> Self:
        if bool(self.mail_to) != (self.smtp is not None):
            raise ConfigError("", "smtp or mail_to alone", "both of them, or none")
        return self
