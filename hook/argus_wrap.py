# SPDX-License-Identifier: Apache-2.0
"""Ray's functions, wrapped at the end of the job's own import of Ray, so that a lease sees every demand first."""

from argus_lease import _ArgusLease
from argus_say import _argus_note


def _argus_wrap_groups(module, lease):
    from functools import wraps
    from inspect import signature

    create, remove = module.placement_group, module.remove_placement_group
    shape = signature(create)

    @wraps(create)
    def placement_group(*args, **kwargs):
        try:
            call = shape.bind(*args, **kwargs)
            claims = lease.bind_group(call.arguments)
        except Exception as e:
            _argus_note("placement_group", e)
            return create(*args, **kwargs)
        group = create(*call.args, **call.kwargs)
        try:
            lease.made_group(group, call.arguments, claims)
        except Exception as e:
            _argus_note("placement_group", e)
        return group

    @wraps(remove)
    def remove_placement_group(placement_group):
        done = remove(placement_group)
        try:
            lease.removed_group(placement_group)
        except Exception as e:
            _argus_note("remove_placement_group", e)
        return done

    module.placement_group, module.remove_placement_group = placement_group, remove_placement_group


def _argus_wrap_remote(cls, lease, is_actor):
    from functools import wraps

    remote = cls._remote

    @wraps(remote)
    def _remote(self, *args, **options):
        bound = options
        try:
            bound = lease.bind_one(options)
            if is_actor and bound.get("namespace"):
                bound = {**bound, "namespace": lease.namespace(bound["namespace"])}
        except Exception as e:
            _argus_note("remote", e)
        made = remote(self, *args, **bound)
        try:
            if is_actor and bound.get("resources") is not options.get("resources") and options.get("num_gpus"):
                lease.made_actor(made, options["num_gpus"])
        except Exception as e:
            _argus_note("remote", e)
        return made

    cls._remote = _remote


def _argus_wrap_names(module, lease):
    from functools import wraps

    find = module.get_actor

    @wraps(find)
    def get_actor(name, namespace=None):
        return find(name, lease.namespace(namespace))

    module.get_actor = get_actor


def _argus_wrap_nodes(module, lease):
    """Libraries that place an actor on each node of Ray's list, as verl does, see what is leased. Ray's own modules see
    all: Serve looks for the head there."""
    import sys
    from functools import wraps

    places, rows = lease.places, module.nodes
    places.rows = rows
    if places.is_free:
        return

    @wraps(rows)
    def nodes():
        asks = str(sys._getframe(1).f_globals.get("__name__"))
        return rows() if asks.startswith("ray.") else [row for row in rows() if places.find(row)]

    module.nodes = nodes


def _argus_lease_changes():
    import os

    text = os.environ.get("ARGUS_LEASE")
    if not text:
        return {}
    try:
        lease = _ArgusLease(text)
    except Exception as e:
        _argus_note("ARGUS_LEASE", e)
        return {}
    return {
        "ray.util.placement_group": lambda m: _argus_wrap_groups(m, lease),
        "ray.remote_function": lambda m: _argus_wrap_remote(m.RemoteFunction, lease, False),
        "ray.actor": lambda m: _argus_wrap_remote(m.ActorClass, lease, True),
        "ray._private.state": lambda m: _argus_wrap_nodes(m, lease),
        "ray._private.worker": lambda m: _argus_wrap_names(m, lease),
    }
