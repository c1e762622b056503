"""Private SSH keys: parsed once when a person provides one, then kept only encrypted or in an agent; or generated."""

from __future__ import annotations

from sublet.kernel.errors import BadKey, PassphraseNeeded

LEAST = 2048  # bits of an RSA key
OPENSSH = "BEGIN OPENSSH PRIVATE KEY"


def read_key(text: str, passphrase: str = "") -> tuple[str, str]:
    """Return the private key without its passphrase, and its public key; errors reveal nothing about the key."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    load = form.load_ssh_private_key if OPENSSH in text else form.load_pem_private_key
    data = text.strip().encode() + b"\n"
    try:
        key = load(data, passphrase.encode() or None)
    except TypeError as error:
        if not passphrase:
            raise PassphraseNeeded from error
        return read_key(text)  # the key has no passphrase
    except (ValueError, UnsupportedAlgorithm) as error:
        why = "its passphrase is another" if passphrase else "it is no private key that can be read"
        raise BadKey(why=why) from None if isinstance(error, ValueError) else error
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        raise BadKey(why="it is of a kind that centres no longer take; make one with `ssh-keygen -t ed25519`")
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < LEAST:
        raise BadKey(why=f"an RSA key of {key.key_size} bits is too short; it needs {LEAST}")
    whole = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()).decode()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
    return whole, public


def make_key() -> tuple[str, str]:
    """Generate a key without a passphrase; return the private key in OpenSSH's format, and its public key."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate()
    whole = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()).decode()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()
    return whole, public
