"""What a person sees under /v1, one file per noun, so that the command line loads only what it draws.

Plain dataclasses, because the command line must not wait for pydantic. In JSON an instant is ISO 8601 in UTC with a Z,
a duration is ISO 8601 (`PT1H30M`), and memory, sizes and storage are bytes.
"""
