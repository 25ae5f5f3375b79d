"""Stands in for torchrun: starts a script once for each rank, with the environment that torchrun gives.

    torchrun.py --nproc-per-node N SCRIPT [ARGUMENT]...
"""
import os
import subprocess
import sys


def main():
    assert sys.argv[1] == "--nproc-per-node"
    count, command = int(sys.argv[2]), ["python", *sys.argv[3:]]
    ranks = [subprocess.Popen(command, env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count),
                                                TORCHELASTIC_RUN_ID="one")) for rank in range(count)]
    return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
