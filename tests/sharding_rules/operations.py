# SPDX-License-Identifier: Apache-2.0
"""How the operations of sharding_rules.jsonl are written in C++: one row an operation, one row a refused case.

A row of OPERATIONS gives the text of an expression over `a`, `b`, `c`, the inputs of a case, or None where this case
of the operation has to stay out. REFUSED and REFUSED_FILES name the messages that cases are refused with.
"""
import re


DTYPES = {"f32": "float32", "i32": "int32", "u32": "uint32", "bool": "bool", "bf16": "bfloat16"}


def printed(out):
    """A type as the library prints it."""
    return re.sub(r"\b(f32|i32|u32|bool|bf16)\[", lambda m: DTYPES[m[1]] + "[", out)


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
    rank = re.sub(r"\([^)]*\)", "", case["inputs"][0]).count(",") + 1
    if case["params"]["contract"] == [[rank - 1], [rank - 2]] and batch[0] == list(range(rank - 2)):
        return call("ts::matmul", "a", "b")(case)
    lists = [f"ts::dims<{numbers(dims)}>" for dims in case["params"]["contract"] + batch]
    return call(f"ts::dot_general<{', '.join(lists)}>", "a", "b")(case)


def einsum(case):
    letters = ["a", "b", "c"][:len(case["inputs"])]
    return call(f'ts::einsum<"{case["params"]["spec"]}">', *letters)(case)


def random(name):
    """Keys are uint32[..., 2] here."""
    def text(case):
        return call(f"ts::random::{name}<ts::shape<{numbers(case['params']['shape'])}>>", "a")(case)
    return text


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


def pool(case):
    params = case["params"]
    window, strides = (numbers(params[name][1:-1]) for name in ("window", "strides"))
    return call(f"ts::max_pool<ts::shape<{window}>>", "a", "ts::same", f"ts::strides<{strides}>")(case)


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
    if body.startswith("swaps"):
        return ("ts::scan<4>([](auto c) { return std::pair(std::pair(c.second, c.first), ts::none); }, "
                "std::pair(a, b))")
    if body.startswith("carry'"):
        carry, y = re.findall(r"P\([^)]*\)", body)
        return ("ts::scan([](auto c, auto x) { return std::pair(ts::reshard<" + spec(carry) +
                ">(c), ts::matmul(c, x, ts::out_sharding<" + spec(y) + ">)); }, a, b)")
    if body:
        return "ts::scan<4>([](auto c) { return std::pair(ts::reshard<ts::P<>>(c), ts::none); }, a)"
    return "ts::scan([](auto c, auto) { return std::pair(c, c); }, a, b)"


def while_loop(case):
    return "ts::while_loop([](auto c) { return ts::sum(c) < 1; }, [](auto c) { return ts::reshard<ts::P<>>(c); }, a)"


def named(case):
    """The axes of a collective, as template arguments."""
    names = case["params"]["axis"]
    return ", ".join(f'"{n}"' for n in ([names] if isinstance(names, str) else names))


def collective(name):
    """Inside a shard_map: `ts::psum<"x">(a, tiled, to_reduced)`."""
    def text(case):
        params = case["params"]
        options = [f"ts::{option}<{params[p]}>" for option, p in
                   (("split_along", "split_axis"), ("concat_along", "concat_axis")) if p in params]
        options += ["ts::tiled"] if params.get("tiled") else []
        options += [f"ts::to_{params['to']}"] if "to" in params else []
        return f"ts::{name}<{named(case)}>({', '.join(['a'] + options)})"
    return text


def axis_index(case):
    return f"ts::axis_index<{named(case)}>(array<ts::f32, ts::shape<>, ts::P<>, mesh, 0, 0, 0>{{}})"


def permutation(case):
    sends = ", ".join(f"ts::send<{a}, {b}>" for a, b in case["params"]["perm"])
    return f"ts::ppermute<{named(case)}, {sends}>(a)"


def mapped(in_spec, out_spec, body, argument):
    return f"ts::shard_map<ts::in_specs<{in_spec}>, ts::out_specs<{out_spec}>>({body})({argument})"


def automatic(case):
    return f"ts::auto_axes([](auto p, auto q) {{ return p + q; }}, {out_sharding(case)[0]})(a, b)"


def taken_back(case):
    params = case["params"]
    wanted = f'static_assert(prints<decltype(p)>("{printed(params["type_inside"])}")); '
    return f"ts::explicit_axes([](auto p) {{ {wanted}return ts::{params['fn']}(p); }}, " \
           f"ts::in_sharding<{spec(params['in_sharding'])}>)(a)"


def block_inside(case):
    """A body that looks at its block and gives it back."""
    given = spec(case["params"]["in_spec"])
    wanted = case["inside"] and f'static_assert(prints<decltype(v)>("{printed(case["inside"])}")); '
    return mapped(given, given, f"[](auto v) {{ {wanted or ''}return v; }}", "a")


NOTHING = "array<ts::f32, ts::shape<4, 4>, ts::P<>, outside, 0, 0, 0>{}"


def result_outside(case):
    return mapped("ts::P<>", spec(case["params"]["out_spec"]), "[](auto) { return type_a{}; }", NOTHING)


def gradient_of_map(body):
    def text(case):
        return "ts::grad([](auto v) { return ts::sum(" + mapped(
            spec(case["params"].get("in_spec", "P('x')")), spec(case["params"].get("out_spec", "P()")), body, "v") + "); })(a)"
    return text


def gradient_of_reshard(case):
    return "ts::grad([](auto v) { return ts::reshard<ts::P<>>(ts::sum(ts::reshard<" + spec(case["params"]["to"]) + ">(v))); })(a)"


def over_examples(case):
    entries = ", ".join("ts::none" if axis is None else str(axis) for axis in case["params"]["in_axes"])
    return f"ts::vmap<ts::in_axes<{entries}>>([](auto p, auto q) {{ return p * q; }})(a, b)"


OPERATIONS = {
    "mul": call("ts::multiply", "a", "b"),
    "add": call("ts::add", "a", "b"),
    "sub": call("ts::subtract", "a", "b"),
    "sin": call("ts::sin", "a"),
    "select": call("ts::where", "a", "b", "c"),
    "jnp.where": call("ts::where", "a", "b", "c"),
    "dot_general": contraction,
    "einsum": einsum,
    "sort": lambda case: f"ts::sort<{case['params']['dimension']}>(a)",
    "cumsum": lambda case: f"ts::cumsum<{case['params']['axis']}>(a)",
    "random.bits": random("bits"),
    "random_bits": random("bits"),
    "random.bernoulli": random("bernoulli"),
    "reduce_sum": reduction("sum"),
    "reduce_max": reduction("max"),
    "mean": reduction("mean"),
    "argmax": reduction("argmax"),
    "reshape": lambda case: call(f"ts::reshape<{numbers(case['params']['new_sizes'])}>", "a")(case),
    "broadcast_in_dim": lambda case: call(f"ts::broadcast_to<{numbers(case['params']['shape'])}>", "a")(case),
    "reshard": lambda case: f"ts::reshard<{spec(case['params']['to'])}>(a)",
    "grad(dot_general)": gradient_of_product,
    "grad(reshard)": gradient_of_reshard,
    "roll": lambda case: call(f"ts::roll<1, {case['params']['axis']}>", "a")(case),
    "tile": lambda case: call(f"ts::tile<{numbers(case['params']['reps'])}>", "a")(case),
    "conv_general_dilated": call("ts::conv", "a", "b", "ts::same"),
    "reduce_window": pool,
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
    "vmap": over_examples,
    "scan": scan,
    "while_loop": while_loop,
    "psum": collective("psum"),
    "psum_scatter": collective("psum_scatter"),
    "all_gather": collective("all_gather"),
    "all_to_all": collective("all_to_all"),
    "pcast": collective("pcast"),
    "axis_index": axis_index,
    "transpose(psum)": collective("psum"),
    "transpose(psum_scatter)": collective("psum_scatter"),
    "transpose(all_gather)": collective("all_gather"),
    "transpose(all_gather to invarying)": lambda case: f"ts::all_gather<{named(case)}>(a, ts::tiled, ts::to_invarying)",
    "transpose(all_gather to reduced)": lambda case: f"ts::all_gather<{named(case)}>(a, ts::tiled, ts::to_reduced)",
    "transpose(pcast to reduced)": lambda case: f"ts::pcast<{named(case)}>(a, ts::to_reduced)",
    "transpose(pcast reduced to varying)": lambda case: f"ts::pcast<{named(case)}>(a, ts::to_varying)",
    "transpose(ppermute)": permutation,
    "transpose(all_to_all)": collective("all_to_all"),
    "auto_axes": automatic,
    "explicit_axes": taken_back,
    "convert_element_type": lambda case: f"ts::astype<ts::{case['params']['new_dtype']}>(a)",
    "with_sharding_constraint": lambda case: f"ts::with_sharding_constraint<{spec(case['params']['spec'])}>(a)",
    "shard_map in_specs": block_inside,
    "shard_map out_specs": result_outside,
    "shard_map closure": lambda case: mapped("ts::P<>", "ts::P<>", "[a](auto v) { return v + a; }", NOTHING),
    "grad(shard_map)": gradient_of_map("[](auto w) { return w; }"),
    "grad(pmax)": gradient_of_map('[](auto w) { return ts::pmax<"x">(w); }'),
}

REFUSED = {
    "cr20": "spec_axis_kind",
    "wc03": "constraint_axis",
    "red19": "sort_cut",
    "ew05": "elementwise_sharding",
    "ew15": "elementwise_sharding",
    "ew07": "elementwise_duplicate",
    "dot03": "matmul_contracting_one",
    "dot04": "matmul_contracting_one",
    "dot06": "matmul_duplicate",
    "dot08": "matmul_contracting_both",
    "dot15": "matmul_unreduced",
    "dot22": "matmul_batch_sharding",
    "dot23": "matmul_batch_sharding",
    "rs12": "reshape_merge",
    "rs13": "reshape_merge",
    "rs15": "reshape_merge",
    "cr11": "spec_too_long",
    "cr12": "spec_unknown_axis",
    "cr13": "spec_axis_twice",
    "ly03": "layout_sharding",
    "ly12": "layout_sharding",
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
    "ur02": "unreduced_add",
    "ur04": "unreduced_operand",
    "ur05": "unreduced_operand",
    "ur06": "unreduced_factor",
    "va06": "collective_states",
    "va23": "pcast_transition",
    "va24": "pcast_transition",
}

# Refusals that are no result's type: each is a file that must not compile.
REFUSED_FILES = {
    "vm02": "vmap_sharding",
    "vm03": "vmap_axis",
    "cf02": "scan_carry",
    "cf03": "scan_leading",
    "cf04": "scan_carry",
    "sm05": "shard_map_in_spec",
    "sm11": "shard_map_captured",
    "sm13": "shard_map_may_vary",
    "sm18": "shard_map_may_vary",
    "sm19": "shard_map_marks",
    "va25": "scan_carry",
    "tr16": "pmax_gradient",
}

# Of those, what shows when the step is traced.
REFUSED_TRACES = {"tr16"}
