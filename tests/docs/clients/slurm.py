"""Stands in for Slurm on one machine: slurm.py sbatch SCRIPT | slurm.py srun COMMAND [ARGUMENT]..."""
import os
import re
import subprocess
import sys


def sbatch(script):
    """Runs the script at once, as job 4711, with the tasks that it asks for."""
    with open(script, encoding="utf-8") as file:
        tasks = re.search(r"^#SBATCH --ntasks=(\d+)$", file.read(), re.M)[1]
    return subprocess.call(["bash", script], env=dict(os.environ, SLURM_JOB_ID="4711", SLURM_NTASKS=tasks))


def srun(*command):
    count = int(os.environ["SLURM_NTASKS"])
    tasks = [subprocess.Popen(command, env=dict(os.environ, SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank)))
             for rank in range(count)]
    return max(task.wait() for task in tasks)


if __name__ == "__main__":
    sys.exit({"sbatch": sbatch, "srun": srun}[sys.argv[1]](*sys.argv[2:]))
