#!/usr/bin/env python3
"""Holds the simulator and api.table against what NVIDIA's drivers were seen to do: test_interface.py BUILD PROBE

interface.txt is what `make test-genuine` has seen. Here no driver of NVIDIA's is needed.
"""
import os
import sys

from interface import Interface, base
from probing import Prober, Tally, answered, exported

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../table"))
from coverage import Table  # noqa: E402

# The simulator alone has these: ABIs of a CUDA that does not exist (sim/driver/future.c), and what its runtime needs.
OWN = ("cuMemAlloc_v3", "cuMemAllocAsync_v2", "cuMemAllocAsync_v2_ptsz")


def check_table(tally, table, interface):
    newest = max(interface.drivers())
    tally.differ("api.table: the version of a symbol", [
        f"{symbol}: {table.since[symbol]} there, {since or 'none'} of NVIDIA's drivers"
        for symbol, (_, since) in interface.symbols.items() if symbol in table.since and table.since[symbol] != since])
    tally.differ("api.table: a symbol that NVIDIA's driver does not export", [
        symbol for symbol, since in table.since.items()
        if since and since <= newest and symbol not in interface.symbols])
    tally.differ("api.table: an ABI that is missing", [
        symbol for symbol in interface.symbols if base(symbol) in table.traced and symbol not in table.since])
    tally.differ("api.table: a function neither traced nor left out with a reason", [
        symbol for symbol in interface.symbols if symbol[2:3].isupper() and base(symbol) not in table.traced and
        base(symbol) not in table.left_out])


def check_exports(tally, interface, version, found):
    """Symbols that came later may be there too: exports are the same whatever version is simulated."""
    tally.differ(f"simulator as {version}: not exported", sorted(interface.exports(version) - found))
    tally.differ(f"simulator as {version}: exported, but by no driver of NVIDIA's",
                 sorted(name for name in found - set(interface.symbols) - set(OWN) if name.startswith("cu")))


def check_simulator(tally, interface, prober, build, version):
    """As a driver of that version, bare and under the preload."""
    library, settings = build + "/sim/libcuda.so.1", {"GPUMEM_SIM_DRIVER_VERSION": str(version)}
    lines = prober.run("answers", library, **settings)
    check_exports(tally, interface, version, exported(lines))
    for abi in (1, 2):
        tally.same(f"simulator as {version}, cuGetProcAddress v{abi}", list(interface.answers(version, abi, interface.names())),
                   answered(lines, abi))
    preloaded = prober.run("answers", library, preload=build + "/preload/libgpumem.so", **settings)
    tally.same(f"simulator as {version}, under the preload", lines, preloaded)


def main():
    build, probe = sys.argv[1:]
    interface, tally = Interface.read(), Tally()
    check_table(tally, Table(os.path.join(HERE, "../../preload/hooks/api.table")), interface)
    prober = Prober(probe, interface.names())
    for version in (11040, 12000, 12050, max(interface.drivers())):
        check_simulator(tally, interface, prober, build, version)
    print(f"{len(interface.symbols)} symbols, {len(interface.drivers())} versions: {tally.differences} differences")
    return 1 if tally.differences else 0


if __name__ == "__main__":
    sys.exit(main())
