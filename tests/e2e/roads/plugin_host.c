/*
 * plugin_host MODE PLUGIN...: loads each plugin and lets all of them work. MODE is local, global,
 * deepbind, or namespace (dlmopen). Linked to no CUDA library itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void *load_plugin(const char *mode, const char *plugin)
{
    if (strcmp(mode, "namespace") == 0)
        return dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW);
    if (strcmp(mode, "deepbind") == 0)
        return dlopen(plugin, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    return dlopen(plugin, RTLD_NOW | (strcmp(mode, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
}

int main(int count, char **arguments)
{
    void *plugins[8];
    for (int i = 2; i < count && i < 8; i++) {
        plugins[i] = load_plugin(arguments[1], arguments[i]);
        if (plugins[i] == NULL) {
            printf("%s\n", dlerror());
            return 1;
        }
    }
    for (int i = 2; i < count && i < 8; i++) {
        void (*work)(const char *) = (void (*)(const char *))dlsym(plugins[i], "plugin_work");
        work(strrchr(arguments[i], '/') + 1);
        fflush(stdout);
    }
    return 0;
}
