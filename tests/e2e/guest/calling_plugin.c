/* A plugin whose constructor calls back into the program under the loader's lock. */
extern void (*waiting_constructor_calls)(void);

__attribute__((constructor)) static void run(void)
{
    waiting_constructor_calls();
}
