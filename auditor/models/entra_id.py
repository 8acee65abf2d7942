"""Access tokens of Microsoft Entra ID, with which Azure takes requests in place of a key.

azure-identity finds the credentials of this machine as Azure's own programs do: environment variables, workload or
managed identity, `az login` (learn.microsoft.com/python/api/azure-identity, DefaultAzureCredential). litellm fetches
tokens for some of Azure's addresses only, and prefers keys in the environment that no config names.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from typing import Any

from auditor.errors import ConfigError

DEFAULT_SCOPE = "https://cognitiveservices.azure.com/.default"
SCOPE_VARIABLE = "AZURE_SCOPE"
"""Environment variable with another scope, as litellm names it; national clouds have scopes of their own."""
AUTHORITY_VARIABLE = "AZURE_AUTHORITY_HOST"
REFRESH_BEFORE_S = 300.0
"""A token is replaced so long before it expires."""
MAX_REASON_CHARS = 300


class AccessTokenRefused(Exception):
    """Entra ID issues no token to this machine's credentials, or it has none."""


class EntraIdTokens:
    """Access tokens for one model, fetched when they are needed. Use it in one event loop."""

    def __init__(self) -> None:
        """Create a source of tokens; nothing is sent yet."""
        self._lock = asyncio.Lock()
        self._credential: Any = None
        self._token, self._expires_at = "", 0.0

    async def fetch(self) -> str:
        """Return a token that is valid for some minutes, from memory if there is one.

        Raises:
            AccessTokenRefused: there are no credentials, or they are refused.
            Exception: Entra ID cannot be reached.
        """
        async with self._lock:
            if time.time() > self._expires_at - REFRESH_BEFORE_S:
                self._token, self._expires_at = await asyncio.to_thread(self._request_token)
        return self._token

    def _request_token(self) -> tuple[str, float]:
        """Request a token; returns it, and when it expires, in seconds since 1970."""
        from azure.core.exceptions import ClientAuthenticationError
        from azure.identity import CredentialUnavailableError, DefaultAzureCredential

        if self._credential is None:
            # A cloud of its own, which the user's environment names, is not listed by the public one.
            is_own_cloud = AUTHORITY_VARIABLE in os.environ
            self._credential = DefaultAzureCredential(disable_instance_discovery=is_own_cloud)
        try:
            token = self._credential.get_token(os.environ.get(SCOPE_VARIABLE) or DEFAULT_SCOPE)
        except (ClientAuthenticationError, CredentialUnavailableError, ValueError) as error:
            reason = " ".join(str(getattr(error, "message", None) or error).split())[:MAX_REASON_CHARS]
            raise AccessTokenRefused(f"Microsoft Entra ID issues no access token: {reason}") from None
        return token.token, float(token.expires_on)


def require_azure_identity(model_name: str) -> None:
    """Require the package that finds Azure's credentials, for a model without a key.

    Raises:
        ConfigError: it is not installed.
    """
    if importlib.util.find_spec("azure") is None or importlib.util.find_spec("azure.identity") is None:
        raise ConfigError(
            f"model '{model_name}' has no api_key, so it needs Microsoft Entra ID; azure-identity is not installed.",
            "Install it: pip install 'auditor[azure]'. Or add api_key to the model.",
        )
