#!/usr/bin/env bash
# What needs a GPU of 8.0 or newer, for an archive:
#     python3 transcripts/archive.py run tests/gpu.sh [WHAT...]
# WHAT: "tests", those marked gpu; "sanitizers", the checks of the lesson and of
# the CUDA kernels, all but 2048 cubed, under compute-sanitizer; "library", those
# of the Gluon kernels, which need capability 9.0, under its memcheck. The first
# two, if none is named.
cd "$(dirname "$0")/.." || exit
what=${*:-tests sanitizers}
python3 -c 'import triton_softmax_matmul as t; t.header()
print(t.torch.cuda.device_count(), "x", t.torch.cuda.get_device_name())'
status=0

# The lesson's checks at sizes that a sanitizer gets through in a minute, with
# fewer rows where there are many; and the same for the CUDA kernels.
lesson='import dataclasses, triton_softmax_matmul as t
small = []
for case in t.softmax_cases() + t.matmul_cases():
    if case.catches == "many rows":
        case = dataclasses.replace(case, sizes=(500, 5))
    if case.sizes != (t.SIZE,) * 3:
        small.append(case)
rows = [case for case in small if len(case.sizes) == 2]
tiles = [case for case in small if len(case.sizes) == 3]
passed = t.softmax_checks("cuda", cases=rows)
passed &= t.matmul_checks("cuda", cases=tiles)
t.leave(0 if passed else 3)'
cuda='import sys; sys.path.insert(0, "experiments"); import in_cuda
in_cuda.t.leave(0 if in_cuda.all_pass("cuda", largest=600) else 3)'
gluon='import sys; sys.path.insert(0, "experiments"); import library_speed
sys.argv[1:] = ["check-small"]
library_speed.t.leave(library_speed.t.reported(library_speed.main))'

sanitize() {  # sanitize NAME PYTHON TOOL...: the last lines under each tool
    local name=$1 program=$2 tool
    shift 2
    for tool; do
        echo "== compute-sanitizer --tool $tool, $name"
        # What the driver refuses is left out: Triton 3.8.0 and newer ask for a
        # mode of shared memory, and go on without.
        [ "$tool" != memcheck ] || tool="memcheck --report-api-errors no"
        compute-sanitizer --tool $tool --error-exitcode 9 python3 -c "$program" |
            tail -n 3
        [ "${PIPESTATUS[0]}" = 0 ] || status=1
    done
}

for part in $what; do
    case $part in
        tests) python3 -m pytest -q -p no:cacheprovider -m gpu -rA tests ||
            status=1 ;;
        sanitizers)
            sanitize "the lesson" "$lesson" memcheck racecheck initcheck
            sanitize "the CUDA kernels" "$cuda" memcheck racecheck ;;
        library) sanitize "the Gluon kernels" "$gluon" memcheck ;;
        *) echo "usage: gpu.sh [tests] [sanitizers] [library], not $part"
            status=2 ;;
    esac
done
echo "exit $status"
exit $status
