"""What an import may leave changed, and how it is put back.

A submission is imported into the process that judges it. What it sets there
for itself, torch's default type for one, must not reach the checks. Hooks
that it sets in Triton are another matter: they are found, and refused.
"""
import builtins
import gc
import os
import signal
import sys
import threading
import warnings

from exercises.engine_form import Complaint

STREAMS = ("stdin", "stdout", "stderr", "excepthook", "displayhook")
# What Triton calls around every launch or compilation, if it is set.
HOOKS = ("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook",
         "kernel_load_end_hook", "jit_cache_hook", "jit_post_compile_hook",
         "add_stages_inspection_hook")


def undefined_without_other(t):
    """Let the interpreter load NaN where a mask leaves a lane out and nothing
    says what it holds.

    It would load 0 there. On a GPU it is whatever the register held.
    """
    from triton.runtime import interpreter
    builder = interpreter.InterpreterBuilder
    load = builder.create_masked_load

    def create_masked_load(self, pointers, mask, other, *rest):
        kind = pointers.get_element_ty()
        dtype = interpreter._get_np_dtype(kind)
        if other is None and t.np.issubdtype(dtype, t.np.floating):
            other = interpreter.TensorHandle(
                t.np.full_like(pointers.data, t.np.nan, dtype=dtype), kind)
        return load(self, pointers, mask, other, *rest)

    builder.create_masked_load = create_masked_load


class Surroundings:
    """The state of this process before a submission is imported."""

    def __init__(self, t):
        self.t = t
        self.environment = dict(os.environ)
        self.folder = os.getcwd()
        self.streams = {name: getattr(sys, name) for name in STREAMS}
        self.path, self.arguments = list(sys.path), list(sys.argv)
        self.builtins = dict(vars(builtins))
        self.recursion = sys.getrecursionlimit()
        self.signals = signal_handlers()
        self.errors = t.np.geterr()
        self.torch = torch_state(t.torch)
        self.methods = {kind: dict(vars(kind)) for kind in triton_types(t)}
        self.knobs = knob_values(t.triton.knobs)
        self.hooks = hook_values(t.triton.knobs)
        self.warnings = warnings.catch_warnings()
        self.warnings.__enter__()

    def put_back(self):
        """Undo what has changed; a Complaint if hooks are among it."""
        vars(builtins).update(self.builtins)
        self.warnings.__exit__(None, None, None)
        for name, value in self.streams.items():
            setattr(sys, name, value)
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        sys.argv[:] = self.arguments
        sys.setrecursionlimit(self.recursion)
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(None)
        threading.setprofile(None)
        gc.enable()
        for number, handler in self.signals.items():
            signal.signal(number, handler)
        signal.alarm(0)
        self.t.np.seterr(**self.errors)
        put_back_torch(self.t.torch, self.torch)
        self.put_back_triton()

    def put_back_triton(self):
        """Undo what has changed in Triton, and complain of hooks."""
        faults = []
        knobs = self.t.triton.knobs
        after = hook_values(knobs)
        for name, value in self.hooks.items():
            if after[name] != value:
                faults.append(f"the file sets Triton's {name}, which would "
                              "run beside your kernel: take it out")
        for group, values in self.knobs.items():
            held = vars(getattr(knobs, group))
            held.clear()
            held.update(values)
        for chain, calls in self.hooks.values():
            if calls is not None:
                chain.calls[:] = calls
        for kind, methods in self.methods.items():
            for name in changed(methods, dict(vars(kind))):
                faults.append(f"the file replaces {name} of Triton's "
                              f"{kind.__name__}: take that out")
                if name in methods:
                    setattr(kind, name, methods[name])
                else:
                    delattr(kind, name)
        forget_rewritten(self.t)
        if faults:
            raise Complaint(*faults)


def signal_handlers():
    """{number: handler} of those signals whose handler Python knows."""
    handlers = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM,
                   signal.SIGSEGV, signal.SIGBUS, signal.SIGPIPE):
        handler = signal.getsignal(number)
        if handler is not None:
            handlers[number] = handler
    return handlers


def torch_state(torch):
    """What of torch a file is likely to set for itself."""
    return {"dtype": torch.get_default_dtype(),
            "threads": torch.get_num_threads(),
            "grad": torch.is_grad_enabled()}


def put_back_torch(torch, state):
    """Set it again."""
    torch.set_default_device(None)
    torch.set_default_dtype(state["dtype"])
    torch.set_num_threads(state["threads"])
    torch.set_grad_enabled(state["grad"])
    if torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(False)
    torch.set_flush_denormal(False)
    if torch.cuda.is_initialized():
        torch.cuda.set_device(0)
        torch.cuda.set_stream(torch.cuda.default_stream())


def triton_types(t):
    """The classes whose methods launch a kernel or a search."""
    triton = t.triton
    types = [triton.runtime.Autotuner, triton.Config, triton.JITFunction,
             triton.compiler.CompiledKernel, type(t.matmul_kernel)]
    found = []
    for kind in types:
        for base in kind.__mro__:
            if base.__module__.startswith("triton") and base not in found:
                found.append(base)
    return found


def knob_values(knobs):
    """{group: what is set in it} of Triton's knobs."""
    return {name: dict(vars(group)) for name, group in vars(knobs).items()
            if isinstance(group, knobs.base_knobs)}


def hook_values(knobs):
    """{name: (hook, its calls or None)} of Triton's hooks."""
    found = {}
    for name in HOOKS:
        hook = getattr(knobs.runtime, name, None)
        calls = getattr(hook, "calls", None)
        found[name] = hook, None if calls is None else list(calls)
    listener = getattr(knobs.compilation, "listener", None)
    found["compilation listener"] = listener, None
    return found


def changed(before, after):
    """Names that do not stand for the same thing any more."""
    return [name for name in {**before, **after}
            if before.get(name) is not after.get(name)]


def forget_rewritten(t):
    """Drop what the interpreter has made of functions, or was made to keep."""
    kept = getattr(type(t.matmul_kernel), "rewritten_fn", None)
    if kept is not None:
        kept.clear()
