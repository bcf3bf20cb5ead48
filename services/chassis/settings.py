"""Base of each service's settings: one frozen, typed object, read once at start."""

from __future__ import annotations

import os
from typing import Self

from pydantic import ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings import SettingsError as MalformedJson


class SettingsError(Exception):
    """A setting is missing, unknown or out of range. The text is one line."""


class ServiceSettings(BaseSettings):
    """Settings from environment variables with the subclass's `env_prefix`.

    pydantic-settings alone passes over a misspelt variable; `load` refuses it.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    @classmethod
    def load(cls) -> Self:
        """Read the settings from the environment and check them.

        Raises:
            SettingsError: a variable with this prefix is unknown or has a wrong value.
        """
        prefix = cls.model_config["env_prefix"]
        known = {f"{prefix}{field}".upper() for field in cls.model_fields}
        given = {name.upper() for name in os.environ if name.upper().startswith(prefix.upper())}
        if unknown := sorted(given - known):
            raise SettingsError(f"unknown setting {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        try:
            return cls()
        except ValidationError as error:
            first = error.errors()[0]
            name = f"{prefix}{'.'.join(str(part) for part in first['loc'])}".upper()
            raise SettingsError(f"setting {name} is wrong: {first['msg']}") from error
        except MalformedJson as error:
            # It names the field in its text alone.
            field = next((field for field in cls.model_fields if f'"{field}"' in str(error)), "")
            raise SettingsError(f"setting {prefix}{field.upper()} is no JSON: {error.__cause__}") from error
