# SPDX-License-Identifier: Apache-2.0
"""What hook/sitecustomize.py makes of a job's demands, in every Python that is here, against a Ray of a few lines.

tests/ray/test_binding_real.py shows on real Ray that this is what holds a job to its lease."""

import json

import pytest
from test_hook import hook, python, run, write  # noqa: F401  (two are fixtures)

RAY = {
    "__init__": (
        "from ray._private.state import nodes\nfrom ray._private.worker import get_actor\n"
        "import ray.util, ray.remote_function, ray.actor\n"
    ),
    "_private/state": (
        "class S:\n    def available_resources_per_node(self): return {'f0': {'CPU': 1}, 'f1': {'CPU': 7}}\n"
        "state = S()\n"
        "def nodes(): return [\n"
        "    {'NodeID': 'aa', 'Labels': {}, 'Resources': {'node:__internal_head__': 1}},\n"
        "    {'NodeID': 'f0', 'Labels': {'argus.node': 'a'}, 'Resources': {}},\n"
        "    {'NodeID': 'f9', 'Labels': None, 'Resources': {'argus_node_b': 1}},\n"
        "    {'NodeID': 'cc', 'Labels': {'argus.node': 'c'}, 'Resources': {'argus_node_c': 1}}]\n"
    ),
    "_private/__init__": "",
    "_private/worker": (
        "class W:\n    connected = False\nglobal_worker = W()\n"
        "def get_actor(name, namespace=None): return name, namespace\n"
    ),
    "util/__init__": "from ray.util.placement_group import placement_group, remove_placement_group\n",
    "util/placement_group": (
        "class Id(str):\n    def hex(self): return str(self)\n"
        "class Group:\n    is_empty = False\n    id = Id('aa')\n"
        "def placement_group(bundles, strategy='PACK', name='', bundle_label_selector=None):\n"
        "    g = Group(); g.asked = bundles, bundle_label_selector; return g\n"
        "def remove_placement_group(placement_group): pass\n"
        "def get_current_placement_group(): return Group()\n"
    ),
    "remote_function": "class RemoteFunction:\n    def _remote(self, args=None, kwargs=None, **o): return o\n",
    "actor": (
        "class Handle(dict):\n    pass\n"
        "class ActorClass:\n    def _remote(self, args=None, kwargs=None, **o): return Handle(o)\n"
    ),
}
LEASE = {
    "job": "j",
    "attempt": 2,
    "gpus": 2,
    "nodes": [{"name": "a"}, {"name": "b"}],
    "label": "argus.node",
    "share": "argus_share_3",
    "worker": "worker_node",
}
ASK = """
import json, sys, ray
from ray.util.placement_group import placement_group
task, actor = ray.remote_function.RemoteFunction()._remote, ray.actor.ActorClass()._remote
def group(*a, **k): return placement_group(*a, **k).asked
class NodeAffinitySchedulingStrategy:
    def __init__(self, node_id='cc', soft=False): self.node_id, self.soft = node_id, soft
def to(*a): return NodeAffinitySchedulingStrategy(*a)
class PlacementGroupSchedulingStrategy:
    placement_group, placement_group_capture_child_tasks = sys.modules["ray.util.placement_group"].Group(), None
print(json.dumps(eval(EXPRESSION), default=lambda o: getattr(o, "node_id", type(o).__name__)))
"""
BY_ID = [{"name": "a", "id": "f0"}, {"name": "b", "id": "f1"}]


@pytest.fixture
def fake(tmp_path):
    place = tmp_path / "lib"
    for name, text in RAY.items():
        path = place / "ray" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return place


@pytest.fixture
def ask(python, hook, fake, tmp_path, monkeypatch):  # noqa: F811
    """The value of an expression in a process of the job, and its stderr."""
    (tmp_path / "attempt/debug").mkdir(parents=True)

    def ask(expression, code=ASK, **lease):
        text = lease.pop("text", json.dumps({**LEASE, **lease}))
        monkeypatch.setenv("ARGUS_LEASE", text)
        monkeypatch.setenv("ARGUS_ATTEMPT_DIR", str(tmp_path / "attempt"))
        done = run(python, hook, fake, code=code.replace("EXPRESSION", repr(expression)))
        return json.loads(done.stdout), done.stderr

    return ask


def notes(tmp_path):
    return (tmp_path / "attempt/debug/binding.txt").read_text()


def test_without_a_lease_ray_is_not_touched(python, hook, fake, monkeypatch):  # noqa: F811
    monkeypatch.delenv("ARGUS_LEASE", raising=False)
    code = (
        "import sys, ray\nprint(len([f for f in sys.meta_path if 'rgus' in type(f).__name__]))\n"
        "print(ray.actor.ActorClass._remote.__code__.co_filename)"
    )
    done = run(python, hook, fake, code=code)
    assert done.stdout.split() == ["0", str(fake / "ray/actor.py")]


def test_ray_is_not_imported_by_us(ask):
    code = "import json, sys\nprint(json.dumps(eval(EXPRESSION)))"
    assert ask("[m for m in sys.modules if m.startswith('ray')]", code) == ([], "")


def test_a_demand_takes_its_part_of_the_share_on_the_leased_nodes(ask):
    got, said = ask("[task(num_gpus=1), actor(num_gpus=2, resources={'x': 1}), task(num_gpus=0.25)]")
    nodes = {"argus.node": "in(a,b)"}
    assert got == [
        {"num_gpus": 1, "resources": {"argus_share_3": 0.5}, "label_selector": nodes},
        {"num_gpus": 2, "resources": {"x": 1, "argus_share_3": 1.0}, "label_selector": nodes},
        {"num_gpus": 0.25, "resources": {"argus_share_3": 0.125}, "label_selector": nodes},
    ]
    assert said == ""


def test_parts_never_add_up_to_more_than_the_share(ask):
    got, _ = ask("[task(num_gpus=1), task(num_gpus=6)]", gpus=6)
    assert [r["resources"]["argus_share_3"] for r in got] == [0.1666, 1.0]


def test_one_node(ask):
    got, _ = ask("task(num_gpus=1)", nodes=[{"name": "a"}])
    assert got["label_selector"] == {"argus.node": "a"}


def test_nodes_by_their_ray_id(ask):
    got, _ = ask("task(num_gpus=1)", label="ray.io/node-id", nodes=BY_ID)
    assert got["label_selector"] == {"ray.io/node-id": "in(f0,f1)"}


@pytest.mark.parametrize(
    ("theirs", "both"),
    [
        ({"zone": "z"}, {"zone": "z", "argus.node": "in(a,b)"}),
        ({"argus.node": "b"}, {"argus.node": "b"}),
        ({"argus.node": "!a"}, {"argus.node": "b"}),
        ({"argus.node": "in(a, c)"}, {"argus.node": "a"}),
        ({"argus.node": "!in(c)"}, {"argus.node": "in(a,b)"}),
        ({"argus.node": "c"}, {"argus.node": "none-of-the-lease"}),
    ],
)
def test_what_the_job_selects_itself_holds_too(ask, theirs, both):
    group = f"group([{{'GPU': 1}}], bundle_label_selector=[{theirs}])"
    got, _ = ask(f"[task(num_gpus=1, label_selector={theirs}), {group}]")
    assert got[0]["label_selector"] == both
    assert got[1][1] == [both]


def test_what_to_fall_back_on_is_bound_too(ask):
    got, _ = ask("task(num_gpus=1, fallback_strategy=[{'label_selector': {'zone': 'z'}}, {'label_selector': {}}])")
    nodes = {"argus.node": "in(a,b)"}
    assert got["fallback_strategy"] == [{"label_selector": {"zone": "z", **nodes}}, {"label_selector": nodes}]


def test_demands_without_gpus_are_free_but_for_the_head_where_the_spec_says_so(ask):
    got, said = ask(
        "[task(), task(num_cpus=1, num_gpus=0), task(num_cpus=0), actor(num_cpus=0, resources={'x': 1}),"
        " task(num_cpus=0, scheduling_strategy=to()),"
        " task(num_cpus=0, resources={'node:__internal_head__': 0.001}),"
        " group([{'CPU': 1}, {'x': 1}, {'CPU': 0}]),"
        " actor(num_cpus=0, label_selector={'ray.io/node-id': 'ab'}),"
        " actor(num_cpus=0, label_selector={'ray.io/node-id': '!ab'}), len(ray.nodes())]",
        spread="cluster",
    )
    assert got[:3] == [{}, {"num_cpus": 1, "num_gpus": 0}, {"num_cpus": 0, "resources": {"worker_node": 0.0001}}]
    assert got[3]["resources"] == {"worker_node": 0.0001, "x": 1}
    assert "resources" not in got[4]
    assert got[5]["resources"] == {"node:__internal_head__": 0.001}
    assert got[6] == [[{"CPU": 1}, {"worker_node": 0.0001, "x": 1}, {"CPU": 0}], None]
    assert "resources" not in got[7] and got[8]["resources"] == {"worker_node": 0.0001}
    assert got[9] == 4
    assert said == ""


IN_LEASE = {"argus.node": "in(a,b)"}


def test_demands_without_gpus_go_to_the_leased_nodes(ask):
    got, said = ask(
        "[task(), actor(num_cpus=0, resources={'x': 1}), task(label_selector={'argus.node': 'c'}),"
        " task(fallback_strategy=[{'label_selector': {'zone': 'z'}}]), task(resources={'node:__internal_head__': 1}),"
        " group([{'CPU': 1}, {'x': 1}], bundle_label_selector=[{'zone': 'z'}, {}])]"
    )
    assert got[0] == {"label_selector": IN_LEASE}
    assert got[1] == {"num_cpus": 0, "resources": {"x": 1}, "label_selector": IN_LEASE}
    assert got[2] == {"label_selector": {"argus.node": "none-of-the-lease"}}
    assert got[3]["fallback_strategy"] == [{"label_selector": {"zone": "z", **IN_LEASE}}]
    assert got[4]["label_selector"] == IN_LEASE
    assert got[5] == [[{"CPU": 1}, {"x": 1}], [{"zone": "z", **IN_LEASE}, IN_LEASE]]
    assert said == ""


def test_the_list_of_nodes_is_that_of_the_lease(ask):
    assert ask("[n['NodeID'] for n in ray.nodes()]")[0] == ["f0", "f9"]
    assert ask("[n['NodeID'] for n in ray.nodes()]", nodes=BY_ID[:1])[0] == ["f0"]


def test_rays_own_modules_see_all_nodes(ask, fake):
    """Serve finds the head there, and dies without it."""
    (fake / "ray/serve.py").write_text("import ray\ndef find(): return [n['NodeID'] for n in ray.nodes()]\n")
    assert ask("__import__('ray.serve').serve.find()")[0] == ["aa", "f0", "f9", "cc"]


def test_a_soft_affinity_to_another_node_becomes_one_to_a_leased_node(ask):
    """f9 is b under another id of Ray's than the lease has: its raylet was started again."""
    got, said = ask("[actor(scheduling_strategy=to(i, True)) for i in ('f0', 'f9', 'cc', 'aa', 'gone')]", nodes=BY_ID)
    assert [o["scheduling_strategy"] for o in got[:2]] == ["f0", "f9"]
    assert {o["scheduling_strategy"] for o in got[2:]} == {"f0", "f1"}
    assert [o["label_selector"] for o in got] == [IN_LEASE] * 5
    assert said == ""


def test_a_hard_affinity_to_another_node_cannot_be_met(ask):
    (inside, outside), said = ask("[task(scheduling_strategy=to(i)) for i in ('f0', 'cc')]", nodes=BY_ID)
    assert inside == {"scheduling_strategy": "f0", "label_selector": IN_LEASE}
    assert outside == {"scheduling_strategy": "cc", "label_selector": IN_LEASE}
    assert said == (
        "argus: this job wants something on Ray's node cc, which is not in its lease: that waits or fails. "
        "'spread: cluster' in the JobSpec gives what needs no GPU the whole cluster\n"
    )


def test_what_serve_has_on_each_node_stays_there(ask):
    got, said = ask(
        "[actor(namespace='serve', scheduling_strategy=to()), actor(namespace='serve', resources={'node:x': 0.1}),"
        " actor(namespace='serve', label_selector={'ray.io/node-id': 'cc'}), actor(namespace='serve')]"
    )
    assert ["label_selector" in o and "argus.node" in o["label_selector"] for o in got] == [False, False, False, True]
    assert said == ""


def test_a_packed_group_without_gpus_goes_to_the_node_with_the_most_free_cpus(ask):
    (bundles, selectors), _ = ask("group([{'CPU': 1}, {'CPU': 2}], 'STRICT_PACK')", nodes=BY_ID)
    assert bundles == [{"CPU": 1, "argus_node_b": 0.001}, {"CPU": 2}]
    assert selectors == [IN_LEASE, IN_LEASE]


def test_without_labels_the_nodes_own_resource_holds_what_needs_no_gpu(ask):
    """A Ray without labels: each demand gets one of the nodes, in turn."""
    got, said = ask(
        "[task(), task(), task(scheduling_strategy=to('f0', True)), group([{'CPU': 1}, {'CPU': 1}]),"
        " group([{'CPU': 1}] * 2, 'STRICT_PACK'), group([{'CPU': 1}, {'GPU': 1}], 'STRICT_PACK')]",
        label=None, share=None, gpus=0, nodes=BY_ID,
    )  # fmt: skip
    held = [set(o["resources"].items()) for o in got[:3]]
    assert held[0] | held[1] == {("argus_node_a", 0.0001), ("argus_node_b", 0.0001)}
    assert held[2] == {("argus_node_a", 0.0001)} and "label_selector" not in got[2]
    assert [sorted(k for b in g[0] for k in b if k.startswith("argus_node")) for g in got[3:]] == [
        ["argus_node_a", "argus_node_b"],
        ["argus_node_b"],
        [],
    ]
    assert [g[1] for g in got[3:]] == [None] * 3


def test_what_runs_in_a_group_is_bound_by_its_group(ask):
    got, _ = ask(
        "['resources' in o for o in (task(num_gpus=1, scheduling_strategy=PlacementGroupSchedulingStrategy()),"
        " task(num_gpus=1, placement_group=PlacementGroupSchedulingStrategy.placement_group),"
        " task(num_gpus=1, placement_group=None), task(num_gpus=1, scheduling_strategy='SPREAD'))]"
    )
    assert got == [False, False, True, True]


def test_bundles_with_gpus_take_their_part_of_the_share(ask):
    (bundles, selectors), said = ask("group([{'CPU': 4}, {'CPU': 1, 'GPU': 1}, {'GPU': 0.5}], 'SPREAD', name='n')")
    assert bundles == [{"CPU": 4}, {"CPU": 1, "GPU": 1, "argus_share_3": 0.5}, {"GPU": 0.5, "argus_share_3": 0.25}]
    assert selectors == [{"argus.node": "in(a,b)"}] * 3
    assert said == ""


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("task(num_gpus=3)", "3 GPUs on one node"),
        ("group([{'GPU': 1}] * 3, 'STRICT_PACK')", "3 GPUs on one node"),
        ("group([{'GPU': 1}] * 5)", "a placement group of 5 GPUs"),
        ("group([{'GPU': 1}] * 3, 'STRICT_SPREAD')", "GPUs on 3 nodes"),
        ("[group([{'GPU': 2}] * 2), group([{'GPU': 1}])]", "5 GPUs at once by actors and placement groups"),
        ("[actor(num_gpus=2) for _ in range(3)]", "6 GPUs at once by actors and placement groups"),
    ],
)
def test_more_than_the_lease_is_told_in_one_line(ask, expression, words):
    _, said = ask(expression)
    assert said == (
        f"argus: this job asks Ray for {words}, and its lease has 4 GPUs (a: 2, b: 2): what is beyond the lease waits. "
        "Ask for more with nnodes and n_gpus_per_node\n"
    )


def test_actors_that_are_gone_and_groups_that_were_removed_count_no_more(ask):
    more = "for _ in range(9): actor(num_gpus=2); ray.util.remove_placement_group(placement_group([{'GPU': 4}]))\n"
    assert "at once" not in ask("1", ASK + more)[1]


def test_a_packed_group_is_held_by_the_nodes_resource(ask):
    """Ray does not look at the labels of a STRICT_PACK group."""
    (bundles, selectors), _ = ask("group([{'CPU': 1}, {'GPU': 1}, {'GPU': 1}], 'STRICT_PACK')", nodes=[{"name": "a"}])
    assert bundles == [
        {"CPU": 1},
        {"GPU": 1, "argus_share_3": 0.5, "argus_node_a": 0.001},
        {"GPU": 1, "argus_share_3": 0.5},
    ]
    assert selectors == [{"argus.node": "a"}] * 3


def test_more_than_the_share_stays_more_than_the_share(ask):
    got, _ = ask("task(num_gpus=3)")
    assert got["resources"]["argus_share_3"] == 2


def test_a_lease_without_gpus_has_none(ask):
    got, said = ask("[task(num_gpus=1), group([{'GPU': 1}, {'CPU': 1}])]", gpus=0)
    assert got[0]["resources"] == {"argus_beyond_lease": 1}
    assert got[1][0] == [{"GPU": 1, "argus_beyond_lease": 1}, {"CPU": 1}]
    assert "its lease has 0 GPUs" in said


def test_what_ray_refuses_reaches_it_as_it_was(ask):
    assert ask("[group('nonsense'), group([7])]")[0] == [["nonsense", None], [[7], None]]
    got, _ = ask("group([{'GPU': 1}], bundle_label_selector=[{}, {}])")
    assert got == [[{"GPU": 1}], [{}, {}]]


def test_each_job_has_its_own_transfer_queue(ask):
    got, _ = ask("[ray.get_actor('x', 'transfer_queue'), ray.get_actor('x'), ray.get_actor('x', namespace='other'),"
                 " actor(namespace='transfer_queue', name='x'), actor(namespace='other')]")  # fmt: skip
    assert got == [
        ["x", "transfer_queue.j-a2"],
        ["x", None],
        ["x", "other"],
        {"namespace": "transfer_queue.j-a2", "name": "x", "label_selector": IN_LEASE},
        {"namespace": "other", "label_selector": IN_LEASE},
    ]


@pytest.mark.parametrize("text", ["{", "7", '{"job": "j"}'])
def test_a_lease_that_cannot_be_read_leaves_ray_alone(ask, tmp_path, text):
    got, said = ask("task(num_gpus=1)", text=text)
    assert got == {"num_gpus": 1}
    assert said.startswith("argus: GPU demand could not be bound to the lease (ARGUS_LEASE: ")
    assert notes(tmp_path).startswith("ARGUS_LEASE: ")


def test_another_ray_is_left_alone_where_it_differs(ask, fake, tmp_path):
    (fake / "ray/actor.py").write_text("class Other:\n    pass\n")
    code = "import json, ray\nprint(json.dumps(EXPRESSION))".replace("EXPRESSION", "eval(EXPRESSION)")
    got, said = ask("ray.remote_function.RemoteFunction()._remote(num_gpus=1)['resources']", code)
    assert got == {"argus_share_3": 0.5}
    assert "ray.actor: AttributeError" in said
    assert "ray.actor: AttributeError" in notes(tmp_path)


def test_a_failure_in_a_call_leaves_the_call_as_it_was(ask, fake, tmp_path):
    (fake / "ray/util/placement_group.py").write_text(
        RAY["util/placement_group"].replace("def get_current", "def get_present")
    )
    got, said = ask("[task(num_gpus='many'), task(num_gpus=1)]")
    assert got == [{"num_gpus": "many"}, {"num_gpus": 1}]
    assert len(notes(tmp_path).splitlines()) == 2 == len(said.splitlines())


def test_a_directory_that_is_away_costs_one_line_only(ask, tmp_path):
    (tmp_path / "attempt/debug").rmdir()
    got, said = ask("task(num_gpus='many')")
    assert got == {"num_gpus": "many"}
    assert len(said.splitlines()) == 1


def test_finders_of_the_job_still_find(python, hook, fake, tmp_path, monkeypatch):  # noqa: F811
    """The job's own sitecustomize watches the same module: both changes happen."""
    theirs = write(tmp_path / "theirs", "sitecustomize.py", (
        "import sys\nfrom importlib.machinery import PathFinder\n"
        "class Theirs:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        spec = PathFinder.find_spec(name, path) if name == 'ray.actor' else None\n"
        "        if spec:\n"
        "            inner = spec.loader.exec_module\n"
        "            def run(m): inner(m); m.theirs = True\n"
        "            spec.loader.exec_module = run\n"
        "        return spec\n"
        "sys.meta_path.append(Theirs)\n"
        "sys.meta_path.insert(1, Theirs)\n"
    ))  # fmt: skip
    monkeypatch.setenv("ARGUS_LEASE", json.dumps(LEASE))
    code = "import json, ray\nprint(ray.actor.theirs, ray.actor.ActorClass()._remote(num_gpus=1)['resources'])"
    assert run(python, hook, theirs, fake, code=code).stdout == "True {'argus_share_3': 0.5}\n"


# ---- dealing, where Ray cannot count ----

DEALS = [
    ([1, 1], "STRICT_PACK", {"a": 2, "b": 2}, [["a", "a"], ["b", "b"]]),
    ([1, 1], "STRICT_PACK", {"a": 1, "b": 2}, [["b", "b"]]),
    ([1, 1], "STRICT_PACK", {"a": 1, "b": 1}, [None]),
    ([2, 1], "STRICT_PACK", {"a": 4, "b": 3}, [["b", "b"]]),  # the tighter one
    ([1, 1, 1], "PACK", {"a": 2, "b": 2}, [["a", "a", "b"], ["b", "b", "a"]]),
    ([1, 2], "PACK", {"a": 2, "b": 1}, [["b", "a"]]),  # the large one first
    ([1, 1], "SPREAD", {"a": 2, "b": 2}, [["a", "b"], ["b", "a"]]),
    ([1, 1, 1], "SPREAD", {"a": 1, "b": 2}, [["b", "a", "b"]]),
    ([1, 1], "STRICT_SPREAD", {"a": 2, "b": 2}, [["a", "b"], ["b", "a"]]),
    ([1, 1, 1], "STRICT_SPREAD", {"a": 2, "b": 2}, [None]),
    ([3], "PACK", {"a": 2, "b": 2}, [None]),
]


@pytest.mark.parametrize(("needs", "strategy", "room", "right"), DEALS)
def test_dealing(ask, needs, strategy, room, right):
    """The function itself, found where the finder's globals are."""
    code = (
        "import json, sys\nf = next(f for f in sys.meta_path if type(f).__name__ == '_ArgusFinder')\n"
        "deal = type(f).find_spec.__globals__['_argus_deal']\nprint(json.dumps(eval(EXPRESSION)))"
    )
    assert ask(f"deal({needs}, {strategy!r}, {room})", code)[0] in right
