/* A plugin whose constructor, under the loader's lock, does what the program asks of it. */
extern void (*waiting_constructor_calls)(void);

__attribute__((constructor)) static void run(void)
{
    waiting_constructor_calls();
}
