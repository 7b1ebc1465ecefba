"""A certificate authority for one cluster, and what it signs. Valid for days: clusters of tests live for minutes."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from realcluster.layout import CONTROL_PLANE_IP, SERVICE_IP

__all__ = ["write_certificates"]

_VALID = datetime.timedelta(days=30)
_API_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_API_ADDRESSES = ("127.0.0.1", SERVICE_IP, CONTROL_PLANE_IP)


def write_certificates(folder: Path) -> None:
    """Write ca, api (server) and client (the API server towards kubelets) as .crt and .key, and sa.key with sa.pub."""
    folder.mkdir()
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "airflow-elastic tests")])
    authority = (
        _builder(authority_name, authority_name, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder, "ca", authority_key, authority)

    names = [
        *(x509.DNSName(name) for name in _API_NAMES),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in _API_ADDRESSES),
    ]
    subjects = {
        "api": [x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")],
        "client": [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters"),
            x509.NameAttribute(NameOID.COMMON_NAME, "apiserver"),
        ],
    }
    for name, subject in subjects.items():
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(x509.Name(subject), authority_name, key).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        if name == "api":
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        _write(folder, name, key, builder.sign(authority_key, hashes.SHA256()))

    accounts = ec.generate_private_key(ec.SECP256R1())
    _write(folder, "sa", accounts, None)
    public = accounts.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "sa.pub").write_bytes(public)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Tests set the clocks of clients back and forth by minutes.
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
    )


def _write(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate | None) -> None:
    path = folder / f"{name}.key"
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    if certificate is not None:
        (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
