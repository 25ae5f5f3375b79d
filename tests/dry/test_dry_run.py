#!/usr/bin/env python3
"""gpumem dry-run on a program in C: test_dry_run.py BUILD FOLDER"""
import ast
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sim/dry"))
import until_ready  # noqa: E402
from json_schema import violations  # noqa: E402

BUILD, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
GPUMEM = BUILD + "/report/gpumem"
PROGRAM = FOLDER + "/dry_program"
CONTEXT = 520 << 20  # of an H100, by its file
with open(os.path.dirname(os.path.abspath(__file__)) + "/../../docs/report.schema.json", encoding="utf-8") as schema:
    SCHEMA = json.load(schema)
scratch = tempfile.mkdtemp(prefix="gpumem-test-dry.")


def run(*options, command, **environment):
    return subprocess.run([GPUMEM, "dry-run", *options, "--", *command], capture_output=True, text=True, timeout=300,
                          cwd=scratch, check=False,
                          env=dict(os.environ, XDG_CACHE_HOME=scratch + "/cache", **environment))


def answer(*options, command, code, **environment):
    """The member dry_run, after the report has been checked for being one document."""
    done = run("--json", *options, command=command, **environment)
    assert done.returncode == code, (done.returncode, done.stdout[-500:], done.stderr)
    document = json.loads(done.stdout)
    wrong = violations(document, SCHEMA, SCHEMA)
    assert not wrong, wrong
    return document["dry_run"], document, done


def parts_of(dry):
    assert dry["peak"] == sum(part["bytes"] for part in dry["parts"]), dry
    assert dry["most"] == sum(part["most"] for part in dry["parts"]), dry
    return {part["name"]: (part["bytes"], part["kind"]) for part in dry["parts"]}


def write_program(name, text):
    """A file in the folder that commands run in; returns its path."""
    path = os.path.join(scratch, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def a_command_without_cuda_fits():
    dry, _, _ = answer(command=[PROGRAM, "nothing"], code=0)
    assert dry["verdict"] == "fits" and dry["peak"] == 0, dry


def a_math_library_is_replaced():
    done = run(command=[PROGRAM, "library"])
    assert done.returncode == 0, done
    assert "version 130702" in done.stdout, done.stdout
    assert [path for path in stand_ins() if path.endswith("/libcublas.so.13")], stand_ins()


def stand_ins():
    """The files that stand in for libraries, and when each was written."""
    return {path: os.stat(path).st_mtime_ns for path in glob.glob(scratch + "/cache/gpumem/dry-run/*/*")}


def a_replaced_library_is_built_once():
    before = stand_ins()
    assert before and run(command=[PROGRAM, "library"]).returncode == 0
    assert before == stand_ins()


def a_runtime_that_a_wheel_brings_is_replaced():
    """Beside the one that the program has, and under its own name, by which another library needs it."""
    for how in ("plugin", "plugin", "title"):
        dry, _, _ = answer(command=[PROGRAM, how, FOLDER + "/lib/dry_plugin.so"], code=0)
        assert parts_of(dry)["other allocations"] == (8 << 20, "exact"), dry


def what_fits_has_parts_that_add_up():
    dry, document, _ = answer(command=[PROGRAM, "keep", str(300 << 20)], code=0)
    assert dry["verdict"] == "fits" and dry["capacity"] == 80994 << 20, dry
    assert parts_of(dry) == {"other allocations": (300 << 20, "exact"),
                             "context and modules": (CONTEXT, "assumed")}, dry
    assert document["simulated"] is True


def the_edge_is_exact():
    room = (2 << 30) - CONTEXT
    dry, _, _ = answer("--memory", "2G", command=[PROGRAM, "keep", str(room)], code=0)
    assert dry["verdict"] == "fits" and dry["peak"] == dry["capacity"] == 2 << 30, dry
    dry, _, _ = answer("--memory", "2G", command=[PROGRAM, "keep", str(room + 1)], code=1)
    assert dry["verdict"] == "does-not-fit" and dry["command_exit"] == 3, dry
    assert dry["peak"] == (2 << 30) + 1 and dry["failed_at"]["file"].endswith("program.c"), dry


def the_sentence_names_the_line():
    done = run("--memory", "1G", command=[PROGRAM, "keep", str(1 << 30)])
    first = next(line for line in done.stdout.splitlines() if line.startswith("Dry run: "))
    with open(os.path.dirname(os.path.abspath(__file__)) + "/program.c", encoding="utf-8") as file:
        line = next(i for i, text in enumerate(file, 1) if "cudaMalloc(&memory, piece)" in text)
    assert first.startswith("Dry run: does not fit, short by 520 MiB at ") and f" at program.c:{line}:" in first, first


def a_refusal_tells_the_whole_need():
    command = [PROGRAM, "keep", str(3 << 30)]
    for options, whole in (([], True), (["--once"], False), (["--no-whole"], False)):
        dry, _, _ = answer("--memory", "1G", *options, command=command, code=1)
        assert dry["verdict"] == "does-not-fit" and dry["whole_need"] == whole and dry["failed_at"], dry
        assert (dry["peak"] == (3 << 30) + CONTEXT) == whole and dry["peak"] > 1 << 30, dry
        assert ("the refused request" in parts_of(dry)) != whole, dry
        first = run("--memory", "1G", *options, command=command).stdout
        assert (": needs 3.51 GiB of the 1.00 GiB" in first) == whole == (" at least " not in first[first.index("Dry run: "):].splitlines()[0]), first
    dry, _, _ = answer("--memory", "1G", command=[PROGRAM, "keep", str(2 << 40)], code=1)
    assert not dry["whole_need"], dry


def managed_memory_is_no_need():
    dry, _, _ = answer("--memory", "1G", command=[PROGRAM, "managed", str(300 << 20)], code=0)
    assert parts_of(dry)["other allocations"] == (300 << 20, "exact") and dry["managed"] == 600 << 20, dry
    assert dry["verdict"] == "fits" and "Beside that 600 MiB of managed memory" in run(
        "--memory", "1G", command=[PROGRAM, "managed", str(300 << 20)]).stdout
    dry, _, _ = answer("--memory", "1G", command=[PROGRAM, "managed", str(600 << 20)], code=1)
    assert dry["verdict"] == "does-not-fit", dry
    dry, _, _ = answer(command=[PROGRAM, "keep", str(300 << 20)], code=0)
    assert dry["managed"] == 0, dry


def a_program_that_makes_do_with_less_fits():
    dry, _, _ = answer("--memory", "2G", command=[PROGRAM, "less", str(3 << 30)], code=0)
    assert dry["verdict"] == "fits" and parts_of(dry)["other allocations"] == (1536 << 19, "exact"), dry
    for most, refused in (("2G", True), ("4G", False)):
        said = run("--memory", most, command=[PROGRAM, "less", str(3 << 30)]).stdout
        assert ("\n2 requests were refused for lack of memory, " in said) == refused, said


def devices_differ():
    small, _, _ = answer("--device", "rtx4090", command=[PROGRAM, "keep", str(30 << 30)], code=1)
    large, _, _ = answer("--device", "RTX 5090", command=[PROGRAM, "keep", str(30 << 30)], code=0)
    assert (small["verdict"], large["verdict"]) == ("does-not-fit", "fits"), (small, large)
    with open(scratch + "/own.device", "w", encoding="utf-8") as file:
        file.write("name = Mine\ncc = 8.0\nsms = 7\nmemory = 1G\ncontext = 0\n")
    dry, _, done = answer("--device", scratch + "/own.device", command=[PROGRAM, "device", "4096"], code=0)
    assert dry["capacity"] == 1 << 30 and parts_of(dry) == {"other allocations": (4096, "exact")}, dry
    assert "Mine (gpumem simulated) 8.0 7 1073741824\n" in done.stderr, done.stderr
    done = run("--device", "l4", "--devices", "3", command=[PROGRAM, "device", "4096"])
    assert "NVIDIA L4 (gpumem simulated) 8.9 58 23685234688\n" in done.stdout, done.stdout
    assert "devices 3\n" in done.stdout, done.stdout


def only_unknown_values_are_uncertain():
    dry, _, _ = answer(command=[PROGRAM, "known"], code=0)
    assert dry["uncertain"] == [], dry
    dry, _, _ = answer(command=[PROGRAM, "unknown"], code=0)
    assert len(dry["uncertain"]) == 1 and dry["uncertain"][0]["count"] == 2, dry
    assert dry["uncertain"][0]["file"].endswith("program.c") and dry["uncertain"][0]["line"] > 0, dry


READS = """
import ctypes
cuda, context, memory, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_uint64()

def start():
    assert not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or
                cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(memory), 64))

def copy_args_to_cpu_if_needed():
    def maybe_copy():
        assert not cuda.cuMemcpyDtoH_v2(ctypes.byref(value), memory, ctypes.c_size_t(8))
    maybe_copy()
"""


def what_an_autotuner_sets_aside_is_no_value():
    """A copy to the host by Inductor's function of that name, in its file, and one by another's."""
    for folder, lines in (("torch/_inductor/runtime", []), ("mine", [11])):
        path = f"{scratch}/{folder}/triton_heuristics.py"
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(READS)
        program = f"import runpy; of = runpy.run_path({path!r}); of['start'](); of['copy_args_to_cpu_if_needed']()"
        dry, _, _ = answer(command=[sys.executable, "-c", program], code=0)
        assert [line["line"] for line in dry["uncertain"]] == lines, dry


PRINTED = """
print(v())
logger.info("%s", v())
a = v(); print(a)
total += v()
print(total / 3)
for step in range(3):
    bar.set_postfix(loss=v())
losses.append(v())
print(sum(losses))
n = round(v().item(), 3); print(n)
p = math.exp(v().item()); q = float(p); print(q)
"""
USED = """
if v(): pass
b = v()
x = b
if x > 1: pass
self.c = v()
zeros(v())
d = v(); zeros(d)
i = v().item(); j = zeros(int(i), 256); print(j)
k = zeros(v().item()); print(k)
m = zeros(int(v())); print(m)
o = v().item(); q = z.repeat(size=(o, 2)); print(q)
kept.append(v())
zeros(len(kept))
while e: print(e)
e = v()
def f(): return v()
g = v()
def h():
    if g: print(1)
"""


def printed_values_are_found_in_the_source():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sim/dry/python"))
    import dry_printed
    for source, expected in ((PRINTED, True), (USED, False)):
        tree = ast.parse(source)
        for line, text in enumerate(source.splitlines(), 1):
            if "v()" in text:
                found = dry_printed.is_printed(*dry_printed.statement_at(tree, line), set())
                assert found == expected, text


def a_runtime_of_nvidia_is_refused_by_name():
    dry, _, _ = answer(command=[PROGRAM, "table"], code=125)
    assert dry["verdict"] == "undecided" and PROGRAM in dry["reason"] and "runtime" in dry["reason"], dry


def a_compiler_of_nvidia_may_ask_for_tables():
    compiler = os.path.join(scratch, "libnvrtc.so.13")
    shutil.copy(PROGRAM, compiler)
    dry, _, _ = answer(command=[compiler, "table"], code=0)
    assert dry["verdict"] == "fits" and not dry["reason"], dry


def a_library_without_a_stand_in_is_refused_by_name():
    folder = os.path.join(scratch, "empty")
    os.mkdir(folder)
    # No compiler, and nothing in the cache.
    done = subprocess.run([GPUMEM, "dry-run", "--json", "--", PROGRAM, "library"], capture_output=True, text=True,
                          timeout=300, check=False, cwd=scratch,
                          env=dict(os.environ, CC="/nonexistent", XDG_CACHE_HOME=folder))
    dry = json.loads(done.stdout)["dry_run"]
    assert done.returncode == 125 and dry["verdict"] == "undecided", (done, dry)
    assert "libcublas.so.13" in dry["reason"] and "compiler" in dry["reason"], dry


def a_program_ends_after_so_many_steps():
    replica = os.path.dirname(os.path.abspath(__file__)) + "/torch_replica"
    write_program("sitecustomize.py", "print('hidden')\n")
    for how, count in (("step", 4), ("read", 4), ("both", 4), ("cpu", 20), ("compile", 20)):
        dry, _, done = answer("--max-steps", "4", command=[sys.executable, replica + "/loop.py", how], code=0,
                              PYTHONPATH=f"{scratch}:{replica}")
        assert done.stderr.splitlines() == ["hidden", f"count {count}"], done.stderr
        assert dry["verdict"] == "fits" and dry["ended_after_steps"] == (4 if count == 4 else None), dry
    for how, count in (("step", 4), ("read", 20), ("rising", 15)):
        dry, _, done = answer("--max-steps", "auto", command=[sys.executable, replica + "/loop.py", how], code=0,
                              PYTHONPATH=f"{scratch}:{replica}")
        assert done.stderr.splitlines()[1:] == [f"count {count}"], (how, done.stderr)
        assert dry["ended_after_steps"] == (count if count < 20 else None), dry
    assert run(command=[sys.executable, replica + "/loop.py", "step"], PYTHONPATH=replica).stdout.startswith("count 20\n")


REPLICA = os.path.dirname(os.path.abspath(__file__)) + "/torch_replica"


def wait(name, *options, code=0):
    """(dry_run, rounds that the loop made)"""
    dry, _, done = answer(*options, command=[sys.executable, REPLICA + "/waits.py", name], code=code, PYTHONPATH=REPLICA)
    return dry, int(done.stderr.split()[-1])


def loops_that_wait_for_the_device_are_ended():
    with open(REPLICA + "/waits.py", encoding="utf-8") as file:
        lines = file.read().splitlines()
    unsure = {"through_a_list", "or_by_a_count", "in_a_function"}
    for name in {"by_its_test", "in_its_test", "by_a_break", "by_a_raise", "without_an_end"} | unsure:
        dry, rounds = wait(name, "--once")
        count = dry["endless"]["count"]
        assert count == (16384 if name in unsure else 256) and count - 1 <= rounds <= 2 * count, (name, rounds, dry)
        assert dry["verdict"] == "fits" and dry["endless"]["grows"] is False, (name, dry)
        assert dry["endless"]["file"].endswith("waits.py"), (name, dry)
        assert dry["endless"]["has_exit"] is (name != "without_an_end"), (name, dry)
        line = dry["endless"]["line"]
        assert lines[line - 1].lstrip().startswith("while ") and f"def {name}():" in lines[line - 3:line], (name, line)
    done = run(command=[sys.executable, REPLICA + "/waits.py", "by_its_test"], PYTHONPATH=REPLICA)
    assert "ended after 256 rounds of the loop at waits.py:" in done.stdout, done.stdout


def a_second_run_is_for_loops_that_values_could_end():
    # Nothing can be computed with the replica, so that of two ways to do it the second is tried, too.
    for name, runs in (("by_its_test", 3), ("without_an_end", 1), ("at_once_by_a_break", 2), ("at_once_by_a_test", 2),
                       ("by_a_range", 1), ("by_a_count", 1)):
        run(command=["sh", "-c", 'echo run >> "$2"; exec "$0" "$1" "$3"', sys.executable, REPLICA + "/waits.py",
                     f"{scratch}/{name}", name], PYTHONPATH=REPLICA)
        with open(f"{scratch}/{name}", encoding="utf-8") as file:
            assert len(file.readlines()) == runs, name


def a_loop_that_takes_more_and_more_cannot_be_told():
    dry, rounds = wait("while_all_is_reserved", "--once", code=5)
    assert dry["verdict"] == "undecided" and dry["endless"]["grows"] is True and rounds == 2048, (rounds, dry)
    done = run("--once", command=[sys.executable, REPLICA + "/waits.py", "while_all_is_reserved"], PYTHONPATH=REPLICA)
    assert "cannot be told: the loop at waits.py:" in done.stdout, done.stdout


def loops_that_end_by_themselves_go_on():
    for name in ("by_a_count", "by_a_range", "by_a_count_too", "by_an_exception", "in_a_generator",
                 "by_a_range_of_steps", "while_more_is_reserved", "on_the_host"):
        dry, rounds = wait(name)
        assert rounds == 3000 and dry["endless"] is None and dry["verdict"] == "fits", (name, rounds, dry)


LATE_THREAD = """
import ctypes, os, sys, threading
libc, key, (reader, writer) = ctypes.CDLL(None), ctypes.c_uint(), os.pipe()
libc.pthread_key_create(ctypes.byref(key), ctypes.cast(libc._exit, ctypes.c_void_p))
is_there = threading.Event()

def wait():
    libc.pthread_setspecific(key, ctypes.c_void_p(3))
    is_there.set()
    os.read(reader, 1)

class Last:
    def __del__(self, libc=libc, write=os.write, writer=writer):
        write(writer, b"x")
        libc.usleep(500000)

threading.Thread(target=wait, daemon=True).start()
is_there.wait()
sys.last = Last()
"""


def a_thread_that_comes_too_late_does_not_abort_the_program():
    """It wants Python's lock when Python finalizes. Were it ended there, its destructor would end the program by 3."""
    _, _, done = answer(command=[sys.executable, "-c", LATE_THREAD], code=0)
    assert done.returncode == 0, done


def a_framework_without_cuda_tells_nothing():
    command = [sys.executable, REPLICA + "/waits.py", "by_a_range"]
    dry, _, _ = answer(command=command, code=125, PYTHONPATH=REPLICA, REPLICA="without CUDA")
    assert dry["verdict"] == "undecided" and "PyTorch" in dry["reason"] and "without CUDA" in dry["reason"], dry


def an_exception_is_named():
    write_program("raises.py", "import json\n\n\ndef read():\n    return json.loads('{')\n\n\nread()\n")
    dry, _, done = answer(command=[sys.executable, "raises.py"], code=1)
    assert dry["raised"]["line"] == 5 and dry["raised"]["file"].endswith("raises.py"), dry
    assert dry["raised"]["exception"].startswith("JSONDecodeError: ") and "Traceback" in done.stderr, dry
    done = run(command=[sys.executable, "raises.py"])
    assert 'cannot be told: the command failed at raises.py:5 with "JSONDecodeError: ' in done.stdout, done.stdout
    assert "--devices" not in done.stdout, done.stdout
    write_program("second.py", "raise RuntimeError('CUDA error: invalid device ordinal')\n")
    done = run("--devices", "2", command=[sys.executable, "second.py"])
    assert "The program saw 2 GPUs; --devices N shows it more." in done.stdout, done.stdout
    dry, _, _ = answer(command=["sh", "-c", "kill -SEGV $$"], code=139)
    assert dry["raised"] is None, dry
    assert "ended by signal 11 (" in run(command=["sh", "-c", "kill -SEGV $$"]).stdout


NVML_PROGRAM = """
import ctypes, json, uuid
nvml, cuda = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1")
text, number, other = ctypes.create_string_buffer(96), ctypes.c_int(), ctypes.c_int()
size, handle, memory = ctypes.c_size_t(), ctypes.c_void_p(), (ctypes.c_ulonglong * 3)()
early = nvml.nvmlDeviceGetCount(ctypes.byref(number))
assert nvml.nvmlInitWithFlags(0) == nvml.nvmlInit_v2() == nvml.nvmlShutdown() == cuda.cuInit(0) == 0
found = []
assert nvml.nvmlDeviceGetCount(ctypes.byref(number)) == 0
for device in range(number.value):
    assert nvml.nvmlDeviceGetHandleByIndex(device, ctypes.byref(handle)) == 0
    of_nvml, of_cuda = [], []
    assert nvml.nvmlDeviceGetName(handle, text, 96) == 0
    of_nvml.append(text.value.decode())
    assert nvml.nvmlDeviceGetName(handle, text, 5) == 7
    assert nvml.nvmlDeviceGetUUID(handle, text, 96) == 0
    of_nvml.append(text.value.decode())
    again = ctypes.c_void_p()
    assert nvml.nvmlDeviceGetHandleByUUID(text, ctypes.byref(again)) == 0 and again.value == handle.value
    assert nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(number), ctypes.byref(other)) == 0
    of_nvml.append([number.value, other.value])
    assert nvml.nvmlDeviceGetMemoryInfo(handle, memory) == 0
    of_nvml.append(memory[0])
    pci = ctypes.create_string_buffer(68)
    assert nvml.nvmlDeviceGetPciInfo_v3(handle, pci) == 0
    of_nvml.append(pci.raw[36:].rstrip(b"\\0").decode()[4:])
    assert nvml.nvmlDeviceGetP2PStatus(handle, handle, 0, ctypes.byref(number)) == 0
    assert nvml.nvmlDeviceGetIndex(handle, ctypes.byref(number)) == 0 and number.value == device
    second = (ctypes.c_ulonglong * 5)(40 | 2 << 24)  # a version, total, reserved, free, used
    assert nvml.nvmlDeviceGetMemoryInfo_v2(handle, second) == 0 and [second[1], second[3]] == list(memory)[:2]
    assert nvml.nvmlDeviceGetUtilizationRates(handle, (ctypes.c_uint * 2)()) == 0
    assert nvml.nvmlDeviceGetTemperature(handle, 0, ctypes.byref(number)) == 3
    fields = (ctypes.c_uint * 20)(91, 0)  # two of 40 bytes: the number of a figure first, its result seventh
    assert nvml.nvmlDeviceGetFieldValues(handle, 2, fields) == 0 and [fields[7], fields[17]] == [3, 3]
    assert nvml.nvmlDeviceGetPcieSpeed(handle, ctypes.byref(number)) == 0
    assert nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle, ctypes.byref(other)) == 0
    assert (number.value, other.value) == {8: (16000, 4), 12: (32000, 5)}[of_nvml[2][0]]
    cores = (ctypes.c_ulong * 64)()
    assert nvml.nvmlDeviceGetCpuAffinity(handle, 64, cores) == 0 and cores[0] & 1
    assert nvml.nvmlDeviceGetArchitecture(handle, ctypes.byref(number)) == 0
    assert number.value == {8: 8, 12: 10}[of_nvml[2][0]]
    assert cuda.cuDeviceGetName(text, 96, device) == 0
    of_cuda.append(text.value.decode())
    assert cuda.cuDeviceGetUuid(text, device) == 0
    of_cuda.append("GPU-" + str(uuid.UUID(bytes=text.raw[:16])))
    assert cuda.cuDeviceGetAttribute(ctypes.byref(number), 75, device) == 0
    assert cuda.cuDeviceGetAttribute(ctypes.byref(other), 76, device) == 0
    of_cuda.append([number.value, other.value])
    assert cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0
    of_cuda.append(size.value)
    assert cuda.cuDeviceGetPCIBusId(text, 96, device) == 0
    of_cuda.append(text.value.decode())
    found.append([of_nvml, of_cuda])
ends = [nvml.nvmlShutdown(), nvml.nvmlDeviceGetCount(ctypes.byref(number)), nvml.nvmlShutdown()]
print(json.dumps([early, found, ends]))
"""


def nvml_is_found_and_says_what_the_driver_says():
    for device, capability in (("rtx5090", [12, 0]), ("l4", [8, 9])):
        done = run("--device", device, "--devices", "2", command=[sys.executable, "-c", NVML_PROGRAM],
                   GPUMEM_NVML="0")
        line = next((line for line in done.stdout.splitlines() if line.startswith("[")), None)
        assert line, (done.stdout, done.stderr)
        early, found, ends = json.loads(line)
        assert early == 1 and ends == [0, 1, 0], (early, ends)  # 1: NVML_ERROR_UNINITIALIZED
        assert len(found) == 2 and found[0][0][1] != found[1][0][1], found
        for of_nvml, of_cuda in found:
            assert of_nvml == of_cuda and of_nvml[2] == capability and "simulated" in of_nvml[0], (of_nvml, of_cuda)


# Each refused map differs from one that is taken in what its key names. Strides and boxes of a tensor of 64 x 128 halves.
TENSOR_MAPS = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
room = ctypes.create_string_buffer(256)
aligned = (ctypes.addressof(room) + 63) // 64 * 64
assert cuda.cuInit(0) == 0

def encode(at=aligned, kind=6, rank=2, address=0x10000, dimensions=(128, 64), strides=(256,), box=(64, 8), steps=(1, 1),
           interleave=0, swizzle=3, promotion=2, fill=0):
    return cuda.cuTensorMapEncodeTiled(
        ctypes.c_void_p(at), kind, rank, ctypes.c_void_p(address), (ctypes.c_uint64 * rank)(*dimensions),
        (ctypes.c_uint64 * rank)(*strides), (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*steps), interleave,
        swizzle, promotion, fill)

def im2col(lower=(0, 0), upper=(1, 1), channels=64, pixels=128):
    return cuda.cuTensorMapEncodeIm2col(
        ctypes.c_void_p(aligned), 6, 4, ctypes.c_void_p(0x10000), (ctypes.c_uint64 * 4)(64, 8, 8, 2),
        (ctypes.c_uint64 * 3)(128, 1024, 8192), (ctypes.c_int * 2)(*lower), (ctypes.c_int * 2)(*upper), channels, pixels,
        (ctypes.c_uint32 * 4)(1, 1, 1, 1), 0, 3, 0, 0)

taken = [encode(), encode(swizzle=0, box=(256, 256)), encode(rank=1, dimensions=(128,), strides=(), box=(8,), steps=(1,)),
         encode(dimensions=(1 << 32, 64)), encode(steps=(9, 8)), im2col(), im2col(lower=(-128, 0))]
refused = [encode(at=aligned + 16), encode(kind=16), encode(rank=0, dimensions=(), strides=(), box=(), steps=()),
           encode(address=0x10008), encode(dimensions=(0, 64)), encode(dimensions=((1 << 32) + 1, 64)),
           encode(strides=(250,)), encode(strides=(1 << 40,)), encode(box=(64, 257)), encode(box=(64, 0)),
           encode(box=(4, 8)), encode(box=(128, 8)), encode(steps=(1, 9)), encode(steps=(1, 0)), encode(interleave=1),
           encode(swizzle=7), encode(promotion=4), encode(fill=2), im2col(channels=257), im2col(pixels=1025),
           im2col(upper=(128, 1))]
encode()
moved = [cuda.cuTensorMapReplaceAddress(ctypes.c_void_p(aligned), ctypes.c_void_p(address)) for address in (32, 8)]
print(json.dumps([taken, refused, moved]))
"""


def tensor_maps_are_made_and_refused_as_cuda_says():
    for device, ok, bad in (("h100", 0, 1), ("rtx5090", 0, 1), ("a100-80", 801, 801)):
        done = run("--device", device, command=[sys.executable, "-c", TENSOR_MAPS])
        line = next((line for line in done.stdout.splitlines() if line.startswith("[")), None)
        assert line, (done.stdout, done.stderr)
        taken, refused, moved = json.loads(line)
        assert set(taken) == {ok} and set(refused) == {bad} and moved == [ok, bad], (device, taken, refused, moved)


# The linker's inputs are PTX, and the same with what only the genuine one can read.
LINKED = """
import ctypes, json, sys
linker, cuda = ctypes.CDLL(sys.argv[1]), ctypes.CDLL("libcuda.so.1")
PTX, LTOIR, ANY = 2, 3, 10

def link(suffix, *inputs):
    call = lambda name, *arguments: getattr(linker, f"__nvJitLink{name}_13_0" if suffix else f"nvJitLink{name}")(*arguments)
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    results = [call("Create", ctypes.byref(handle), 1, (ctypes.c_char_p * 1)(b"-arch=sm_90"))]
    for kind, name, data in inputs:
        results.append(call("AddFile", handle, kind, data) if name is None else
                       call("AddData", handle, kind, data, ctypes.c_size_t(len(data)), name))
    results += [call("Complete", handle), call("GetLinkedCubinSize", handle, ctypes.byref(size))]
    image = ctypes.create_string_buffer(max(size.value, 1))
    results += [call("GetLinkedCubin", handle, image), call("Destroy", ctypes.byref(handle))]
    return results, image.raw[:size.value], handle.value

def size_of(image, name):
    module, pointer, size, context = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_void_p()
    assert not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or cuda.cuCtxSetCurrent(context) or
                cuda.cuModuleLoadData(ctypes.byref(module), image))
    return size.value if cuda.cuModuleGetGlobal_v2(ctypes.byref(pointer), ctypes.byref(size), module, name) == 0 else None

one, two = b".version 8.8\\n.global .b8 one[24];\\n", b"// more\\n.global .b8 two[40];"
results, image, handle = link(True, (PTX, b"one", one + b"\\0"), (ANY, b"two", two))
assert not any(results) and handle is None and image == one + b"\\n" + two + b"\\0", (results, image)
assert (size_of(image, b"one"), size_of(image, b"two"), size_of(image, b"three")) == (24, 40, None)
for suffix in (False, True):
    results, image, handle = link(suffix, (PTX, b"one", one), (LTOIR, b"two", b"BC"), (PTX, b"three", two), (5, None, b"file.o"))
    assert not any(results) and image == b"-arch=sm_90 1; one 2; two 3; three 2; file.o 5; complete 0; \\0", (results, image)
assert link(True)[0] == [0, 3, 0, 0, 0]
major, minor = ctypes.c_uint(), ctypes.c_uint()
assert linker.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor)) == 0 and (major.value, minor.value) == (13, 7)
print("linked", linker._name)
"""


def ptx_is_its_own_device_code():
    done = run(command=[sys.executable, "-c", LINKED, FOLDER + "/lib/libnvJitLink.so.13"])
    assert done.returncode == 0 and "linked" in done.stdout, (done.stdout[-300:], done.stderr[-2000:])


CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TILELANG_CACHE_DIR", "VLLM_CACHE_ROOT", "SGLANG_CACHE_DIR",
          "FLASHINFER_AUTOTUNE_CACHE_DIR", "FLASHINFER_AUTOTUNE_DIR", "QUACK_CACHE_DIR")


def what_a_dry_run_compiles_is_not_found_by_real_runs():
    """Each run says what it finds in the caches, and puts something there."""
    users, own = scratch + "/users", scratch + "/own"
    program = ("import os, sys\nfor name in sys.argv[1:]:\n    os.makedirs(os.environ[name], exist_ok=True)\n"
               "    print(name, os.listdir(os.environ[name]))\n    open(os.environ[name] + '/compiled', 'w').close()\n"
               "print(os.environ['JAX_ENABLE_COMPILATION_CACHE'])")
    for environment, found in (({}, []), ({}, ["compiled"]), ({"GPUMEM_DRY_CACHES": own}, []),
                               ({"GPUMEM_DRY_CACHES": own}, ["compiled"])):
        done = run("--once", command=[sys.executable, "-c", program, *CACHES], **{name: users for name in CACHES}, **environment)
        said = [f"{name} {found}" for name in CACHES] + ["false"]
        assert done.returncode == 0 and done.stdout.splitlines()[:len(said)] == said, (done.stdout, done.stderr)
    assert not os.path.exists(users) and len(os.listdir(own)) == len(CACHES) == len(os.listdir(scratch + "/cache/gpumem/dry-compiled"))


# Servers of several processes: how they say that they serve, and what they do when they are told to end.
SERVER = r"""
import ctypes, os, signal, subprocess, sys, time
def allocate(size):
    cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
    assert not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or
                cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)))
how = sys.argv[1]
if how == "worker":
    allocate(200 << 20)
    print("ready", flush=True)
    signal.pause()
worker = subprocess.Popen([sys.executable, sys.argv[0], "worker"], stdout=subprocess.PIPE)
worker.stdout.readline()
allocate(100 << 20)
if how == "fails":
    worker.kill()
    sys.exit(9)
try:
    if how != "silent":
        sys.stderr.write("INFO:     Application start")
        sys.stderr.flush()
        time.sleep(0.2)
        sys.stderr.write("up complete.\n")
        sys.stderr.flush()
    while True:
        time.sleep(3600)
except KeyboardInterrupt:
    worker.wait()
    print("ended in good order", flush=True)
    sys.exit(3)
"""


def a_server_is_ended_when_it_serves():
    path = write_program("server.py", SERVER)
    for command in ([sys.executable, path, "serves"], ["sh", "-c", f"'{sys.executable}' {path} serves; true"],
                    [sys.executable, path, "silent"]):
        done = run("--once", "--until-ready", command=command)
        assert done.returncode == 0 and "ended in good order" in done.stdout, (command, done)
        assert "needs 820 MiB" in done.stdout and "up complete" in done.stderr or "silent" in command, (command, done)
        assert ("nothing has happened" if "silent" in command else "it serves, and is ended") in done.stderr, done
    assert run("--once", "--until-ready", command=[sys.executable, path, "fails"]).returncode == 9
    assert run("--once", "--until-ready", command=[PROGRAM, "keep", str(64 << 20)]).returncode == 0
    done = run("--once", "--until-ready", command=["/nonexistent/program"])
    assert done.returncode == 127 and len(done.stderr.strip().splitlines()) == 1, done


# As setproctitle does, with the environment that /proc shows.
WRITE_OVER = """
start = ctypes.cast(ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value, ctypes.POINTER(ctypes.c_void_p))[0]
with open("/proc/self/environ", "rb") as file:
    size = len(file.read())
ctypes.memset(start, ord("x"), size)
"""

TITLED = """
import ctypes, subprocess, sys, time
if len(sys.argv) == 1:
    subprocess.run([sys.executable, sys.argv[0], "worker"])
""" + WRITE_OVER + """
print("titled", flush=True)
time.sleep(60)
"""


def a_process_that_wrote_over_its_environment_is_of_the_run():
    """It has to be waited for as the others."""
    path = write_program("titled.py", TITLED)
    os.environ["GPUMEM_DRY_STATUS"] = "of this test"
    with subprocess.Popen([sys.executable, path], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        found = set(until_ready.of_this_run())
        for one in {process.pid, *found}:
            os.kill(one, signal.SIGKILL)
    del os.environ["GPUMEM_DRY_STATUS"]
    assert len(found) == 2 and process.pid in found, (found, process.pid)


def the_command_s_own_failure_is_passed_on():
    dry, _, _ = answer(command=["sh", "-c", "exit 7"], code=7)
    assert dry["verdict"] == "undecided" and dry["command_exit"] == 7, dry


def what_is_wrong_is_said_in_one_line():
    for options in (["--device", "gtx1"], ["--memory", "12 apples"], ["--devices", "17"], ["--frobnicate"]):
        done = run(*options, command=["true"])
        assert done.returncode == 2 and len(done.stderr.strip().splitlines()) == 1, done
    assert run(command=["/nonexistent/program"]).returncode == 127


WAITS = r"""
import ctypes, os, pathlib, sys, time
cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or
            cuda.cuCtxSetCurrent(context) or cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(300 << 20)))
runs = pathlib.Path("runs")
runs.write_text((runs.read_text() if runs.exists() else "") + "run\n")
if len(runs.read_text().splitlines()) == int(sys.argv[1]):
    pathlib.Path("process").write_text(str(os.getpid()))
    exec(sys.argv[2])
    os.rename("process", "waits")
    time.sleep(600)
"""


def wait_until(holds):
    begin = time.monotonic()
    while not holds():
        assert time.monotonic() < begin + 60, "it never came"
        time.sleep(0.02)


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(number, *options, wait_in=1, then=""):
    """A dry run below a shell, which does not pass signals on, that is ended in one of its runs."""
    here, temporary = tempfile.mkdtemp(dir=scratch), tempfile.mkdtemp(dir=scratch)
    script = f"'{sys.executable}' -c '{WAITS}' {wait_in} '{then}'; true"
    process = subprocess.Popen([GPUMEM, "dry-run", *options, "--", "sh", "-c", script], cwd=here, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=dict(os.environ, XDG_CACHE_HOME=scratch + "/cache", TMPDIR=temporary))
    wait_until(lambda: os.path.exists(here + "/waits"))
    with open(here + "/waits", encoding="ascii") as file:
        waiting = int(file.read())
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait(60)
        process.stdout.close()
        process.stderr.close()
        said = ("", "")
    else:
        said = process.communicate(timeout=60)
    wait_until(lambda: not is_alive(waiting) and not os.listdir(temporary))
    return process.returncode, *said


def ended_it_says_what_it_knows_and_leaves_nothing():
    for number in (signal.SIGTERM, signal.SIGHUP):
        code, said, _ = ended(number)
        assert code == 128 + number and "cannot be told" in said and "820 MiB needed so far" in said, (code, said)
        assert "300 MiB  other allocations" in said, said
    code, said, errors = ended(signal.SIGTERM, "--bounds", wait_in=2)
    assert code == 0 and "needs 820 MiB" in said and "ended by signal 15" in errors, (code, said, errors)
    assert ended(signal.SIGKILL)[0] == -signal.SIGKILL
    assert ended(signal.SIGKILL, then=WRITE_OVER)[0] == -signal.SIGKILL


def nothing_is_left_behind():
    folder, temporary = os.path.join(scratch, "here"), os.path.join(scratch, "temporary")
    os.mkdir(folder)
    os.mkdir(temporary)
    subprocess.run([GPUMEM, "dry-run", "--", PROGRAM, "known"], capture_output=True, cwd=folder, timeout=300, check=True,
                   env=dict(os.environ, TMPDIR=temporary))
    assert os.listdir(folder) == os.listdir(temporary) == []
    subprocess.run([GPUMEM, "dry-run", "-o", "kept.trace", "--", PROGRAM, "known"], capture_output=True, cwd=folder,
                   timeout=300, check=True)
    assert os.listdir(folder) == ["kept.trace"]


try:
    for test in (a_command_without_cuda_fits, a_math_library_is_replaced, a_replaced_library_is_built_once, a_runtime_that_a_wheel_brings_is_replaced,
                 what_fits_has_parts_that_add_up, the_edge_is_exact, the_sentence_names_the_line,
                 a_refusal_tells_the_whole_need, managed_memory_is_no_need, a_program_that_makes_do_with_less_fits, devices_differ, only_unknown_values_are_uncertain,
                 what_an_autotuner_sets_aside_is_no_value, printed_values_are_found_in_the_source,
                 a_runtime_of_nvidia_is_refused_by_name, a_compiler_of_nvidia_may_ask_for_tables,
                 a_library_without_a_stand_in_is_refused_by_name,
                 a_program_ends_after_so_many_steps, loops_that_wait_for_the_device_are_ended,
                 a_second_run_is_for_loops_that_values_could_end,
                 a_thread_that_comes_too_late_does_not_abort_the_program, a_loop_that_takes_more_and_more_cannot_be_told, loops_that_end_by_themselves_go_on,
                 a_framework_without_cuda_tells_nothing, an_exception_is_named,
                 nvml_is_found_and_says_what_the_driver_says, tensor_maps_are_made_and_refused_as_cuda_says, ptx_is_its_own_device_code,
                 what_a_dry_run_compiles_is_not_found_by_real_runs,
                 a_server_is_ended_when_it_serves, a_process_that_wrote_over_its_environment_is_of_the_run, the_command_s_own_failure_is_passed_on, what_is_wrong_is_said_in_one_line, ended_it_says_what_it_knows_and_leaves_nothing,
                 nothing_is_left_behind):
        test()
        print("ok  ", test.__name__.replace("_", " "))
finally:
    shutil.rmtree(scratch)
