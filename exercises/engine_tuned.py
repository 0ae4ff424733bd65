"""A tuner's key and its pruning, judged by what they do.

Neither needs a launch: a recorder takes the kernel's place in a tuner of our
own, and notes what the tuner would have run.
"""
import inspect

from exercises.engine_form import (OPTIONS, Complaint, make_tuner,
                                   parameters_of, with_defaults)
from exercises.engine_run import where

# What can change the winner of a matmul: one launch after the first, alike
# but for this. The memory, and so the strides, stay.
CHANGES = {
    "m": {"m": 48},
    "n": {"n": 48},
    "k": {"k": 48},
    "IEEE": {"ieee": False},
    "stride_bk (or stride_bn)": {"k_major": True},
}


class Recorder:
    """Takes a kernel's place in a tuner and runs nothing."""

    def __init__(self, kernel):
        self.fn = inspect.unwrap(kernel.fn)
        self.arg_names = list(parameters_of(kernel))
        self.launches = 0

    def run(self, *arguments, **settings):
        """Count a launch."""
        self.launches += 1


class Searches:
    """A clock for a tuner that counts its trials and measures nothing."""

    def __init__(self):
        self.trials = 0

    def __call__(self, call, quantiles):
        self.trials += 1
        return [1.0] * 3


def launch_arguments(a, b, out):
    """What a launcher passes to a matmul kernel before the settings."""
    (m, k), n = a.shape, b.shape[1]
    return [a, b, out, m, n, k, *a.stride(), *b.stride(), *out.stride()]


def search_faults(t, taken):
    """What a key lacks, a line each, shown by counting searches."""
    clock = Searches()
    tuner = make_tuner(t, taken.configs, taken.tuner.keys,
                       Recorder(taken.kernel), do_bench=clock)
    memory = t.torch.zeros(2, 64, 64, dtype=t.torch.float32, device="cpu")

    def searched(m=32, n=32, k=32, ieee=True, k_major=False):
        """Whether a launch on new tensors begins a search."""
        a, b = memory.clone()
        if k_major:
            b = b.t()
        out = t.torch.zeros_like(a)[:m, :n]
        before = clock.trials
        tuner.run(*launch_arguments(a[:m, :k], b[:k, :n], out), grid=(1,),
                  warmup=False, IEEE=ieee)
        return clock.trials > before

    name = taken.entry.name
    if not searched():
        return [f"{name}: the first launch began no search"]
    a_search = clock.trials
    if searched():
        return [f"{name}: a second launch, alike but for the addresses of its "
                "tensors, searched again: take the tensors out of the key"]
    missing = [change for change, what in CHANGES.items()
               if not searched(**what)]
    print(f"key {list(taken.tuner.keys)}: {a_search} configs a search; one "
          f"change of each of {len(CHANGES)} kinds began "
          f"{len(CHANGES) - len(missing)} searches")
    faults = [f"{name}: {change} changed, nothing else, and the launch began "
              "no search: the config chosen for one value runs the other. Add "
              f"{change} to the key" for change in missing]
    known, words = taken.entry.known_key or ([], "")
    if faults and list(taken.tuner.keys) == list(known):
        faults.append(words)
    return faults


class Pruning:
    """A submission's pruning functions, asked on copies of its configs."""

    def __init__(self, t, taken):
        self.t, self.taken = t, taken
        self.early = taken.tuner.early_config_prune
        self.names = list(parameters_of(taken.kernel))
        self.note = None

    def early_config_prune(self, configs, named, **settings):
        """What theirs keeps of our configs, for a tuner of our own."""
        return [configs[number] for number in self.keeps(named, settings)]

    def keeps(self, named, settings):
        """The numbers of the configs that theirs keeps."""
        everything = list(range(len(self.taken.configs)))
        sizes = ", ".join(f"{name}={named[name]}" for name in "mnk"
                          if name in named)
        say = f"{self.taken.entry.name}: early_config_prune at {sizes}"
        try:
            kept = list(self.early(self.copies(), named, **settings))
        except Exception as error:
            if lacks_gpu(self.t, error):
                self.note = (f"note   {say} needs a GPU ({error}), so every "
                             "config is judged")
                return everything
            raise Complaint(f"{say} raised {type(error).__name__}: {error}"
                            + where(error)) from error
        plain = [settings_of(config) for config in self.copies()]
        numbers = []
        for config in kept:
            settings = settings_of(config)
            if settings not in plain:
                raise Complaint(f"{say} returned a config that is on no list: "
                                f"{config}. It has to return some of those "
                                "that it is given, as they are")
            numbers.append(plain.index(settings))
        if not numbers:
            raise Complaint(f"{say} left no config over; it has to leave one")
        return numbers

    def copies(self):
        """Fresh copies of the configs as triton.Config."""
        return make_tuner(self.t, self.taken.configs, [],
                          self.taken.kernel).configs

    def at(self, a, b, out, ieee):
        """The numbers of the configs that would run on these matrices."""
        if self.early is None:
            return list(range(len(self.taken.configs)))
        named = dict(zip(self.names, launch_arguments(a, b, out)))
        return self.keeps(named, {"grid": (1,), "warmup": False,
                                  "IEEE": ieee})

    def kept(self, sizes, layouts, ieee):
        """The same for matrices of these sizes, which are only pretended."""
        if self.early is None:
            return list(range(len(self.taken.configs)))
        m, n, k = sizes
        shapes = [(m, k), (k, n), (m, n)]
        matrices = [pretended(self.t, shape, layout)
                    for shape, layout in zip(shapes, layouts, strict=True)]
        return self.at(*matrices, ieee)

    def arguments(self):
        """What a tuner of our own takes for prune_configs_by, or None."""
        tuner, prune = self.taken.tuner, {}
        if self.early is not None:
            prune["early_config_prune"] = self.early_config_prune
        if tuner.perf_model is not None:
            prune["perf_model"] = tuner.perf_model
            prune["top_k"] = tuner.configs_top_k
        return prune or None


def settings_of(config):
    """What a triton.Config, or what was returned as one, would launch."""
    kwargs = getattr(config, "kwargs", None)
    if not isinstance(kwargs, dict):
        return None
    hooks = (getattr(config, "pre_hook", None),
             getattr(config, "ir_override", None))
    return dict(kwargs), hooks, [getattr(config, name, None)
                                 for name in OPTIONS]


def pretended(t, shape, layout):
    """A matrix of that shape and layout that takes up no memory."""
    rows, cols = shape
    strides = (cols + 16, 1)
    if layout == "column-major":
        strides = (1, rows + 16)
    elif layout == "steps":
        strides = (2 * (3 * cols + 17), 3)
    elif layout == "steps by columns":
        strides = (3, 2 * (3 * rows + 17))
    return Pretended(t.torch.zeros(1, dtype=t.torch.float32, device="cpu"),
                     shape, strides)


class Pretended:
    """A float32 matrix of any size, as far as a pruning function looks."""

    def __init__(self, number, shape, strides):
        self.number, self.shape, self.strides = number, shape, strides

    def __getattr__(self, name):
        return getattr(self.number, name)

    def stride(self, axis=None):
        """Its strides, or one of them."""
        return self.strides if axis is None else self.strides[axis]

    def size(self, axis=None):
        """Its sizes, or one of them."""
        return self.shape if axis is None else self.shape[axis]

    def numel(self):
        """How many elements it has."""
        return self.shape[0] * self.shape[1]


def lacks_gpu(t, error):
    """Whether an error says no more than that there is no GPU here."""
    if t.torch.cuda.is_available() and not t.INTERPRET:
        return False
    words = ("cuda", "driver", "nvidia", "gpu")
    return isinstance(error, (RuntimeError, AssertionError)) and any(
        word in str(error).lower() for word in words)


def pruning_faults(t, taken):
    """What pruning does at sizes of all kinds that it must not, a line each."""
    pruning = Pruning(t, taken)
    sizes = [(t.SIZE,) * 3, (1, 1, 1), (64, 64, 64), (197, 70, 45),
             (2 * t.SIZE, 64, 333), (5, 6, 0), (96, 4096, 1)]
    if pruning.early is not None:
        for config in taken.configs:
            blocks = t.block_shape(with_defaults(config, taken.kernel))
            sizes.append(tuple(2 * block for block in blocks))
    kept = set()
    try:
        for side in sizes:
            for layout in ("row-major", "column-major"):
                for ieee in (True, False):
                    kept.update(pruning.kept(
                        side, ("row-major", layout, "row-major"), ieee))
    except Complaint as complaint:
        return complaint.lines
    faults = model_faults(t, taken, pruning, sizes)
    if faults:
        return faults
    if pruning.note:
        print(pruning.note)
    for number in range(len(taken.configs)):
        if number not in kept:
            print(f"config {number + 1} is pruned at every size that the judge "
                  "tries: it is not judged, and does not count")
            taken.pruned.add(number)
    return []


def model_faults(t, taken, pruning, sizes):
    """What is wrong with a model of the time that Triton's tuner would ask."""
    if taken.tuner.perf_model is None:
        return []
    tuner = make_tuner(t, taken.configs, [], taken.kernel, pruning.arguments())
    for m, n, k in sizes:
        shapes = [(m, k), (k, n), (m, n)]
        matrices = [pretended(t, shape, "row-major") for shape in shapes]
        tuner.nargs = dict(zip(pruning.names, launch_arguments(*matrices)))
        say = f"{taken.entry.name}: perf_model at m={m}, n={n}, k={k}"
        try:
            kept = tuner.prune_configs({"IEEE": True})
        except Complaint as complaint:
            return complaint.lines
        except Exception as error:
            if lacks_gpu(t, error):
                return []
            return [f"{say} raised {type(error).__name__}: {error}"]
        if not kept:
            return [f"{say}: top_k leaves no config over"]
    return []


def settings_dict(config):
    """A triton.Config of ours as the dict that it was made from."""
    settings = dict(config.kwargs)
    for name in OPTIONS:
        value = getattr(config, name, None)
        if value is not None and (name, value) != ("num_ctas", 1):
            settings[name] = value
    return settings
