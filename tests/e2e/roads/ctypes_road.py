"""Both layers by ctypes: CDLL opens the library and getattr is a dlsym."""
import ctypes
import inspect
import sys

runtime = ctypes.CDLL("libcudart.so.13")
driver = ctypes.CDLL("libcuda.so.1")
size_t, pointer = ctypes.c_size_t, ctypes.c_void_p


def log(name, result):
    print(result, name, flush=True)


def planted(size):
    caller = inspect.currentframe().f_back
    print(f"LEAK function={caller.f_code.co_name} line={caller.f_lineno - 1} bytes={size} count=1", flush=True)


def by_runtime():
    address = pointer()
    for size in (1000, 20000, 300000):
        log("cudaMalloc", runtime.cudaMalloc(ctypes.byref(address), size_t(size)))
        log("cudaFree", runtime.cudaFree(address))
    log("cudaMallocHost", runtime.cudaMallocHost(ctypes.byref(address), size_t(8192)))
    log("cudaFreeHost", runtime.cudaFreeHost(address))


def by_driver():
    address = ctypes.c_uint64()
    for size in (4000, 50000):
        log("cuMemAlloc", driver.cuMemAlloc_v2(ctypes.byref(address), size_t(size)))
        log("cuMemFree", driver.cuMemFree_v2(address))


def forget_by_runtime():
    address = pointer()
    result = runtime.cudaMalloc(ctypes.byref(address), size_t(77777))
    planted(77777)
    log("cudaMalloc", result)


def forget_by_driver():
    address = ctypes.c_uint64()
    result = driver.cuMemAlloc_v2(ctypes.byref(address), size_t(88888))
    planted(88888)
    log("cuMemAlloc", result)


def probe_absent():
    """Names that only the preload could answer."""
    program = ctypes.CDLL(None)
    print([hasattr(program, name) for name in ("cudaMalloc", "cuMemAlloc_v2", "cuGetProcAddress_v2", "malloc")])
    print([hasattr(driver, name) for name in ("cuMemAlloc_v9", "cudnnCreate")])


probe_absent()
by_runtime()
by_driver()
forget_by_runtime()
forget_by_driver()
sys.exit(0)
