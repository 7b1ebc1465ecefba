"""Capacity files and run annotations, from good to hostile, as hypothesis strategies."""

import copy
import json
import math

from hypothesis import strategies as st

from airflow_elastic.config.providers import PROVIDERS

quantities = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from([1, 4, "500m", "16", 0.5, "7910m"]),
        "memory": st.sampled_from(["1Gi", "512Mi", "15.5Gi", 10**9, "30G"]),
    },
    optional={"pods": st.integers(1, 250), "nvidia.com/gpu": st.integers(1, 8)},
)
durations = st.sampled_from([30, 90.5, "90s", "5m", "1h30m", "2 h"])
label_texts = st.sampled_from(["a", "pool-1", "x_y.z", "b"])
# Printable and awkward in YAML, yet sound as shell patterns.
patterns = st.sampled_from(["*", "billing_*", "yes", "1e3", "# no comment", "'", '"', "a: b", "é*", "🦆", " x", "\\"])
pool_options = {
    "min_nodes": st.integers(0, 5),
    "max_nodes": st.integers(5, 10_000),
    "boot_seconds": st.sampled_from([0, 30, "45s"]),
    "boot_seconds_p95": st.sampled_from([None, 180, "5m"]),
    "price_per_node_hour": st.floats(0, 100),
    "capacity_type": st.sampled_from(["reserved", "on-demand", "spot"]),
    "provider": st.sampled_from(["placeholder", "none"]),
    "taints": st.lists(st.fixed_dictionaries({"key": label_texts}, optional={"value": label_texts}), max_size=2),
}
class_options = {
    "priority_class": st.sampled_from(["", "batch-high"]),
    "evictable": st.booleans(),
    "wait_price_ratio": st.floats(0, 1000),
    "tolerations": st.lists(st.fixed_dictionaries({"key": label_texts}), max_size=2),
}


@st.composite
def files(draw):
    """Return a capacity file without mistakes, as plain data."""
    pool_names = draw(st.lists(st.sampled_from(["fixed", "elastic", "spot", "gpu-large"]), min_size=1, unique=True))
    class_names = draw(st.lists(st.sampled_from(["core", "burst", "big_memory", "a.b"]), min_size=1, unique=True))
    pools = {
        name: {
            "selector": {"example.com/pool": name},
            "shape": draw(quantities),
            **draw(st.fixed_dictionaries({}, optional=pool_options)),
        }
        for name in pool_names
    }
    if draw(st.booleans()):
        options = {"group": "example.com", "version": "v1", "plural": "pools", "name": "one"}
        pools[pool_names[0]] |= {"provider": "scale", "provider_options": options}
    classes = {
        name: {
            "node_pools": draw(st.lists(st.sampled_from(pool_names), min_size=1, max_size=2, unique=True)),
            "slot_shape": draw(
                st.sampled_from(['{"cpu": "500m"}', '{"cpu": 0.25, "memory": "128Mi"}']).map(json.loads)
            ),
            "airflow_pool": f"pool of {name}",
            **draw(st.fixed_dictionaries({}, optional=class_options)),
        }
        for name in class_names
    }
    known = st.sampled_from(class_names)
    rules = st.fixed_dictionaries({"class": known}, optional={"dag_id": patterns, "tag": patterns})
    limits = {"max_nodes": st.integers(0, 100), "max_hold": durations, "allowed_classes": st.lists(known, max_size=2)}
    scaling = {"tick_seconds": st.floats(0.1, 5), "horizon": st.just("12h"), "default_task": durations}
    rest = st.fixed_dictionaries(
        {},
        optional={
            "mode": st.sampled_from(["observe", "sync", "manage"]),
            "namespace": st.sampled_from(["default", "airflow"]),
            "default_class": st.one_of(st.just(""), known),
            "default_requests": quantities,
            "rules": st.lists(rules, max_size=3),
            "limits": st.fixed_dictionaries({}, optional=limits),
            "scaling": st.fixed_dictionaries({}, optional=scaling),
        },
    )
    return {"version": 1, "node_pools": pools, "classes": classes, **draw(rest)}


hostile_values = st.one_of(
    st.sampled_from(
        [10**9, -1, 0, 10**40, -(10**400), 1e308, math.nan, math.inf, -math.inf, True, None, "", "x" * 10**6, "\t", "*"]
    ),
    st.sampled_from([[], {}, [[[[]]]], {"a": {"b": {"c": 1}}}, [None] * 1000, {str(n): n for n in range(300)}]),
    st.text(max_size=30),
    st.integers(),
    st.floats(),
    st.sampled_from(
        ["scale", "manage", "default_pool", "NaN", "1e999", "9" * 400, "-5Gi", "1 week", "../../etc", "\x00"]
    ),
    st.sampled_from(sorted(PROVIDERS)),
)


@st.composite
def mutated(draw):
    """Return a file in which up to four places say something else than they should."""
    # Copied: hypothesis shares what sampled_from gives between examples.
    data = copy.deepcopy(draw(files()))
    for _ in range(draw(st.integers(1, 4))):
        node = data
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(node[key], dict | list) and node[key] and draw(st.integers(0, 4)):
                node = node[key]
                continue
            action = draw(st.sampled_from(["replace", "remove", "rename"]))
            if action == "replace":
                node[key] = copy.deepcopy(draw(hostile_values))
            elif action == "remove" or isinstance(node, list):
                del node[key]
            else:
                node[draw(st.one_of(st.just(f"{key}x"), st.text(max_size=10)))] = node.pop(key)
            break
    return data


def as_yaml(value, indent=0):
    """Return a value as YAML in flow style; unlike JSON it knows .nan and .inf."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    if isinstance(value, dict):
        inner = (",\n" if indent < 2 else ", ").join(
            f"{' ' * indent}{json.dumps(key)}: {as_yaml(each, indent + 1)}" for key, each in value.items()
        )
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_yaml(each, indent + 1) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)
