"""The resources that the API server serves."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALL", "BY_PATH", "GROUPS", "Resource", "preferred_version"]

_READ = ("get", "list", "watch")
_ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of one API version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = _ALL_VERBS
    subresources: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """(name, kind, verbs)"""
    categories: tuple[str, ...] = ()
    builtin: bool = True
    """False: behaves as a custom resource (no strategic merge patch)."""
    no_controller: str = ""
    """Why it can be listed, but not created."""
    stored_as: str = ""
    """Another resource's store key where two API versions show the same objects."""

    @property
    def api_version(self) -> str:
        """Return ``v1`` or ``group/version``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def store_key(self) -> str:
        """Return the key of the collection that holds the objects."""
        return self.stored_as or (f"{self.plural}.{self.group}" if self.group else self.plural)

    @property
    def singular(self) -> str:
        """Return the lower-case singular."""
        return self.kind.lower()


_STATUS = ("get", "patch", "update")


def _core(plural: str, kind: str, namespaced: bool = True, *short: str, **more: object) -> Resource:
    return Resource("", "v1", plural, kind, namespaced, short, **more)  # type: ignore[arg-type]


_NO_VOLUMES = "there are no volumes"

ALL: tuple[Resource, ...] = (
    _core(
        "pods",
        "Pod",
        True,
        "po",
        categories=("all",),
        subresources=(
            ("binding", "Binding", ("create",)),
            ("eviction", "Eviction", ("create",)),
            ("exec", "PodExecOptions", ("create", "get")),
            ("log", "Pod", ("get",)),
            ("status", "Pod", _STATUS),
        ),
    ),
    _core("nodes", "Node", False, "no", subresources=(("status", "Node", _STATUS),)),
    _core("namespaces", "Namespace", False, "ns", subresources=(("status", "Namespace", _STATUS),)),
    _core("events", "Event", True, "ev"),
    _core("configmaps", "ConfigMap", True, "cm"),
    _core("secrets", "Secret"),
    _core("serviceaccounts", "ServiceAccount", True, "sa"),
    _core("resourcequotas", "ResourceQuota", True, "quota", subresources=(("status", "ResourceQuota", _STATUS),)),
    _core("limitranges", "LimitRange", True, "limits", no_controller="no limit ranges are applied"),
    _core("podtemplates", "PodTemplate"),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", True, "pvc", no_controller=_NO_VOLUMES),
    _core("persistentvolumes", "PersistentVolume", False, "pv", no_controller=_NO_VOLUMES),
    _core("services", "Service", True, "svc", no_controller="there is no pod network"),
    _core("replicationcontrollers", "ReplicationController", True, "rc", no_controller="no workload controller runs"),
    Resource("apps", "v1", "daemonsets", "DaemonSet", True, ("ds",), no_controller="no workload controller runs"),
    Resource("apps", "v1", "deployments", "Deployment", True, ("deploy",), no_controller="no workload controller runs"),
    Resource("apps", "v1", "replicasets", "ReplicaSet", True, ("rs",), no_controller="no workload controller runs"),
    Resource("apps", "v1", "statefulsets", "StatefulSet", True, ("sts",), no_controller="no workload controller runs"),
    Resource("batch", "v1", "jobs", "Job", True, no_controller="no job controller runs"),
    Resource("events.k8s.io", "v1", "events", "Event", True, ("ev",), stored_as="events"),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, ("pc",)),
    Resource(
        "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, ("pdb",),
        subresources=(("status", "PodDisruptionBudget", _STATUS),),
    ),
    Resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("crd", "crds"),
        no_controller="no custom resources but node pools are served",
    ),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",), no_controller=_NO_VOLUMES),
    Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False, no_controller=_NO_VOLUMES),
    Resource(
        "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=("create",)
    ),
    Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, verbs=("create",)),
    Resource(
        "embedded.airflow-elastic.io", "v1", "nodepools", "NodePool", False, ("np",),
        subresources=(("scale", "Scale", _STATUS), ("status", "NodePool", _STATUS)), builtin=False,
    ),
)  # fmt: skip

BY_PATH: dict[tuple[str, str, str], Resource] = {(r.group, r.version, r.plural): r for r in ALL}

GROUPS: dict[str, tuple[str, ...]] = {}
for _resource in ALL:
    _versions = GROUPS.setdefault(_resource.group, ())
    if _resource.version not in _versions:
        GROUPS[_resource.group] = (*_versions, _resource.version)


def preferred_version(group: str) -> str:
    """Return the version of a group that clients should use."""
    return GROUPS[group][0]
