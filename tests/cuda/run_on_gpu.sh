#!/usr/bin/env bash
# Builds and runs all tests and benchmarks for CUDA on a machine with a GPU, and prints a summary, in
# under 8 minutes: what would take longer is stopped, and said to have failed.
#
#   tests/cuda/run_on_gpu.sh [<folder with GoogleTest's sources>]
#
# Needs nvcc, CMake 3.25, Ninja, a C++ compiler and a python3 with its headers and a PyTorch for the
# same CUDA, 2.11 or newer; no network and no MindSpore. GoogleTest's sources are looked for where
# Debian's package googletest has them, in .googletest of this project (which git ignores: it has to
# be copied along), and in the folder given.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

googletest=
for folder in "${1:-}" .googletest /usr/src/googletest; do
  if [ -n "$folder" ] && [ -f "$folder/CMakeLists.txt" ]; then
    googletest=$(cd "$folder" && pwd)
    break
  fi
done
if [ -z "$googletest" ]; then
  echo "There are no sources of GoogleTest: name their folder (Debian: apt install googletest)."
  exit 1
fi
gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader) ||
  { echo "There is no GPU: nvidia-smi failed."; exit 1; }
architecture=$(head -n 1 <<< "${gpu##*, }" | tr -d '. ')
limited() {  # runs the command in what is left of the time, or in 3 minutes
  local left=$((460 - SECONDS))
  [ "$left" -gt 0 ] || return 124
  timeout -k 5 "$((left < 180 ? left : 180))" "$@"
}
build=build/gpu
mkdir -p $build
log=$build/log.txt

limited cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DATEN_BRIDGE_BUILD_EXAMPLES=ON \
  -DATEN_BRIDGE_BUILD_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES="$architecture" \
  -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST="$googletest" \
  -DPython3_EXECUTABLE="$(command -v python3)" > $log 2>&1 &&
  limited cmake --build $build --target cuda_tests >> $log 2>&1
built=$?
if [ $built -ne 0 ]; then
  grep -nE "error|FAILED|Error" $log | head -n 40
  tail -n 25 $log
  echo "The build failed; its log is $log."
  exit 1
fi

export ATEN_BRIDGE_REQUIRE_GPU=1  # nothing is skipped for the want of one
export CUDA_DEVICE_MAX_CONNECTIONS=32  # streams do not share a queue
failed=0
fail() {
  failed=1
  case $1 in
    124 | 137) echo "FAILED: stopped, since its 3 minutes are over, or the 8 of the script" ;;
    *) echo "FAILED ($1)" ;;
  esac
}
step() {
  echo "=== $1"
  shift
  limited "$@" || fail $?
}
step "tests" $build/tests/cuda/cuda_test
seed=$((RANDOM + 1))
step "tests, in the order of seed $seed" \
  $build/tests/cuda/cuda_test --gtest_brief=1 --gtest_shuffle --gtest_random_seed=$seed
step "PyTorch and JAX" env PYTHONPATH=python python3 tests/cuda/gpu_hosts.py \
  $build/tests/cuda/test_cuda_typed.so
step "benchmarks" $build/tests/cuda/cuda_benchmark
if command -v compute-sanitizer > /dev/null; then
  # Its own findings count, and not the tests', some of which notice how slow it is. Left out are
  # those that provoke errors, and cuDNN, over which it takes minutes.
  echo "=== tests under compute-sanitizer"
  left_out='*BesideABuffer*:*ThatFails*:*Waits*:*NotJoin*:*MissingOrdering*:*Convolutions*'
  without_caching='*Capture*:*State*'  # PyTorch's memory, whose ends the sanitizer sees then
  PYTORCH_NO_CUDA_MEMORY_CACHING=1 limited compute-sanitizer --report-api-errors no \
    $build/tests/cuda/cuda_test --gtest_brief=1 --gtest_filter="-$left_out:$without_caching" \
    > $build/sanitizer.txt 2>&1
  ended=$?
  grep '=========' $build/sanitizer.txt | tail -n 60
  # Without the last line of the tests they crashed.
  if ! grep -q "ERROR SUMMARY: 0 errors" $build/sanitizer.txt ||
    ! grep -q "tests from .* ran" $build/sanitizer.txt; then
    tail -n 20 $build/sanitizer.txt
    fail "$ended"
  fi
fi

echo "=== summary"
echo "GPU: $gpu"
python3 -c 'import torch; print("PyTorch:", torch.__version__)'
nvcc --version | grep release
[ $failed -eq 0 ] && echo "All passed." || echo "Something failed."
exit $failed
