"""HTCondor's configuration as text; a value is data, and can't become another line or a macro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sublet.kernel.errors import NotConfigurable

# What every HTCondor that Sublet configures has: only IDTOKENs, everything encrypted, nothing outside its directory.
STRICT = {
    "ENABLE_KERNEL_TUNING": "False",  # daemons that run as root would change settings of the whole machine
    "SEC_DEFAULT_AUTHENTICATION": "REQUIRED",
    "SEC_READ_AUTHENTICATION": "REQUIRED",
    "SEC_CLIENT_AUTHENTICATION": "REQUIRED",
    "SEC_DEFAULT_AUTHENTICATION_METHODS": "IDTOKENS",
    "SEC_CLIENT_AUTHENTICATION_METHODS": "IDTOKENS",
    "SEC_DEFAULT_ENCRYPTION": "REQUIRED",
    "SEC_DEFAULT_INTEGRITY": "REQUIRED",
    "NO_DNS": "True",
}
# The plug-ins that fetch inputs which jobs name by URL: whenever a job starts, HTCondor asks each of them what it can
# do. Those for Box, Google Drive and OneDrive are left out: they need credentials that no pilot has, and each starts a
# Python.
PLUGINS = "$(LIBEXEC)/curl_plugin, $(LIBEXEC)/data_plugin, $(STASH_PLUGIN)"
PLACES = {
    "LOG": "log",
    "SPOOL": "spool",
    "EXECUTE": "execute",
    "LOCK": "lock",
    "RUN": "run",
    "ETC": "etc",
    "CRED_STORE_DIR": "credentials",
    "SEC_TOKEN_DIRECTORY": "tokens.d",
    "SEC_TOKEN_SYSTEM_DIRECTORY": "tokens.d",
    "SEC_PASSWORD_DIRECTORY": "passwords.d",
}


def write_lines(values: Mapping[str, str], macros: Iterable[str] = ()) -> str:
    """Write lines of configuration; `macros` are HTCondor's own (`SECURITY:strong`), and come first."""
    lines = [f"use {macro}" for macro in macros]
    for name, value in values.items():
        if any(character in value for character in "\n\r\0"):
            raise NotConfigurable(name=name)
        lines.append(f"{name} = {value}")
    return "\n".join(lines) + "\n"


def literal(value: str) -> str:
    """Escape a value so that HTCondor expands no macro in it."""
    return value.replace("$", "$(DOLLAR)")


def quote_string(value: str) -> str:
    """Quote a value as a ClassAd string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def attribute(value: str) -> str:
    """Quote a value as a ClassAd string in a configuration, for an attribute that a daemon advertises."""
    return literal(quote_string(value))


def places(directory: str) -> dict[str, str]:
    """Return the settings that keep all of an HTCondor's own files below one directory."""
    inside = {name: f"$(LOCAL_DIR)/{place}" for name, place in PLACES.items()}
    return {
        "LOCAL_DIR": literal(directory),
        "LOCAL_CONFIG_DIR": "",
        "REQUIRE_LOCAL_CONFIG_FILE": "False",
        **inside,
        "SEC_TOKEN_POOL_SIGNING_KEY_FILE": "$(LOCAL_DIR)/passwords.d/POOL",
        "SEC_KNOWN_HOSTS": "$(LOCAL_DIR)/known_hosts",  # otherwise it is put in the home directory
    }
