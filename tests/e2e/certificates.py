"""Certificates for tests of TLS: made by openssl, good for localhost and a day."""
import os
import ssl
import subprocess


def make(fleet, name, days=1):
    """Paths of a certificate that signs itself, and of its key."""
    chain, key = fleet.data(f"{name}.pem"), fleet.data(f"{name}.key")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256"]
    words += ["-keyout", key, "-out", chain, "-days", str(days), "-subj", f"/CN={name}"]
    words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    os.chmod(key, 0o600)
    return chain, key


def trusting(chain, version=None, alpn=()):
    """A client that trusts this certificate alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(chain)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context
