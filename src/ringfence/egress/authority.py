"""A certificate authority for one mission, made when inspection is asked for, trusted by that mission's box alone."""

import datetime as dt
import ipaddress
import os
import ssl
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAYS = 30
MAX_CONTEXTS = 256
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")

TRUST_VARIABLES = (
    "SSL_CERT_FILE",  # OpenSSL, Go, .NET, Ruby, uv
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "npm_config_cafile",  # where a configuration names a file of its own, npm reads that file alone
    "YARN_HTTPS_CA_FILE_PATH",
    "DENO_CERT",
    "BUNDLE_SSL_CA_CERT",
    "COMPOSER_CAFILE",
    "HEX_CACERTS_PATH",
    "NIX_SSL_CERT_FILE",
    "AWS_CA_BUNDLE",
)


def make_authority(mission: str, today: dt.datetime) -> tuple[str, str]:
    """Certificate and key in PEM. The key goes to the mission's worker and nowhere else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"ringfence mission {mission}"[:64])])
    certificate = (
        _builder(name, name, key.public_key(), today)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), _pem(key).decode()


def trust_environment(bundle: str) -> dict[str, str]:
    """Variables that make the usual programs of a box read a bundle with the mission's certificate added to it."""
    return dict.fromkeys(TRUST_VARIABLES, bundle)


@dataclass(slots=True)
class Authority:
    """Gives the TLS context for each host. One key serves all of a mission's hosts."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    today: dt.datetime
    leaf_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    @classmethod
    def load(cls, certificate: str, key: str, today: dt.datetime) -> "Authority":
        """From the PEM texts that ``make_authority`` gave."""
        private = serialization.load_pem_private_key(key.encode(), password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise TypeError("the mission's authority has a key of another kind")
        return cls(x509.load_pem_x509_certificate(certificate.encode()), private, today)

    def context(self, host: str) -> ssl.SSLContext:
        """A server context with a certificate for the host, HTTP/1.1 only."""
        if host not in self._contexts:
            if len(self._contexts) >= MAX_CONTEXTS:
                self._contexts.clear()
            self._contexts[host] = self._make(host)
        return self._contexts[host]

    def _make(self, host: str) -> ssl.SSLContext:
        try:
            subject: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(host))
        except ValueError:
            subject = x509.DNSName(host)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
        leaf = (
            _builder(name, self.certificate.subject, self.leaf_key.public_key(), self.today)
            .add_extension(x509.SubjectAlternativeName([subject]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        chain = leaf.public_bytes(serialization.Encoding.PEM) + _pem(self.leaf_key)
        # The ssl module takes files only, and this process opens none: a file in memory, gone with its descriptor.
        descriptor = os.memfd_create("leaf", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, chain)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return context


def upstream_context(trusted: str) -> ssl.SSLContext:
    """A client context that checks servers against a bundle, read whole now: later no file can be opened."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    bundle = trusted or next((path for path in BUNDLES if os.path.exists(path)), "")
    if bundle:
        context.load_verify_locations(cafile=bundle)
    return context


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, today: dt.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
