/* Where the environment tells the place of a process in its job. The recorder records these
 * variables and expands %r of an output pattern by them; the reader names ranks by them. */
#ifndef GPUMEM_RANKS_H
#define GPUMEM_RANKS_H

/* Rank, rank on its host, number of ranks; NULL: not told. The innermost launcher first: torchrun
 * under Slurm sets its own variables, and those of Slurm are of the task that torchrun is. A pod of
 * an indexed Kubernetes job has the index alone. */
static const char *const gm_rank_variables[][3] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"}, /* torchrun, PyTorchJob */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"}, /* MPICH, Intel MPI */
    {"PMIX_RANK", 0, 0},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
    {"JOB_COMPLETION_INDEX", 0, 0}, /* Kubernetes */
};
#define GM_RANK_LAUNCHERS (sizeof(gm_rank_variables) / sizeof(gm_rank_variables[0]))

/* The name of the job, the first that is set. */
static const char *const gm_job_variables[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
                                               "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"};
#define GM_JOB_VARIABLES (sizeof(gm_job_variables) / sizeof(gm_job_variables[0]))

#endif
