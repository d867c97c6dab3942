"""The pods that KubeRay makes of the chart's values, for an engine that knows pods.

The operator adds to what the chart says: how `ray start` is called, from what a container may have
and by bash, and what is asked to tell whether a container is well. It does so by
ray-operator/controllers/ray/common/pod.go of github.com/ray-project/kuberay. It also mounts shared
memory. Podman 4 gives what is mounted as `emptyDir` to root, and the same to all pods, so that is
left out here: each container has shared memory and a folder for Ray of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SHELLS: Final = ("-c", "-lc")
"""How bash is called: from KubeRay 1.4 on, and before."""
_ASKED: Final = "wget --tries 1 -T 10 -q -O- http://localhost:{} | grep success"
AGENT: Final = _ASKED.format("52365/api/local_raylet_healthz")
"""Whether a node is well."""
HEAD: Final = f"{AGENT} && {_ASKED.format('8265/api/gcs_healthz')}"
"""Whether the head is."""
_UNITS: Final = {"Gi": 2**30, "Mi": 2**20}


def pod(name: str, group: Mapping[str, Any], image: str, shell: str, head: str = "") -> Any:
    """The pod of a group, as Kubernetes is told of it.

    Args:
        name: Its name.
        group: The values of its group.
        image: What its containers are made of.
        shell: One of `SHELLS`.
        head: Address of the head; empty if this is it.
    """
    limits = group["resources"]["limits"]
    given = {
        "block": "true",
        "dashboard-agent-listen-port": "52365",
        "memory": str(_bytes(limits["memory"])),
        "metrics-export-port": "8080",
        "num-cpus": limits["cpu"],
        **({"address": f"{head}:6379"} if head else {"dashboard-host": "0.0.0.0"}),
        **group["rayStartParams"],
    }
    words = [f"--{key}" if value == "true" else f"--{key}={value}" for key, value in given.items()]
    start = " ".join(["ulimit -n 65536; ray start", *([] if head else ["--head"]), *words])
    volumes = [one for one in group["volumes"] if "emptyDir" not in one]
    mounted = {one["name"] for one in volumes}
    container = {
        "name": "ray-worker" if head else "ray-head",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["/bin/bash", shell, "--"],
        "args": [start],
        "resources": group["resources"],
        "volumeMounts": [one for one in group["volumeMounts"] if one["name"] in mounted],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "containers": [container, *group.get("sidecarContainers", [])],
            "volumes": volumes,
        },
    }


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * _UNITS[quantity[-2:]]
