"""What the plugin's test runs: each test says in its name how it ends while it is recorded. Ends with _leaves: it fails
for what it left; _takes: for its peak; _fails: for itself; _wrong: for its mark; all others pass."""
import ctypes
import unittest

import pytest

CUDART = ctypes.CDLL("libcudart.so.13")
MIB = 1 << 20
held = []


def take(size):
    pointer = ctypes.c_void_p()
    assert CUDART.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    return pointer


def give(pointer):
    assert CUDART.cudaFree(pointer) == 0


class Tensor:
    """Freed with its object, as tensors are."""

    def __init__(self, size):
        self.pointer = take(size)

    def __del__(self):
        give(self.pointer)


@pytest.fixture(scope="module")
def model():
    tensor = Tensor(8 * MIB)
    yield tensor
    del tensor


@pytest.mark.gpu_limit_peak("2 MiB")
def test_within():
    give(take(MIB))
    give(take(MIB))


@pytest.mark.gpu_limit_peak("2 MiB")
def test_beyond_takes():
    give(take(2 * MIB + 1))


@pytest.mark.gpu_limit_peak(2 * MIB)
def test_just_within():
    give(take(2 * MIB))


@pytest.mark.gpu_limit_peak("1.5MiB")
def test_sum_takes():
    first, second = take(MIB), take(MIB)
    give(first)
    give(second)


@pytest.mark.gpu_limit_peak("1 MiB")
def test_what_was_there_before_is_not_its_own(model):
    give(take(MIB))


@pytest.mark.gpu_limit_peak("8 MiB", total=True)
def test_what_was_there_before_counts_takes(model):
    give(take(MIB))


@pytest.mark.gpu_limit_peak("0 B", device=1)
def test_other_device():
    give(take(MIB))


@pytest.mark.gpu_limit_peak("0 B", device=63)
def test_far_device():
    give(take(MIB))


@pytest.mark.gpu_limit_peak("0 B", device=0)
def test_this_device_takes():
    give(take(MIB))


@pytest.mark.gpu_limit_leaks("0 B")
def test_clean():
    give(take(MIB))


@pytest.mark.gpu_limit_leaks("0 B")
def test_leak_leaves():
    held.append(take(4096))


@pytest.mark.gpu_limit_leaks("4 KiB")
def test_small_leak():
    held.append(take(4096))


@pytest.mark.gpu_limit_leaks()
def test_cycle():
    tensor = Tensor(MIB)
    tensor.itself = tensor


first_time = []


@pytest.mark.gpu_limit_leaks("0 B", warmups=2)
def test_warm_up():
    if len(first_time) < 2:
        first_time.append(take(4096))


cold = []


@pytest.mark.gpu_limit_leaks("0 B", warmups=1)
def test_warm_up_too_short_leaves():
    if len(cold) < 2:
        cold.append(take(4096))


@pytest.mark.gpu_limit_leaks("0 B")
@pytest.mark.gpu_limit_peak("1 KiB")
def test_both_leaves():
    held.append(take(4096))


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.gpu_limit_peak("1 MiB")
def test_parameter(size):
    give(take(size * MIB // 2))


@pytest.mark.gpu_limit_leaks()
def test_own_failure_fails():
    held.append(take(4096))
    raise AssertionError("its own")


@pytest.mark.gpu_limit_leaks()
@pytest.mark.xfail(strict=True)
def test_expected_leak_is_expected():
    held.append(take(4096))


@pytest.mark.gpu_limit_peak("many")
def test_size_wrong():
    pass


@pytest.mark.gpu_limit_peak("1 MiB", device=1000)
def test_device_wrong():
    pass


@pytest.mark.gpu_limit_leaks(warmups=-1)
def test_warmups_wrong():
    pass


@pytest.mark.gpu_limit_peak()
def test_nothing_wrong():
    pass


class OfUnittest(unittest.TestCase):
    @pytest.mark.gpu_limit_leaks("0 B")
    def test_method_leaves(self):
        held.append(take(4096))

    @pytest.mark.gpu_limit_leaks("0 B")
    def test_method(self):
        give(take(4096))


def test_without_a_mark():
    held.append(take(2048))
