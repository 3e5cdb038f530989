# SPDX-License-Identifier: Apache-2.0
"""How the operations of sharding_rules.jsonl are written in C++: one row an operation, one row a refused case.

A row of OPERATIONS gives the text of an expression over `a`, `b`, `c`, the inputs of a case, or None where this case
of the operation has to stay out. REFUSED and REFUSED_FILES name the messages that cases are refused with.
"""
import re


def numbers(values):
    return ", ".join(str(v) for v in values)


def call(name, *operands):
    """A call with the case's out_sharding, if it has one."""
    def text(case):
        return f"{name}({', '.join(list(operands) + out_sharding(case))})"
    return text


def spec(text):
    """`P('x',None,('x','y'),unreduced={'x'})` as a type."""
    inner = text[2:-1]
    marks = "".join(f", ts::{kind}<{quoted(names)}>" for kind, names in re.findall(r"(unreduced|reduced)=\{([^}]*)\}", inner))
    inner = re.sub(r",?\s*(unreduced|reduced)=\{[^}]*\}", "", inner)
    entries = [axes(e) for e in re.findall(r"None|'\w+'|\([^)]*\)", inner)]
    return "ts::P<" + (", ".join(entries) + marks).removeprefix(", ") + ">"


def quoted(names):
    return ", ".join(f'"{n}"' for n in re.findall(r"'(\w+)'", names))


def axes(entry):
    if entry == "None":
        return "ts::none"
    return f"ts::axes<{quoted(entry)}>" if entry.startswith("(") else quoted(entry)


def out_sharding(case):
    given = case["params"].get("out_sharding")
    return [f"ts::out_sharding<{spec(given)}>"] if given is not None else []


def contraction(case):
    """A matrix product where the dimensions are those of one, else a general one."""
    batch = case["params"].get("batch", [[], []])
    rank = case["inputs"][0].count(",") + 1
    if case["params"]["contract"] == [[rank - 1], [rank - 2]] and batch[0] == list(range(rank - 2)):
        return call("ts::matmul", "a", "b")(case)
    return None


def reduction(name):
    def text(case):
        params = case["params"]
        dims = params["axes"] if "axes" in params else [params["axis"]]
        return call(f"ts::{name}<{numbers(dims)}>", "a")(case)
    return text


def creation(name, *more):
    """Of a case without inputs; an array beside it says which mesh it is."""
    beside = "array<ts::f32, ts::shape<>, ts::P<>, mesh, 0, 0, 0>{}"
    return lambda case: call(f"ts::{name}<ts::shape<{numbers(case['params']['shape'])}>{''.join(more)}>", beside)(case)


def braces(rows, name):
    """`ts::range{0, 4}, ts::range{0, 3}`"""
    return ", ".join(f"ts::{name}{{{numbers(row)}}}" for row in rows)


def slices(case):
    params = case["params"]
    return call(f"ts::slice<{braces(zip(params['start'], params['limit']), 'range')}>", "a")(case)


def split(case):
    params = case["params"]
    parts = call(f"ts::split<{params['axis']}, {numbers(params['sizes'])}>", "a")(case)
    return f"std::get<0>({parts})"


def gradient_of_product(case):
    return "ts::grad([](auto w, auto v) { return ts::sum(ts::matmul(v, w, ts::out_sharding<ts::P<\"x\">>)); })(b, a)"


def scan(case):
    body = case["params"].get("body", "")
    if body.startswith("carry'"):
        carry, y = re.findall(r"P\([^)]*\)", body)
        return ("ts::scan([](auto c, auto x) { return std::pair(ts::reshard<" + spec(carry) +
                ">(c), ts::matmul(c, x, ts::out_sharding<" + spec(y) + ">)); }, a, b)")
    if body:
        return "ts::scan<4>([](auto c) { return std::pair(ts::reshard<ts::P<>>(c), ts::none); }, a)"
    return "ts::scan([](auto c, auto) { return std::pair(c, c); }, a, b)"


def while_loop(case):
    return "ts::while_loop([](auto c) { return ts::sum(c) < 1; }, [](auto c) { return ts::reshard<ts::P<>>(c); }, a)"


OPERATIONS = {
    "mul": call("ts::multiply", "a", "b"),
    "add": call("ts::add", "a", "b"),
    "sub": call("ts::subtract", "a", "b"),
    "sin": call("ts::sin", "a"),
    "select": call("ts::where", "a", "b", "c"),
    "jnp.where": call("ts::where", "a", "b", "c"),
    "dot_general": contraction,
    "reduce_sum": reduction("sum"),
    "reduce_max": reduction("max"),
    "mean": reduction("mean"),
    "argmax": reduction("argmax"),
    "reshape": lambda case: call(f"ts::reshape<{numbers(case['params']['new_sizes'])}>", "a")(case),
    "broadcast_in_dim": lambda case: call(f"ts::broadcast_to<{numbers(case['params']['shape'])}>", "a")(case),
    "reshard": lambda case: f"ts::reshard<{spec(case['params']['to'])}>(a)",
    "grad(dot_general)": gradient_of_product,
    "zeros": creation("zeros"),
    "iota": creation("iota", ", 0"),
    "expand_dims": lambda case: call(f"ts::expand_dims<{case['params']['axis']}>", "a")(case),
    "concatenate": lambda case: call(f"ts::concatenate<{case['params']['dimension']}>", "a", "b")(case),
    "stack": lambda case: call(f"ts::stack<{case['params']['axis']}>", "a", "b")(case),
    "split": split,
    "pad": lambda case: call(f"ts::pad<{braces(case['params']['config'], 'padding')}>", "a", "0")(case),
    "slice": slices,
    "index x[0,0]": call("ts::slice<0, 0>", "a"),
    "index x[0]": call("ts::slice<0>", "a"),
    "dynamic_update_slice": lambda case: call("ts::dynamic_update_slice", "a", "b", *map(str, case["params"]["start"]))(case),
    "gather x[idx]": call("ts::take<0>", "a", "b"),
    "x.at[idx].get": lambda case: call("ts::at", "a", "b")(case) + ".get()",
    "vmap(x[idx])": call("ts::take<1>", "a", "b", "ts::batch_dims<1>"),
    "scatter x.at[idx].set(u)": lambda case: call("ts::at", "a", "b")(case) + ".set(c)",
    "scan": scan,
    "while_loop": while_loop,
}

REFUSED = {
    "ew05": "elementwise_sharding",
    "ew15": "elementwise_sharding",
    "ew07": "elementwise_duplicate",
    "dot03": "matmul_contracting_one",
    "dot04": "matmul_contracting_one",
    "dot06": "matmul_duplicate",
    "dot08": "matmul_contracting_both",
    "dot22": "matmul_batch_sharding",
    "dot23": "matmul_batch_sharding",
    "rs12": "reshape_merge",
    "rs13": "reshape_merge",
    "rs15": "reshape_merge",
    "cr11": "spec_too_long",
    "cr12": "spec_unknown_axis",
    "cr13": "spec_axis_twice",
    "cc03": "concatenate_sharding",
    "cc06": "layout_sharding",
    "cc09": "layout_sharding",
    "sl03": "layout_sharding",
    "sl04": "layout_sharding",
    "sl05": "layout_sharding",
    "sl12": "dynamic_update_sharding",
    "ga03": "take_indices_sharding",
    "ga10": "take_dimension_sharding",
    "se03": "where_sharding",
    "se05": "where_sharding",
}

# Refusals that are no result's type: each is a file that must not compile.
REFUSED_FILES = {
    "cf02": "scan_carry",
    "cf03": "scan_leading",
    "cf04": "scan_carry",
}
