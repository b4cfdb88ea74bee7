# SPDX-License-Identifier: Apache-2.0
"""overlays.py - what `kubectl kustomize` makes of a folder, as far as deploy/kubernetes uses it: resources and strategic-merge patches.

Debian has no package of kustomize that is old enough for every host the tests run on, so the few rules are here: maps are merged, null
takes a key away, lists of named things are merged by their names, all other lists are replaced.  Where kubectl is installed, the suite
compares its answer with ours.
"""
import os

import yaml

# Lists that are merged, and what their items are told apart by.
MERGE_KEYS = {"containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "volumeMounts": "mountPath",
              "topologySpreadConstraints": "topologyKey"}


class Broken(Exception):
    pass


def documents(path):
    with open(path, encoding="utf-8") as f:
        return [document for document in yaml.safe_load_all(f) if document is not None]


def identity(thing):
    metadata = thing.get("metadata", {})
    return thing.get("kind"), metadata.get("namespace", ""), metadata.get("name")


def merge(base, patch, name=""):
    if isinstance(base, dict) and isinstance(patch, dict):
        merged = {**base}
        for key, value in patch.items():
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = merge(base.get(key), value, key)
        return merged
    if isinstance(base, list) and isinstance(patch, list) and name in MERGE_KEYS:
        return merge_list(base, patch, MERGE_KEYS[name])
    return patch


def merge_list(base, patch, key):
    merged = list(base)
    for item in patch:
        at = next((i for i, old in enumerate(merged) if old[key] == item[key]), None)
        if at is None:
            merged.append(item)
        else:
            merged[at] = merge(merged[at], item)
    return merged


def build(folder, files=None):
    """The things of the kustomization in `folder`; the paths that were read are added to `files`."""
    path = os.path.join(folder, "kustomization.yaml")
    recipe, = documents(path)
    seen, things = [path], []
    for name in recipe["resources"]:
        target = os.path.normpath(os.path.join(folder, name))
        if os.path.isdir(target):
            things += build(target, files)
        else:
            seen.append(target)
            things += documents(target)
    for patch in recipe.get("patches", []):
        target = os.path.normpath(os.path.join(folder, patch["path"]))
        seen.append(target)
        for document in documents(target):
            things = apply_patch(things, document, target)
    if files is not None:
        files += seen
    return things


def apply_patch(things, patch, path):
    if sum(identity(thing) == identity(patch) for thing in things) != 1:
        raise Broken(f"{path}: there is not one {identity(patch)} to be patched")
    return [merge(thing, patch) if identity(thing) == identity(patch) else thing for thing in things]


def canonical(thing, name=""):
    """The same for two things that mean the same: the order of lists that are merged by name says nothing."""
    if isinstance(thing, dict):
        return {key: canonical(value, key) for key, value in sorted(thing.items())}
    if isinstance(thing, list):
        items = [canonical(item) for item in thing]
        return sorted(items, key=lambda item: str(item[MERGE_KEYS[name]])) if name in MERGE_KEYS else items
    return thing
