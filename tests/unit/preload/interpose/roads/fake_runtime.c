/* A runtime with version nodes like the real one; NUMBER is its major version. */
__attribute__((visibility("default"))) int cudaMalloc(void);
__attribute__((visibility("default"))) int cudaFree(void);

int cudaMalloc(void)
{
    return NUMBER;
}

int cudaFree(void)
{
    return 100 + NUMBER;
}
