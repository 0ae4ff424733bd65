"""The verdicts of the judge's children, put together and printed."""


def entry_verdicts(*parts):
    """{entry: whether right} of several answers; a line each if there are
    several entries."""
    right = {}
    for part in parts:
        for name, passed in part.items():
            right[name] = right.get(name, True) and passed
    return right


def wrong_among(right):
    """The entries that are wrong already, so that nothing more is tried."""
    return [name for name, passed in right.items() if not passed]


def print_verdicts(right):
    """Where there are several entries, a line each."""
    if len(right) < 2:
        return
    print()
    for name, passed in right.items():
        print("pass " if passed else "FAIL ", name)
    print(f"{sum(right.values())} of {len(right)} are right")


def print_faults(faults):
    """Print what multiplies otherwise than asked; {entry: whether right}."""
    right = {}
    for name, lines in faults.items():
        right[name] = not lines
        for line in lines[:4]:
            print(f"FAIL  {name}: {line}")
        if len(lines) > 4:
            print(f"      ... and {len(lines) - 4} more")
        if not lines:
            print(f"pass  {name}: every dot is float32 times float32, at the "
                  "precision that is asked for")
    return right


def print_ran(answers):
    """Print what the kernels that ran on a GPU multiply with, by process;
    {entry: whether right}."""
    faults, counts = {}, {}
    for answer in answers:
        for name, (lines, count) in answer.items():
            faults.setdefault(name, []).extend(lines)
            counts[name] = counts.get(name, 0) + count
    for name, lines in faults.items():
        if counts[name] and not lines:
            print(f"pass  {name}: the same in the {counts[name]} kernels that "
                  "ran")
        for line in lines[:4]:
            print(f"FAIL  {name}, as it ran: {line}")
    return {name: not lines for name, lines in faults.items()}
