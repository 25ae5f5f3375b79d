/* A preloaded tool that has nothing to do with us but the name of its entry. */
int InitializeInjection(void);

int InitializeInjection(void)
{
    return 1;
}
