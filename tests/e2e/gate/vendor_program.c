/* Uses vendor_library.c, and never destroys its handle: vendor_program [compute]. */
#include <string.h>

int cublasCreate_v2(void **handle);
int cublasSgemm_v2(void);

int main(int count, char **arguments)
{
    void *handle;
    int failed = cublasCreate_v2(&handle);
    if (count > 1 && strcmp(arguments[1], "compute") == 0)
        failed |= cublasSgemm_v2();
    return failed;
}
