#!/usr/bin/env bash
# The other supported versions, each laid over the torch that is installed:
#     tests/versions.sh               PYTHON names another interpreter
# Needs some 2 GB in the temporary directory while it runs.  A warning on stderr
# from Triton or pip is shown only where a step fails.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TRITON_CACHE_DIR="$dir/cache" OMP_NUM_THREADS=1

# step NAME COMMAND...: one line; all that the command wrote, where it fails.
step() {
    local name=$1
    shift
    if "$@" >"$dir/stdout" 2>"$dir/stderr"; then
        echo "ok    $name: $(tail -n 1 "$dir/stdout")"
    else
        echo "FAIL  $name: exit status $?"
        cat "$dir/stdout" "$dir/stderr"
        exit 1
    fi
}

# ends STATUS WORDS PYTHON...: the script interpreted; its status, its last line
# and its words, and nothing on stdout that is a warning.
ends() {
    local status=$1 words=$2 got=0
    shift 2
    TRITON_INTERPRET=1 "$@" triton_softmax_matmul.py || got=$?
    [ "$got" = "$status" ] && grep -qF -- "$words" "$dir/stdout" &&
        [ "$(tail -n 1 "$dir/stdout")" = "exit $status" ] &&
        ! grep -q Warning "$dir/stdout"
}

install() {
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
        --target "$@"
}

for triton in 3.6.0 3.8.0 3.9.0; do
    over="$dir/$triton"
    step "Triton $triton, installed" install "$over" "triton==$triton"
    # The numpy of the environment, or the hole that README tells of.
    if [ "$triton" = 3.6.0 ] && "$python" -c 'import numpy as np, sys
sys.exit(np.lib.NumpyVersion(np.__version__) < "2.4.0")'; then
        step "Triton $triton, numpy 2.4 or newer" \
            ends 2 "Triton 3.6.0 cannot interpret with numpy" \
            env PYTHONPATH="$over" "$python"
    fi
    if [ "$triton" = 3.6.0 ]; then
        step "numpy 2.0.2, installed" install "$dir/numpy" numpy==2.0.2
        over="$over:$dir/numpy"
    fi
    step "Triton $triton, interpreted" ends 0 "Triton $triton, " \
        env PYTHONPATH="$over" "$python"
    step "Triton $triton, compiled" env PYTHONPATH="$over" "$python" -m pytest \
        -q -p no:cacheprovider -m "slow or not slow" tests/test_compiled.py \
        -k "lesson and (sm_80 or sm_90)"
    rm -rf "${dir:?}/$triton"
done

if python3.13 -c 'import torch' 2>/dev/null; then
    step "Python 3.13, interpreted" ends 0 "Python 3.13" python3.13
else
    echo "skip  Python 3.13: there is none here that can import torch"
fi
