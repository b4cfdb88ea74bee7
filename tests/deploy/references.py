# SPDX-License-Identifier: Apache-2.0
"""references.py - what the things of an overlay say about each other.  Each check gives a list of complaints."""
import re

WORKLOADS = ("Deployment", "DaemonSet", "StatefulSet")
EIGHT = ["SETUID", "SETGID", "SETPCAP", "SETFCAP", "DAC_OVERRIDE", "CHOWN", "FOWNER", "KILL"]


def name_of(thing):
    return f"{thing['kind']} {thing['metadata'].get('namespace', '')}/{thing['metadata']['name']}"


def of_kind(things, *kinds):
    return [thing for thing in things if thing["kind"] in kinds]


def namespace_of(thing):
    return thing["metadata"].get("namespace", "")


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def labels_of(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def containers_of(workload):
    return pod_of(workload)["containers"] + pod_of(workload).get("initContainers", [])


def fits(selector, labels):
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def ports_of(workload):
    return {port["name"]: port["containerPort"] for container in pod_of(workload)["containers"] for port in container.get("ports", [])}


def chosen(things, namespace, selector):
    return [w for w in of_kind(things, *WORKLOADS) if namespace_of(w) == namespace and fits(selector, labels_of(w))]


# ---- names --------------------------------------------------------------------------------------------------------------------


def check_namespaces(things):
    known = {thing["metadata"]["name"] for thing in of_kind(things, "Namespace")}
    return [f"{name_of(t)} is in a namespace that is not here" for t in things if t["kind"] != "Namespace" and namespace_of(t) not in known]


def check_unique(things):
    names = [name_of(thing) for thing in things]
    return [f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1]


def check_selectors(things):
    """Workloads choose their own pods; services, budgets and monitors choose somebody."""
    wrong = [f"{name_of(w)} does not choose its own pods" for w in of_kind(things, *WORKLOADS) if not fits(w["spec"]["selector"], labels_of(w))]
    for service in of_kind(things, "Service"):
        if not chosen(things, namespace_of(service), {"matchLabels": service["spec"]["selector"]}):
            wrong.append(f"{name_of(service)} chooses no pod")
    for budget in of_kind(things, "PodDisruptionBudget"):
        if len(chosen(things, namespace_of(budget), budget["spec"]["selector"])) != 1:
            wrong.append(f"{name_of(budget)} is not for one workload")
    for monitor in of_kind(things, "ServiceMonitor"):
        services = [s for s in of_kind(things, "Service") if fits(monitor["spec"]["selector"], s["metadata"].get("labels", {}))]
        if not services:
            wrong.append(f"{name_of(monitor)} chooses no service")
        names = {port["name"] for service in services for port in service["spec"]["ports"]}
        wrong += [f"{name_of(monitor)}: no service has a port {e['port']}" for e in monitor["spec"]["endpoints"] if e["port"] not in names]
    return wrong


def check_ports(things):
    wrong = []
    for service in of_kind(things, "Service"):
        for workload in chosen(things, namespace_of(service), {"matchLabels": service["spec"]["selector"]}):
            wrong += [f"{name_of(service)}: {name_of(workload)} has no port {port['targetPort']}" for port in service["spec"]["ports"]
                      if port["targetPort"] not in ports_of(workload)]
    for workload in of_kind(things, *WORKLOADS):
        for container in containers_of(workload):
            probes = [container[key] for key in ("startupProbe", "readinessProbe", "livenessProbe") if key in container]
            wrong += [f"{name_of(workload)}: a probe asks at {probe['httpGet']['port']}, which is no port" for probe in probes
                      if probe["httpGet"]["port"] not in ports_of(workload)]
    return wrong


def check_targets(things):
    """Autoscalers, accounts and headless services: who is named is there."""
    there = {(t["kind"], namespace_of(t), t["metadata"]["name"]) for t in things}
    wanted = [(h, (h["spec"]["scaleTargetRef"]["kind"], namespace_of(h), h["spec"]["scaleTargetRef"]["name"]))
              for h in of_kind(things, "HorizontalPodAutoscaler")]
    wanted += [(w, ("ServiceAccount", namespace_of(w), pod_of(w)["serviceAccountName"])) for w in of_kind(things, *WORKLOADS)]
    wanted += [(s, ("Service", namespace_of(s), s["spec"]["serviceName"])) for s in of_kind(things, "StatefulSet")]
    wrong = [f"{name_of(thing)} names {target}, which is not there" for thing, target in wanted if target not in there]
    scaled = {target for thing, target in wanted if thing["kind"] == "HorizontalPodAutoscaler"}
    wrong += [f"{name_of(d)} has replicas that its autoscaler would fight with" for d in of_kind(things, "Deployment")
              if (d["kind"], namespace_of(d), d["metadata"]["name"]) in scaled and "replicas" in d["spec"]]
    return wrong


def check_volumes(things):
    maps = {(namespace_of(m), m["metadata"]["name"]): set(m["data"]) for m in of_kind(things, "ConfigMap")}
    wrong = []
    for workload in of_kind(things, *WORKLOADS):
        volumes = {volume["name"]: volume for volume in pod_of(workload).get("volumes", [])}
        volumes.update({claim["metadata"]["name"]: claim for claim in workload["spec"].get("volumeClaimTemplates", [])})
        mounts = [mount for container in containers_of(workload) for mount in container.get("volumeMounts", [])]
        wrong += [f"{name_of(workload)} mounts {m['name']}, which is no volume" for m in mounts if m["name"] not in volumes]
        wrong += [f"{name_of(workload)} has a volume {name} that nobody mounts" for name in volumes if name not in {m["name"] for m in mounts}]
        for mount in mounts:
            source = volumes.get(mount["name"], {}).get("configMap")
            if source and mount.get("subPath") not in maps.get((namespace_of(workload), source["name"]), ()):
                wrong.append(f"{name_of(workload)}: ConfigMap {source['name']} has no {mount.get('subPath')}")
    return wrong


def secrets(things):
    """Every secret that is referred to, as namespace/name."""
    found = set()
    for workload in of_kind(things, *WORKLOADS):
        found |= {f"{namespace_of(workload)}/{v['secret']['secretName']}" for v in pod_of(workload).get("volumes", []) if "secret" in v}
        found |= {f"{namespace_of(workload)}/{e['valueFrom']['secretKeyRef']['name']}" for c in containers_of(workload) for e in c.get("env", [])
                  if "secretKeyRef" in e.get("valueFrom", {})}
    for monitor in of_kind(things, "ServiceMonitor"):
        for endpoint in monitor["spec"]["endpoints"]:
            keys = [endpoint.get("authorization", {}).get("credentials"), endpoint.get("tlsConfig", {}).get("ca", {}).get("secret")]
            found |= {f"{namespace_of(monitor)}/{key['name']}" for key in keys if key}
    return found


def check_secrets(things, readme):
    wrong = [f"{name_of(thing)}: a secret belongs to the operator, not into a file" for thing in of_kind(things, "Secret")]
    return wrong + [f"deploy/README.md does not say what secret {name} has to hold" for name in sorted(secrets(things)) if f"`{name}`" not in readme]


# ---- privileges ------------------------------------------------------------------------------------------------------------------


def check_tokens(things):
    """Nothing here asks the cluster's API for anything, so nothing gets a token for it."""
    wrong = [f"{name_of(a)} has a token" for a in of_kind(things, "ServiceAccount") if a.get("automountServiceAccountToken") is not False]
    return wrong + [f"{name_of(w)} has a token" for w in of_kind(things, *WORKLOADS) if pod_of(w).get("automountServiceAccountToken") is not False]


def levels(things):
    return {n["metadata"]["name"]: n["metadata"]["labels"].get("pod-security.kubernetes.io/enforce") for n in of_kind(things, "Namespace")}


def restricted_pod(pod):
    """What the level `restricted` of pod security asks for, of what is used here."""
    context = pod.get("securityContext", {})
    wrong = [] if context.get("runAsNonRoot") is True and context.get("runAsUser", 0) > 0 else ["may be root"]
    wrong += [] if context.get("seccompProfile") == {"type": "RuntimeDefault"} else ["has no filter of system calls"]
    wrong += [f"has {key}" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
    wrong += [f"volume {v['name']} is of the host" for v in pod.get("volumes", []) if "hostPath" in v]
    for container in pod["containers"] + pod.get("initContainers", []):
        own = container.get("securityContext", {})
        if own.get("privileged") or own.get("allowPrivilegeEscalation") is not False or own.get("capabilities") != {"drop": ["ALL"]}:
            wrong.append(f"{container['name']} has privileges")
        if own.get("readOnlyRootFilesystem") is not True:
            wrong.append(f"{container['name']} can write to its image")
    return wrong


def check_levels(things):
    wrong = [f"Namespace {name} has no level of pod security" for name, level in levels(things).items() if level not in ("restricted", "privileged")]
    for workload in of_kind(things, *WORKLOADS):
        if levels(things).get(namespace_of(workload)) == "restricted":
            wrong += [f"{name_of(workload)} {what}" for what in restricted_pod(pod_of(workload))]
        elif not workload["metadata"]["name"].startswith("brig-worker"):
            wrong.append(f"{name_of(workload)} is in a namespace for workers")
    return wrong


def check_workers(things):
    """Exactly what cells take: eight capabilities, and a ninth that is given up before brig starts."""
    wrong = []
    for worker in [w for w in of_kind(things, *WORKLOADS) if w["metadata"]["name"].startswith("brig-worker")]:
        pod, container = pod_of(worker), pod_of(worker)["containers"][0]
        own = container["securityContext"]
        if own["capabilities"] != {"drop": ["ALL"], "add": EIGHT + ["SYS_ADMIN"]}:
            wrong.append(f"{name_of(worker)} has other capabilities: {own['capabilities']}")
        kept = re.search(r"^keep=(\S+)$", container["args"][0], re.M)
        if not kept or kept.group(1).split(",") != ["+" + name.lower() for name in EIGHT]:
            wrong.append(f"{name_of(worker)}: brig does not start with the eight capabilities alone")
        if "exec setpriv --no-new-privs --inh-caps=-all --bounding-set=\"-all,$keep\" /usr/bin/brig worker" not in container["args"][0]:
            wrong.append(f"{name_of(worker)}: brig is not the last thing that is executed, without the ninth")
        if own.get("privileged") is not False or own.get("readOnlyRootFilesystem") is not True or len(pod["containers"]) != 1 or pod.get("initContainers"):
            wrong.append(f"{name_of(worker)} has more than it needs")
        wrong += [f"{name_of(worker)} has {key}" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key)]
        paths = [v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v]
        if paths != ["/var/lib/brig"]:
            wrong.append(f"{name_of(worker)} has folders of the host: {paths}")
        if "memory" not in container["resources"].get("limits", {}):
            wrong.append(f"{name_of(worker)} has no limit of memory: its cells could take the node's")
    return wrong


def check_same_pod(things):
    """The pods of both kinds of workers are the same, but for the node that they are on, their name and how much they ask for."""
    pods = []
    for worker in [w for w in of_kind(things, *WORKLOADS) if w["metadata"]["name"].startswith("brig-worker")]:
        container = {key: value for key, value in pod_of(worker)["containers"][0].items() if key != "resources"}
        pods.append({**{k: v for k, v in pod_of(worker).items() if k not in ("nodeSelector", "affinity")}, "containers": [container]})
    return [] if all(pod == pods[0] for pod in pods) else ["the pods of the two kinds of workers are not the same"]


# ---- who speaks to whom ----------------------------------------------------------------------------------------------------------

FLOWS = {("brig-front", "nats", "client"), ("brig-worker", "nats", "client"), ("brig-worker-elastic", "nats", "client"), ("nats", "nats", "cluster")}


def peers(things, policy, peer):
    space = peer.get("namespaceSelector")
    names = [namespace_of(policy)] if space is None else [n["metadata"]["name"] for n in of_kind(things, "Namespace") if fits(
        space, {**n["metadata"].get("labels", {}), "kubernetes.io/metadata.name": n["metadata"]["name"]})]
    return [w for name in names for w in chosen(things, name, peer.get("podSelector", {}))]


def flows(things, direction):
    """(from, to, port) of everything that the rules of one direction allow among the workloads here."""
    found = set()
    for policy in of_kind(things, "NetworkPolicy"):
        for rule in policy["spec"].get(direction, []):
            for here in chosen(things, namespace_of(policy), policy["spec"]["podSelector"]):
                for there in [w for peer in rule["from" if direction == "ingress" else "to"] for w in peers(things, policy, peer)]:
                    source, target = (there, here) if direction == "ingress" else (here, there)
                    found |= {(source["metadata"]["name"], target["metadata"]["name"], port["port"]) for port in rule["ports"]}
    return found


def check_flows(things):
    here = {w["metadata"]["name"] for w in of_kind(things, *WORKLOADS)}
    wanted = {flow for flow in FLOWS if {flow[0], flow[1]} <= here}
    wrong = [f"{direction} allows {sorted(flows(things, direction) ^ wanted)}, or does not, other than it should"
             for direction in ("ingress", "egress") if flows(things, direction) != wanted]
    for space in {namespace_of(w) for w in of_kind(things, *WORKLOADS)}:
        denied = [p for p in of_kind(things, "NetworkPolicy") if namespace_of(p) == space and p["spec"] == {
            "podSelector": {}, "policyTypes": ["Ingress", "Egress"]}]
        wrong += [] if denied else [f"in namespace {space} what no rule names is allowed"]
    for policy in of_kind(things, "NetworkPolicy"):
        targets = chosen(things, namespace_of(policy), policy["spec"]["podSelector"])
        wrong += [] if targets else [f"{name_of(policy)} is for no pod"]
        named = {port["port"] for rule in policy["spec"].get("ingress", []) for port in rule["ports"]}
        wrong += [f"{name_of(policy)}: {name_of(w)} has no port {port}" for w in targets for port in named if port not in ports_of(w)]
    return wrong


# ---- NATS ------------------------------------------------------------------------------------------------------------------------


def check_queue(things):
    """Fronts and workers name each server of the StatefulSet, and no other."""
    servers, = of_kind(things, "StatefulSet")
    name, space, count = servers["metadata"]["name"], namespace_of(servers), servers["spec"]["replicas"]
    wanted = ",".join(f"nats://{name}-{i}.{servers['spec']['serviceName']}.{space}.svc:4222" for i in range(count))
    config, = [m["data"] for m in of_kind(things, "ConfigMap") if m["metadata"]["name"] == name]
    routes = re.findall(rf"nats://({name}-\d+)\.", config["cluster.conf"])
    wrong = [] if routes == [f"{name}-{i}" for i in range(count) if count > 1] else [f"the servers of NATS look for {routes}, and they are {count}"]
    for workload in of_kind(things, "Deployment", "DaemonSet"):
        container = pod_of(workload)["containers"][0]
        given = [row["value"] for row in container.get("env", []) if row["name"] == "QUEUE"]
        if given != [wanted] or "--queue=$(QUEUE)" not in container["args"]:
            wrong.append(f"{name_of(workload)} looks for the queue at {given}, and it is at {wanted}")
    return wrong


def check_images(things, version):
    images = {container["image"] for w in of_kind(things, *WORKLOADS) for container in containers_of(w)}
    return [f"image {image} is none of this version" for image in sorted(images) if not re.fullmatch(rf"brig:{re.escape(version)}|nats:2\.\d+", image)]


CHECKS = [check_namespaces, check_unique, check_selectors, check_ports, check_targets, check_volumes, check_tokens, check_levels, check_workers,
          check_same_pod, check_flows, check_queue]
