#!/usr/bin/env bash
# On a GPU of 8.0 or newer: the tests marked gpu, then the script's checks, all
# but 2048 cubed, under three tools of compute-sanitizer.  What follows the name
# goes to pytest, such as --ignore tests/test_exercise.py, which takes minutes.
#     bash tests/gpu.sh 2>&1 | tee transcripts/gpu-tests-CARD-DATE.txt
cd "$(dirname "$0")/.." || exit
checks='import triton_softmax_matmul as t
t.MATMUL_CASES.remove((t.SIZE,) * 3)
t.leave(int(not t.softmax_checks("cuda") & t.matmul_checks("cuda")))'
python3 -c 'import triton_softmax_matmul as t; t.header()
print(t.torch.cuda.device_count(), "x", t.torch.cuda.get_device_name())'
status=0
python3 -m pytest -q -p no:cacheprovider -m gpu -rA tests "$@" || status=1
# What the driver refuses is left out: Triton 3.8.0 and newer ask for a mode of
# shared memory, and go on without.
for tool in "memcheck --report-api-errors no" racecheck initcheck; do
    echo "== compute-sanitizer --tool $tool"
    compute-sanitizer --tool $tool --error-exitcode 9 python3 -c "$checks" |
        tail -n 3
    [ "${PIPESTATUS[0]}" = 0 ] || status=1
done
echo "exit $status"
exit $status
