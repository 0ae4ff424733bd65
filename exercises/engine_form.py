"""What the judge takes out of a submission, and what is wrong with its form.

Nothing of a submission is launched. A kernel is jitted again, from its Python
function, and the configs of a tuner are copied into plain dicts, so that
whatever else hangs on these objects stays behind. That it hangs there is
said, and refused: somebody meant it to run.
"""
import dataclasses
import functools
import inspect
import numbers
import re
import textwrap
import types

from exercises.engine_words import Entry

# What a launcher gives a kernel beside a config.
GIVEN = {"matmul": ["IEEE"], "softmax": ["BLOCK_COLS"]}
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")


class Complaint(Exception):
    """A wrong form: its lines say what is wanted."""

    def __init__(self, *lines):
        super().__init__("; ".join(lines))
        self.lines = list(lines)


@dataclasses.dataclass
class Taken:
    """Our own objects, made from what a submission has for one entry."""

    entry: Entry
    kernel: object
    configs: list
    # What launches the kernel: the kernel itself, or one that watches it.
    launched: object = None
    # The submission's tuner, of which only key and pruning are used.
    tuner: object = None
    # choose(*sizes), which asks the submission's function for a config.
    choose: object = None
    # The numbers of those configs that its pruning never leaves in.
    pruned: set = dataclasses.field(default_factory=set)


def config_text(config):
    """A config in a line: its block shape, and then the rest by name."""
    shape = [str(config[name]) for name in BLOCKS if name in config]
    words = [",".join(shape)] if shape else []
    for name, value in config.items():
        if name not in BLOCKS:
            words.append(f"{name}={value}")
    return " ".join(words)


def python_function(jitted):
    """A fresh function with the code that Triton would compile.

    Triton takes the source of what stands innermost, under all decorators.
    What the interpreter keeps by function is not found again for a copy.
    """
    function = inspect.unwrap(jitted.fn)
    copy = types.FunctionType(function.__code__, function.__globals__,
                              function.__name__, function.__defaults__,
                              function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = dict(function.__annotations__)
    copy.__module__ = function.__module__
    copy.__qualname__ = function.__qualname__
    return copy


def jit_again(t, jitted):
    """A kernel of our own from the same Python function.

    Of jit's arguments only those are kept that say which values are compiled
    into the kernel.
    """
    options = {}
    for name in ("do_not_specialize", "do_not_specialize_on_alignment"):
        value = getattr(jitted, name, None)
        value = value or getattr(jitted, "kwargs", {}).get(name)
        if value:
            options[name] = list(value)
    return t.triton.jit(python_function(jitted), **options)


def parameters_of(kernel):
    """{name: inspect.Parameter} of a jitted kernel."""
    return dict(inspect.signature(python_function(kernel)).parameters)


def is_constexpr(parameter):
    """Whether a parameter is one that is compiled in."""
    return "constexpr" in str(parameter.annotation)


def replaced(theirs, fresh):
    """Names of methods that were set on an object in the place of its own."""
    names = []
    for name in vars(theirs):
        if name in vars(fresh):
            continue
        own = inspect.getattr_static(type(theirs), name, None)
        if own is not None and not isinstance(own, functools.cached_property):
            names.append(name)
    return names


def kernel_faults(t, name, jitted):
    """What hangs on a jitted kernel that a kernel does not need."""
    faults = []
    fresh = t.triton.jit(jitted.fn)
    for method in replaced(jitted, fresh):
        faults.append(f"{name}: its '{method}' was replaced. The judge runs "
                      "the kernel and nothing else: take that out")
    if getattr(jitted, "pre_run_hooks", None):
        faults.append(f"{name}: a hook is registered with add_pre_run_hook, "
                      "which would run before each launch. The kernel has to "
                      "do the work alone: take it out")
    if getattr(jitted, "_src", None) != getattr(fresh, "_src", None):
        faults.append(f"{name}: its source was replaced after @triton.jit; "
                      "the judge reads it from the file")
    return faults


def wanted_parameters(t, entry):
    """The names that an entry's kernel has to have."""
    if entry.parameters is not None:
        return list(entry.parameters)
    lesson = {"matmul": t.matmul_kernel, "softmax": t.softmax_kernel}
    return list(parameters_of(lesson[entry.kind]))


def parameter_faults(t, entry, jitted):
    """Which of the parameters asked for are missing or in another place."""
    found = parameters_of(jitted)
    wanted = wanted_parameters(t, entry)
    first = [name for name in wanted if not name.isupper()]
    if list(found)[:len(first)] != first or not set(wanted) <= set(found):
        return [f"{entry.name}: its parameters are {', '.join(found)}; the "
                f"launcher passes {', '.join(wanted)}. Those in small letters "
                "have to come first, in this order, and all have to be there"]
    faults = []
    for name in wanted:
        if name.isupper() and not is_constexpr(found[name]):
            faults.append(f"{entry.name}: {name} has to be a tl.constexpr")
    return faults


def what_it_is(t, thing):
    """What something is that should be a kernel, in a learner's words."""
    triton = t.triton
    if isinstance(thing, triton.runtime.Autotuner):
        return "is autotuned"
    if isinstance(thing, type(t.matmul_kernel)):
        return "is a jitted kernel without an autotuner"
    if isinstance(thing, triton.runtime.Heuristics):
        return "is made by triton.heuristics"
    if inspect.isfunction(thing):
        return "is a plain Python function"
    return f"is of type {type(thing).__name__}"


def take_jitted(t, entry, thing):
    """The jitted kernel that `thing` is, or a Complaint."""
    if type(thing) is not type(t.matmul_kernel):
        raise Complaint(f"{entry.name} {what_it_is(t, thing)}; wanted is a "
                        "kernel with @triton.jit right above its def, and "
                        "nothing above that")
    return thing


def take_tuner(t, entry, thing):
    """The tuner that `thing` is, or a Complaint."""
    if type(thing) is not t.triton.runtime.Autotuner:
        raise Complaint(
            f"{entry.name} {what_it_is(t, thing)}; wanted is what "
            "triton.autotune(configs, key) makes of a kernel")
    if type(thing.fn) is not type(t.matmul_kernel):
        raise Complaint(
            f"{entry.name}: triton.autotune stands over something that "
            f"{what_it_is(t, thing.fn)}; it has to stand right over "
            "@triton.jit. (What a heuristic would compute, a kernel can "
            "compute itself, and a pruning function can look at.)")
    return thing


def tuner_faults(entry, tuner, fresh):
    """What hangs on a tuner that a search does not need."""
    faults = []
    for method in replaced(tuner, fresh):
        faults.append(f"{entry.name}: the tuner's '{method}' was replaced: "
                      "take that out")
    for name in ("pre_hook", "post_hook"):
        if getattr(tuner, f"user_defined_{name}", False):
            faults.append(f"{entry.name}: triton.autotune got a {name}, which "
                          "runs around each launch; the kernel has to do the "
                          "work alone: take it out")
    return faults


def plain_value(t, value):
    """A value of a config as a plain one; a Complaint if it is no such value.
    """
    if isinstance(value, t.tl.constexpr):
        value = value.value
    if isinstance(value, t.np.bool_):
        return bool(value)
    if value is None or isinstance(value, (bool, str, float, t.tl.dtype,
                                           type(t.matmul_kernel))):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    raise Complaint(f"{value!r} is no number and no type")


def plain_config(t, config):
    """A triton.Config as a dict of its own, and what is wrong with it."""
    if type(config) is not t.triton.Config:
        return None, [f"is of type {type(config).__name__}; a config is a "
                      "triton.Config({'BLOCK_M': 64, ...}, num_warps=4, "
                      "num_stages=3)"]
    faults = []
    if config.pre_hook is not None:
        faults.append("has a pre_hook, which runs before the kernel: take it "
                      "out")
    if getattr(config, "ir_override", None):
        faults.append("has an ir_override, which compiles another kernel in "
                      "the place of yours: take it out")
    if set(replaced(config, t.triton.Config({}))):
        faults.append("has a method that was replaced: take that out")
    if not isinstance(config.kwargs, dict):
        return None, ["its block sizes are no dict, {'BLOCK_M': 64, ...}"]
    plain = {}
    for name, value in config.kwargs.items():
        try:
            plain[name] = plain_value(t, value)
        except Complaint as complaint:
            faults.append(f"{name}: {complaint}")
    for name in OPTIONS:
        value = getattr(config, name, None)
        if name in plain:
            faults.append(
                f"{name} stands among the block sizes, where it is no option: "
                f"write triton.Config({{...}}, {name}={plain.pop(name)})")
        if value is not None and (name, value) != ("num_ctas", 1):
            plain[name] = value
    return plain, faults


def names_of_config(t, entry, jitted):
    """The constexprs of a kernel that a config gives: not those that the
    launcher passes, which a kernel may also want compiled in."""
    passed = [name for name in wanted_parameters(t, entry)
              if not name.isupper()] + GIVEN[entry.kind]
    return [name for name, parameter in parameters_of(jitted).items()
            if is_constexpr(parameter) and name not in passed]


def config_faults(t, entry, jitted, config):
    """What is wrong with the names and numbers of a config."""
    parameters = parameters_of(jitted)
    own = names_of_config(t, entry, jitted)
    faults = []
    for name in config:
        if name in OPTIONS or name in own:
            continue
        if name in parameters:
            faults.append(f"sets {name}, which the launcher passes")
        else:
            faults.append(f"names {name}, which is no parameter of the kernel")
    for name, parameter in parameters.items():
        needed = name in own or name not in wanted_parameters(t, entry)
        if (needed and name not in config and name not in GIVEN[entry.kind]
                and parameter.default is parameter.empty):
            faults.append(f"lacks {name}")
    for name in BLOCKS:
        if name in parameters:
            size = config.get(name, parameters[name].default)
            if size is not inspect.Parameter.empty and not is_block(size):
                faults.append(f"{name}={size}: block sizes are powers of two "
                              "from 16 up, as tl.dot takes them")
    if config.get("num_warps") not in (1, 2, 4, 8, 16, 32, None):
        faults.append(f"num_warps={config['num_warps']} is none of 1, 2, 4, "
                      "8, 16, 32")
    for name in ("num_stages", "num_ctas", "maxnreg", "GROUP_M"):
        value = config.get(name, 1)
        if not isinstance(value, int) or value < 1:
            faults.append(f"{name}={value} is no whole number from 1 up")
    return faults


def is_block(size):
    """Whether tl.dot can have a side of this size."""
    whole = isinstance(size, int) and not isinstance(size, bool)
    return whole and size >= 16 and size & (size - 1) == 0


def take_configs(t, entry, tuner):
    """A tuner's configs as plain dicts, and what is wrong with them."""
    configs, faults = [], []
    if not isinstance(tuner.configs, (list, tuple)):
        raise Complaint(f"{entry.name}: its configs are a "
                        f"{type(tuner.configs).__name__}; triton.autotune "
                        "takes a list of triton.Config")
    for number, config in enumerate(list(tuner.configs), 1):
        plain, wrong = plain_config(t, config)
        if plain is not None:
            wrong = wrong + config_faults(t, entry, tuner.fn, plain)
            configs.append(plain)
        name = f"config {number}"
        if plain:
            name += f" ({config_text(plain)})"
        faults += [f"{name} {fault}" for fault in wrong]
    return configs, faults


def with_defaults(config, kernel):
    """A config with the defaults of the constexprs that it leaves out."""
    filled = {}
    for name, parameter in parameters_of(kernel).items():
        if is_constexpr(parameter) and (
                parameter.default is not parameter.empty):
            filled[name] = parameter.default
    return {**filled, **config}


def count_fault(entry, different, given, why="different", most=""):
    """The fault of too few configs, as a list."""
    if different >= entry.at_least:
        return []
    return [f"{entry.name}: {given} configs, {most}{different} of them {why}; "
            f"at least {entry.at_least} are needed"]


def key_faults(entry, tuner):
    """What is wrong with a key as it is written."""
    key = tuner.keys
    if not isinstance(key, (list, tuple)) or not all(
            isinstance(name, str) for name in key):
        return [f"{entry.name}: its key is {key!r}; a key is a list of the "
                "names of those parameters whose change starts a new search, "
                "as in ['m', 'n', ...]"]
    names = parameters_of(tuner.fn)
    return [f"{entry.name}: the key names {name}, which is no parameter of "
            "the kernel; before 3.9 Triton leaves such a name out without a "
            "word" for name in key if name not in names]


def take(t, entry, module):
    """What a submission has for an entry, as a Taken; None if it may lack it.

    Raises a Complaint with everything that is wrong with its form.
    """
    if not hasattr(module, entry.name):
        if entry.optional:
            return None
        raise Complaint(f"the file defines no {entry.name}")
    thing = getattr(module, entry.name)
    if entry.tuned:
        return take_tuned(t, entry, thing)
    jitted = take_jitted(t, entry, thing)
    faults = kernel_faults(t, entry.name, jitted)
    faults += parameter_faults(t, entry, jitted)
    if faults:
        raise Complaint(*faults)
    kernel = jit_again(t, jitted)
    choose, configs = None, list(entry.configs or [])
    if entry.choice:
        choose = take_choice(t, entry, module, kernel)
        configs.insert(0, {})  # whatever the file chooses
    elif not configs:
        configs = [{}]
        if entry.kind == "matmul":
            configs = [dict(config) for config in t.CONFIGS]
    return Taken(entry, kernel, configs, kernel, choose=choose)


def take_tuned(t, entry, thing):
    """The kernel, configs and tuner of an entry that is autotuned."""
    tuner = take_tuner(t, entry, thing)
    faults = kernel_faults(t, entry.name, tuner.fn)
    faults += tuner_faults(entry, tuner, make_tuner(t, [], [], tuner.fn))
    faults += key_faults(entry, tuner)
    wrong = parameter_faults(t, entry, tuner.fn)
    configs = []
    if not wrong:
        configs, wrong = take_configs(t, entry, tuner)
    faults += wrong
    if not wrong:
        different = {repr(sorted(with_defaults(config, tuner.fn).items(),
                                 key=str)) for config in configs}
        faults += count_fault(entry, len(different), len(configs))
    if faults:
        raise Complaint(*faults)
    kernel = jit_again(t, tuner.fn)
    return Taken(entry, kernel, configs, kernel, tuner)


def take_choice(t, entry, module, kernel):
    """The file's function that chooses a config, with a check around it."""
    function = getattr(module, entry.choice, None)
    if not callable(function) or inspect.isclass(function):
        raise Complaint(f"the file defines no function {entry.choice}, which "
                        f"chooses the settings of {entry.name}")
    own = [name for name, parameter in parameters_of(kernel).items()
           if is_constexpr(parameter)]
    allowed = own + list(OPTIONS)

    def choose(*sizes):
        """What the function chooses for these sizes, as a plain dict."""
        asked = f"{entry.choice}({', '.join(map(str, sizes))})"
        try:
            chosen = function(*sizes)
        except Exception as error:
            said = f"{asked} raised {type(error).__name__}: {error}"
            if "cuda" in said.lower() and not t.torch.cuda.is_available():
                said += (". It asks the GPU; where there is none, it has to "
                         "return something all the same")
            raise Complaint(said) from error
        if not isinstance(chosen, dict):
            raise Complaint(f"{asked} returned {chosen!r}, and not a dict of "
                            "settings")
        plain = {}
        for name, value in chosen.items():
            if name not in allowed:
                raise Complaint(f"{asked} names {name}, which is no constexpr "
                                "of the kernel and no option")
            if name in GIVEN[entry.kind]:
                raise Complaint(f"{asked} sets {name}, which the launcher "
                                "passes")
            plain[name] = plain_value(t, value)
            wanted = wrong_number(name, plain[name], entry)
            if wanted:
                raise Complaint(f"{asked} says {name}={value!r}; wanted is "
                                f"{wanted}")
        filled = with_defaults(plain, kernel)
        for name in own:
            if name not in filled and name not in GIVEN[entry.kind]:
                raise Complaint(f"{asked} leaves out {name}, for which the "
                                "kernel has no default")
        return {name: value for name, value in filled.items()
                if name not in GIVEN[entry.kind]}
    return choose


def wrong_number(name, value, entry):
    """What is wanted in place of a number that was chosen, or None."""
    if isinstance(value, bool) and name not in OPTIONS:
        return None
    if not isinstance(value, int) or value < 1:
        return "a whole number from 1 up"
    if name == "num_warps" and value not in (1, 2, 4, 8, 16, 32):
        return "one of 1, 2, 4, 8, 16, 32"
    if name in entry.powers and value & (value - 1):
        return "a power of two"
    if name in entry.powers and value > entry.powers[name]:
        return f"at most {entry.powers[name]}"
    return None


def make_tuner(t, configs, key, kernel, prune=None, do_bench=None):
    """A tuner of our own over a kernel of our own, without a kept result."""
    own = []
    for config in configs:
        options = {name: config[name] for name in OPTIONS if name in config}
        blocks = {name: value for name, value in config.items()
                  if name not in OPTIONS}
        own.append(t.triton.Config(blocks, **options))
    tuner = t.triton.autotune(own, list(key), prune, do_bench=do_bench)(kernel)
    tuner.cache_results = False
    return tuner


def fingerprint(t, taken):
    """What is to be the same wherever a file is imported, as text: the source
    of a kernel and of its helpers, the constants in them, the configs."""
    found = {}
    add_source(t, taken.kernel, found)
    parts = [f"{name}: {text}" for name, text in sorted(found.items())]
    parts += [repr(sorted((name, repr(value))
                          for name, value in config.items()))
              for config in taken.configs]
    if taken.tuner is not None:
        parts.append(repr(list(taken.tuner.keys)))
    return parts


def add_source(t, kernel, found):
    """Add to found, {name: text}, a kernel and what it refers to."""
    function = inspect.unwrap(kernel.fn)
    name = f"{function.__module__}.{function.__qualname__}"
    if name in found or function.__module__.startswith("triton."):
        return
    found[name] = source_text(kernel, function)
    scope = inspect.getclosurevars(function)
    for word, value in {**scope.globals, **scope.nonlocals}.items():
        if isinstance(value, t.triton.runtime.jit.KernelInterface):
            add_source(t, value, found)
        elif isinstance(value, (t.tl.constexpr, bool, int, float, str)):
            found[f"{name}, {word}"] = repr(value)


def source_text(kernel, function):
    """What Triton compiles for a jitted function: its source without the
    decorators, or what somebody has put in its place."""
    replaced_by = getattr(kernel, "_src", None)
    if replaced_by is not None:
        return replaced_by
    source = textwrap.dedent(inspect.getsource(function))
    return source[re.search(r"^def\s+\w+\s*\(", source, re.MULTILINE)
                  .start():]
