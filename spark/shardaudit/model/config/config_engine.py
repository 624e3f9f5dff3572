"""What runs the PySpark program: which engine, and what the embedded one may take."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shardaudit.model.choices import EngineName
from shardaudit.model.config.config_error import one_of
from shardaudit.model.config.config_fields import SizeBytes
from shardaudit.model.errors import ConfigError

ENGINE = "SHARDAUDIT_ENGINE"  # in the environment: comes before the configuration's


class Embedded(BaseModel):
    """The engine in the process. `memory`: of all of it; `shared_machine`: others may log in."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    memory: Annotated[SizeBytes, Field(ge=2**30)] = 3 * 2**30
    shared_machine: bool = False


def asked_engine(name: str) -> EngineName:
    """The engine of that name, asked for outside of the configuration.

    Raises:
        ConfigError: there is none.
    """
    if name not in set(EngineName):
        raise ConfigError(f"--engine or ${ENGINE}", name, one_of(name, list(EngineName)))
    return EngineName(name)
