"""Which multiplier does it use? Read from Triton's IR, without a GPU.

Triton's first representation of a kernel (TTIR) says of every dot which types
it multiplies and at which precision. It is made in a tenth of a second and
before anything is optimised, so every config can be read at every layout.
"""
import inspect
import re

from exercises.engine_form import (BLOCKS, OPTIONS, config_text, is_block,
                                   is_constexpr, parameters_of,
                                   with_defaults)

FIRST = ("row-major",)  # read before all others, for the count of programs
# Where no stride is 1, a branch on one is compiled with both of its sides. A
# size of 1 is compiled in.
OTHERS = {"no stride of 1": {}}
SINGLE = {"m = 1": {"m": 1}, "n = 1": {"n": 1}, "k = 1": {"k": 1}}
TURNED = {"column-major A": {"stride_am": 1, "stride_bn": 1, "stride_cn": 1},
          "column-major C": {"stride_ak": 1, "stride_bn": 1, "stride_cm": 1}}
CARDS = (80, 90, 100, 120)
# Bytes of shared memory that a program can have, by capability: the most on
# any card, and on those of 8.0, whose code needs less.
SHARED = {90: 227 * 1024, 80: 163 * 1024}


class Compiler:
    """Makes the IR of a submission's kernel for one capability."""

    def __init__(self, t, taken, capability):
        self.t, self.taken, self.capability = t, taken, capability

    def modules(self, settings, last, capability=None):
        """What stands after each step up to `last`: text by name.

        "raw" is what the kernel's source says; "ttir" the same without what
        does nothing; "ttgir" has layouts and the pipeline; after "llir" it is
        known how much shared memory it takes.
        """
        t, triton = self.t, self.t.triton
        from triton._C.libtriton import ir
        kernel = self.taken.kernel
        settings = {**pretended(t, kernel), **settings}
        signature, constants, divisible = t.compile_arguments(kernel, settings)
        options = {name: settings[name] for name in OPTIONS
                   if name in settings}
        source = triton.compiler.ASTSource(kernel, signature, constants,
                                           divisible)
        target = triton.backends.compiler.GPUTarget(
            "cuda", capability or self.capability, 32)
        backend = triton.compiler.make_backend(target)
        options = backend.parse_options(options)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        module = source.make_ir(
            target, options, backend.get_codegen_implementation(options),
            backend.get_module_map(), context)
        made, metadata = {"raw": str(module)}, {}
        stages = {}
        backend.add_stages(stages, options, source.language)
        for name, stage in stages.items():
            if last == "raw":
                break
            module = stage(module, metadata)
            made[name] = str(module)
            if name == last:
                break
        made["shared"] = metadata.get("shared")
        return made


def pretended(t, kernel):
    """Values for parameters that no launcher of the lesson knows of, and for
    sizes and strides that a kernel wants compiled in."""
    values = {}
    for name, parameter in parameters_of(kernel).items():
        if parameter.default is not parameter.empty:
            values[name] = parameter.default
        elif is_constexpr(parameter) and not name.isupper():
            values[name] = t.SIZE
    return values


NO_DOT = "has no tl.dot"


def wrong_dots(ttir, precision):
    """What in a TTIR multiplies otherwise than precision says, or None."""
    dots = re.findall(r"\btt\.(dot\w*)\b(.*)", ttir)
    if not dots:
        return NO_DOT
    for name, dot in dots:
        types = re.findall(r"tensor<[\dx]+x(\w+)>", dot)
        asked = re.search(r"inputPrecision = (\w+)", dot)
        asked = asked[1] if asked else "ieee"
        if name != "dot":
            return f"has a {name}"
        if set(types) != {"f32"} or asked != precision:
            return (f"has a dot of {types[0]} and {types[1]} in {asked}; "
                    f"wanted is f32 and f32 in {precision}")
    return None


class Multipliers:
    """The reading of all configs of an entry."""

    def __init__(self, t, taken, capability):
        self.t, self.taken = t, taken
        self.compiler = Compiler(t, taken, capability)
        self.faults = []
        # {number of a config: {precision: why it cannot be compiled}}
        self.skipped = {}
        # {number of a config: its text in both precisions}, and what its
        # num_stages makes of that.
        self.texts, self.pipelines = {}, {}

    def read(self, layouts):
        """Read every config at layouts, {name: strides and sizes that are 1
        there}; the faults, a line each."""
        for number in range(len(self.taken.configs)):
            for precision in self.t.PRECISIONS:
                for layout, ones in layouts.items():
                    self.read_one(number, precision, layout, ones,
                                  self.compiler.capability)
        return self.faults

    def read_all(self):
        """Read what `read` has left out: all configs with the other layouts,
        and the smallest also with sizes of 1 and for other cards."""
        self.read({name: ones for name, ones in OTHERS.items()
                   if name not in FIRST} | {
                   name: ones for name, ones in self.t.UNIT_STRIDES.items()
                   if name not in FIRST})
        smallest = smallest_config(self.taken)
        for precision in self.t.PRECISIONS:
            for name, ones in (SINGLE | TURNED).items():
                self.read_one(smallest, precision, name, ones,
                              self.compiler.capability)
            for card in CARDS:
                for name in FIRST:
                    self.read_one(smallest, precision, name,
                                  self.t.UNIT_STRIDES[name], card)
        return self.faults

    def read_one(self, number, precision, layout, ones, card):
        """Read one config at one precision and layout for one card."""
        if precision in self.skipped.get(number, {}) or self.faults:
            return
        made = self.make(number, precision, layout, ones, card)
        if made is None:
            return
        problem = wrong_dots(made["raw"], precision)
        if layout in SINGLE and problem == NO_DOT:
            return  # an outer product, say, where k is 1
        if problem:
            self.faults.append(
                f"{precision} {config_text(self.taken.configs[number])}, "
                f"{layout}, for sm_{card}: {problem}")
        if layout in FIRST and card == self.compiler.capability:
            self.texts.setdefault(number, {})[precision] = plain(made["ttir"])

    def make(self, number, precision, layout, ones, card):
        """What a config is made into, or None where it cannot be.

        A static_assert may rule a config out, and sizes; but a config that
        compiles at one layout has to compile at all of them.
        """
        config = self.taken.configs[number]
        try:
            return self.compiler.modules(
                {**config, "IEEE": precision == "ieee", **ones}, "ttir", card)
        except self.t.triton.compiler.errors.CompileTimeAssertionFailure as no:
            reason = f"a static_assert fails: {last_line(no, self.taken.kernel)}"
            if layout in FIRST:
                self.skipped.setdefault(number, {})[precision] = reason
            elif layout not in SINGLE:
                self.faults.append(f"{precision} {config_text(config)}, "
                                   f"{layout}: {reason}")
        except Exception as error:
            self.faults.append(
                f"{precision} {config_text(config)}, {layout}, does not "
                f"compile: {last_line(error, self.taken.kernel)}")
        return None

    def compiled_in(self, precision):
        """How many configs compile at a precision."""
        return sum(precision not in self.skipped.get(number, {})
                   for number in range(len(self.taken.configs)))

    def different(self, given, needed):
        """How many of these configs may make different programs that fit some
        card. Prints why one does not, and stops where too few are left."""
        kept, left = {}, len(given)
        for number in given:
            if left < needed:
                break
            why = self.not_counted(number, kept)
            if why is None:
                kept[number] = self.texts[number]
            else:
                print(f"config {number + 1} ("
                      f"{config_text(self.taken.configs[number])}) {why}, and "
                      "does not count")
                left -= 1
        return left

    def not_counted(self, number, kept):
        """Why a config does not count, or None."""
        texts = self.texts.get(number)
        if not texts:
            return "does not compile"
        twin = self.twin(number, kept)
        if twin is not None:
            same = f"makes the same program as config {twin + 1}"
            mine, theirs = self.taken.configs[number], self.taken.configs[twin]
            if mine.get("num_stages") != theirs.get("num_stages"):
                same += " (num_stages changes nothing in this kernel's loop)"
            return same
        shared = self.too_large(number, texts)
        if shared:
            return (f"needs {shared} bytes of shared memory, where no card "
                    f"that Triton supports has over {SHARED[90]}")
        return None

    def twin(self, number, kept):
        """The number of an earlier config that makes the same program."""
        mine = self.taken.configs[number]
        for other, texts in kept.items():
            theirs = self.taken.configs[other]
            alike = all(mine.get(name) == theirs.get(name) for name in
                        ("num_warps", "num_ctas", "maxnreg"))
            if not alike or texts != self.texts[number]:
                continue
            if mine.get("num_stages") == theirs.get("num_stages"):
                return other
            if self.pipeline(number) == self.pipeline(other):
                return other
        return None

    def pipeline(self, number):
        """What num_stages made of a config, as text."""
        if number not in self.pipelines:
            made = []
            for precision in self.texts[number]:
                settings = self.settings(number, precision)
                made.append(plain(self.compiler.modules(settings, "ttgir")
                                  ["ttgir"]))
            self.pipelines[number] = made
        return self.pipelines[number]

    def settings(self, number, precision):
        """The settings of a config with both matrices row-major."""
        return {**self.taken.configs[number], "IEEE": precision == "ieee",
                **self.t.UNIT_STRIDES["row-major"]}

    def too_large(self, number, texts):
        """The bytes of shared memory, if no supported card has them."""
        config = with_defaults(self.taken.configs[number], self.taken.kernel)
        block_m, block_n, block_k = self.t.block_shape(config)
        likely = 4 * config.get("num_stages", 3) * block_k * (block_m
                                                              + block_n)
        if likely <= SHARED[80]:
            return None
        precision = "tf32" if "tf32" in texts else "ieee"
        for card, available in SHARED.items():
            made = self.compiler.modules(self.settings(number, precision),
                                         "llir", card)
            if made["shared"] <= available:
                return None
            if made["shared"] > 2 * SHARED[80]:
                break  # which is too much, also with a stage less
        return made["shared"]


def smallest_config(taken, without=()):
    """The number of the config with the least work, or None."""
    found, least = None, None
    for number, config in enumerate(taken.configs):
        work = 1
        for name in BLOCKS:
            size = with_defaults(config, taken.kernel).get(name)
            if is_block(size):
                work *= size
        if number not in without and (least is None or work < least):
            found, least = number, work
    return found


def plain(text):
    """A text without the places in the source, and names counted through.

    A helper's name holds the values of its constexprs, also of those that do
    nothing.
    """
    text = re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", text)
    text = re.sub(r"^#loc.*\n", "", text, flags=re.MULTILINE)
    numbers = {}

    def counted(found):
        """The number that stands for a name."""
        return f"@{numbers.setdefault(found[0], len(numbers))}"

    return re.sub(r"@[\w.$]+", counted, text)


def last_line(error, kernel):
    """The end of a compiler's message, with the line of source above it and,
    where it is the kernel's own, the line's number in the file."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    shown = " | ".join(line for line in lines[-3:] if set(line) != {"^"})
    node = getattr(error, "node", None)
    if node is not None and getattr(error, "src", None) == kernel.src:
        above, first = inspect.getsourcelines(inspect.unwrap(kernel.fn))
        while not above[0].startswith("def "):
            above, first = above[1:], first + 1
        shown = f"line {first + node.lineno - 1}: {shown}"
    return f"{type(error).__name__}: {shown}"[:400]


def compile_faults(t, taken, capability):
    """What of a softmax does not compile, a line each: with the settings that
    it is tried with, and with those that its file chooses.

    The interpreter runs Python, and takes much that the compiler refuses.
    """
    compiler, faults = Compiler(t, taken, capability), {}
    widths = {"row_stride": 1, "n_rows": 1, "n_cols": 1}
    names = parameters_of(taken.kernel)
    for rows, cols in ((33, 17), (33, 1000), (1, 1)):
        for config in taken.configs or [{}]:
            if taken.choose is not None and not config:
                config = taken.choose(rows, cols)
            settings = {"num_warps": 4, **config}
            if "BLOCK_COLS" in names:
                settings["BLOCK_COLS"] = t.triton.next_power_of_2(cols)
            ones = {}
            if cols == 1:
                ones = {name: one for name, one in widths.items()
                        if name in names}
            try:
                compiler.modules({**settings, **ones}, "ttir")
            except Exception as error:
                told = last_line(error, taken.kernel)
                # The reason differs from size to size, and the place does not.
                place = told.split(" | ")[0]
                faults.setdefault(place, f"for rows of {cols} with "
                                  f"{config_text(settings)} it does not "
                                  f"compile: {told}")
    return list(faults.values())


def emitted_faults(t, taken, capability, skipped):
    """Print what each multiplier of the smallest config is compiled to."""
    faults = []
    for precision in t.PRECISIONS:
        without = [number for number, reasons in skipped.items()
                   if precision in reasons]
        number = smallest_config(taken, without)
        if number is None:
            continue
        config = taken.configs[number]
        settings = {**pretended(t, taken.kernel), **config,
                    "IEEE": precision == "ieee",
                    **t.UNIT_STRIDES["row-major"]}
        made, = t.compiled(taken.kernel, capability, [settings])
        found = sorted(set(re.findall(t.COUNTED["tensor"], made["ptx"])))
        print(f"{precision} {config_text(config)} for sm_{capability}: "
              f"{', '.join(found) or 'no tensor-core instruction'}")
        problem = t.wrong_multiplier(made, precision)
        if problem:
            faults.append(f"{precision} {config_text(config)} {problem}")
    return faults
