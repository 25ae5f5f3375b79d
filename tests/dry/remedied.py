"""Stands for a program of PyTorch in which remedies are tried: remedied.py MIB

It tells what dry_remedies.py would tell of a program with twelve blocks in a list and AdamW, and allocates MIB, or less
by the remedies.
"""
import ctypes
import json
import os
import sys

PLACE = {"file": os.path.abspath(__file__), "line": 12}
BLOCK = 25  # MiB held by each block of the first six, 10 by the others
HALF = {"autocast": 200, "offload": 290, "chunked_loss": 50, "other_optimizer": 0, "compile": 0}


def tell(what, **facts):
    with open(os.environ["GPUMEM_DRY_REMEDY_TOLD"], "a", encoding="utf-8") as file:
        file.write(json.dumps({"what": what, **facts}) + "\n")


def survey():
    tell("packages", found=[], torch="2.15.0")
    tell("optimizer", kind="AdamW", module="torch.optim.adamw", options={"lr": "0.1"}, has=["foreach", "fused"], place=PLACE)
    tell("model", name="net", path="", kind="Net", bytes=1 << 20, dtypes=["torch.float32"], is_autocast=False,
         has_frozen=False, has_convolutions=False, can_checkpoint=False, place=PLACE)
    tell("blocks", model="net", kind="Block", paths=[f"layers.{i}" for i in range(12)], held=[BLOCK << 20] * 6 + [10 << 20] * 6,
         is_list="layers")
    tell("loss", bytes=100 << 20, shape=[8, 9], place=PLACE)
    tell("step", place=PLACE, peak=7, is_peak_in_step=False, state_dtypes=["torch.float32"], state=80 << 20)


need = int(sys.argv[1])
for one in json.loads(os.environ.get("GPUMEM_DRY_REMEDY", "[]")):
    if one["name"] == "survey":
        survey()
    elif one["name"] == "checkpoint":
        need -= sum(BLOCK if int(path.split(".")[1]) < 6 else 10 for path in one["paths"])
    elif one["name"] == "in_backward":
        raise RuntimeError("no hook for this parameter")
    elif one["name"] == "sharded":
        need -= 100 - 100 // one["count"]
    else:
        need -= HALF.get(one["name"], 0)
cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context))
sys.exit(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(need << 20)))
