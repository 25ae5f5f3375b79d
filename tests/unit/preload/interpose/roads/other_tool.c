/* A preloaded tool that shares only the name of its entry with us. */
int InitializeInjection(void);

int InitializeInjection(void)
{
    return 1;
}
