"""Kubernetes manifests: where a change lands (namespaces, regions, clusters) and whether it touches access. Pure.

Documents are compared as values; only those that differ count, on both sides: taking a document out of a namespace
touches that namespace too.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.promotion.blast.documents import Unreadable
from ringfence.promotion.strict import Value

_REGION_KEY = re.compile(r"(?i)(?:.*[/_.-])?(?:aws_?|gcp_?|google_cloud_|azure_)?(?:default_?)?region\Z")
_REGION = re.compile(
    r"(?:us|eu|ap|sa|ca|me|af|il|cn|mx)-(?:gov-)?(?:north|south|east|west|central|northeast|southeast|northwest|southwest)-?\d\Z|"
    r"(?:us|europe|asia|australia|northamerica|southamerica|africa|me)-(?:north|south|east|west|central|northeast|southeast)\d\Z"
)
_ZONE_KEY = re.compile(r"(?i)(?:.*[/_.-])?zone\Z")
_CLUSTER_KEY = re.compile(r"(?i)(?:.*[/_.-])?cluster(?:[_-]?(?:name|id|arn))?\Z|clusters\Z")
_ACCESS_KINDS_WORDS = (
    "Role RoleBinding ClusterRole ClusterRoleBinding ServiceAccount NetworkPolicy PodSecurityPolicy AuthorizationPolicy "
    "PeerAuthentication RequestAuthentication CiliumNetworkPolicy CiliumClusterwideNetworkPolicy "
    "ValidatingAdmissionPolicy SecurityPolicy"
)
_ACCESS_KINDS = frozenset(_ACCESS_KINDS_WORDS.split())
_CLUSTER_WIDE_WORDS = (
    "ClusterRole ClusterRoleBinding Namespace CustomResourceDefinition PersistentVolume StorageClass PriorityClass "
    "Node MutatingWebhookConfiguration ValidatingWebhookConfiguration APIService IngressClass RuntimeClass "
    "CertificateSigningRequest ClusterIssuer ClusterPolicy PodSecurityPolicy CSIDriver"
)
_CLUSTER_WIDE = frozenset(_CLUSTER_WIDE_WORDS.split())
_SECRET_KINDS = frozenset({"Secret", "SealedSecret", "ExternalSecret", "SecretProviderClass"})
_ACCESS_KEYS_WORDS = (
    "serviceAccountName serviceAccount automountServiceAccountToken privileged hostNetwork hostPID hostIPC hostPath "
    "allowPrivilegeEscalation runAsUser runAsNonRoot capabilities"
)
_ACCESS_KEYS = frozenset(_ACCESS_KEYS_WORDS.split())
# Pairs that take power away: adding one is no widening, losing one is.
_HARDENING = frozenset(
    {("runAsNonRoot", "True"), ("automountServiceAccountToken", "False")}
    | {(key, "False") for key in ("privileged", "hostNetwork", "hostPID", "hostIPC", "allowPrivilegeEscalation")}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDelta:
    """Where the differing documents are, and what else they do."""

    namespaces: frozenset[str] = frozenset()
    regions: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    access: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


def looks_like_manifest(documents: list[Value]) -> bool:
    """Whether any document names an API version and a kind."""
    return any(isinstance(d, dict) and {"apiVersion", "kind"} <= d.keys() for d in documents)


def is_kustomization(path: str) -> bool:
    """Whether kustomize reads the file by its name; it may do without version and kind."""
    return path.rsplit("/", 1)[-1] in {"kustomization.yaml", "kustomization.yml", "Kustomization"}


def compare_manifests(old: list[Value], new: list[Value]) -> ManifestDelta:
    """The difference of two files' documents. Raises Unreadable for a document that is not a manifest."""
    before, after = list(_flat(old)), list(_flat(new))
    changed_old = [document for document in before if document not in after]
    changed_new = [document for document in after if document not in before]
    places = [_places(document) for document in (*changed_old, *changed_new)]
    return ManifestDelta(
        namespaces=frozenset().union(*(place.namespaces for place in places)),
        regions=frozenset().union(*(place.regions for place in places)),
        clusters=frozenset().union(*(place.clusters for place in places)),
        access=tuple(_access(changed_old, changed_new)),
        secrets=tuple(_name(d) for d in (*changed_old, *changed_new) if d.get("kind") in _SECRET_KINDS),
    )


def _flat(documents: list[Value]) -> Iterator[dict[str, Value]]:
    for document in documents:
        if not isinstance(document, dict):
            raise Unreadable("a document is not an object")
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from _flat(items)
        else:
            yield document


def _places(document: dict[str, Value]) -> ManifestDelta:
    found: dict[str, set[str]] = {"namespaces": set(), "regions": set(), "clusters": set()}
    kind, metadata = document.get("kind"), document.get("metadata")
    if kind in _CLUSTER_WIDE:
        found["clusters"].add(f"(all of it: {kind})")
    elif "apiVersion" in document and kind not in {"Kustomization", "Component"}:
        named = metadata.get("namespace") if isinstance(metadata, dict) else None
        found["namespaces"].add(named if isinstance(named, str) else "default")
    for key, value in _walk(document):
        _place(key, value, found)
    return ManifestDelta(
        namespaces=frozenset(found["namespaces"]),
        regions=frozenset(found["regions"]),
        clusters=frozenset(found["clusters"]),
    )


def _place(key: str, value: Value, found: dict[str, set[str]]) -> None:
    texts = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
    if key in {"namespace", "targetNamespace", "namespaces"}:
        found["namespaces"].update(texts)
    elif _REGION_KEY.match(key):
        found["regions"].update(texts)
    elif _ZONE_KEY.match(key):
        found["regions"].update(re.sub(r"(?<=\d)-?[a-z]\Z", "", text) for text in texts)
    elif _CLUSTER_KEY.match(key):
        found["clusters"].update(texts)
    else:
        found["regions"].update(text for text in texts if _REGION.match(text))


def _walk(value: Value, key: str = "") -> Iterator[tuple[str, Value]]:
    """Every key with its plain value, and ``name``/``key`` with ``value``/``values`` pairs as if they were one."""
    if isinstance(value, dict):
        label = value.get("name", value.get("key"))
        for name, item in value.items():
            if name in {"value", "values"} and isinstance(label, str):
                yield label, item
            yield from _walk(item, name)
    elif isinstance(value, list):
        yield key, [item for item in value if isinstance(item, str)]
        for item in value:
            if not isinstance(item, str):
                yield from _walk(item, key)
    else:
        yield key, value


def _access(old: list[dict[str, Value]], new: list[dict[str, Value]]) -> Iterator[str]:
    for document in (*old, *new):
        if document.get("kind") in _ACCESS_KINDS:
            yield f"{document.get('kind')} {_name(document)}"
    before = {_name(document): _access_values(document) for document in old}
    for document in new:
        values, known = _access_values(document), before.get(_name(document))
        plain = {
            pair
            for pair in values
            if known is None and pair[0] in {"serviceAccountName", "serviceAccount", "runAsUser"}
        }
        wider = {pair for pair in values - (known or set()) - plain if not _hardens(pair)}
        wider |= {pair for pair in (known or set()) - values if _hardens(pair) or pair[0] == "serviceAccountName"}
        if wider:
            yield f"{', '.join(sorted({key for key, _ in wider}))} of {_name(document)}"


def _access_values(document: dict[str, Value]) -> set[tuple[str, str]]:
    return {(key, repr(value)) for key, value in _access_items(document)}


def _access_items(value: Value) -> Iterator[tuple[str, Value]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in _ACCESS_KEYS:
                yield name, item
            yield from _access_items(item)
    elif isinstance(value, list):
        for item in value:
            yield from _access_items(item)


def _hardens(pair: tuple[str, str]) -> bool:
    key, value = pair
    if key == "capabilities":
        return "'add'" not in value
    return pair in _HARDENING or (key == "runAsUser" and value != "0")


def _name(document: dict[str, Value]) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{document.get('kind')}/{name}"
